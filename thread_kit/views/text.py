"""An episode as text: the tree of threads, and one thread to the character.

The same tokens always give the same text: no times, and nothing of a cache that outlives the
episode. Those are in `episode.summary`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise, takewhile

from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import clip, column_widths, describe_usage, pluralize, sanitize
from thread_kit.views.view_model import Action, Branch, EpisodeView, Piece, ThreadView, view_episode

WIDTH = 92
INDENTED = 8
"""Levels that are indented; from there on, a line says its depth instead."""


def episode_text(episode: Episode, *, width: int = WIDTH) -> str:
    """The tree: a line a thread with its costs, below it its children and actions in their order.

    Lines are at most `width` characters long; a title that is cut ends in an ellipsis, or begins
    with one in place of what it shares with a sibling beside it. A thread that did not end by
    itself says why in a line of its own.
    """
    view = view_episode(episode)
    lines = [_fit(*row, width) for row in _rows(view)]
    totals = f"{view.status} · {view.totals}"
    head, mark, costs = totals.partition(" · generated ")
    lines += [totals] if len(totals) <= width else [head, f"generated {costs}" if mark else ""]
    if view.detail:
        lines.append(clip(view.detail, width))
    lines += [clip(prompt.label, width) for prompt in view.prompts.values()]
    return "\n".join(lines)


def _rows(view: EpisodeView) -> Iterator[tuple[str, str, int, str]]:
    """Each line of the tree: its mark, its text, how many characters may go, what stands right."""
    columns = column_widths(thread.usage for thread in view.threads.values())
    # No recursion: a tree may be deeper than Python's stack.
    waiting: list[tuple[str, str, int | str]] = [
        ("", "", thread.id) for thread in reversed(view.threads.values()) if thread.parent is None
    ]
    shared: dict[int, int] = {}
    while waiting:
        head, below, item = waiting.pop()
        if isinstance(item, str):
            yield head, item, 0, ""
            continue
        thread = view.threads[item]
        mark = f"{head}{thread.id} {thread.status_text}  "
        costs = describe_usage(thread.usage, columns)
        yield mark, thread.label, shared.get(thread.id, 0), costs
        items = list(_below(thread))
        shared |= _shared_beginnings([view.threads[n] for n in items if isinstance(n, int)])
        for place, item in reversed(list(enumerate(items))):
            last = place == len(items) - 1
            if thread.depth < INDENTED:
                waiting.append((below + "├└"[last] + "─ ", below + "│ "[last] + "  ", item))
            else:
                depth = thread.depth + isinstance(item, int)  # an action has its thread's
                waiting.append((f"{below}[depth {depth}] ", below, item))


def _shared_beginnings(siblings: Sequence[ThreadView]) -> dict[int, int]:
    """How many characters of its title a thread shares, word by word, with a sibling beside it."""
    shared = dict.fromkeys((thread.id for thread in siblings), 0)
    for left, right in pairwise(siblings):
        words = zip(left.label.split(" "), right.label.split(" "), strict=False)
        begin = sum(len(word) + 1 for word, _ in takewhile(lambda two: two[0] == two[1], words))
        if left.label != right.label:
            shared[left.id] = max(shared[left.id], begin)
            shared[right.id] = max(shared[right.id], begin)
    return shared


def _below(thread: ThreadView) -> Iterator[int | str]:
    """What stands below a thread: children, actions, failed lines, and why it was cut."""
    acted = 0
    for item in thread.sequence:
        if isinstance(item, Branch):
            yield item.branch
        elif item.action is not None:
            yield action_text(thread.actions[item.action])
            acted = item.action + 1
    yield from map(action_text, thread.actions[acted:])
    yield from (
        f"! {_flat(line.error)}  in  {line.line.strip()}" for line in thread.lines if line.error
    )
    if thread.detail:
        yield f"! {_flat(thread.detail)}"


def action_text(action: Action) -> str:
    """> get 2 oak log  =>  Got 2 oak log"""
    executed = "" if action.reward is not None else " (not executed)"
    return f"> {_flat(action.action)}{executed}  =>  {_flat(action.observation)}"


def thread_text(episode: Episode, thread: int) -> str:
    """One thread to the character: what it saw, wrote and got back, and from where.

    The margin names where each piece comes from; `┆` instead of `│` marks text that goes on in the
    line above it. Raises KeyError for a thread that does not exist.
    """
    view = view_episode(episode)
    shown = view.threads[thread]
    rows = [f"Thread {thread}, depth {shown.depth}, {shown.status_text}: {shown.label}"]
    if shown.detail:
        rows.append(f"  {shown.detail}")
    if shown.prompt in view.prompts:
        prompt = view.prompts[shown.prompt]
        rows += _margin("few-shot", f"({prompt.name}: {pluralize(prompt.tokens, 'token')})")
    flows = False  # the text above has not ended its line
    for item in (shown.context, *shown.sequence):
        if isinstance(item, Branch):
            child = view.threads[item.branch]
            rows += _margin("spawned", f"(thread {child.id}, {child.status_text}: {child.label})")
        else:
            rows += _margin(_label(item), item.text, flows)
            flows = not item.text.endswith("\n")
    for name, meaning in shown.futures:
        rows += _margin("future", f"{name} is {meaning}")
    for name, value in shown.variables:
        rows += _margin("variable", f"{name} = {value}")
    for line in shown.lines:
        if line.error:
            rows += _margin("error", f"{line.error}  in  {line.line}")
    rows.append(f"{shown.costs} · by threads below {view.work[thread]:,}")
    return "\n".join(rows)


def read_text(episode: Episode, thread: int) -> str:
    """All that the model has read in a thread (`Episode.seen`), safe to print in a terminal.

    Raises KeyError for a thread that does not exist.
    """
    return sanitize(episode.seen(thread))


def _label(piece: Piece) -> str:
    return str(piece.provenance) + ("" if piece.child is None else f" {piece.child}")


def _margin(label: str, text: str, flows: bool = False) -> list[str]:
    lines = text.removesuffix("\n").split("\n")
    marks = ["┆" if flows else "│", *["│"] * (len(lines) - 1)]
    labels = [label, *[""] * (len(lines) - 1)]
    return [
        f"{label:<12}{mark} {line}".rstrip()
        for label, mark, line in zip(labels, marks, lines, strict=True)
    ]


def _flat(text: str | None) -> str:
    """One line; each line break is a mark."""
    return (text or "").replace("\n", " ⏎ ").strip()


def _fit(mark: str, text: str, shared: int, right: str, width: int) -> str:
    """A line: the text is cut at its end, and before that by words that a sibling has as well."""
    if not right:
        return clip(mark + text, width)
    room = max(width - len(right) - 2, 1)
    if shared and len(mark + text) > room:
        starts = accumulate(len(word) + 1 for word in text[:shared].split(" ")[:-1])
        fits = (start for start in starts if len(mark) + 2 + len(text) - start <= room)
        text = f"… {text[next(fits, shared) :]}"
    return f"{clip(mark + text, room):<{room}}  {right}"

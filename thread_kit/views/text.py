"""An episode as text: the tree of threads, and one thread to the character.

The same tokens always give the same text: no times, and nothing of a cache that outlives the
episode. Those are in `episode.summary`.
"""

from __future__ import annotations

from collections.abc import Iterator

from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import column_widths, costs, count
from thread_kit.views.view_model import Action, Branch, EpisodeView, Piece, ThreadView, view

WIDTH = 92
INDENTED = 8
"""Levels that are indented; from there on, a line says its depth instead."""


def episode_text(episode: Episode, *, width: int = WIDTH) -> str:
    """The tree: a line a thread with its costs, below it its children and actions in their order.

    Lines are at most `width` characters long; a title that is cut ends in an ellipsis. A thread
    that did not end by itself says why in a line of its own.
    """
    seen = view(episode)
    lines = [_fit(left, right, width) for left, right in _rows(seen)]
    head, mark, costs_of_all = seen.totals.partition(" · generated ")
    fits = len(seen.totals) <= width
    lines += [seen.totals] if fits else [head, f"generated {costs_of_all}" if mark else ""]
    if seen.detail:
        lines.append(_clip(seen.detail, width))
    for prompt in seen.prompts.values():
        lines.append(
            _clip(f"few-shot prompt {prompt.name}: {count(prompt.tokens, 'token')}", width)
        )
    return "\n".join(lines)


def _rows(seen: EpisodeView) -> Iterator[tuple[str, str]]:
    """What stands left and what stands right on each line of the tree."""
    columns = column_widths(one.usage for one in seen.threads.values())
    # No recursion: a tree may be deeper than Python's stack.
    waiting: list[tuple[str, str, int | str]] = [
        ("", "", one.id) for one in reversed(seen.threads.values()) if one.parent is None
    ]
    while waiting:
        head, below, item = waiting.pop()
        if isinstance(item, str):
            yield head + item, ""
            continue
        one = seen.threads[item]
        yield f"{head}{one.id} {one.doing}  {one.name}", costs(one.usage, columns)
        items = list(_below(one))
        for place, item in reversed(list(enumerate(items))):
            last = place == len(items) - 1
            if one.depth < INDENTED:
                waiting.append((below + "├└"[last] + "─ ", below + "│ "[last] + "  ", item))
            else:
                waiting.append((f"{below}[depth {one.depth + 1}] ", below, item))


def _below(one: ThreadView) -> Iterator[int | str]:
    """What stands below a thread: children, actions, failed lines, and why it was cut."""
    acted = 0
    for item in one.sequence:
        if isinstance(item, Branch):
            yield item.branch
        elif item.action is not None:
            yield action_text(one.actions[item.action])
            acted = item.action + 1
    yield from map(action_text, one.actions[acted:])
    yield from (f"! {_flat(ran.error)}  in  {ran.line.strip()}" for ran in one.lines if ran.error)
    if one.detail:
        yield f"! {_flat(one.detail)}"


def action_text(action: Action) -> str:
    """> get 2 oak log  =>  Got 2 oak log"""
    executed = "" if action.reward is not None else " (not executed)"
    return f"> {_flat(action.action)}{executed}  =>  {_flat(action.observation)}"


def thread_text(episode: Episode, thread: int) -> str:
    """One thread to the character: what it saw, wrote and got back, and from where.

    The margin names where each piece comes from; `┆` instead of `│` marks text that goes on in the
    line above it. Raises KeyError for a thread that does not exist.
    """
    seen = view(episode)
    one = seen.threads[thread]
    rows = [f"Thread {one.id}, depth {one.depth}, {one.doing}: {one.name}"]
    if one.detail:
        rows.append(f"  {one.detail}")
    if one.prompt in seen.prompts:
        prompt = seen.prompts[one.prompt]
        rows += _margin("few-shot", f"({prompt.name}: {count(prompt.tokens, 'token')})")
    flows = False  # the text above has not ended its line
    for item in (one.context, *one.sequence):
        if isinstance(item, Branch):
            child = seen.threads[item.branch]
            rows += _margin("spawned", f"(thread {child.id}, {child.doing}: {child.name})")
        else:
            rows += _margin(_label(item), item.text, flows)
            flows = not item.text.endswith("\n")
    rows += [line for name, gave in one.futures for line in _margin("future", f"{name} is {gave}")]
    rows += [
        line for name, value in one.variables for line in _margin("variable", f"{name} = {value}")
    ]
    rows += [
        line
        for ran in one.lines
        if ran.error
        for line in _margin("error", f"{ran.error}  in  {ran.line}")
    ]
    below = seen.work[thread]
    rows.append(
        f"{count(one.usage.calls, 'call')} · {costs(one.usage)} · by threads below {below:,}"
    )
    return "\n".join(rows)


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
    """One line, with line breaks to be seen."""
    return (text or "").replace("\n", " ⏎ ").strip()


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _fit(left: str, right: str, width: int) -> str:
    if not right:
        return _clip(left, width)
    room = max(width - len(right) - 2, 1)
    return f"{_clip(left, room):<{room}}  {right}"

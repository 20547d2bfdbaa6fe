"""An episode as static HTML: what a notebook shows, also on a forge, in nbviewer, with no kernel.

What such pages do to HTML decides the form. There is no script, no link and no style sheet: pages
strip them, or print them. Folding is `<details>`, which needs no script. All styles are attributes
on the elements; where they are stripped as well, words still say what is generated and what is
returned, and nesting still says whose child a thread is. No colour of text or of the page is set,
only tints that let it through, so that it reads on light and on dark pages alike. Every text of a
model or of an environment is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import describe_usage, pluralize, shorten
from thread_kit.views.palette import NEUTRAL, PROVENANCE, status_colour, tint
from thread_kit.views.view_model import (
    MORE,
    EpisodeView,
    Piece,
    PromptView,
    ThreadView,
    view_episode,
)

TEXT = 50_000
"""Characters of one piece that are shown; what is cut is counted."""

NESTED = 40
"""Levels inside one another; deeper ones start anew below (browsers give up at 512 elements)."""

FOLDED = 8
"""A context of more lines than this is folded."""

_FONT = "font-family:var(--jp-code-font-family,ui-monospace,monospace);font-size:13px;"
_WRAP = "word-break:normal;overflow-wrap:anywhere;"
_SMALL = "font-size:85%;opacity:.8;"


def episode_html(episode: Episode) -> str:
    """One element that holds the whole episode, folded but for the main thread and for the path to
    each thread that did not end by itself.

    The same tokens always give the same HTML: no times, and nothing that a cache changes.
    """
    view = view_episode(episode)
    return (
        '<div style="line-height:1.4;max-width:75em">'
        f"<p><b>{_status(view.status)}</b> {_text(view.totals)}</p>"
        + (f"<p><b>{_text(view.detail)}</b></p>" if view.detail else "")
        + _legend(view)
        + "".join(_prompt(view, name, prompt) for name, prompt in view.prompts.items())
        + "".join(_threads(view))
        + "</div>"
    )


def _threads(view: EpisodeView) -> Iterator[str]:
    """The tree, depth first; without recursion, since it may be deeper than Python's stack."""
    waiting: list[str | int] = [
        thread.id for thread in reversed(view.threads.values()) if thread.parent is None
    ]
    below: list[int] = []
    pictures: dict[str, int] = {}  # where they are shown: each once
    while waiting or below:
        item = waiting.pop() if waiting else below.pop(0)
        if isinstance(item, str):
            yield item
            continue
        thread = view.threads[item]
        parts: list[str | int] = [_head(view, thread), _context(thread.context)]
        for piece in thread.sequence:
            if isinstance(piece, Piece):
                parts.append(_piece(piece))
            elif view.threads[piece.branch].depth % NESTED:
                parts.append(piece.branch)
            else:
                parts.append(f"<p><i>Thread {piece.branch} is shown below.</i></p>")
                below.append(piece.branch)
        parts += [
            _work(view, thread),
            _pictures(thread, pictures),
            _lines(thread),
            _futures(thread),
            _variables(thread),
            "</blockquote></details>",
        ]
        waiting += reversed(parts)


def _head(view: EpisodeView, thread: ThreadView) -> str:
    unfolded = " open" if thread.id in view.unfolded else ""
    edge = status_colour(thread.status)
    work = view.work[thread.id]
    tokens = describe_usage(thread.usage) + (f" · by threads below {work:,}" if work else "")
    return (
        f'<details{unfolded} style="margin:4px 0">'
        f'<summary style="cursor:pointer"><b>{thread.id}</b> '
        f"{_status(thread.status, thread.status_text)} "
        f"<bdi>{_text(thread.label)}</bdi> "
        f'<small style="{_SMALL}">(depth {thread.depth} · {tokens})</small></summary>'
        # Where styles are stripped, a quotation is indented, and so the tree can be seen.
        f'<blockquote style="margin:2px 0;padding:0 0 0 8px;border:0 solid {edge};'
        'border-left-width:3px;color:inherit;background:none">'
        + (f"<p><b>{_text(thread.detail)}</b></p>" if thread.detail else "")
    )


def _context(piece: Piece) -> str:
    lines = piece.text.count("\n")
    if lines <= FOLDED:
        return _piece(piece)
    summary = f"context: {pluralize(lines, 'line')}, {pluralize(piece.tokens, 'token')}"
    return f"<details>{_summary(summary)}{_piece(piece)}</details>"


def _piece(piece: Piece) -> str:
    colour = PROVENANCE[piece.provenance]
    return (
        f'<div style="display:flex;margin:1px 0;background:{tint(colour, 0.13)};'
        f'border-left:3px solid {colour}">'
        f'<small style="{_SMALL}flex:none;width:12em;padding:2px 6px">{piece.label} '
        f"({piece.tokens:,})</small>{_pre(piece.text)}</div>"
    )


def _pre(text: str) -> str:
    style = f"{_FONT}margin:0;padding:2px 6px;white-space:pre-wrap;{_WRAP}"
    # A newline that directly follows <pre> is not shown, so one is put there to be swallowed.
    return f'<pre style="{style}background:none">\n{_text(shorten(text, TEXT))}</pre>'


def _lines(thread: ThreadView) -> str:
    """What the thread's own lines printed, and how they failed."""
    if not thread.lines:
        return ""
    failed = sum(line.error is not None for line in thread.lines)
    summary = f"lines that printed or failed: {len(thread.lines)}" + (
        f" ({failed} failed)" if failed else ""
    )
    rows = [(line.line.strip(), line.error or line.printed or "") for line in thread.lines]
    return _table(summary, ("line", "printed, or error"), rows, is_open=bool(failed))


def _work(view: EpisodeView, thread: ThreadView) -> str:
    """Figure 3 of THREAD paper (appendix A): a column a piece, as wide as it has tokens, as high as
    the work of the threads that were spawned for it."""
    pieces = [(piece, _work_for(view, piece)) for piece in thread.pieces if piece.tokens]
    most = max((work for _, work in pieces), default=0)
    if not most:
        return ""
    columns, rows, at = [], [], 0
    for piece, work in pieces:
        height = f"height:{60 * work / most:.0f}px;background:{PROVENANCE[Provenance.RETURNED]}"
        columns.append(f'<div style="flex:{piece.tokens} 0 0;{height if work else ""}"></div>')
        if work:
            place = f"tokens {at:,} to {at + piece.tokens - 1:,}"
            rows.append((f"{place}, {piece.label}", f"{work:,} tokens"))
        at += piece.tokens
    chart = (
        '<div style="display:flex;align-items:flex-end;max-width:40em;'
        f'border:0 solid {NEUTRAL};border-bottom-width:1px">{"".join(columns)}</div>'
    )
    heads = ("place in the sequence", "generated by the threads spawned for it")
    total = sum(work for _, work in pieces)
    return _table(f"supplemental work: {total:,} tokens", heads, rows, above=chart)


def _work_for(view: EpisodeView, piece: Piece) -> int:
    if piece.child is None:
        return 0
    return view.threads[piece.child].usage.generated + view.work[piece.child]


def _pictures(thread: ThreadView, shown: dict[str, int]) -> str:
    """Those that the thread names. shown: the thread that has each, which is added to it."""
    parts = []
    for path, png in thread.pictures:
        if path in shown:
            parts.append(f'<p style="{_SMALL}">{_text(path)}: shown with thread {shown[path]}</p>')
            continue
        shown[path] = thread.id
        parts.append(
            f'<figure style="margin:4px 0"><img alt="the picture {_text(path)}" '
            f'style="max-width:100%;background:white" src="data:image/png;base64,{_text(png)}">'
            f'<figcaption style="{_SMALL}">{_text(path)}</figcaption></figure>'
        )
    return "".join(parts)


def _futures(thread: ThreadView) -> str:
    if not thread.futures:
        return ""
    summary = f"futures: {len(thread.futures)}"
    return _table(summary, ("name", "what it stands for"), list(thread.futures))


def _variables(thread: ThreadView) -> str:
    if not thread.variables:
        return ""
    more = [value for name, value in thread.variables if name == MORE]
    summary = f"variables: {len(thread.variables) - len(more)}" + "".join(f", {n}" for n in more)
    return _table(summary, ("name", "value"), list(thread.variables))


def _table(
    summary: str,
    heads: tuple[str, str],
    rows: list[tuple[str, str]],
    *,
    is_open: bool = False,
    above: str = "",
) -> str:
    cell = f'style="{_FONT}text-align:left;vertical-align:top;{_WRAP}"'
    body = "".join(
        f"<tr><td {cell}>{_text(a)}</td><td {cell}>{_text(b)}</td></tr>" for a, b in rows
    )
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in heads)
    return (
        f"<details{' open' if is_open else ''}>{_summary(summary)}{above}<table><thead>"
        f"<tr>{head}</tr>"
        f"</thead><tbody>{body}</tbody></table></details>"
    )


def _prompt(view: EpisodeView, name: str, prompt: PromptView) -> str:
    readers = [str(thread.id) for thread in view.threads.values() if thread.prompt == name]
    who = "every thread" if len(readers) == len(view.threads) else f"threads {', '.join(readers)}"
    summary = f"{prompt.label}, read first by {who if readers else 'no thread yet'}"
    piece = Piece(Provenance.PROMPT, prompt.text, prompt.tokens, str(Provenance.PROMPT))
    return f"<details>{_summary(summary)}{_piece(piece)}</details>"


def _summary(text: str) -> str:
    return f'<summary style="cursor:pointer;{_SMALL}">{_text(text)}</summary>'


def _legend(view: EpisodeView) -> str:
    present = {
        part.provenance
        for thread in view.threads.values()
        for part in thread.sequence
        if isinstance(part, Piece)
    }
    rare = {Provenance.REFERENCE, Provenance.INSTRUCTION} - present
    marks = " ".join(
        f'<span style="background:{tint(colour, 0.13)};border-left:3px solid {colour};'
        f'padding:0 6px">{name}</span>'
        for name, colour in PROVENANCE.items()
        if name not in rare
    )
    return f'<p><small style="{_SMALL}">Text by where it comes from (tokens): {marks}</small></p>'


def _status(status: str, words: str = "") -> str:
    colour = status_colour(status)
    return (
        f'<span style="border:1px solid {colour};background:{tint(colour, 0.2)};border-radius:3px;'
        f'padding:0 5px">{_text(words or status)}</span>'
    )


def _text(text: str) -> str:
    return escape(text, quote=True)

"""Figure 3 of THREAD paper (appendix A), and what an episode cost, as static plotly figures.

The same episode always gives the same figure. Backgrounds are transparent and lines are grey, so
that a figure fits a light and a dark page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import describe_usage, shorten
from thread_kit.views.palette import NEUTRAL, PROVENANCE, USAGE, status_colour, tint
from thread_kit.views.tree_layout import Node, layout_tree
from thread_kit.views.view_model import EpisodeView, ThreadView, list_starts, view_episode

HOVER = 300
"""Characters of a text in a hover label."""

_GRID = tint(NEUTRAL, 0.25)
_RETURNED = PROVENANCE[Provenance.RETURNED]


def supplemental_work_figure(episode: Episode, thread: int = 0) -> go.Figure:
    """Figure 3: how much work of spawned threads went into each token of a thread.

    Above: the supplemental work of each token, the tokens that spawned threads generated to produce
    it, recursively. Between: where the tokens come from. Below: the trees of threads, each under
    the tokens that it returned, or that refer to it; a child that returned nothing hangs where it
    was spawned. Raises KeyError for a thread that does not exist.
    """
    view = view_episode(episode)
    root = view.threads[thread]
    work = episode.supplemental_work(thread)
    nodes = layout_tree(view, root)
    depth = max((node.level for node in nodes), default=0)
    tree = 60 + 40 * min(depth, 25)
    figure = make_subplots(
        rows=3,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.03,
        row_heights=[220, 28, tree],
    )
    figure.add_trace(_work(root, work), 1, 1)
    for trace in _strip(root):
        figure.add_trace(trace, 2, 1)
    figure.add_trace(_edges(nodes), 3, 1)
    for trace in _status_legend(view, nodes):
        figure.add_trace(trace, 3, 1)
    figure.add_trace(_nodes(view, nodes), 3, 1)
    dress(figure, f"Supplemental work in thread {thread}", root.title)
    figure.update_layout(height=200 + 248 + tree, barmode="overlay")
    figure.update_xaxes(range=[-0.5, max(len(work), 1) - 0.5])
    figure.update_xaxes(title=f"position in the sequence of thread {thread} (tokens)", row=3, col=1)
    figure.update_yaxes(title="supplemental work<br>(tokens)", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(showticklabels=False, row=2, col=1)
    figure.update_yaxes(
        title="levels below<br>the thread",
        range=[depth + 0.6, 0],
        tick0=0,
        dtick=max(1, depth // 8),
        row=3,
        col=1,
    )
    return figure


def _work(thread: ThreadView, work: list[int]) -> go.Scatter:
    labels = [
        f"token {at:,}: {piece.label}<br>{_lines(piece.text, 40)}"
        for at, piece in enumerate(piece for piece in thread.pieces for _ in range(piece.tokens))
    ]
    return go.Scatter(
        x=list(range(len(work))),
        y=work,
        customdata=labels,
        name="supplemental work",
        mode="lines",
        line={"shape": "hvh", "width": 1.5, "color": _RETURNED},
        fill="tozeroy",
        fillcolor=tint(_RETURNED, 0.35),
        hovertemplate="%{y:,} tokens of other threads<br>%{customdata}<extra></extra>",
        showlegend=False,
    )


def _strip(thread: ThreadView) -> list[go.Bar]:
    """The sequence as a ribbon, coloured by where its tokens come from."""
    traces = []
    starts = list_starts(thread)
    for provenance, colour in PROVENANCE.items():
        parts = [(start, piece) for start, piece in starts if piece.provenance is provenance]
        if parts:
            traces.append(
                go.Bar(
                    orientation="h",
                    y=["sequence"] * len(parts),
                    base=[start - 0.5 for start, _ in parts],
                    x=[piece.tokens for _, piece in parts],
                    customdata=[f"{piece.label}<br>{_lines(piece.text)}" for _, piece in parts],
                    name=str(provenance),
                    width=1,
                    marker={"color": colour, "line": {"width": 0}},
                    hovertemplate="%{x:,} tokens, %{customdata}<extra></extra>",
                )
            )
    return traces


def _edges(nodes: list[Node]) -> go.Scatter:
    return go.Scatter(
        x=[x for node in nodes for x in (node.parent_x, node.x, None)],
        y=[y for node in nodes for y in (node.level - 1, node.level, None)],
        mode="lines",
        line={"color": NEUTRAL, "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )


def _status_legend(view: EpisodeView, nodes: list[Node]) -> list[go.Scatter]:
    """What the marks mean: a legend entry a status, the first of which says what their area is."""
    threads = {view.threads[node.id].status: view.threads[node.id] for node in nodes}
    area = " (area: tokens that it generated)"
    return [
        go.Scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=f"thread, {status}{'' if place else area}",
            marker={**_mark(thread), "size": 12},
        )
        for place, (status, thread) in enumerate(threads.items())
    ]


def _mark(thread: ThreadView) -> dict[str, Any]:
    return {
        "color": status_colour(thread.status),
        "symbol": "square" if thread.cut_short else "circle",
        "line": {"color": NEUTRAL, "width": 1},
    }


def _nodes(view: EpisodeView, nodes: list[Node]) -> go.Scatter:
    """A mark a thread: its area is what it generated, its edge and its label say how it ended."""
    threads = [view.threads[node.id] for node in nodes]
    wide, deep = (len({getattr(node, axis) for node in nodes}) for axis in ("x", "level"))
    largest = 36 / max(1, wide / 24, deep / 25)
    most = max((thread.usage.generated for thread in threads), default=0) or 1
    return go.Scatter(
        x=[node.x for node in nodes],
        y=[node.level for node in nodes],
        mode="markers+text",
        text=[f"{'✗ ' if thread.cut_short else ''}{thread.id}" for thread in threads],
        textfont={"color": "black"},
        customdata=[_about(view, thread) for thread in threads],
        hovertemplate="%{customdata}<extra></extra>",
        marker={
            "opacity": 1,
            "size": [largest * _size(thread.usage.generated / most) for thread in threads],
            "color": [_mark(thread)["color"] for thread in threads],
            "symbol": [_mark(thread)["symbol"] for thread in threads],
            "line": {"color": NEUTRAL, "width": 1},
        },
        cliponaxis=False,
        showlegend=False,
    )


def _size(part: float) -> float:
    """The diameter of a mark, so that its area grows with the part of the largest that it has."""
    return 0.5 + 0.5 * part**0.5


def usage_figure(episode: Episode) -> go.Figure:
    """What each thread cost: what it read (reused from the cache, or evaluated) and what it wrote.

    Two bars a thread, not one, since the tokens that a thread writes are evaluated as well: one
    bar would count them twice.
    """
    view = view_episode(episode)
    threads = list(view.threads.values())
    names = [f"thread {thread.id}" for thread in threads]
    figure = go.Figure()
    for name, bar, what in (
        ("reused", "model", "reused from the cache"),
        ("evaluated", "model", "evaluated by the model"),
        ("generated", "written", "generated (these are evaluated, too)"),
    ):
        figure.add_trace(
            go.Bar(
                orientation="h",
                y=names,
                x=[getattr(thread.usage, name) for thread in threads],
                customdata=[_about(view, thread) for thread in threads],
                name=what,
                offsetgroup=bar,
                marker={"color": USAGE[name], "line": {"width": 0}},
                hovertemplate=f"%{{x:,}} tokens {what}<br>%{{customdata}}<extra></extra>",
            )
        )
    dress(figure, "Tokens by thread")
    figure.update_layout(
        barmode="stack",
        height=210 + 26 * len(threads),
        legend={"traceorder": "normal"},
        bargap=0.3,
    )
    figure.update_xaxes(title="tokens", rangemode="tozero", tickformat=",")
    figure.update_yaxes(autorange="reversed")
    return figure


def dress(figure: go.Figure, title: str, subtitle: str = "") -> None:
    """The look that all figures share: a title on the left, grey lines, no background.

    The legend stands below and the buttons in the right margin, so that a narrow page takes the
    width from neither the plot nor the title; labels of an axis make their own room.
    """
    figure.update_layout(
        title={
            "text": title,
            "subtitle": {
                "text": escape(textwrap.shorten(subtitle, 72, placeholder=" …"), quote=False)
            },
            "font": {"size": 15},
            "x": 0.01,
        },
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": NEUTRAL},
        hoverlabel={"align": "left"},
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)", "color": NEUTRAL},
        margin={"l": 60, "r": 40, "t": 70, "b": 60},
    )
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=_GRID, zeroline=False, automargin=True, title={"standoff": 8})
    figure.update_xaxes(autotickangles=[0, 90])


def log_axis(values: Iterable[float]) -> dict[str, Any]:
    """A logarithmic axis for values above zero, labelled at 1, 2 and 5 of each power of ten.

    Of more than two powers the powers alone. Plotly's own labels are single digits in small print.
    Other values have no place on it; where no value is above zero, nothing, for a linear axis.
    """
    values = [value for value in values if value > 0]
    if not values:
        return {}
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1,) if high / low > 300 else (1, 2, 5)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:,.12g}" for tick in ticks]}


def _about(view: EpisodeView, thread: ThreadView) -> str:
    return (
        f"thread {thread.id}, {thread.status_text}: {_short(thread.label, HOVER)}<br>"
        f"{describe_usage(thread.usage)}<br>"
        f"generated by threads below {view.work[thread.id]:,}"
    )


def _short(text: str, limit: int) -> str:
    """Text in a label, where plotly reads `<b>` as bold."""
    return escape(shorten(text, limit), quote=False)


def _lines(text: str, limit: int = HOVER) -> str:
    return _short(text.strip("\n"), limit).replace("\n", "<br>")

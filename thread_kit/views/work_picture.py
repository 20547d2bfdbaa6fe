"""Figure 3 of THREAD paper as a picture: the supplemental work of each token of a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import clip
from thread_kit.views.palette import NEUTRAL, PROVENANCE, status_colour
from thread_kit.views.tree_layout import Node, layout_tree
from thread_kit.views.tree_rows import TITLE
from thread_kit.views.view_model import EpisodeView, ThreadView, list_starts, view_episode

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.0  # inches
WORK, RIBBON, LEVEL = 2.2, 0.28, 0.4  # inches: the parts, and each level of the tree
LEVELS = 25  # of more, each has less room
AREA = 320  # square points of the largest mark


def draw_work(episode: Episode, thread: int = 0) -> Figure:
    """What `supplemental_work_figure` shows, in its three parts, as a matplotlib figure.

    Raises KeyError for a thread that there is not.
    """
    from matplotlib.figure import Figure

    view = view_episode(episode)
    root = view.threads[thread]
    nodes = layout_tree(view, root)
    depth = max((node.level for node in nodes), default=0)
    heights = [WORK, RIBBON, 0.6 + LEVEL * min(depth, LEVELS)]
    picture = Figure(figsize=(WIDTH, sum(heights) + 1.6), layout="constrained")
    above, ribbon, below = picture.subplots(3, 1, sharex=True, height_ratios=heights)

    # 1. How many tokens other threads generated for each token.
    work = episode.supplemental_work(thread)
    edges = np.arange(len(work) + 1) - 0.5
    above.stairs(work, edges, fill=True, color=PROVENANCE[Provenance.RETURNED], alpha=0.35)
    above.stairs(work, edges, color=PROVENANCE[Provenance.RETURNED], linewidth=1.2)
    above.set_ylabel("supplemental work\n(tokens)", fontsize=9)
    above.set_ylim(bottom=0)
    title = f"Supplemental work in thread {thread}\n{clip(root.label, TITLE)}"
    above.set_title(title, loc="left", fontsize=10, parse_math=False)

    # 2. Where the tokens come from.
    _draw_ribbon(ribbon, root)

    # 3. The trees of threads, each under the tokens that it returned.
    _draw_tree(below, view, nodes)
    below.set_ylim(depth + 0.6, 0)
    below.set_ylabel("levels below\nthe thread", fontsize=9)
    below.set_xlabel(f"position in the sequence of thread {thread} (tokens)", fontsize=9)
    below.set_xlim(-0.5, max(len(work), 1) - 0.5)
    below.yaxis.get_major_locator().set_params(integer=True)
    for axes in (above, ribbon, below):
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(labelsize=8, length=0)
    if nodes or root.pieces:
        picture.legend(loc="outside lower left", ncols=4, frameon=False, fontsize=8)
    return picture


def _draw_ribbon(axes: Axes, root: ThreadView) -> None:
    named = set()
    for start, piece in list_starts(root):
        name = None if piece.provenance in named else str(piece.provenance)
        named.add(piece.provenance)
        span = start - 0.5, start - 0.5 + piece.tokens
        axes.axvspan(*span, color=PROVENANCE[piece.provenance], linewidth=0, label=name)
    axes.set_yticks([])


def _draw_tree(axes: Axes, view: EpisodeView, nodes: list[Node]) -> None:
    """A mark a thread: its area is what it generated, its edge and its sign say how it ended."""
    most = max((view.threads[node.id].usage.generated for node in nodes), default=0) or 1
    few = max(1, len({node.x for node in nodes}) / 24)
    named = set()
    for node in nodes:
        thread = view.threads[node.id]
        name = f"thread, {thread.status} (area: tokens that it generated)"
        axes.plot(
            [node.parent_x, node.x],
            [node.level - 1, node.level],
            color=NEUTRAL,
            linewidth=1,
            zorder=1,
        )
        axes.scatter(
            node.x,
            node.level,
            AREA * max(thread.usage.generated / most, 0.25) / few,
            color=status_colour(thread.status),
            edgecolor=NEUTRAL,
            marker="s" if thread.cut_short else "o",
            label=None if thread.status in named else name,
            clip_on=False,
            zorder=2,
        )
        named.add(thread.status)
        axes.text(node.x, node.level, str(thread.id), ha="center", va="center", fontsize=7)

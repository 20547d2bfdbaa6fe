"""Where the threads of a tree stand below a token sequence, so that the tree can be read."""

from __future__ import annotations

from dataclasses import dataclass

from thread_kit.views.view_model import EpisodeView, Piece, ThreadView


@dataclass(frozen=True, slots=True)
class Node:
    """A thread in the tree: at token `x`, `level` below the thread whose work is shown."""

    id: int
    x: float
    level: int
    parent_x: float


def layout_tree(view: EpisodeView, root: ThreadView) -> list[Node]:
    """A tidy tree: no two leaves share a place, a parent stands above the middle of its children,
    and each tree hangs as near as there is room below the tokens that it returned."""
    anchors = _anchors(root)
    order: list[tuple[int, int, int]] = []  # depth first: (thread, level, its tree)
    waiting = [(child, 1, child) for child in reversed(root.children)]
    while waiting:
        number, level, tree = waiting.pop()
        order.append((number, level, tree))
        below = reversed(view.threads[number].children)
        waiting += [(child, level + 1, tree) for child in below]
    leaves: dict[int, list[int]] = {child: [] for child in root.children}
    for number, _, tree in order:
        if not view.threads[number].children:
            leaves[tree].append(number)
    x = _spread(leaves, anchors, sum(piece.tokens for piece in root.pieces))
    for number, _, _ in reversed(order):
        if number not in x:
            places = [x[child] for child in view.threads[number].children]
            x[number] = (min(places) + max(places)) / 2
    return [
        Node(number, x[number], level, anchors[number] if level == 1 else x[_parent(view, number)])
        for number, level, _ in order
    ]


def layout_boxes(view: EpisodeView) -> dict[int, tuple[float, int]]:
    """Where each thread stands in a drawing of the whole tree: its place along a level, in slots,
    and its level. Each subtree has a box of its own, as in the player (`player_layout.js`)."""
    threads = list(view.threads.values())  # children come after their parents
    widths: dict[int, float] = {}
    for thread in reversed(threads):
        widths[thread.id] = max(1.0, sum(widths[child] for child in thread.children))
    lefts = {threads[0].id: 0.0} if threads else {}
    places = {}
    for thread in threads:
        left = lefts[thread.id]
        places[thread.id] = (left + widths[thread.id] / 2, thread.depth)
        for child in thread.children:
            lefts[child] = left
            left += widths[child]
    return places


def _spread(
    leaves: dict[int, list[int]], anchors: dict[int, float], width: int
) -> dict[int, float]:
    """A place for each leaf: the trees keep their order and stay within the sequence."""
    if not leaves:
        return {}
    step = max(width, 1) / max(sum(map(len, leaves.values())), 14)
    starts: list[float] = []
    end = -0.5
    for tree, row in leaves.items():
        starts.append(max(end, anchors[tree] - len(row) * step / 2))
        end = starts[-1] + len(row) * step
    end = max(width, 1) - 0.5
    for at, row in reversed(list(enumerate(leaves.values()))):
        starts[at] = min(starts[at], end - len(row) * step)
        end = starts[at]
    return {
        leaf: start + (at + 0.5) * step
        for start, row in zip(starts, leaves.values(), strict=True)
        for at, leaf in enumerate(row)
    }


def _parent(view: EpisodeView, number: int) -> int:
    parent = view.threads[number].parent
    assert parent is not None  # only called below the root
    return parent


def _anchors(root: ThreadView) -> dict[int, float]:
    """For each child, the middle of what it returned or what refers to it, or where it was
    spawned."""
    anchors: dict[int, float] = {}
    at = 0
    for item in root.sequence:
        if isinstance(item, Piece):
            if item.child is not None:
                anchors[item.child] = at + (item.tokens - 1) / 2
            at += item.tokens
        else:
            anchors[item.branch] = at - 0.5
    return anchors

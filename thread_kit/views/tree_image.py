"""An episode as a picture for a paper or a slide: SVG, PDF or PNG, drawn by matplotlib."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Literal

from thread_kit.replace_file import replace_file
from thread_kit.trace.episode import Episode, must_be_episode
from thread_kit.views.tree_nodes import draw_nodes
from thread_kit.views.tree_rows import draw_rows
from thread_kit.views.work_picture import draw_work

PIXELS = 40e6
"""In a picture, at most."""
KINDS = (".svg", ".pdf", ".png")
FORMS = {"rows": draw_rows, "nodes": draw_nodes, "work": draw_work}


def save_picture(
    episode: Episode,
    path: str | Path,
    *,
    form: Literal["rows", "nodes", "work"] = "rows",
    thread: int | None = None,
) -> Path:
    """Draw the tree of threads into a file; its path.

    form: "rows" is a row a thread with its costs; "nodes" is the player's drawing (after
        Figure 1 of THREAD paper), with what each thread was to do, its actions, and a legend;
        "work" is Figure 3, the supplemental work of a thread's tokens, above its tree.
    thread: whose work that is (default: the main thread's); the other forms have all threads.
    The ending of the name says which kind. Text stays text in SVG and PDF. The same episode always
    gives the same file. Raises ValueError for another ending, form or thread, or an episode without
    threads.
    """
    import matplotlib

    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise ValueError(f"{path.name!r}: a picture's name ends in {', '.join(KINDS)}")
    if form not in FORMS:
        raise ValueError(f"form={form!r}: a picture has {' or '.join(map(repr, FORMS))}")
    if not must_be_episode(episode).threads:
        raise ValueError(f"{episode!r} has no thread to draw yet; run it first")
    if thread is not None and form != "work":
        raise ValueError(f"thread={thread} is of form='work'; form={form!r} has all threads")
    if thread is not None and thread not in episode.threads:
        raise ValueError(f"there is no thread {thread}; choose one of 0 to {max(episode.threads)}")
    # No date in it, and names that do not depend on chance.
    stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        warnings.catch_warnings(),
        matplotlib.rc_context(
            {"svg.fonttype": "none", "svg.hashsalt": "thread-kit", "pdf.fonttype": 42}
        ),
    ):
        # Models write characters that no font at hand has; a box stands there then.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = FORMS[form](episode, **({} if thread is None else {"thread": thread}))
        # Of a thousand threads, fewer pixels: what a page and a memory can hold.
        width, height = figure.get_size_inches()
        dpi = min(200.0, 60_000 / max(width, height), (PIXELS / (width * height)) ** 0.5)
        kind = path.suffix.lower()
        with replace_file(path) as part:
            figure.savefig(part, dpi=dpi, format=kind[1:], metadata=stamp.get(kind))
    return path

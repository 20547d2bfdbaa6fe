"""The gallery: the episodes that come with the kit, each as a page that replays it, and an index.

Every page is one file without a request to anywhere; the pages link one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

from thread_kit.replace_file import replace_text
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Ended, Spawned
from thread_kit.trace.shipped import ShippedEpisode, list_episodes
from thread_kit.views.export_html import render_page
from thread_kit.views.formatting import describe_reward, pluralize, sanitize
from thread_kit.views.palette import CUT, ENDED, FAILED, PROVENANCE, STOPPED, status_colour

INDEX = "index.html"
CSS = (Path(__file__).parent / "gallery.css").read_text(encoding="utf-8")

SOURCES = {
    Provenance.PROMPT: "examples, read first",
    Provenance.CONTEXT: "made by phi",
    Provenance.GENERATED: "written by the model",
    Provenance.RETURNED: "made by psi of what a child wrote",
    Provenance.OBSERVED: "the environment's answer",
}
"""Where the text of a thread comes from, for the legend."""

ENDS = {
    "ended": (ENDED, "by itself"),
    "cut": (CUT, "by a budget"),
    "failed": (FAILED, "by an error"),
    "stopped": (STOPPED, "by a person, or since the task is over"),
}
"""How a thread ends, for the legend: a colour, and words."""

WIDTH, LEVEL = 1000, 14
"""Of a drawing of an episode, in its own units: its width, and the height of a level."""


def write_gallery(
    folder: str | Path, tell: Callable[[ShippedEpisode, Path], None] = lambda entry, page: None
) -> Path:
    """Write a page for each shipped episode, and the index; its path.

    tell: is called with each page that is written. Raises OSError (a full disk, say).
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    entries = list_episodes()
    items = []
    for at, entry in enumerate(entries):
        episode = entry.load()
        items.append(_item(entry, episode))
        above = _head(entry, entries[max(at - 1, 0) : at], entries[at + 1 : at + 2])
        title = f"{entry.title} · thread-kit"
        replace_text(folder / _page(entry), render_page(episode, title=title, above=above))
        tell(entry, folder / _page(entry))
    replace_text(folder / INDEX, _index(items))
    return folder / INDEX


def _index(items: list[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Gallery · thread-kit</title><style>{CSS}</style></head>"
        '<body class="tk-gallery"><header><h1>Gallery</h1>'
        f"<p>{pluralize(len(items), 'episode')} as models played them, wins and failures. A page "
        "replays its episode offline: press space, or step with t, e, d and s. In each drawing a "
        "thread is a bar from its start to its end, with its children below it.</p>"
        f"<p class=facts>{_legend(ENDS.values(), ENDS)}</p></header>"
        f"<main><ol>{''.join(items)}</ol></main>"
        "</body></html>\n"
    )


def _item(entry: ShippedEpisode, episode: Episode) -> str:
    return (
        f'<li><h2><a href="{_page(entry)}">{escape(entry.title)}</a></h2>{draw_bars(episode)}'
        f"<p>{escape(entry.sentences)}</p><p class=facts>{_facts(entry)}</p></li>"
    )


def _head(entry: ShippedEpisode, before: list[ShippedEpisode], behind: list[ShippedEpisode]) -> str:
    """What stands over an episode's player: where one is, what is to be seen, the legend."""
    links = [f'<a href="{INDEX}">Gallery</a>']
    links += [f'<a href="{_page(other)}">Before: {escape(other.title)}</a>' for other in before]
    links += [f'<a href="{_page(other)}">Next: {escape(other.title)}</a>' for other in behind]
    sources = [(PROVENANCE[source], words) for source, words in SOURCES.items()]
    return (
        f'<style>{CSS}</style><header class="tk-gallery"><nav>{" ".join(links)}</nav>'
        f"<h1>{escape(entry.title)}</h1><p>{escape(entry.sentences)}</p>"
        f"<p class=facts>{_facts(entry)}</p>"
        f"<p class=facts>Text: {_legend(sources, map(str, SOURCES))}</p>"
        f"<p class=facts>Threads: {_legend(ENDS.values(), ENDS)}</p>"
        f"<details><summary>Play it yourself</summary><pre>{escape(entry.command)}</pre>"
        f"<p>In Python: <code>tk.open_episode({escape(repr(entry.name))})</code></p></details>"
        "</header>"
    )


def _facts(entry: ShippedEpisode) -> str:
    return (
        f"{escape(entry.benchmark)} · {escape(entry.method)} · {escape(entry.model)} · "
        f"{escape(entry.status)} · <b>reward {describe_reward(entry.reward)}</b> · "
        f"{pluralize(entry.threads, 'thread')}"
    )


def _legend(colours: Iterable[tuple[str, str]], names: Iterable[str]) -> str:
    return " ".join(
        f'<span class=sign><span class=mark style="--mark: {colour}">{escape(name)}</span> '
        f"{escape(words)}</span>"
        for (colour, words), name in zip(colours, names, strict=True)
    )


def draw_bars(episode: Episode) -> str:
    """Threads as bars over the events of an episode, a level of the tree a row: an SVG element."""
    start, end = {}, {}
    for at, event in enumerate(episode.events):
        if isinstance(event, Spawned):
            start[event.thread] = at
        elif isinstance(event, Ended):
            end[event.thread] = at
    scale = WIDTH / max(len(episode.events), 1)
    bars = []
    for thread in episode.threads.values():
        left = start[thread.id] * scale
        width = max(end.get(thread.id, len(episode.events)) * scale - left, 2)
        bars.append(
            f'<rect x="{left:.0f}" y="{thread.depth * LEVEL + 1}" width="{width:.0f}" '
            f'height="{LEVEL - 2}" fill="{status_colour(thread.status)}"><title>thread '
            f"{thread.id}, {thread.status}: {escape(sanitize(thread.title))}</title></rect>"
        )
    height = (episode.depth + 1) * LEVEL
    words = f"{pluralize(len(bars), 'thread')}, depth {episode.depth}"
    return (
        f'<svg role="img" aria-label="{words}" viewBox="0 0 {WIDTH} {height}" height="{height}" '
        f'preserveAspectRatio="none">{"".join(bars)}</svg>'
    )


def _page(entry: ShippedEpisode) -> str:
    return f"{entry.name}.html"

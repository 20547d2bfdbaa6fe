"""`python -m thread_kit gallery`: the episodes that come with the kit, as pages that replay."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from thread_kit.trace.shipped import ShippedEpisode
from thread_kit.views.formatting import describe_reward


def add_command(commands: Any) -> None:
    """Add `gallery` to the subparsers of the command line."""
    parser = commands.add_parser(
        "gallery", help="list the episodes that come with the kit, and write pages that replay them"
    )
    parser.set_defaults(do=write_pages)
    parser.add_argument(
        "--out",
        default="runs/gallery",
        metavar="FOLDER",
        help="of the pages (default: %(default)s)",
    )
    parser.add_argument("--open", action="store_true", help="show the index in a browser")


def write_pages(options: argparse.Namespace) -> None:
    """Write the gallery, list its episodes while they are written, and print where the index is."""
    from thread_kit.views.gallery import write_gallery  # with the player's widgets

    index = write_gallery(options.out, list_page)
    print(index)
    if options.open:
        webbrowser.open(index.resolve().as_uri())


def list_page(entry: ShippedEpisode, page: Path) -> None:
    """Print an episode: its name and title, what was played, and how it ended."""
    played = f"{entry.benchmark}, {entry.method}, {entry.model}"
    print(f"{entry.name:28} {entry.title}", flush=True)
    print(f"{'':28} {played}: {entry.status}, reward {describe_reward(entry.reward)}")

"""The command line: run one episode or a whole suite, show a saved one, list the models.

Ctrl-C at any moment ends with one line and the exit status 130.

python -m thread_kit run --env textcraft --task 12 --model NAME --out FILE.jsonl
python -m thread_kit suite --methods thread --models NAME --tasks 40 --out RESULTS.jsonl
python -m thread_kit results RESULTS.jsonl MORE.jsonl
python -m thread_kit reproduce PAPER ITEM --model NAME
python -m thread_kit show FILE.jsonl
python -m thread_kit page FILE.jsonl --out FILE.html
python -m thread_kit gallery
python -m thread_kit notebooks FOLDER
python -m thread_kit models
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO, cast

from thread_kit.cli import gallery, notebooks, reproduce, results, run, suite
from thread_kit.cli.arguments import ShortParser, register_own
from thread_kit.engines.models import EMBEDDED, MODELS, ModelError, find_file, list_adapters
from thread_kit.prompts import PromptError
from thread_kit.trace.episode import Episode, TraceError, name_of
from thread_kit.trace.printable import sanitize
from thread_kit.trace.shipped import list_episodes, open_episode
from thread_kit.views.narration import list_events
from thread_kit.views.text import read_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status (2: the command cannot do what it was asked)."""
    try:
        register_own(arguments)
        options = _make_parser().parse_args(arguments)
        with contextlib.redirect_stdout(cast(TextIO, _Printable(sys.stdout))):
            options.do(options)
        sys.stdout.flush()
    except BrokenPipeError:  # `... | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (
        ModelError,
        PromptError,
        TraceError,
        ValueError,
        TypeError,
        OSError,
        RuntimeError,
        ImportError,
    ) as error:
        print(sanitize(f"thread_kit: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(sanitize(f"thread_kit: {str(stop) or 'stopped'}"), file=sys.stderr)
        return 130
    return 0


class _Printable:
    """Standard output where no text acts on the terminal: models, files and servers wrote some."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(sanitize(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _make_parser() -> argparse.ArgumentParser:
    about = "Run episodes of THREAD on a local model, show a saved one, list the models."
    parser = ShortParser(prog="python -m thread_kit", description=about)
    parser.add_argument("--version", action="version", version=f"thread-kit {installed_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run.add_command(commands)
    suite.add_command(commands)
    results.add_command(commands)
    reproduce.add_command(commands)
    gallery.add_command(commands)
    notebooks.add_command(commands)

    show = commands.add_parser("show", help="print the tree of a saved episode; needs no model")
    show.set_defaults(do=show_episode)
    show.add_argument("file", help="a trace (JSONL), or the name of an episode of the gallery")
    part = show.add_mutually_exclusive_group()
    part.add_argument("--thread", type=int, metavar="N", help="all that one thread saw and wrote")
    part.add_argument("--events", action="store_true", help="all events by their numbers")
    part.add_argument(
        "--why", action="store_true", help="the first error that the rules find in a failed one"
    )

    page = commands.add_parser(
        "page", help="write a saved episode as one HTML file that replays without Python"
    )
    page.set_defaults(do=write_page)
    page.add_argument("file", help="a trace (JSONL), or the name of an episode of the gallery")
    page.add_argument("--out", metavar="FILE", help="the page (default: FILE.html beside it)")

    models = commands.add_parser("models", help="list the models that load by name")
    models.set_defaults(do=list_models)
    return parser


def _open(file: str) -> Episode:
    """A trace by its path, or an episode that comes with the kit by its name."""
    if Path(file).exists():
        return Episode.load(file)
    if file in {shipped.name for shipped in list_episodes()}:
        return open_episode(file)
    raise FileNotFoundError(
        f"there is no file {file}, and no episode of the gallery is called so; these are listed "
        "by: python -m thread_kit gallery"
    )


def show_episode(options: argparse.Namespace) -> None:
    """Print the tree of a saved episode, or one of its threads."""
    episode = _open(options.file)
    if options.events:
        print("\n".join(list_events(episode)))
    elif options.why:
        from thread_kit.errors.first_error import find_first_error

        found = find_first_error(episode)
        print(
            f"{found.type}, event {found.event}, thread {found.thread}: {found.why}\n"
            "(a proposal of the rules, which see what the environment says; read it from there)"
            if found
            else "It is solved."
            if episode.solved
            else "No rule finds an error, and nobody has judged it: it has no environment."
        )
    elif options.thread is None:
        print(episode)
        if episode.status.is_live:
            print(
                "incomplete: the trace breaks off here. The episode is still running, or it was "
                "killed; tk.fork(episode, engine=..., env=...) goes on (docs/use.md)"
            )
        print(episode.summary)
    elif options.thread in episode.threads:
        print(read_text(episode, options.thread))
    else:
        known = f"0 to {len(episode.threads) - 1}" if episode.threads else "none"
        raise ValueError(f"there is no thread {options.thread}; this episode has {known}")


def write_page(options: argparse.Namespace) -> None:
    """Write the player with a saved episode in it, and print where."""
    from thread_kit.views.export_html import save_page
    from thread_kit.views.tree_image import KINDS

    episode, file = _open(options.file), Path(options.file)
    out = Path(options.out or file.with_name(f"{name_of(file)}.html"))
    if out.exists() and file.exists() and out.samefile(file):
        raise ValueError(f"--out {out} is the trace itself; give the page another name")
    if out.suffix.lower() in KINDS:
        raise ValueError(
            f"--out {out} is the name of a picture, and a page is HTML; the tree as a picture: "
            f"tk.save_picture(tk.Episode.load({str(file)!r}), {str(out)!r})"
        )
    print(save_page(episode, out))


def installed_version() -> str:
    """The version that is installed; "unknown" where only the folder is there."""
    try:
        return version("thread-kit")
    except PackageNotFoundError:
        return "unknown"


def list_models(options: argparse.Namespace) -> None:
    """Print the models that load by name."""
    for model in MODELS.values():
        print(f"{model.name:20} {model.size:6} MB  context {model.context:6}  {model.licence}")
        print(f"{'':20} {model.source}: {model.file}")
        if model.package:
            try:
                print(f"{'':20} {find_file(model)}")
            except ModelError as error:
                print(f"{'':20} {error}")
    print(f"adapters of {EMBEDDED}: {', '.join(list_adapters())}")

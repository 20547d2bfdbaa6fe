"""Where the project's data and prompt files lie, in a checkout and in an installed wheel."""

from __future__ import annotations

import os
from pathlib import Path


def resource(path: str) -> Path:
    """The file or folder `path` of the project, e.g. "data/textcraft/official.jsonl".

    In a checkout data/ and prompts/ lie beside the package, in an installed wheel inside it;
    the checkout's come first, because those are the ones that a reader edits.
    Raises FileNotFoundError if neither place has it.
    """
    package = Path(__file__).resolve().parent
    for root in (package.parent, package):
        if (root / path).exists():
            return root / path
    raise FileNotFoundError(
        f"{path!r} is neither in {package.parent} nor in {package}; "
        "is the path spelled right, and the installation or checkout complete?"
    )


def cache_folder() -> Path:
    """Where what can be made again is kept: THREAD_KIT_CACHE, or ~/.cache/thread-kit."""
    return Path(os.environ.get("THREAD_KIT_CACHE") or "~/.cache/thread-kit").expanduser()

"""A file that is replaced at once or not at all, whatever stops the writer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Another name, to write to: what is there at the end takes the place of `path` at once.

    After an error it is deleted, and the old file stays. Where `path` is a link, it stays one.
    Several processes may write the same file; the last one counts. Raises OSError, also for what
    is there and no file: a device (/dev/null), a pipe, a folder.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is there and no file; give another path")
    part = path.with_name(f"{path.name}.{os.getpid()}.{time.monotonic_ns()}.part")
    try:
        yield part
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def replace_text(path: Path, text: str) -> None:
    """Write a whole text file, as UTF-8, as `replace_file` does. Raises OSError."""
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8")

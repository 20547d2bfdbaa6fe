"""Few-shot prompts on disk: the cells that a prompt filled, so that a second start evaluates none.

One file a prompt, in the user's cache folder (THREAD_KIT_CACHE, else ~/.cache/thread-kit), under a
name that is a hash of all that the cells depend on. A file begins with a hash of the rest, is
written beside and then renamed, and is deleted where it is damaged or where there is no room.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from thread_kit.paths import cache_folder

HEAD = b"thread-kit prompt 1\n"
DIGEST = 32  # bytes of a sha256
LIMIT = 2 * 2**30  # bytes of all files together


class PromptCache:
    """Cells by what they depend on (`about`: model, adapter, settings, tokens; JSON values).

    folder: where the files are; None is the user's cache folder.
    limit: bytes of all files together; the files that were used longest ago make room.
    """

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self.folder = folder or cache_folder() / "prompts"
        self.limit = limit

    def path(self, about: Mapping[str, Any]) -> Path:
        """The file for these cells, whether it exists or not."""
        text = json.dumps(about, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.kv"

    def load(self, about: Mapping[str, Any]) -> np.ndarray | None:
        """The cells (bytes, mapped from the file), or None. A damaged file is deleted."""
        path = self.path(about)
        try:
            whole = np.memmap(path, np.uint8, mode="r")
        except (OSError, ValueError):  # it is not there, or it is empty
            self.discard(about)
            return None
        start = len(HEAD) + DIGEST
        cells = whole[start:]
        head = HEAD + hashlib.sha256(cells.data).digest()
        if whole[:start].tobytes() != head:
            self.discard(about)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used just now
        return cells

    def store(self, about: Mapping[str, Any], cells: np.ndarray) -> None:
        """Write cells (bytes). A folder that cannot be written is left alone: it is a cache."""
        size = len(HEAD) + DIGEST + len(cells)
        if size > self.limit:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._make_room(self.limit - size)
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".part", delete=False) as part:
                try:
                    part.write(HEAD + hashlib.sha256(cells.data).digest())
                    part.write(cells.data)
                except OSError:
                    Path(part.name).unlink(missing_ok=True)
                    raise
            os.replace(part.name, self.path(about))

    def discard(self, about: Mapping[str, Any]) -> None:
        """Delete the file for these cells, if there is one."""
        with contextlib.suppress(OSError):
            self.path(about).unlink(missing_ok=True)

    def _make_room(self, left: int) -> None:
        """Delete files, the coldest first, until those that stay take at most `left` bytes."""
        files = [(path, path.stat()) for path in self.folder.glob("*.kv")]
        files.sort(key=lambda one: one[1].st_mtime, reverse=True)
        total = 0
        for path, stat in files:
            total += stat.st_size
            if total > left:
                path.unlink(missing_ok=True)

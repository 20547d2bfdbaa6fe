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
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from thread_kit.paths import cache_folder

HEAD = b"thread-kit prompt 1\n"
DIGEST = 32  # bytes of a sha256
LIMIT = 2 * 2**30  # bytes of all files together
WRITING = 3600  # seconds after which a file that is half-written is written by nobody any more


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
        except OSError:  # it is not there, or cannot be opened just now
            return None
        except ValueError:  # it is empty
            self.discard(about)
            return None
        start = len(HEAD) + DIGEST
        cells = whole[start:]
        head = HEAD + hashlib.sha256(cells.data).digest()
        if whole[:start].tobytes() != head or not len(cells):
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
                    part.close()
                    os.replace(part.name, self.path(about))
                except BaseException:
                    Path(part.name).unlink(missing_ok=True)
                    raise

    def discard(self, about: Mapping[str, Any]) -> None:
        """Delete the file for these cells, if there is one."""
        with contextlib.suppress(OSError):
            self.path(about).unlink(missing_ok=True)

    def _make_room(self, left: int) -> None:
        """Delete files, the coldest first, until those that stay take at most `left` bytes.

        What a process left half-written when it was killed goes, too.
        """
        files = [(path, path.stat()) for path in self.folder.iterdir() if path.is_file()]
        # Those that are being written count first of all, and stay.
        files.sort(key=lambda file: (file[0].suffix == ".part", file[1].st_mtime), reverse=True)
        total = 0
        for path, stat in files:
            if path.suffix == ".part" and stat.st_mtime < time.time() - WRITING:
                path.unlink(missing_ok=True)
                continue
            total += stat.st_size
            if total > left and path.suffix == ".kv":
                path.unlink(missing_ok=True)

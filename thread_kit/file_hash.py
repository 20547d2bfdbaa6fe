"""The hash of a file, computed once for as long as the file stays what it is."""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from thread_kit.paths import cache_folder
from thread_kit.replace_file import replace_text

SMALL = 1_000_000
"""Bytes of a file whose hash is not worth keeping."""

SETTLED = 2.0
"""Seconds after its last change in which a file may change again without a new time."""


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal; raises OSError if it cannot be read.

    That of a large file is kept in the cache folder under the file's device, inode, size and times
    of change, as git keeps its index: weights are hashed once, not at every start.
    """
    before = os.stat(path)
    kept = _place(before)
    with suppress(OSError, UnicodeDecodeError):
        if re.fullmatch("[0-9a-f]{64}", found := kept.read_text("ascii")):
            return found
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    is_settled = time.time() - max(before.st_mtime, before.st_ctime) > SETTLED
    if before.st_size > SMALL and is_settled and _place(os.stat(path)) == kept:
        with suppress(OSError):  # the next one computes it again
            kept.parent.mkdir(parents=True, exist_ok=True)
            replace_text(kept, found)
    return found


def _place(about: os.stat_result) -> Path:
    of = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    return cache_folder() / "hashes" / "-".join(map(str, of))

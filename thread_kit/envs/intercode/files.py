"""The files of InterCode's repository: questions, databases, file systems (data/intercode).

Its questions and databases are Spider's (CC BY-SA 4.0), its commands NL2Bash's (MIT).
"""

from __future__ import annotations

import hashlib
import lzma
import os
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import TypeVar

from thread_kit.paths import resource

FOLDER_VARIABLE = "THREAD_KIT_INTERCODE"

T = TypeVar("T")
R = TypeVar("R")

SQL_QUESTIONS = "data/sql/spider/ic_spider_dev.json"
SQL_DUMP = "data/sql/spider/ic_spider_dbs.sql"
SQL_FILES = {
    SQL_QUESTIONS: "68c9ecb0692c80770f46c724cc073ea76be4f301a294caa532c050546948128e",
    SQL_DUMP: "61f6e8000cb5bb696f123fa55e111acdcd8da7eca64f452a36fd1a6e5fb1781a",
}
"""The official files of InterCode SQL, each with its sha256 (data/intercode/README.md)."""

BASH_TASKS = "data/nl2bash/nl2bash_fs_{}.json"
BASH_SCRIPT = "docker/bash_scripts/setup_nl2b_fs_{}.sh"
BASH_IGNORED = "docker/docker.gitignore"
BASH_FILES = {
    BASH_TASKS.format(1): "60f88e1aacc7ebba535093f9890c5c33203f4e5f32958e0e94fbe90ec4f01c82",
    BASH_TASKS.format(2): "8f4ce24e535fab782fda607e37db2ae1d6c5f99993c638d1ac0a7e0b542f633e",
    BASH_TASKS.format(3): "a2d4ec8bc7ad69a4e2fb3eb84033994cf65ee9cfb355e3e63099df67a339b2e1",
    BASH_TASKS.format(4): "ce41b89450f87765a02a51df259ca0c1762e8249185c022adb089147e2c16200",
    BASH_SCRIPT.format(1): "02b9a2206d809a9fca03b755e61b94618248a400fd3132ac61d32b6f3009dd3f",
    BASH_SCRIPT.format(2): "05c3109c4e9999e661d66c6d74137f0238b88017ec9cf884abdda0499e94ff1d",
    BASH_SCRIPT.format(3): "5e8d9f832f272c31dfb73567e75d33efb970d4e4bf9a8e691582d4fa09422d09",
    BASH_SCRIPT.format(4): "c5fb550aa1578fe2454e8ab06221165df90311231cb71d3d9b0ce036a8235274",
    BASH_IGNORED: "5479a1cafa260c77e836e8601ba9a345d39df777dc9cb07d6a93f0ac29b69166",
}
"""Those of InterCode Bash."""


def find_folder() -> Path:
    """The folder that THREAD_KIT_INTERCODE names, or that of the kit's copies."""
    own = os.environ.get(FOLDER_VARIABLE)
    return Path(own).expanduser() if own else resource("data/intercode/official")


def cache_by_folder(make: Callable[[T], R]) -> Callable[[T], R]:
    """A cache for what is made of these files: another folder has other ones."""
    made = cache(lambda folder, argument: make(argument))
    return wraps(make)(lambda argument: made(find_folder(), argument))


def find_file(path: str) -> Path:
    """A file of InterCode's repository, "data/sql/spider/ic_spider_dev.json", on this machine.

    It is looked for in the folder that THREAD_KIT_INTERCODE names, at its place or alone, as it is
    or as .xz; else it is the kit's copy. Raises FileNotFoundError where that folder lacks it.
    """
    folder, name = find_folder(), Path(path).name
    for file in (folder / path, folder / name, folder / f"{name}.xz"):
        if file.is_file():
            return file
    raise FileNotFoundError(f"there is no {name} in {folder}; unset {FOLDER_VARIABLE}, or bring it")


def read_file(path: str) -> str:
    """The text of such a file.

    Raises ValueError for one that is no text, and what `find_file` raises.
    """
    file = find_file(path)
    data = file.read_bytes()
    try:
        return (lzma.decompress(data) if file.suffix == ".xz" else data).decode("utf-8-sig")
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} is no text in UTF-8: {error}") from error


def name_files(official: Mapping[str, str]) -> str:
    """What tells the files at hand from the official ones; "" if they are these.

    Else the first twelve digits of a hash of all of them, so that an episode with one set is never
    taken for one with another. One that is missing counts as empty: some tasks do without it.
    """
    hashes = {path: _hash_file(path) for path in official}
    if hashes == official:
        return ""
    return hashlib.sha256("\n".join(hashes.values()).encode()).hexdigest()[:12]


def _hash_file(path: str) -> str:
    try:
        return hashlib.sha256(read_file(path).encode()).hexdigest()
    except FileNotFoundError:
        return ""

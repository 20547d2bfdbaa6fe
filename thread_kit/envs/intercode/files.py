"""The files of InterCode's repository: questions, databases, file systems (data/intercode).

Its questions and databases are Spider's (CC BY-SA 4.0), its commands NL2Bash's (MIT).
"""

from __future__ import annotations

import lzma
import os
from pathlib import Path

from thread_kit.paths import resource

FOLDER_VARIABLE = "THREAD_KIT_INTERCODE"


def read_file(path: str) -> str:
    """The text of a file of InterCode's repository, "data/sql/spider/ic_spider_dev.json".

    It is looked for in the folder that THREAD_KIT_INTERCODE names, at its place or alone, as it is
    or as .xz; else it is the kit's copy. Raises FileNotFoundError where that folder lacks it.
    """
    own = os.environ.get(FOLDER_VARIABLE)
    folder = Path(own).expanduser() if own else resource("data/intercode/official")
    name = Path(path).name
    for file in (folder / path, folder / name, folder / f"{name}.xz"):
        if file.is_file():
            data = file.read_bytes()
            return (lzma.decompress(data) if file.suffix == ".xz" else data).decode()
    raise FileNotFoundError(f"there is no {name} in {folder}; unset {FOLDER_VARIABLE}, or bring it")

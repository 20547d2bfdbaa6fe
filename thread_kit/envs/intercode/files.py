"""Finds the files of InterCode's repository, which the kit does not carry (SOURCE, MIT).

Its questions and databases are Spider's (CC BY-SA 4.0), its commands NL2Bash's.
"""

from __future__ import annotations

import importlib.util
import lzma
import os
from pathlib import Path

from thread_kit.paths import cache_folder

FOLDER_VARIABLE = "THREAD_KIT_INTERCODE"
SOURCE = "https://github.com/princeton-nlp/intercode"
IN_PACKAGE = {"ic_spider_dbs.sql": "assets/datasets/spider_dev.sql"}
"""Those that the package `intercode-bench` has as well, where it has them."""


def read_file(path: str) -> str:
    """The text of a file of InterCode's repository, "data/sql/spider/ic_spider_dev.json".

    It is looked for in the folder that THREAD_KIT_INTERCODE names, else in intercode/ of the kit's
    cache: at its place or alone, as it is or as .xz; then in the package `intercode-bench`. Raises
    FileNotFoundError with the command that brings it.
    """
    own = os.environ.get(FOLDER_VARIABLE)
    folder = Path(own).expanduser() if own else cache_folder() / "intercode"
    name = Path(path).name
    for file in (folder / path, folder / name, folder / f"{name}.xz"):
        if file.is_file():
            data = file.read_bytes()
            return (lzma.decompress(data) if file.suffix == ".xz" else data).decode()
    package = importlib.util.find_spec("intercode")
    for root in (package and package.submodule_search_locations) or ():
        file = Path(root, IN_PACKAGE.get(name, name))
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise FileNotFoundError(
        f"there is no {name} in {folder}; bring it with: git clone --depth 1 {SOURCE} {folder} "
        f"(or set {FOLDER_VARIABLE} to a folder that has it)"
    )

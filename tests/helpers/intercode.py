"""InterCode's files, where this machine has them; and what both of its test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from thread_kit.envs.intercode.files import FOLDER_VARIABLE, read_file

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("THREAD_KIT_SHARED", ROOT.parent / "shared"))
GIVEN = os.environ.get(FOLDER_VARIABLE) or str(SHARED / "data" / "intercode")


def use_files(monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    """Have the kit find InterCode's files; skip, with the reason, where one is missing."""
    monkeypatch.setenv(FOLDER_VARIABLE, GIVEN)
    for path in paths:
        try:
            read_file(path)
        except FileNotFoundError as error:
            pytest.skip(str(error))

"""InterCode's files as the kit has them, whatever the person who runs the tests has set."""

from __future__ import annotations

import pytest

from thread_kit.envs.intercode.files import FOLDER_VARIABLE


def use_own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)

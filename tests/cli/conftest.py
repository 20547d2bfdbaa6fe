"""A module of one's own, which a command line names."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """Writes a module into the current folder, an empty one of the test's; returns its name."""
    monkeypatch.chdir(tmp_path)
    written = []

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        written.append(name)
        return name

    yield write
    for name in written:
        sys.modules.pop(name, None)

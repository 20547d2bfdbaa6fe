"""Finding data files in a checkout and in an installed wheel."""

from pathlib import Path

import pytest

from thread_kit import paths
from thread_kit.paths import cache_folder, resource


def test_finds_a_file_of_the_checkout():
    assert resource("data/textcraft/official.jsonl").is_file()


def test_checkout_comes_before_the_package(tmp_path, monkeypatch):
    package = tmp_path / "thread_kit"
    monkeypatch.setattr(paths, "__file__", str(package / "paths.py"))
    (package / "data").mkdir(parents=True)
    (package / "data" / "a.txt").write_text("installed")
    assert resource("data/a.txt").read_text() == "installed"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("checkout")
    assert resource("data/a.txt").read_text() == "checkout"


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match=r"data/no_such\.jsonl.*spelled right"):
        resource("data/no_such.jsonl")


def test_an_empty_cache_variable_is_as_none(monkeypatch):
    monkeypatch.setenv("THREAD_KIT_CACHE", "")
    assert cache_folder() == Path("~/.cache/thread-kit").expanduser()
    monkeypatch.delenv("THREAD_KIT_CACHE")
    assert cache_folder() == Path("~/.cache/thread-kit").expanduser()

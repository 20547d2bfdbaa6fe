"""A file's hash is right after every change of the file, and large files are read once."""

from __future__ import annotations

import hashlib
import os

import pytest

from thread_kit import file_hash
from thread_kit.file_hash import SMALL, sha256_of
from thread_kit.paths import cache_folder


@pytest.fixture(autouse=True)
def _no_hashes_yet():
    (cache_folder() / "hashes").unlink()  # those that all other tests share


@pytest.fixture
def read(monkeypatch):
    """How often the contents of a file were read."""
    times = []
    digest = hashlib.file_digest

    def count(file, name):
        times.append(file.name)
        return digest(file, name)

    monkeypatch.setattr(file_hash.hashlib, "file_digest", count)
    return times


def write(path, letter, seconds_ago=60):
    """A large file, written so long ago, and its hash."""
    path.write_bytes(letter * (SMALL + 1))
    at = path.stat().st_mtime - seconds_ago
    os.utime(path, (at, at))
    return hashlib.sha256(letter * (SMALL + 1)).hexdigest()


def test_a_large_file_is_read_once(tmp_path, read, monkeypatch):
    monkeypatch.setattr(file_hash, "SETTLED", 0)
    path = tmp_path / "weights.gguf"
    right = write(path, b"a")
    assert [sha256_of(path) for _ in range(3)] == [right] * 3
    assert len(read) == 1


def test_what_has_changed_is_read_again_though_size_and_time_are_the_same(
    tmp_path, read, monkeypatch
):
    monkeypatch.setattr(file_hash, "SETTLED", 0)
    path = tmp_path / "weights.gguf"
    write(path, b"a")
    first = sha256_of(path)
    times = path.stat()
    path.write_bytes(b"b" * (SMALL + 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = sha256_of(path)
    assert (first, second) == tuple(
        hashlib.sha256(letter * (SMALL + 1)).hexdigest() for letter in (b"a", b"b")
    )


def test_a_file_that_was_just_written_and_a_small_one_are_not_kept(tmp_path, read):
    fresh, small = tmp_path / "fresh", tmp_path / "small"
    write(fresh, b"a", seconds_ago=0)
    small.write_bytes(b"a")
    for path in (fresh, small):
        assert sha256_of(path) == sha256_of(path)
    assert len(read) == 4
    assert not (cache_folder() / "hashes").exists()


@pytest.mark.parametrize("kept", ["", "no hash", "\xff" * 64])
def test_a_damaged_entry_is_computed_again(kept, tmp_path, read, monkeypatch):
    monkeypatch.setattr(file_hash, "SETTLED", 0)
    path = tmp_path / "weights.gguf"
    right = write(path, b"a")
    sha256_of(path)
    (entry,) = (cache_folder() / "hashes").iterdir()
    entry.write_bytes(kept.encode("latin-1"))
    assert sha256_of(path) == right
    assert entry.read_text("ascii") == right


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path, monkeypatch, read):
    monkeypatch.setattr(file_hash, "SETTLED", 0)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("THREAD_KIT_CACHE", str(tmp_path / "file"))
    path = tmp_path / "weights.gguf"
    right = write(path, b"a")
    assert [sha256_of(path), sha256_of(path)] == [right, right]
    assert len(read) == 2
    with pytest.raises(FileNotFoundError):
        sha256_of(tmp_path / "none")

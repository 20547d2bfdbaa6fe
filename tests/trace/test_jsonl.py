"""JSON lines: strict, with torn last lines, and a file that is replaced at once or not at all."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.errors.error_types import ErrorType
from thread_kit.errors.review import Review, read_reviews, write_review
from thread_kit.replace_file import replace_file, replace_text
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.jsonl import (
    mend_last_line,
    parse_line,
    read_lines,
    to_line,
    write_line,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def refuse(name: str) -> None:
    raise AssertionError(f"{name} is no strict JSON")


@given(values)
def test_every_value_is_written_as_one_strict_line_of_ascii(value):
    line = to_line({"value": value})
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line, parse_constant=refuse) == parse_line(line)


@pytest.mark.parametrize(
    ("line", "value"),
    [("NaN", "nan"), ("-Infinity", "-inf"), ("[1e999]", ["inf"]), ('{"a": -1e999}', {"a": "-inf"})],
)
def test_no_nan_and_no_infinity_is_read(line, value):
    assert parse_line(line) == value


def test_numbers_keys_and_surrogates_are_written_as_they_were():
    assert to_line({"a": 1.0, "b": "\ud800é", 3: None}) == (
        '{"a": 1.0, "b": "\\ud800\\u00e9", "3": null}'
    )
    assert to_line({"x": float("nan"), "y": [float("-inf"), {1}]}) == (
        '{"x": "nan", "y": ["-inf", "{1}"]}'
    )


def test_a_last_line_counts_if_it_is_whole_and_is_cut_off_if_it_is_torn(tmp_path):
    path = tmp_path / "r.jsonl"
    for number in (1, 2):
        write_line(path, {"number": number})
    whole = path.read_bytes()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        left = [{"number": n} for n in (1, 2) if end >= n * len(whole) // 2 - 1]
        assert read_lines(path, dict, what="no row") == left
        mend_last_line(path)
        write_line(path, {"number": 3})
        assert read_lines(path, dict, what="no row") == [*left, {"number": 3}]


@pytest.mark.parametrize("text", ["my only copy of an idea", "{1, 2}", "[1, 2", "\u00ff\u00fe"])
def test_nothing_is_cut_off_a_file_of_another(tmp_path, text):
    path = tmp_path / "note.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OSError, match=r"note\.txt is another's file"):
        mend_last_line(path, error=OSError)
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("end", [b"{", b"\0\0\0", b"  ", b'{"number": 3, "te'])
def test_what_a_crash_leaves_is_cut_off(tmp_path, end):
    path = tmp_path / "r.jsonl"
    write_line(path, {"number": 1})
    path.write_bytes(path.read_bytes() + end)
    mend_last_line(path)
    assert path.read_bytes() == b'{"number": 1}\n'


def test_zeros_behind_a_whole_line_spoil_it_for_no_reader(tmp_path):
    path = tmp_path / "r.jsonl"
    write_line(path, {"number": 1})
    path.write_bytes(path.read_bytes() + b'{"number": 2}\0\0\0')
    both = [{"number": 1}, {"number": 2}]
    assert read_lines(path, dict, what="no row") == both
    mend_last_line(path)
    assert read_lines(path, dict, what="no row") == both
    assert b"\0" not in path.read_bytes()


def test_zeros_behind_a_whole_last_event_spoil_no_episode(tmp_path):
    path = tmp_path / "e.jsonl"
    Session(ScriptedEngine(["#END#"]), context="go =>", path=path).run(progress=False)
    path.write_bytes(path.read_bytes().rstrip(b"\n") + b"\0" * 9)
    assert Episode.load(path).status is Status.ENDED


def test_keys_that_json_has_not_are_written_as_text():
    assert parse_line(to_line({(0, 1): {2: float("nan"), None: 3}})) == {
        "(0, 1)": {"2": "nan", "null": 3}
    }


def test_a_line_that_cannot_be_taken_is_an_error_with_its_number(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"n": 1}\n{"n": "x"}\n')
    with pytest.raises(OSError, match=r"r\.jsonl, line 2: no row \(invalid literal"):
        read_lines(path, lambda data: int(data["n"]), what="no row", error=OSError)


@pytest.mark.parametrize("line", [b"[" * 100_000, b"\xff", b"1" * 5000, b""])
def test_what_is_no_json_is_one_error(tmp_path, line):
    path = tmp_path / "r.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(ValueError, match="line 1: no row"):
        read_lines(path, dict, what="no row")


def test_a_file_is_replaced_at_once_or_not_at_all_and_a_link_stays_one(tmp_path):
    path, link = tmp_path / "a.jsonl", tmp_path / "link.jsonl"
    path.write_text("old")
    link.symlink_to(path)
    with pytest.raises(TypeError), replace_file(link) as part, part.open("w") as file:
        file.writelines(["half of the ne", None])
    assert path.read_text() == "old"
    with replace_file(link) as part:
        part.write_text("new")
    assert path.read_text() == "new"
    replace_text(link, "“newer”")
    assert path.read_text("utf-8") == "“newer”"
    assert link.is_symlink()
    assert {file.name for file in tmp_path.iterdir()} == {"a.jsonl", "link.jsonl"}


def test_what_is_no_file_is_not_replaced(tmp_path):
    """As root, `--out /dev/null` made a file of it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for name in ("pipe", "link", "."):
        with pytest.raises(OSError, match="is there and no file"):
            replace_text(tmp_path / name, "new")
    assert (tmp_path / "pipe").is_fifo()
    assert Path("/dev/null").is_char_device()


def test_an_episode_that_cannot_be_saved_leaves_no_part_of_it(tmp_path):
    class Breaks(Episode):
        def to_lines(self):
            yield "{}"
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        Breaks().save(tmp_path / "episode.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_review_that_a_kill_has_torn_spoils_no_other(tmp_path):
    path = tmp_path / "reviews.jsonl"
    first, second = (Review("e", name, ErrorType.OTHER, 3) for name in ("anna", "ben"))
    write_review(path, first)
    with path.open("ab") as file:
        file.write(b'{"episode": "e", "revie')
    assert read_reviews(path) == [first]
    write_review(path, second)
    assert read_reviews(path) == [first, second]

"""The index of the episodes that come with the kit: a line that lists none is named."""

from __future__ import annotations

import csv

import pytest

from thread_kit.cli.main import main
from thread_kit.trace import shipped

INDEX = shipped.resource("data/episodes/index.csv").read_text("utf-8")
FIRST = next(csv.DictReader(INDEX.splitlines()))


@pytest.fixture
def write_index(tmp_path, monkeypatch):
    def write(**changes: str | None) -> None:
        row = {name: value for name, value in {**FIRST, **changes}.items() if value is not None}
        with (tmp_path / "index.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, row)
            writer.writeheader()
            writer.writerow(row)

    own = shipped.resource
    monkeypatch.setattr(
        shipped, "resource", lambda path: tmp_path / "index.csv" if "index" in path else own(path)
    )
    return write


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "../../page"},
        {"name": "/page"},
        {"name": '" onclick="'},
        {"name": ""},
        {"file": "../../LICENSE"},
        {"reward": "much"},
        {"threads": "1e3"},
        {"threads": None},
        {"further": "x"},
    ],
    ids=repr,
)
def test_a_line_that_lists_no_episode_is_named(write_index, changes, tmp_path, capsys):
    write_index(**changes)
    with pytest.raises(ValueError, match=r"index\.csv, line 2: no episode"):
        shipped.list_episodes()
    assert main(["gallery", "--out", str(tmp_path / "gallery")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_line_of_the_index_acts_neither_on_a_page_nor_on_a_terminal(
    write_index, tmp_path, capsys
):
    write_index(title="\x1b[2J<script>1</script>", sentences="<img onerror=1>", model="\x9b31m")
    assert main(["gallery", "--out", str(tmp_path / "gallery")]) == 0
    out = capsys.readouterr().out
    assert "<script>1" in out
    assert not {"\x1b", "\x9b"} & {*out}
    for page in (tmp_path / "gallery").iterdir():
        text = page.read_text("utf-8")
        assert "<script>1" not in text
        assert "<img onerror" not in text

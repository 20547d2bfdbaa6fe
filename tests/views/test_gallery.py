"""The gallery: every shipped episode is what its line says, and has a page that asks nobody."""

from __future__ import annotations

import re
import shlex

import pytest

import thread_kit as tk
from thread_kit.__main__ import main
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.trace.events import GeneratedSpan
from thread_kit.trace.shipped import FOLDER, list_episodes

ENTRIES = list_episodes()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_episode_is_what_its_line_says(entry):
    episode = tk.open_episode(entry.name)
    assert (str(episode.status), episode.reward) == (entry.status, entry.reward)
    assert len(episode.threads) == entry.threads
    assert (episode.header["environment"] or "none") == entry.benchmark
    assert episode.header["model"]["name"] == entry.model
    assert ("program" in episode.header) == (not entry.method.startswith("thread"))
    named = [int(n) for n in re.findall(r"[Tt]hreads? (\d+)", entry.sentences)]
    assert all(number in episode.threads for number in named)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_command_plays_what_the_trace_says(entry):
    if not entry.command.startswith("python "):
        compile(entry.command, entry.name, "exec")
        return
    words = shlex.split(entry.command)
    options = dict(zip(words[4::2], words[5::2], strict=True))
    header = tk.open_episode(entry.name).header
    assert options["--env"] == entry.benchmark
    assert options["--model"] == entry.model
    assert options["--split"] == header["task"]["split"]
    assert options["--task"] in map(str, header["task"].values())
    assert options.get("--method", "thread") == re.sub(", | ", "-", entry.method)
    assert options["--out"] == f"runs/{entry.name}.jsonl"


def test_there_are_wins_and_failures_of_every_benchmark_and_many_methods():
    assert len(ENTRIES) >= 20
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert {entry.benchmark for entry in ENTRIES} >= {*BENCHMARKS}
    assert len({entry.method for entry in ENTRIES}) >= 10
    assert {entry.model for entry in ENTRIES} == {"smollm2-135m", "qwen2.5-coder-1.5b"}
    assert {0.0, 1.0} <= {entry.reward for entry in ENTRIES}


def test_the_episodes_are_small_and_all_of_them_are_listed():
    files = [path for path in tk.resource(FOLDER).iterdir() if ".jsonl" in path.name]
    assert sum(path.stat().st_size for path in files) < 1_500_000
    assert {path.name for path in files} <= {entry.file for entry in ENTRIES}


def test_a_name_that_there_is_not_is_answered_with_near_ones():
    with pytest.raises(ValueError, match="acacia-fence-gate"):
        tk.open_episode("acacia-fence")
    with pytest.raises(ValueError, match=ENTRIES[0].name):
        tk.open_episode("?")


@pytest.mark.slow
def test_the_index_links_every_page_and_every_page_the_index(gallery_folder):
    index = (gallery_folder / "index.html").read_text("utf-8")
    assert re.findall(r'<a href="([^"]+)"', index) == [f"{entry.name}.html" for entry in ENTRIES]
    for entry in ENTRIES:
        page = (gallery_folder / f"{entry.name}.html").read_text("utf-8")
        links = re.findall(r'<a href="([^"]+)"', page)
        assert links[0] == "index.html"
        assert all((gallery_folder / link).is_file() for link in links)


@pytest.mark.slow
def test_the_command_lists_the_episodes_and_says_where_the_index_is(tmp_path, capsys):
    assert main(["gallery", "--out", str(tmp_path / "pages")]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == str(tmp_path / "pages" / "index.html")
    assert [line.split()[0] for line in lines[::2]] == [entry.name for entry in ENTRIES]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_call_says_which_text_each_token_added(entry):
    """Without, the player shows a call's whole text at its first token, and then nothing."""
    for event in tk.open_episode(entry.name).events:
        if isinstance(event, GeneratedSpan) and event.span.text:
            assert len(event.lengths) == len(event.span)
            assert sum(event.lengths) == len(event.span.text)

"""Ctrl-C at any moment ends in order, with one line and the exit status 130."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys

import llama_cpp
import pytest

from thread_kit.__main__ import main
from thread_kit.engines import llama_model
from thread_kit.engines.models import load_model
from thread_kit.requests import Status
from thread_kit.trace.episode import Episode

pytestmark = pytest.mark.slow

STOPPED = "thread_kit: stopped"


@pytest.fixture(autouse=True)
def _interrupts():
    """As in a person's terminal; a background job ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Interrupting(list):
    """llama.cpp's log, in which a person presses Ctrl-C at the first line that has a word."""

    def __init__(self, word: str) -> None:
        self.word = word

    def append(self, text: str) -> None:
        super().append(text)
        if self.word in text and not any(self.word in line for line in self[:-1]):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.model
@pytest.mark.parametrize("moment", ["", "load_tensors", "llama_context", "lora"])
def test_an_interrupt_while_a_model_loads_is_not_lost(monkeypatch, moment):
    log = Interrupting(moment)
    monkeypatch.setattr(llama_model, "_log", log)
    with pytest.raises(KeyboardInterrupt):
        load_model()
    assert any(moment in line for line in log)


@pytest.mark.model
@pytest.mark.parametrize("words", ["--prompt textcraft-small", "--adapter thread-135m"])
@pytest.mark.parametrize("passes", [1, 12])
def test_an_interrupt_in_prefill_and_in_play_ends_the_run(monkeypatch, tmp_path, words, passes):
    """passes: through the model until then; the first reads the prompt, or else the task."""
    decode, count = llama_cpp.llama_decode, itertools.count(1)

    def press(*arguments):
        if next(count) == passes:
            signal.raise_signal(signal.SIGINT)
        return decode(*arguments)

    path = tmp_path / "t.jsonl"
    monkeypatch.setattr(llama_cpp, "llama_decode", press)
    about = "--task 47 --split dev --new-tokens 40 --cpu-threads 1 --draft 0"
    command = f"run {about} {words} --out {path}"
    assert main(command.split()) == 130
    assert Episode.load(path).status is Status.STOPPED


IMPORTING = """\
import runpy, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "thread_kit.cli.main":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
runpy.run_module("thread_kit", run_name="__main__")
"""


def test_an_interrupt_while_the_program_is_imported_is_one_line():
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{STOPPED}\n")


OWN = """\
import signal
import thread_kit as tk

def press(seen):
    signal.raise_signal(signal.SIGINT)
    return "go on and on"

def make():
    return tk.ScriptedEngine(press)
"""


@pytest.fixture
def own_model(write_module):
    return f"{write_module('pressing', OWN)}:make"


def test_a_suite_that_is_stopped_says_how_to_go_on(own_model, capsys):
    arguments = ["suite", "--models", own_model, "--tasks", "2", "--out", "results.jsonl"]
    assert main(arguments) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        f"{STOPPED}; the same command goes on where it stopped, with what is in results.jsonl"
    )


def test_a_run_that_is_stopped_says_where_its_trace_is(own_model, capsys):
    arguments = ["run", "--model", own_model, "--task", "47", "--split", "dev", "--out", "t.jsonl"]
    assert main(arguments) == 130
    output = capsys.readouterr()
    assert "stopped by the user" in output.out
    assert output.err.splitlines()[-1] == f"{STOPPED}; what happened is in t.jsonl"


@pytest.mark.parametrize(
    ("module", "function", "arguments"),
    [
        ("thread_kit.views.gallery", "render_page", ["gallery", "--out", "gallery"]),
        ("thread_kit.analysis.item_list", "describe_items", ["reproduce"]),
        ("thread_kit.experiments.reproduce", "make_page", ["reproduce", "thread-v2", "table-3"]),
        ("thread_kit.cli.run", "load_models", ["run", "--method", "react", "--adapter", "none"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_interrupt_of_any_command_is_one_line(
    tmp_path, monkeypatch, capsys, module, function, arguments
):
    def press(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{module}.{function}", press)
    assert main(arguments) == 130
    assert capsys.readouterr().err == f"{STOPPED}\n"
    assert not list(tmp_path.glob("**/*.part"))

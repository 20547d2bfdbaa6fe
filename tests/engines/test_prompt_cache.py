"""Few-shot prompts on disk: a second start evaluates none of their tokens, whatever happened."""

from __future__ import annotations

import os

import numpy as np
import pytest
from helpers.weights import few_layers, quick_weights

from thread_kit.engines import prompt_cache
from thread_kit.engines.engine import Completion
from thread_kit.engines.models import load_model
from thread_kit.engines.prompt_cache import PromptCache
from thread_kit.prompts import Example, Prompt
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.events import Prompted

CELLS = np.arange(1000, dtype=np.uint8)


def files(cache):
    return sorted(path.name for path in cache.folder.iterdir())


def test_cells_come_back_as_they_were_and_only_for_what_they_depend_on(tmp_path):
    cache = PromptCache(tmp_path / "new")
    assert cache.load({"model": "a"}) is None
    cache.store({"model": "a", "tokens": [1, 2]}, CELLS)
    assert (cache.load({"tokens": [1, 2], "model": "a"}) == CELLS).all()
    assert cache.load({"model": "b", "tokens": [1, 2]}) is None
    assert cache.load({"model": "a", "tokens": [1, 3]}) is None
    assert len(files(cache)) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:500] + b"\0" + content[501:],
        lambda content: b"another kind 1\n" + content,
    ],
    ids=["empty", "head cut", "cut", "longer", "a byte changed", "another head"],
)
def test_a_damaged_file_is_deleted(tmp_path, damage):
    cache = PromptCache(tmp_path)
    cache.store({}, CELLS)
    path = cache.path({})
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load({}) is None
    assert not path.exists()


def test_a_file_that_cannot_be_opened_just_now_stays(tmp_path, monkeypatch):
    cache = PromptCache(tmp_path)
    cache.store({}, CELLS)

    def too_many(*arguments, **options):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(prompt_cache.np, "memmap", too_many)
        assert cache.load({}) is None
    assert (cache.load({}) == CELLS).all()


def test_the_files_used_longest_ago_make_room(tmp_path):
    cache = PromptCache(tmp_path, limit=3 * (len(CELLS) + 52))
    for name in "abc":
        cache.store({"name": name}, CELLS)
        os.utime(cache.path({"name": name}), (ord(name), ord(name)))
    assert cache.load({"name": "a"}) is not None  # now b is the coldest
    cache.store({"name": "d"}, CELLS)
    there = [name for name in "abcd" if cache.path({"name": name}).exists()]
    assert there == ["a", "c", "d"]
    cache.store({"name": "too large"}, np.zeros(4 * len(CELLS), np.uint8))
    assert len(files(cache)) == 3


def test_what_a_killed_process_left_half_written_goes_and_counts_until_then(tmp_path):
    cache = PromptCache(tmp_path, limit=3 * (len(CELLS) + 52))
    old, new = tmp_path / "tmpold.part", tmp_path / "tmpnew.part"
    for path in (old, new):
        path.write_bytes(CELLS.tobytes())
    os.utime(old, (1, 1))
    for name in "abc":
        cache.store({"name": name}, CELLS)
    assert not old.exists()
    assert new.exists(), "somebody may be writing it"
    assert len(list(tmp_path.glob("*.kv"))) == 2


def test_a_name_that_is_taken_by_a_folder_leaves_nothing_behind(tmp_path):
    cache = PromptCache(tmp_path)
    cache.path({}).mkdir()
    cache.store({}, CELLS)
    assert files(cache) == [cache.path({}).name]


def test_a_file_without_cells_is_no_prompt(tmp_path):
    cache = PromptCache(tmp_path)
    cache.store({}, CELLS[:0])
    assert cache.load({}) is None
    assert not cache.path({}).exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = PromptCache(tmp_path / "file")
    cache.store({}, CELLS)
    assert cache.load({}) is None


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    cache = PromptCache(tmp_path)

    temporary = prompt_cache.tempfile.NamedTemporaryFile

    def full(**options):
        file = temporary(**options)

        def write(_):
            raise OSError(28, "No space left on device")

        file.write = write
        return file

    monkeypatch.setattr(prompt_cache.tempfile, "NamedTemporaryFile", full)
    cache.store({}, CELLS)
    assert files(cache) == []


# With the model

PROMPT = Prompt("p", (Example("Say hello.", "Hello, hello, hello.\n#END#"),) * 4)
LONG = Prompt("long", PROMPT.examples * 4)


def run(prompt=PROMPT, **options):
    """A short episode on a fresh engine: the prompt's cost, and what was written."""
    options = {"adapter": None, "cpu_threads": 1, "context": 1024, "draft": 0} | options
    weights = quick_weights() if options["adapter"] else few_layers()
    with load_model(weights, **options) as engine:
        session = Session(engine, context="Say hello.", prompt=prompt, new_tokens=12)
        episode = session.run(progress=False)
    (prompted,) = (event for event in episode.events if isinstance(event, Prompted))
    return prompted, episode.threads[0].sequence.tokens


@pytest.mark.model
def test_the_second_start_evaluates_no_token_of_the_prompt_and_says_the_same(tmp_path):
    first, said = run()
    assert (first.reused, first.evaluated > 50) == (0, True)
    again, repeated = run()
    assert (again.reused, again.evaluated) == (first.evaluated, 0)
    assert repeated == said

    (path,) = PromptCache().folder.iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    rebuilt, repeated = run()
    assert (rebuilt.evaluated, repeated) == (first.evaluated, said)
    assert run()[0].evaluated == 0


@pytest.mark.model
def test_cells_that_llama_cpp_refuses_are_evaluated_anew(monkeypatch):
    _, said = run()
    load = PromptCache.load
    monkeypatch.setattr(PromptCache, "load", lambda self, about: load(self, about)[:-64].copy())
    refused, repeated = run()
    assert (refused.reused, repeated) == (0, said)


@pytest.mark.model
@pytest.mark.parametrize("size", [0, None])
def test_cells_of_no_or_of_fewer_tokens_are_evaluated_anew(monkeypatch, size):
    _, text = run()
    store, cells = PromptCache.store, []
    shorter = Prompt("p", PROMPT.examples[:2])
    monkeypatch.setattr(PromptCache, "store", lambda self, about, new: cells.append(new))
    with load_model(few_layers(), adapter=None, draft=0, cpu_threads=1, context=1024) as engine:
        list(engine.prefill(engine.tokenize(shorter.text, first=True)))
    monkeypatch.setattr(PromptCache, "store", store)
    monkeypatch.setattr(PromptCache, "load", lambda self, about: cells[0][:size].copy())
    refused, repeated = run()
    assert (refused.reused, repeated) == (0, text)


@pytest.mark.filterwarnings("ignore:the model is taught by")
@pytest.mark.model
def test_it_can_be_switched_off_and_an_adapter_has_prompts_of_its_own():
    run(keep_prompts=False)
    assert not PromptCache().folder.exists()
    run()
    assert run(keep_prompts=False)[0].evaluated > 0
    assert run(adapter="thread-135m")[0].evaluated > 0
    assert len(list(PromptCache().folder.iterdir())) == 2


@pytest.mark.model
def test_cells_of_another_attention_are_another_prompts():
    first, _ = run()
    assert run(flash_attention=False)[0].evaluated == first.evaluated > 0
    assert run(flash_attention=False)[0].evaluated == run()[0].evaluated == 0


@pytest.mark.model
def test_cells_of_threads_that_are_over_make_room_for_a_prompt_from_disk():
    first, _ = run()
    (path,) = PromptCache().folder.iterdir()
    written = path.stat().st_ino
    with load_model(few_layers(), adapter=None, draft=0, cpu_threads=1, context=256) as engine:
        stay = engine.tokenize("A word. " * 60, first=True)[:250]
        engine.begin("over", stay, stops={}, max_tokens=1)
        while not any(isinstance(news, Completion) for news in engine.advance("over")):
            pass
        engine.release("over", keep=True)
        tokens = engine.tokenize(PROMPT.text, first=True)
        assert list(engine.prefill(tokens))[-1].done == len(tokens) == first.evaluated
        assert "over" not in engine._cache
    assert path.stat().st_ino == written, "the file is as good as it was"


@pytest.mark.model
def test_a_prompt_on_disk_larger_than_the_cells_is_no_crash():
    run(LONG)
    with load_model(few_layers(), adapter=None, draft=0, cpu_threads=1, context=256) as engine:
        episode = Session(engine, context="Say hello.", prompt=LONG).run(progress=False)
    assert episode.status is Status.FAILED
    assert "larger context" in episode.detail

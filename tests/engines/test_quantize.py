"""A model file in another of llama.cpp's kinds: made once, whole or not at all."""

from __future__ import annotations

import os
import shutil
import time

import llama_cpp
import pytest
from helpers.weights import quick_weights

from thread_kit.engines import models, quantize
from thread_kit.engines.engine import EngineError
from thread_kit.engines.models import EMBEDDED, MODELS, find_file, load_model
from thread_kit.engines.quantize import QUICKEST, quantize_file, quickest_kind
from thread_kit.file_hash import sha256_of
from thread_kit.paths import cache_folder

pytestmark = pytest.mark.model


@pytest.fixture(autouse=True)
def _no_weights_yet():
    (cache_folder() / "weights").unlink()  # those that all other tests share


@pytest.fixture
def file():
    return find_file(MODELS[EMBEDDED])


def test_it_is_made_once_and_says_so_in_the_header(file):
    with load_model(quantize="Q8_0", context=256, cpu_threads=1) as engine:
        about = engine.describe()
    (made,) = (cache_folder() / "weights").rglob("*.*")
    assert made.name == about["file"] == "SmolLM2-135M-Instruct.Q4_1.Q8_0.gguf"
    assert made.parent.name == sha256_of(file)
    assert about["sha256"] == sha256_of(made) == sha256_of(quick_weights()), "twice the same bytes"
    assert about["adapter"]["file"] == "thread-135m.gguf"
    before = made.stat().st_mtime_ns
    assert quantize_file(file, "Q8_0") == made
    assert made.stat().st_mtime_ns == before
    with load_model(quantize=None, context=256, cpu_threads=1) as engine:
        assert engine.describe()["sha256"] == sha256_of(file), "the file as it is, where asked"


def system(*instructions: str) -> bytes:
    """What llama.cpp says of a build that uses these."""
    return b"CPU : " + b"".join(f"{name} = 1 | ".encode() for name in instructions)


@pytest.mark.parametrize(
    ("instructions", "way"),
    [
        (("SSE3", "AVX2", "AVX512", "AVX512_BF16"), ("BF16", 4)),
        (("SSE3", "AVX2", "AVX512", "AVX512_VNNI"), ("Q8_0", 0)),
        (("SSE3", "AVX", "AVX2"), ("Q8_0", 4)),
        (("SSE3", "AVX"), None),
        (("NEON", "ARM_FMA"), None),
    ],
)
def test_the_quickest_kind_follows_what_the_build_uses(instructions, way, monkeypatch):
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: False)
    monkeypatch.setattr(llama_cpp, "llama_print_system_info", lambda: system(*instructions))
    assert quickest_kind() == way
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: True)
    assert quickest_kind() is None, "nobody has measured a GPU"


@pytest.mark.parametrize("way", QUICKEST.values())
def test_the_embedded_model_is_loaded_so_unless_told_otherwise(way, file, monkeypatch):
    kind, draft = way
    monkeypatch.setattr(models, "quickest_kind", lambda: way)
    with load_model(context=256, cpu_threads=1) as engine:
        assert engine.path == (quantize_file(file, kind) if kind else file)
        assert engine._drafter._length.most == draft
    with load_model(context=256, cpu_threads=1, draft=2) as engine:
        assert engine._drafter._length.most == 2
    with load_model(file, context=256, cpu_threads=1) as engine:
        assert (engine.path, engine._drafter.is_on) == (file, False), "a file is what it is"


def test_where_layers_can_go_to_a_gpu_drafts_are_as_long_as_pays(file, monkeypatch):
    monkeypatch.setattr(models, "quickest_kind", lambda: None)
    monkeypatch.setattr("thread_kit.engines.llama.cached_costs", lambda *_: {1: 1, 8: 1, 16: 1})
    ways = {}, {"quantize": None}, {"name_or_path": file}
    for is_gpu, layers, most in ((True, -1, 15), (True, 0, 0), (False, -1, 0)):
        monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: is_gpu)  # noqa: B023
        for options in ways:
            with load_model(context=256, cpu_threads=1, gpu_layers=layers, **options) as engine:
                assert (engine.path, engine.describe()["draft"]) == (file, most)
    with load_model(context=256, cpu_threads=1, draft=None) as engine:
        assert engine.describe()["draft"] == 15, "anywhere, where it is asked for"


def test_where_it_cannot_be_made_the_file_is_taken_and_that_is_said(file, tmp_path, monkeypatch):
    monkeypatch.setattr(models, "quickest_kind", lambda: ("BF16", 4))
    (tmp_path / "file").touch()
    monkeypatch.setenv("THREAD_KIT_CACHE", str(tmp_path / "file"))
    with (
        pytest.warns(UserWarning, match="as it is, which is slower: .* cannot be written"),
        load_model(context=256, cpu_threads=1) as engine,
    ):
        assert (engine.path, engine._drafter.is_on) == (file, False)


def test_it_writes_as_the_file_does(file):
    texts = []
    for path in (file, quick_weights()):
        with load_model(path, context=256, cpu_threads=1, keep_prompts=False) as engine:
            tokens = engine.tokenize("One, two, three, four,", first=True)
            engine.begin(0, tokens, stops={}, max_tokens=8)
            while engine.is_open:
                if (last := engine.step()[-1]).__class__.__name__ == "Completion":
                    texts.append(last.text)
                    break
    assert texts[0] == texts[1]
    assert "five" in texts[0]


@pytest.mark.parametrize("kind", ["Q9", "", 8])
def test_a_kind_that_nobody_knows_names_those_that_are_known(kind):
    with pytest.raises(EngineError, match=r"give one of Q4_0, Q8_0, F16, BF16, or None"):
        load_model(quantize=kind)


def test_what_cannot_be_made_leaves_nothing_behind(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(EngineError, match="quantize=None"):
        load_model(broken, quantize="Q8_0")
    assert not list((cache_folder() / "weights").rglob("*.*"))


def test_a_cache_folder_that_cannot_be_written_is_said(file, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("THREAD_KIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(EngineError, match="set THREAD_KIT_CACHE"):
        quantize_file(file, "Q8_0")


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(file):
    folder = cache_folder() / "weights" / sha256_of(file)
    folder.mkdir(parents=True)
    old, new = folder / "Q8_0.1.1.part", folder / "Q8_0.2.2.part"
    for path in (old, new):
        shutil.copy(__file__, path)
    then = time.time() - 2 * quantize.ABANDONED
    os.utime(old, (then, then))
    quantize_file(file, "Q8_0")
    assert sorted(path.suffix for path in folder.iterdir()) == [".gguf", ".part"]
    assert new.exists()

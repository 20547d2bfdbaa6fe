"""An adapter as llama.cpp reads it, and back.

A GGUF file of type "adapter" holds two matrices for each weight W of the model: A (`lora_a`, rank
rows) and B (`lora_b`); W x becomes W x + alpha / rank * B A x. llama.cpp keeps the rows of q and k
of this architecture in another order than transformers does (the halves of each head interleaved,
as its rotary embedding wants them), so the rows of their `lora_b` are reordered too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from peft import get_peft_model_state_dict, set_peft_model_state_dict

from thread_kit.replace_file import replace_file

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def export(model: Any, path: Path, *, alpha: int, about: Mapping[str, str] | None = None) -> None:
    """Write the adapter of a torch model (`with_adapter`) to a GGUF file, in half precision.

    about: what else the file says of itself (general.name, general.description ...).
    Raises OSError if it cannot be written; a file that was there before then stays whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as part:
        _write(model, part, alpha, about or {})


def _write(model: Any, path: Path, alpha: int, about: Mapping[str, str]) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(alpha))
    for key, value in about.items():
        writer.add_string(key, value)
    state = get_peft_model_state_dict(model, save_embedding_layers=False)
    for ours, theirs, heads in _tensors(model):
        a = state[f"{ours}.lora_A.weight"].float().cpu().numpy()
        b = state[f"{ours}.lora_B.weight"].float().cpu().numpy()
        writer.add_tensor(f"{theirs}.weight.lora_a", a.astype(np.float16))
        writer.add_tensor(f"{theirs}.weight.lora_b", interleave(b, heads).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def load_adapter(model: Any, path: Path) -> None:
    """Put the adapter of a GGUF file into a torch model (`with_adapter`) of the same rank."""
    tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}
    state = {}
    for ours, theirs, heads in _tensors(model):
        a, b = (np.array(tensors[f"{theirs}.weight.lora_{x}"], np.float32) for x in "ab")
        state[f"{ours}.lora_A.weight"] = torch.from_numpy(a)
        state[f"{ours}.lora_B.weight"] = torch.from_numpy(deinterleave(b, heads))
    set_peft_model_state_dict(model, state)


def interleave(rows: np.ndarray, heads: int | None) -> np.ndarray:
    """Rows in llama.cpp's order: of each head the first half and the second by turns."""
    return _reorder(rows, heads, 2) if heads else rows


def deinterleave(rows: np.ndarray, heads: int | None) -> np.ndarray:
    """The reverse of `interleave`."""
    return _reorder(rows, heads, len(rows) // heads // 2) if heads else rows


def _reorder(rows: np.ndarray, heads: int, groups: int) -> np.ndarray:
    """Of each head the first row of each group, then the second of each, and so on."""
    parts = rows.reshape(heads, groups, -1, rows.shape[1])
    return np.ascontiguousarray(parts.swapaxes(1, 2).reshape(rows.shape))


def _tensors(model: Any) -> Iterator[tuple[str, str, int | None]]:
    """For each weight: peft's name, llama.cpp's, and the heads whose rows are reordered."""
    config = model.config
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for layer in range(config.num_hidden_layers):
        for ours, theirs in NAMES.items():
            name = f"base_model.model.model.layers.{layer}.{ours}"
            yield name, f"blk.{layer}.{theirs}", heads.get(theirs)

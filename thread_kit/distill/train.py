"""Training a low-rank adapter (LoRA, Hu et al. 2021) on the model that users run.

The base is read from the same GGUF file that llama.cpp runs, and stays as it is; some five million
parameters beside it are trained. Needs the extra: pip install "thread-kit[distill]".
"""

from __future__ import annotations

import math
import random
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import torch
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from tqdm.auto import tqdm
from transformers import AutoModelForCausalLM, GgufConfig
from transformers.utils import logging

from thread_kit.distill.attention import BLOCKS
from thread_kit.distill.examples import Example
from thread_kit.replace_file import replace_file
from thread_kit.trace.jsonl import replace_lines

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
POOL = 8  # batches
gguf.get_tensor_name_map = cache(gguf.get_tensor_name_map)  # transformers asks for it 397 times
SAVE_EVERY = 50  # steps; about two minutes on two cores


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train.

    rank, alpha: of the adapter; what it adds is scaled by alpha / rank.
    rate: the highest learning rate, reached after `warmup` (a share of the steps); from there it
        falls to 0 as a cosine does.
    batch: tokens a step, at most.
    """

    rank: int = 16
    alpha: int = 32
    rate: float = 1e-3
    warmup: float = 0.05
    batch: int = 2048
    seed: int = 0


@cache
def precision() -> torch.dtype:
    """bfloat16 or float32, whichever is the quicker here, measured once in a process.

    Some processors multiply twice as many numbers a second in bfloat16, some half as many though
    they have the instructions, and some only imitate it.
    """
    if torch.cuda.is_available():
        return torch.bfloat16
    if not torch.backends.mkldnn.is_available():  # its operators are missing where it is not built
        return torch.float32
    whole = _time_product(torch.float32)
    half = _time_product(torch.bfloat16, enough=whole)
    return torch.bfloat16 if half < whole else torch.float32


def _time_product(precision: torch.dtype, enough: float = math.inf) -> float:
    """Seconds of one product with a matrix as large as a block's largest, the least of a few.

    enough: one that takes ten times so long is imitated, and is not tried again.
    """
    states, weights = torch.ones(256, 576, dtype=precision), torch.ones(576, 1536, dtype=precision)
    least = math.inf
    for _ in range(10):
        begun = time.perf_counter()
        states @ weights
        least = min(least, time.perf_counter() - begun)
        if least > 10 * enough:
            break
    return least


def load_base(path: Path) -> Any:
    """The torch model in a GGUF file, its weights dequantized to the machine's `precision`.

    Raises OSError or ValueError for a file or an architecture that transformers cannot read.
    """
    logging.disable_progress_bar()  # three bars for three seconds
    try:
        model = AutoModelForCausalLM.from_pretrained(
            path.parent,
            gguf_file=path.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=precision(),
        )
    finally:
        logging.enable_progress_bar()
    model.config.use_cache = False
    model.set_attn_implementation("sdpa" if torch.cuda.is_available() else BLOCKS)
    return model


def with_adapter(base: Any, recipe: Recipe) -> Any:
    """The base with a fresh adapter on all linear layers of its blocks; only that is trained."""
    torch.manual_seed(recipe.seed)
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        target_modules=LINEAR,
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():  # peft asks transformers for a name that it will lose
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        return get_peft_model(base, config)


def batches(examples: Sequence[Example], recipe: Recipe) -> list[list[Example]]:
    """Batches of examples of like length, so that little is padded, in an order that is drawn.

    Alike are those of one pool, a small part of all that is drawn: what has the same length is
    often of the same kind, and a kind that came in two or three batches of its own was forgotten.
    """
    draw = random.Random(recipe.seed)
    drawn: list[list[Example]] = []
    for pool in _pools(draw.sample(examples, len(examples)), POOL * recipe.batch):
        of_pool: list[list[Example]] = [[]]
        for example in sorted(pool, key=len):
            if of_pool[-1] and (len(of_pool[-1]) + 1) * len(example) > recipe.batch:
                of_pool.append([])
            of_pool[-1].append(example)
        drawn += draw.sample(of_pool, len(of_pool))
    return drawn


def _pools(examples: Iterable[Example], tokens: int) -> Iterator[list[Example]]:
    """The examples in their order, in parts of about so many tokens."""
    pool: list[Example] = []
    for example in examples:
        pool.append(example)
        if sum(map(len, pool)) >= tokens:
            yield pool
            pool = []
    if pool:
        yield pool


def autocast(model: Any) -> torch.autocast:
    """Compute in bfloat16 where the weights are; the adapter's own never are."""
    weight = model.get_base_model().lm_head.weight
    half = weight.dtype == torch.bfloat16
    return torch.autocast(weight.device.type, torch.bfloat16, enabled=half)


def loss_of(model: Any, batch: Sequence[Example]) -> torch.Tensor:
    """The mean cross-entropy of a batch where its loss mask is true (nats a token)."""
    longest = max(map(len, batch))
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    loss_mask = torch.zeros(len(batch), longest, dtype=torch.bool)
    for row, example in enumerate(batch):
        ids[row, : len(example)] = torch.tensor(example.tokens)
        loss_mask[row, : len(example)] = torch.tensor(example.loss_mask)
    device = next(model.parameters()).device
    ids, loss_mask = ids.to(device), loss_mask.to(device)
    inner = model.get_base_model()
    with autocast(model):
        # Padding is on the right, where a causal model does not look. The vocabulary is as large as
        # four blocks: logits are computed only where the loss mask is true.
        hidden = inner.model(ids[:, :-1]).last_hidden_state
        logits = inner.lm_head(hidden[loss_mask[:, 1:]])
    return torch.nn.functional.cross_entropy(logits.float(), ids[:, 1:][loss_mask[:, 1:]])


def train(
    base: Path, examples: Sequence[Example], folder: Path, recipe: Recipe | None = None
) -> Any:
    """Train an adapter on `examples`, each seen once; returns the model with it.

    folder: holds the checkpoint, from which an interrupted run goes on, and `loss.jsonl` (step,
        tokens so far, loss in nats a token). Raises ValueError if the checkpoint there is of
        another run.
    """
    recipe = recipe or Recipe()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = with_adapter(load_base(base), recipe).to(device)
    for _ in steps(model, batches(examples, recipe), folder, recipe):
        pass
    return model


def steps(
    model: Any, plan: Sequence[Sequence[Example]], folder: Path, recipe: Recipe
) -> Iterator[dict[str, float]]:
    """The steps of a run, one a batch, from where its checkpoint stands; yields the log's lines."""
    folder.mkdir(parents=True, exist_ok=True)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=recipe.rate, weight_decay=0.0)
    warm = max(1, round(recipe.warmup * len(plan)))
    rising = LinearLR(optimizer, 1 / warm, 1, warm)
    falling = CosineAnnealingLR(optimizer, max(1, len(plan) - warm))
    schedule = SequentialLR(optimizer, [rising, falling], [warm])
    run = {**asdict(recipe), "batches": len(plan), "tokens": _size(plan)}
    run["precision"] = str(model.get_base_model().lm_head.weight.dtype)
    parts = {"optimizer": optimizer, "schedule": schedule}
    done, log = _resume(folder, run, model, parts)
    model.train()
    tokens = _size(plan[:done])
    with tqdm(total=run["tokens"], initial=tokens, unit=" tokens", unit_scale=True) as bar:
        for step, batch in enumerate(plan[done:], done + 1):
            loss = loss_of(model, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            tokens += sum(map(len, batch))
            line = {"step": step, "tokens": tokens, "loss": round(loss.item(), 5)}
            log.append(line)
            bar.set_description(f"training, loss {line['loss']:.3f}", refresh=False)
            bar.update(sum(map(len, batch)))
            if step % SAVE_EVERY == 0 or step == len(plan):
                _save(folder, {"run": run, "step": step, "log": log}, model, parts)
            yield line


def _size(plan: Sequence[Sequence[Example]]) -> int:
    return sum(len(example) for batch in plan for example in batch)


def _save(folder: Path, state: Mapping[str, Any], model: Any, parts: Mapping[str, Any]) -> None:
    """A crash in between leaves the last checkpoint whole."""
    adapter = get_peft_model_state_dict(model, save_embedding_layers=False)
    states = {name: part.state_dict() for name, part in parts.items()}
    with replace_file(folder / "checkpoint.pt") as part:
        torch.save({**state, "adapter": adapter, **states}, part)
    _write_log(folder, state["log"])


def _write_log(folder: Path, log: Iterable[Mapping[str, float]]) -> None:
    replace_lines(folder / "loss.jsonl", log)


def _resume(
    folder: Path, run: Mapping[str, Any], model: Any, parts: Mapping[str, Any]
) -> tuple[int, list[dict[str, float]]]:
    path = folder / "checkpoint.pt"
    if not path.exists():
        return 0, []
    state = torch.load(path, weights_only=True)
    if state["run"] != run:
        raise ValueError(
            f"{path} belongs to another run ({state['run']}, not {run}); "
            "give another folder, or delete it"
        )
    set_peft_model_state_dict(model, state["adapter"])
    for name, part in parts.items():
        part.load_state_dict(state[name])
    _write_log(folder, state["log"])  # a crash may have come between the checkpoint and its log
    return state["step"], state["log"]

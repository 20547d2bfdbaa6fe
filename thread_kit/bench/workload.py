"""The calls of one episode, as work for every contender, and what came of it."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from thread_kit.engines.engine import Engine
from thread_kit.engines.llama import LlamaEngine
from thread_kit.engines.models import find_adapter, find_weights
from thread_kit.engines.quantize import quantize_file
from thread_kit.sequence import Span
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import (
    Ended,
    GeneratedSpan,
    Instructed,
    Observed,
    Referred,
    Returned,
    Spawned,
)

Loaded = TypeVar("Loaded", bound=LlamaEngine)


@dataclass(frozen=True, slots=True)
class Weights:
    """The model that all contenders load, in the same way.

    context: cells of the KV cache, in tokens. cpu_threads: of llama.cpp.
    """

    path: Path
    adapter: Path | None = None
    context: int = 8192
    gpu_layers: int = -1
    cpu_threads: int = 1

    @classmethod
    def of(
        cls, model: str, adapter: str | None, *, quantize: str | None = None, **options: Any
    ) -> Weights:
        """Those of a model by name or path, as they are or as another kind (`load_model`).

        Raises ModelError for what is not there.
        """
        lora = find_adapter(adapter) if adapter else None
        return cls(find_weights(model), lora, **options).as_kind(quantize)

    def as_kind(self, kind: str | None) -> Weights:
        """The same weights as another of llama.cpp's kinds (`quantize_file`), or as they are."""
        return replace(self, path=quantize_file(self.path, kind)) if kind else self

    def load(self, kind: type[Loaded], **more: Any) -> Loaded:
        """An engine of this kind with this model; no prompt comes from disk, or goes there."""
        return kind(
            self.path,
            adapter=self.adapter,
            context=self.context,
            gpu_layers=self.gpu_layers,
            cpu_threads=self.cpu_threads,
            keep_prompts=False,
            **more,
        )

    def __str__(self) -> str:
        adapter = f" with {self.adapter.stem}" if self.adapter else ""
        return self.path.stem + adapter


@dataclass(frozen=True, slots=True)
class Forced:
    """One call: the tokens that the thread sees (q + c + Y), and those that it has to write."""

    thread: int
    seen: tuple[int, ...]
    written: tuple[int, ...]


WARM_UP = Forced(0, (1,) * 64, (1,))
"""What an engine is given before the clock starts."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The calls of an episode in order, and between them the number of each thread that ends.

    prompt: the tokens of the few-shot prompt, with which every `seen` begins.
    threads: how many are alive at the same time, at most.
    """

    name: str
    prompt: tuple[int, ...]
    steps: tuple[Forced | int, ...]
    threads: int

    @property
    def calls(self) -> list[Forced]:
        """The calls alone."""
        return [step for step in self.steps if isinstance(step, Forced)]

    def first(self, calls: int) -> Workload:
        """The work up to so many calls."""
        ends = [n for n, step in enumerate(self.steps, 1) if isinstance(step, Forced)]
        return replace(
            self, steps=self.steps[: ends[calls - 1]] if calls < len(ends) else self.steps
        )

    @property
    def generated(self) -> int:
        """How many tokens are written in all."""
        return sum(len(call.written) for call in self.calls)


def workload(episode: Episode, engine: Engine, name: str) -> Workload:
    """The work of a recorded episode, in the tokens of this engine.

    Where the engine's model is the one that played the episode, they are the recorded tokens.
    Raises ValueError for an episode with several few-shot prompts, or without calls.
    """
    shas = {event.prompt for event in episode.events if isinstance(event, Spawned)}
    if len(shas) != 1 or not episode.usage.calls:
        raise ValueError(
            f"{episode!r}: take an episode with one few-shot prompt for all threads, and with calls"
        )
    prompt = engine.tokenize(episode.prompt(0).text, first=True) if episode.prompt(0) else ()
    same = prompt == episode.prompt(0).tokens and _same_model(episode, engine.describe())

    def tokens(span: Span, *, first: bool = False) -> tuple[int, ...]:
        return span.tokens if same else engine.tokenize(span.text, first=first)

    seen: dict[int, tuple[int, ...]] = {}
    steps: list[Forced | int] = []
    most = 0
    for event in episode.events:
        match event:
            case Spawned(number, _, _, context):
                seen[number] = prompt + tokens(context, first=not prompt)
                most = max(most, len(seen))
            case GeneratedSpan(number, span):
                written = tokens(span)
                if written:
                    steps.append(Forced(number, seen[number], written))
                seen[number] += written
            case Ended(number):
                steps.append(number)
                del seen[number]
            case Observed(number, span) | Instructed(number, span):
                seen[number] += tokens(span)
            case Referred(number, _, span) | Returned(number, _, span):
                seen[number] += tokens(span)
    return Workload(name, prompt, tuple(steps), most)


def _same_model(episode: Episode, about: Mapping[str, Any]) -> bool:
    played = episode.header.get("model", {})
    return all(played.get(name) == about.get(name) for name in ("sha256", "adapter"))


class Measurement(NamedTuple):
    """What a contender made of a workload.

    evaluated: tokens that went through the model, generated ones among them. seconds: without
    loading. as_recorded: calls in which its own choice of tokens was the recorded one.
    peak: bytes of memory, the model's file among them.
    """

    contender: str
    evaluated: int
    seconds: float
    as_recorded: int
    peak: int


Contender = Callable[[Weights, Workload], Measurement]


def peak_memory(process: int | str = "self") -> int:
    """The most memory that a process has had, in bytes; of another one only on Linux, else 0."""
    status = Path(f"/proc/{process}/status")
    if status.exists():  # unlike getrusage, it does not count what the parent had at the fork
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return 1024 * int(found[1]) if found else 0
    if process != "self":
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

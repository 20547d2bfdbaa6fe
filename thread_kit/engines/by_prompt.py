"""Several models behind one interface: a thread's few-shot prompt says which of them answers it.

So ADaPT's planner can be another model than its executor (ADaPT paper, section 6.4, Table 4):

    engine = tk.EngineByPrompt(executor, {tk.load_prompt("adapt/textcraft-planner"): planner})

A session over it spells each thread in the vocabulary of its own model. The header of the trace has
the facts of the first model, and with each prompt of another model the facts of that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from thread_kit.engines.engine import (
    Completion,
    Engine,
    GenerateRequest,
    News,
    Prefilled,
    ThreadKey,
    Tokenize,
)
from thread_kit.prompts import Prompt
from thread_kit.trace.events import Prefilling, Prompted


@final
class EngineByPrompt(Engine):
    """One engine for all threads, except for those with the few-shot prompts of another one.

    others: the engines of the threads that have these prompts. Closed with this one, as `engine`.
    """

    def __init__(self, engine: Engine, others: Mapping[Prompt, Engine]) -> None:
        super().__init__()
        self.engine = engine
        self._others = {prompt.sha256: other for prompt, other in others.items()}
        self._engines = list({id(one): one for one in (engine, *others.values())}.values())
        self._threads: dict[ThreadKey, Engine] = {}
        self._late: dict[ThreadKey, Exception] = {}
        self.name, self.context_size = engine.name, engine.context_size

    def _of(self, thread: ThreadKey) -> Engine:
        return self._threads.get(thread, self.engine)

    # Which model

    def assign(self, thread: ThreadKey, prompt: str) -> None:
        if prompt in self._others:
            self._threads[thread] = self._others[prompt]

    def tokenizer(self, prompt: str) -> Tokenize:
        return self._others.get(prompt, self.engine).tokenize

    def context_of(self, prompt: str) -> int:
        return self._others.get(prompt, self.engine).context_size

    def describe_other(self, prompt: str) -> dict[str, Any] | None:
        return self._others[prompt].describe() if prompt in self._others else None

    def describe(self) -> dict[str, Any]:
        return self.engine.describe()

    def __repr__(self) -> str:
        others = ", ".join(map(repr, self._engines[1:]))
        return f"EngineByPrompt({self.engine!r}, {others})"

    # What each of them does

    @property
    def steps_taken(self) -> int:  # type: ignore[override]
        return sum(engine.steps_taken for engine in self._engines)

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        return self.engine.tokenize(text, first=first)

    def prefill(self, tokens: Sequence[int]) -> Iterator[Prefilled]:
        yield from self.engine.prefill(tokens)

    def prefill_prompt(self, sha256: str, tokens: Sequence[int]) -> Iterator[Prefilling | Prompted]:
        yield from self._others.get(sha256, self.engine).prefill_prompt(sha256, tokens)

    def submit(self, thread: ThreadKey, request: GenerateRequest) -> None:
        self._of(thread).submit(thread, request)

    def step(self) -> list[News]:
        return [news for engine in self._engines for news in engine.step()]

    def advance(self, *threads: ThreadKey) -> list[News]:
        """What is new for these threads, model by model.

        Where a model fails, what another one has said comes first, and the error at the next call
        for a thread of the one that failed.
        """
        for thread in threads:
            if thread in self._late:
                raise self._late.pop(thread)
        news: list[News] = []
        for engine in self._engines:
            if own := [thread for thread in threads if self._of(thread) is engine]:
                try:
                    news += engine.advance(*own)
                except Exception as error:
                    if not news:
                        raise
                    self._late |= dict.fromkeys(own, error)
        return news

    def cancel(self, thread: ThreadKey) -> Completion | None:
        self._late.pop(thread, None)
        return self._of(thread).cancel(thread)

    def release(self, thread: ThreadKey, *, keep: bool = False) -> None:
        self._threads.pop(thread, None)
        self._late.pop(thread, None)
        for engine in self._engines:  # nobody knows any more which one keeps its cells
            engine.release(thread, keep=keep)

    def close(self) -> None:
        self.is_open = False
        for engine in self._engines:
            engine.close()

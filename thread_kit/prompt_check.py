"""Proves a few-shot prompt: its examples are threads that could really have run like this.

A prompt is written by hand, and an example that shows what cannot happen teaches the model to do
it. Each example is played by a real session, with its own text in the place of the model:

- its lines of code run;
- each spawn gives a context that some example has, or that has the form of one;
- what it shows as returned is what psi takes from the example of that child;
- what it shows as observed is what the environment says, abstracted (where one is given);
- what it shows behind a spawn that does not wait is the reference that stands for the child, whose
  context has to be that of an example, since nothing else says what it gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from thread_kit.dialect import REFERENCE
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.exchange import exchange_of, instantiate, psi_print, references
from thread_kit.prompts import Example, Prompt, PromptError
from thread_kit.requests import Finished
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.sandbox import Sandbox
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode, Thread
from thread_kit.trace.events import (
    Event,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Referred,
    Resolved,
    Returned,
    Spawned,
)

StandIn = Callable[[str, Env], dict[str, Any]]
"""Does in the environment what a child with this context would; the variables that it names."""


def check_prompt(
    prompt: Prompt,
    env: Env | None = None,
    stand_in: StandIn | None = None,
    *,
    speak: Callable[[str], str] | None = None,
    **settings: Any,
) -> list[str]:
    """What is wrong with a prompt, a sentence each; [] if nothing is.

    env: where the actions are executed, in the order of the threads; it has been reset. stand_in:
    acts for a child that no example shows to the word. speak: writes what such a child writes, from
    all that it sees; so it is played, too. settings: parameters of `Session` under which the
    examples are to be true, where they are not THREAD's own (phi, scope, abstract).
    """
    if not isinstance(prompt, Prompt):
        raise TypeError(
            f"{prompt!r:.60} is no prompt; give tk.load_prompt(NAME), or tk.parse_prompt(TEXT)"
        )
    check = _Check(prompt, env, stand_in, speak, settings)
    with (env.sandbox() if env else None) or MontySandbox() as sandbox:
        for example in prompt.examples:
            if not example.context.rstrip().endswith(prompt.dialect.listen):
                check.play(example, sandbox)
    return check.conclude()


def _segments(example: Example, prompt: Prompt) -> Iterator[tuple[str, str]]:
    """(what the thread wrote, what came back); the last one has nothing coming back."""
    dialect = prompt.dialect
    rest = example.response
    while ends := [rest.find(mark) + len(mark) for mark in dialect.listens if mark in rest]:
        back, _, behind = rest[min(ends) :].partition(dialect.close)
        yield rest[: min(ends)], back
        rest = behind
        rest = rest.removeprefix(dialect.after_close)
    yield rest, ""


def speak_examples(prompts: Iterable[Prompt]) -> Callable[[str], str]:
    """A script for `ScriptedEngine`: what the prompts' own examples say next, in the place of q.

    For methods with several roles. Played by their program in the real environment, it proves the
    examples: each one's text is what the program makes of it, to the character. Raises PromptError
    for a thread that no example shows.
    """
    known = [prompt for prompt in prompts if prompt.examples]

    def speak(text: str) -> str:
        prompt = next((prompt for prompt in known if text.startswith(prompt.text)), None)
        if prompt is None:
            raise PromptError(f"no prompt of these was read: {text[:100]!r}")
        asked = text.removeprefix(prompt.text)
        for example in prompt.examples:
            whole = prompt.dialect.context(example.context) + example.response
            if whole.startswith(asked):
                return whole.removeprefix(asked)
        raise PromptError(f"no example of {prompt.name} goes on from:\n{asked}")

    return speak


class _Check(Env):
    """The environment of the sessions that play the main examples, and their model's script."""

    name = "prompt check"

    def __init__(
        self,
        prompt: Prompt,
        env: Env | None,
        stand_in: StandIn | None,
        speak: Callable[[str], str] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self.task = {}
        self.speak = speak
        self.prompt, self.env, self.stand_in = prompt, env, stand_in
        self.examples_by_context = {example.context: example for example in prompt.examples}
        exchange = exchange_of(prompt.dialect, phi=settings.get("phi"))
        self.settings = {"abstract": exchange["abstract"], **settings}
        self.phi = exchange["phi"]
        self.problems: list[str] = []
        self.spawned: set[str] = set()  # contexts
        self.returned: dict[str, set[str]] = {}  # what psi took, by the child's context
        self.trusted: list[tuple[str, str, str]] = []  # context, its form, what it is to return
        self.taken = ""
        self.main = ""
        self.writer = 0
        self.episode = Episode()

    def play(self, example: Example, sandbox: Sandbox) -> None:
        """Play a main example and all threads below it."""
        self.main = example.context
        self.spawned.add(example.context)
        session = Session(
            ScriptedEngine(self._speak, context=10**9),
            self,
            dialect=self.prompt.dialect,
            psi=self._psi,
            sandbox=sandbox,
            **self.settings,
            calls=None,
            new_tokens=10**9,
            depth=None,
        )
        self.episode = session.episode
        for event in session:
            self._check(event)
        if session.error:
            raise session.error

    def conclude(self) -> list[str]:
        """The problems, with those that show only when everything has been played."""
        for example in self.prompt.examples:
            if example.context not in self.spawned:
                self._report(example.context, "no example spawns a thread with this context")
        for context, form, shown in self.trusted:
            known = [texts for c, texts in self.returned.items() if re.fullmatch(form, c)]
            if not known:
                self.problems.append(f"{context!r}: no example has a context of this form")
            elif not any(shown in texts for texts in known):
                self.problems.append(f"{context!r}: no example of its form returns {shown!r}")
        return self.problems

    def _report(self, context: str, problem: str) -> None:
        last_line = context.rstrip().rpartition("\n")[2]
        self.problems.append(f"{last_line!r}: {problem}")

    # What the threads write

    def _speak(self, text: str) -> str:
        """What the example of the thread that has seen this text writes next."""
        live = (t for t in reversed(self.episode.threads.values()) if t.status.is_live)
        thread = next(t for t in live if self.episode.seen(t.id) == text)
        context = self._context(thread)
        if context not in self.examples_by_context:
            return self.speak(text) if self.speak else self._stand_in_for(thread)
        if context in map(self._context, self._above(thread)):
            self._report(context, f"spawns {context!r} for ever: it is a child of itself")
            return self.prompt.dialect.end
        return self._segments(thread)[thread.usage.calls][0]

    def _stand_in_for(self, thread: Thread) -> str:
        """For a child that no example shows: it returns what its parent's example shows."""
        context, parent = self._context(thread), self.episode.threads[thread.parent or 0]
        if thread.future is not None:
            problem = f"does not wait for {context!r}, and no example has this context"
            self._report(self._context(parent), problem)
            return self.prompt.dialect.end
        own, shown = self._segments(parent)[parent.usage.calls - 1]
        line = Span(Provenance.GENERATED, own.rpartition("\n")[2], ())
        form = self.phi(Sequence((line,)), {}, self.prompt.dialect)
        pattern = "(.+)".join(map(re.escape, REFERENCE.split(form)[::2]))
        self.trusted.append((context, pattern, shown))
        variables = self.stand_in(context, self.env) if self.stand_in and self.env else {}
        for name in references(shown):
            variables.setdefault(name, parent.variables.get(name, name))
        lines = [f"{name} = {value!r}" for name, value in variables.items()]
        return "\n".join([*lines, f"print({shown!r})", self.prompt.dialect.end])

    def _psi(self, child: Finished) -> str:
        self.taken = psi_print(child)
        return self.taken

    def _context(self, thread: Thread) -> str:
        return self.prompt.dialect.asked(thread.context.text)

    def _above(self, thread: Thread) -> Iterator[Thread]:
        while thread.parent is not None:
            thread = self.episode.threads[thread.parent]
            yield thread

    def _segments(self, thread: Thread) -> list[tuple[str, str]]:
        return list(_segments(self.examples_by_context[self._context(thread)], self.prompt))

    # What happens

    def _check(self, event: Event) -> None:
        """Compare an event with what the example of its thread shows."""
        thread = self.episode.threads.get(getattr(event, "thread", -1))
        if thread is None:
            return
        context = self._context(thread)
        match event:
            case Spawned():
                self.spawned.add(context)
            case GeneratedSpan():
                self.writer = thread.id
            case ExecutedLine(line=line, error=str(error)):
                self._report(context, f"the line {line!r} fails: {error}")
            case Returned(child=child) | Resolved(child=child):
                known = self._context(self.episode.threads[child])
                if known in self.examples_by_context:
                    self.returned.setdefault(known, set()).add(self.taken)
        if isinstance(event, Observed) and not self.prompt.dialect.code and self._unwaited(thread):
            self._report(context, "acts, although nobody waits for it")
        elif context not in self.examples_by_context:
            return
        elif isinstance(event, Returned | Observed | Referred):
            shown = self.prompt.dialect.closed(self._segments(thread)[thread.usage.calls - 1][1])
            if event.span.text != shown:
                problem = f"shows {shown!r}, but what comes back is {event.span.text!r}"
                self._report(context, problem)

    def _unwaited(self, thread: Thread) -> bool:
        return any(t.future is not None for t in (thread, *self._above(thread)))

    # The environment

    def reset(self) -> str:
        return self.main

    def step(self, action: str) -> Step:
        if self.env:
            return self.env.step(action)._replace(terminated=False, truncated=False)
        thread = self.episode.threads[self.writer]
        shown = self._segments(thread)[thread.usage.calls - 1][1]
        return Step(instantiate(shown, thread.variables), 0.0, False, False, {})

    def again(self) -> Env:
        return _Check(self.prompt, self.env, self.stand_in, self.speak, self.settings)

    def oracle(self) -> None:
        return None

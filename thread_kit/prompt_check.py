"""Proves a few-shot prompt: its examples are threads that could really have run like this.

A prompt is written by hand, and an example that shows what cannot happen teaches the model to do
it. Each example is played through the real `thread`, with its own text as the model:

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

from thread_kit import exchange
from thread_kit.dialect import Stop
from thread_kit.envs.env import Env
from thread_kit.prompts import Example, Prompt, PromptError
from thread_kit.requests import (
    Act,
    Await,
    Define,
    Execute,
    Executed,
    Finished,
    Generate,
    Generated,
    Spawn,
    SpawnAsync,
    Status,
)
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.namespace import Namespace, PythonNamespace
from thread_kit.sandbox.sandbox import Sandbox
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.thread import thread

StandIn = Callable[[str, Env], dict[str, Any]]
"""Does in the environment what a child with this context would; the variables that it names."""


def check_prompt(
    prompt: Prompt, env: Env | None = None, stand_in: StandIn | None = None
) -> list[str]:
    """What is wrong with a prompt, a sentence each; [] if nothing is.

    env: where the actions are executed, in the order of the threads. stand_in: acts for a child
    that no example shows to the word.
    """
    with (env.sandbox() if env else None) or MontySandbox() as sandbox:
        return _Check(prompt, env, stand_in).run(sandbox)


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
    known = [one for one in prompts if one.examples]

    def speak(text: str) -> str:
        prompt = next((one for one in known if text.startswith(one.text)), None)
        if prompt is None:
            raise PromptError(f"no prompt of these was read: {text[:100]!r}")
        asked = text.removeprefix(prompt.text)
        for one in prompt.examples:
            whole = prompt.dialect.context(one.context) + one.response
            if whole.startswith(asked):
                return whole.removeprefix(asked)
        raise PromptError(f"no example of {prompt.name} goes on from:\n{asked}")

    return speak


class _Check:
    def __init__(self, prompt: Prompt, env: Env | None, stand_in: StandIn | None) -> None:
        self.prompt = prompt
        self.exchange: dict[str, Any] = exchange.exchange_of(prompt.dialect)
        self.env = env
        self.stand_in = stand_in
        self.problems: list[str] = []
        self.returns: dict[str, Finished] = {}
        self.trusted: list[tuple[str, str, str]] = []
        self.playing: list[str] = []
        self.unwaited = 0  # of those that play, how many nobody waits for

    def run(self, sandbox: Sandbox) -> list[str]:
        listen = self.prompt.dialect.listen
        for example in self.prompt.examples:
            if not example.context.rstrip().endswith(listen):
                blocks = self.prompt.dialect.code
                self._play(example, PythonNamespace(sandbox, blocks=blocks))
        for example in self.prompt.examples:
            if example.context not in self.returns:
                self._say(example, "no example spawns a thread with this context")
        for context, form, back in self.trusted:
            known = [child for c, child in self.returns.items() if re.fullmatch(form, c)]
            if not known:
                self.problems.append(f"{context!r}: no example has a context of this form")
            elif back not in map(exchange.psi_print, known):
                self.problems.append(f"{context!r}: no example of its form returns {back!r}")
        return self.problems

    def _say(self, example: Example, problem: str) -> None:
        title = example.context.rstrip().splitlines()[-1]
        self.problems.append(f"{title!r}: {problem}")

    def _play(
        self, example: Example, namespace: Namespace, given: Mapping[str, Finished] | None = None
    ) -> Finished:
        """Drive a thread with the example's own text in the place of the model.

        given: the futures that it inherits; None is the main thread.
        """
        self.playing.append(example.context)
        segments = list(_segments(example, self.prompt))
        futures = dict(given or {})
        steps = thread(
            futures=tuple(futures),
            **self.exchange,
            dialect=self.prompt.dialect,
            tokenize=lambda text: (),
        )
        at = -1
        reply: Any = None
        while True:
            try:
                request = steps.send(reply)
            except StopIteration as over:
                self.returns[example.context] = over.value
                self.playing.pop()
                return over.value
            match request:
                case Generate(sequence):
                    if at >= 0:
                        self._compare(example, sequence.spans[-1].text, segments[at][1])
                    at += 1
                    own = segments[at][0]
                    span = Span(Provenance.GENERATED, own, ())
                    reply = Generated(span, self._stop(own, at == len(segments) - 1))
                case Execute(lines):
                    reply = self._execute(example, lines, namespace)
                case Act(action) if self.prompt.dialect.code:
                    ran = namespace.run(action)
                    if ran.error or not ran.executed:
                        self._say(example, f"the action {action!r} fails: {ran.error}")
                    reply = ran.printed or ""
                case Act(action) if self.unwaited:
                    self._say(example, f"acts ({action!r}), although nobody waits for it")
                    reply = ""
                case Act(action):
                    shown = exchange.instantiate(segments[at][1], namespace.variables)
                    reply = self.env.step(action).observation if self.env else shown
                case Spawn(context):
                    reply = self._spawn(example, context, segments[at], namespace, futures)
                case SpawnAsync(context, name):
                    futures[name] = self._spawn_async(example, context, namespace, futures)
                    reply = None
                case Await(name):
                    reply = futures.pop(name)
                case Define(variables):
                    namespace.define(variables)
                    reply = Executed(namespace.variables, None)

    def _stop(self, own: str, is_last: bool) -> Stop:
        if is_last:
            return Stop.END
        spawn = self.prompt.dialect.spawn
        return Stop.SPAWN if spawn and own.endswith(spawn) else Stop.LISTEN

    def _compare(self, example: Example, real: str, shown: str) -> None:
        closed = self.prompt.dialect.closed(shown)
        if real != closed:
            self._say(example, f"shows {closed!r}, but what comes back is {real!r}")

    def _execute(self, example: Example, lines: tuple[str, ...], namespace: Namespace) -> Executed:
        printed = None
        for line in lines:
            ran = namespace.run(line)
            if ran.error:
                self._say(example, f"the line {line!r} fails: {ran.error}")
            printed = printed if ran.answer is None else ran.answer
        return Executed(namespace.variables, printed)

    def _spawn(
        self,
        example: Example,
        context: str,
        segment: tuple[str, str],
        namespace: Namespace,
        futures: Mapping[str, Finished],
    ) -> Finished:
        if played := self._play_shown(example, context, namespace, futures):
            return played
        own, back = segment
        bare = Span(Provenance.GENERATED, own.rpartition("\n")[2], ())
        form = self.exchange["phi"](Sequence((bare,)), {}, self.prompt.dialect)
        pattern = "(.+)".join(map(re.escape, exchange.REFERENCE.split(form)[::2]))
        self.trusted.append((context, pattern, back))
        variables = self.stand_in(context, self.env) if self.stand_in and self.env else {}
        missing = [name for name in exchange.references(back) if name not in variables]
        variables |= {name: namespace.variables.get(name, name) for name in missing}
        return Finished(
            Sequence((Span(Provenance.GENERATED, back, ()),)), Status.ENDED, variables, back
        )

    def _spawn_async(
        self,
        example: Example,
        context: str,
        namespace: Namespace,
        futures: Mapping[str, Finished],
    ) -> Finished:
        """The child runs at once; that is what it gives in any order (`session/scheduler.py`)."""
        self.unwaited += 1
        played = self._play_shown(example, context, namespace, futures)
        self.unwaited -= 1
        if played:
            return played
        self._say(example, f"does not wait for {context!r}, and no example has this context")
        return Finished(Sequence(), Status.FAILED, {})

    def _play_shown(
        self,
        example: Example,
        context: str,
        namespace: Namespace,
        futures: Mapping[str, Finished],
    ) -> Finished | None:
        """Play the example that has this context, if there is one."""
        if context in self.playing:
            self._say(example, f"spawns {context!r} for ever: it is a child of itself")
            return Finished(Sequence(), Status.OUT_OF_DEPTH, {})
        for other in self.prompt.examples:
            if other.context == context:
                return self._play(other, namespace.child(), futures)
        return None

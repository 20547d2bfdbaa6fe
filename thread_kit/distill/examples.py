"""Examples: what oracles said in real episodes, as tokens, with a mask of what is to be learnt.

Every example is one thread of an episode that a `Session` played, so that a model is taught exactly
the text that it will see. Contexts and feedback (between `=>` and `<=`) are read, not learnt.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tqdm.auto import tqdm

from thread_kit.distill.alfworld_teacher import speak_alfworld
from thread_kit.distill.questions_teacher import QuestionsTeacher
from thread_kit.distill.textcraft_tasks import Invented
from thread_kit.distill.textcraft_teacher import react_script, speak_thread
from thread_kit.engines.engine import Engine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import AlfWorld
from thread_kit.envs.env import Env
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.envs.registry import dialect_of
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sequence import Provenance
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.jsonl import mend_last_line, read_lines, write_line

Method = Literal["thread", "react"]
METHODS: tuple[Method, ...] = ("thread", "react")

CALLS = 1000  # more than an oracle needs; one that is lost ends then

Task = Invented | Mapping[str, Any] | QuestionEnv
"""A goal and its commands (TextCraft), what a game file holds (ALFWorld), or a question."""

Script = Callable[[str], str] | list[str]


def play(method: Method, task: Task, jails: Jails | None = None) -> Episode:
    """The oracle's episode of a task; raises ValueError if it earns no reward, or for the method.

    thread: with variables and children (THREAD paper, algorithm 2). react: one line of context, on
    TextCraft only.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    if isinstance(task, tuple):
        env, script = _craft(method, *task)
    elif isinstance(task, QuestionEnv):
        env, script = task, _teacher(method)
    else:
        env, script = _household(method, task)
    engine = ScriptedEngine(script)
    session = Session(
        engine,
        env,
        dialect=dialect_of(env.name),
        variables=method == "thread",
        calls=CALLS,
        sandbox=jails.of(env) if jails and isinstance(env, QuestionEnv) else None,
    )
    with session:
        episode = session.run(progress=False)
    if episode.reward != 1:
        raise ValueError(f"the oracle did not solve {env!r} ({episode.status})")
    return episode


def _craft(method: Method, goal: str, commands: tuple[str, ...]) -> tuple[Env, Script]:
    script = speak_thread if method == "thread" else react_script(goal, commands)
    return TextCraft.custom(goal, commands), script


def _household(method: Method, game: Mapping[str, Any]) -> tuple[Env, Script]:
    if method != "thread":
        raise ValueError(f"nobody has written an oracle that plays ALFWorld as {method!r}")
    # Without the limit on actions: whoever looks everywhere finds it at last.
    return AlfWorld(game=game, max_actions=None), speak_alfworld


def _teacher(method: Method) -> Script:
    if method != "thread":
        raise ValueError(f"nobody has written an oracle that answers questions as {method!r}")
    return QuestionsTeacher()


def examples(
    method: Method,
    tasks: Iterable[Task],
    engine: Engine,
    *,
    tokens: int,
    seed: int = 0,
    mains: int = 3,
    others: int = 1,
    kept: Kept | None = None,
) -> list[Example]:
    """Examples of at least `tokens` tokens, each thread once, in an order drawn with `seed`.

    engine: gives the tokens. mains: one in so many main threads is kept, whose contexts are long
    and whose texts are alike, where the others have children to be learnt. kept: where the examples
    of each task are put down; those that are there are not played again.
    Raises ValueError if the tasks are used up before.
    """
    found: dict[tuple[int, ...], Example] = {}
    count = 0
    name = f"{method}: examples"
    with (
        closing(Jails()) as jails,
        tqdm(total=tokens, desc=name, unit=" tokens", unit_scale=True, leave=False) as bar,
    ):
        done = kept.tasks if kept else []
        for number, task in enumerate(tasks):
            if number < len(done):
                of_task = done[number]
            else:
                episode = play(method, task, jails)
                of_task = list(
                    _threads(episode, engine, number % mains == 0, _falls_on(number, others))
                )
                if kept:
                    kept.add(of_task)
            for example in of_task:
                if example.tokens not in found:
                    found[example.tokens] = example
                    count += len(example)
                    bar.update(len(example))
            if count >= tokens:
                break
        else:
            raise ValueError(f"the tasks gave {count} tokens, and {tokens} are wanted; give more")
    ordered = list(found.values())
    random.Random(seed).shuffle(ordered)
    return ordered


def _falls_on(number: int, others: int) -> bool:
    """One in so many numbers, by lot: whoever counts meets the same kinds of a round of questions
    again and again, and never the rest."""
    return random.Random(f"others {number}").randrange(others) == 0


def _threads(episode: Episode, engine: Engine, main: bool, others: bool) -> Iterator[Example]:
    for thread in episode.threads.values():
        if len(episode.threads) > 1 and not (main if thread.id == 0 else others):
            continue
        tokens = list(engine.tokenize(thread.context.text, first=True))
        learnt = [False] * len(tokens)
        for span in thread.sequence.spans:
            more = engine.tokenize(span.text)
            tokens += more
            learnt += [span.provenance is Provenance.GENERATED] * len(more)
        yield Example(tuple(tokens), tuple(learnt))


@dataclass(frozen=True, slots=True)
class Example:
    """One thread: its tokens, and for each of them whether it is to be learnt."""

    tokens: tuple[int, ...]
    learnt: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.tokens)


class Kept:
    """The file. about: what the examples are made of (JSON values). tasks: those of each task.

    Raises ValueError if the file holds the examples of something else.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_line(path, dict(about), "wb")
        mend_last_line(path)
        first, *lines = read_lines(path, dict, what="no line of an example file") or [{}]
        if first != about:
            raise ValueError(
                f"{path} holds other examples ({first}, not {dict(about)}); give another folder, "
                "or delete it"
            )
        self.tasks = [[_example(one) for one in line["examples"]] for line in lines]

    def add(self, examples: Sequence[Example]) -> None:
        """Keep the examples of the next task; they are in the file when this returns."""
        values = [[one.tokens, list(map(int, one.learnt))] for one in examples]
        write_line(self.path, {"examples": values})
        self.tasks.append(list(examples))


def _example(value: Sequence[Sequence[int]]) -> Example:
    tokens, learnt = value
    return Example(tuple(tokens), tuple(map(bool, learnt)))


class Jails:
    """Sandboxes whose functions are those of the question that is on."""

    def __init__(self) -> None:
        self._jails: dict[str, BubblewrapSandbox] = {}
        self._on: dict[str, QuestionEnv] = {}

    def of(self, env: QuestionEnv) -> BubblewrapSandbox:
        """The jail for this question, from now on. Raises what `BubblewrapSandbox` raises."""
        self._on[env.name] = env
        if env.name not in self._jails:
            functions = {name: partial(self._call, env.name, name) for name in env.functions}
            self._jails[env.name] = BubblewrapSandbox(functions)
        return self._jails[env.name]

    def close(self) -> None:
        """End the processes."""
        for jail in self._jails.values():
            jail.close()

    def _call(self, benchmark: str, name: str, *arguments: Any, **named: Any) -> Any:
        return self._on[benchmark].functions[name](*arguments, **named)

"""Examples: what teachers wrote in real episodes, as tokens, with a loss mask.

Every example is one thread of an episode that a `Session` played, so that a model is taught exactly
the text that it will see. Contexts and feedback (between `=>` and `<=`) are masked out of the loss,
and so are the slips that a teacher makes (`slips.py`).
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from tqdm.auto import tqdm

from thread_kit.distill.alfworld_teacher import speak_alfworld
from thread_kit.distill.questions_teacher import QuestionsTeacher
from thread_kit.distill.slips import Slips
from thread_kit.distill.textcraft_tasks import SyntheticTask
from thread_kit.distill.textcraft_teacher import react_script, speak_thread
from thread_kit.distill.webshop_teacher import speak_webshop
from thread_kit.engines.engine import Engine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import AlfWorld
from thread_kit.envs.env import Env
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.envs.registry import find_benchmark
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.envs.webshop.env import WebShop
from thread_kit.requests import Status
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sequence import Provenance
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.jsonl import mend_last_line, read_lines
from thread_kit.trace.lock import LockedFile

Method = Literal["thread", "react"]
METHODS: tuple[Method, ...] = ("thread", "react")

CALLS = 1000  # more than a teacher needs; one that is lost ends then
LONGEST = 2048  # tokens; what a slip has made longer is mostly repetition

TrainingTask = SyntheticTask | Mapping[str, Any] | QuestionEnv | WebShop
"""A goal and its commands (TextCraft), what a game file holds (ALFWorld), a question, a purchase.
"""

Teacher = Callable[[str], str]
"""Of a thread's context and sequence so far, what comes next."""


def teacher_of(
    method: Method, benchmark: str, goal: str = "", commands: Sequence[str] = ()
) -> Teacher:
    """The teacher that plays a task from its start, in the form of `method`.

    goal, commands: of a TextCraft task. Raises ValueError where nobody has written one.
    """
    match method, benchmark:
        case "thread", "textcraft":
            return speak_thread
        case "react", "textcraft":
            script = iter(react_script(goal, commands))
            return lambda text: next(script, "")
        case "thread", "alfworld":
            return speak_alfworld
        case "thread", "datacommons" | "icu":
            return QuestionsTeacher()
        case "thread", "webshop":
            return speak_webshop
    raise ValueError(f"nobody has written a teacher that plays {benchmark} as {method!r}")


def play(
    method: Method,
    task: TrainingTask,
    sandboxes: QuestionSandboxes | None = None,
    change: Callable[[Teacher], Teacher] = lambda teacher: teacher,
) -> Episode:
    """The teacher's episode of a task; raises ValueError if it is not solved, or for the method.

    An interrupt is one (KeyboardInterrupt), and no task that could not be solved.

    Of a purchase, which can be right in part, it is enough that something is bought.

    thread: with variables and children (THREAD paper, algorithm 2). react: one line of context, on
    TextCraft only. change: makes another teacher of the task's (`Slips`).
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    env: Env
    sandbox = None
    if isinstance(task, tuple):
        env, teacher = TextCraft.custom(*task), teacher_of(method, "textcraft", *task)
    elif isinstance(task, Env):
        env, teacher = task, teacher_of(method, task.name)
        if sandboxes and isinstance(task, QuestionEnv):
            sandbox = sandboxes.of(task)
    else:
        teacher = teacher_of(method, "alfworld")
        # Without the limit on actions: whoever looks everywhere finds it at last.
        env = AlfWorld(game=task, max_actions=None)
    with Session(
        ScriptedEngine(change(teacher)),
        env,
        dialect=find_benchmark(env.name).dialect,
        scope="exported" if method == "thread" else "none",
        calls=CALLS,
        sandbox=sandbox,
    ) as session:
        episode = session.run(progress=False)
    if episode.status is Status.STOPPED:
        raise KeyboardInterrupt
    solved = bool(env.bought) if isinstance(env, WebShop) else episode.solved
    if not solved:
        raise ValueError(f"the teacher did not solve {env!r} ({episode.status})") from session.error
    return episode


def examples(
    method: Method,
    tasks: Iterable[TrainingTask],
    engine: Engine,
    *,
    tokens: int,
    seed: int = 0,
    mains: int = 3,
    others: int = 1,
    slips: bool = False,
    file: ExampleFile | None = None,
) -> list[Example]:
    """Examples of at least `tokens` tokens, each thread once, in an order drawn with `seed`.

    engine: gives the tokens. mains: one in so many main threads is taken: their contexts are long,
    their texts alike. others: of one in so many tasks the children are taken. slips: whether the
    teacher of threads makes some (`slips.py`). file: where the examples of each task are written;
    those that are there are not played again.
    Raises ValueError if the tasks are used up before, or no tokens are wanted.
    """
    if tokens < 1:
        raise ValueError(f"{tokens} tokens of examples are wanted; give at least 1")
    unique: dict[tuple[int, ...], Example] = {}
    count = 0
    done = file.tasks if file else []
    with (
        closing(QuestionSandboxes()) as sandboxes,
        tqdm(
            total=tokens, desc=f"{method}: examples", unit=" tokens", unit_scale=True, leave=False
        ) as bar,
    ):
        for number, task in enumerate(tasks):
            if number < len(done):
                of_task = done[number]
            else:
                lot = number + seed * 10**9
                episode, wrong = _play_with_slips(method, task, sandboxes, lot, slips)
                main, children = number % mains == 0, _is_drawn(lot, others)
                of_task = list(_tokenize(episode, engine, main, children, wrong))
                if file:
                    file.add(of_task)
            for example in of_task:
                if len(example) <= LONGEST and example.tokens not in unique:
                    unique[example.tokens] = example
                    count += len(example)
                    bar.update(len(example))
            if count >= tokens:
                break
        else:
            raise ValueError(f"the tasks gave {count} tokens, and {tokens} are wanted; give more")
    ordered = list(unique.values())
    random.Random(seed).shuffle(ordered)
    return ordered


def _play_with_slips(
    method: Method, task: TrainingTask, sandboxes: QuestionSandboxes, number: int, wanted: bool
) -> tuple[Episode, set[str]]:
    """The teacher's episode, and what it wrote with a slip; without any where no way led back."""
    made: list[Slips] = []

    def change(teacher: Teacher) -> Teacher:
        made.append(Slips(teacher, random.Random(f"slips {number}")))
        return made[0]

    if wanted and method == "thread":
        with contextlib.suppress(ValueError):
            return play(method, task, sandboxes, change), made[0].texts
        if isinstance(task, Env):
            task = cast(QuestionEnv | WebShop, task.again())
    return play(method, task, sandboxes), set()


def _is_drawn(number: int, others: int) -> bool:
    """One in so many numbers, by lot: whoever counts meets the same kinds of a round of questions
    again and again, and never the rest."""
    return random.Random(f"others {number}").randrange(others) == 0


def _tokenize(
    episode: Episode, engine: Engine, main: bool, children: bool, wrong: Collection[str]
) -> Iterator[Example]:
    """The examples of an episode. wrong: texts that a teacher wrote with a slip in them."""
    for thread in episode.threads.values():
        if len(episode.threads) > 1 and not (main if thread.id == 0 else children):
            continue
        tokens = list(engine.tokenize(thread.context.text, first=True))
        loss_mask = [False] * len(tokens)
        for span in thread.sequence.spans:
            more = engine.tokenize(span.text)
            tokens += more
            counts = span.provenance is Provenance.GENERATED and span.text not in wrong
            loss_mask += [counts] * len(more)
        yield Example(tuple(tokens), tuple(loss_mask))


@dataclass(frozen=True, slots=True)
class Example:
    """One thread: its tokens, and for each of them whether it counts in the loss."""

    tokens: tuple[int, ...]
    loss_mask: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.tokens)


class ExampleFile:
    """Examples on disk, by task. about: what they are made of (JSON values). tasks: what is there.

    Raises ValueError if the file holds the examples of something else, LockError where another run
    writes it: lines are known by their place, so those of two runs would stand for other tasks.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = LockedFile(path)
        mend_last_line(path)
        if not path.stat().st_size:  # it is new, or a kill has torn its first line
            self._file.append(dict(about))
        first, *lines = read_lines(path, dict, what="no line of an example file") or [{}]
        if first != about:
            self.close()
            raise ValueError(
                f"{path} holds other examples ({first}, not {dict(about)}); give another folder, "
                "or delete it"
            )
        self.tasks = [[_example(record) for record in line["examples"]] for line in lines]

    def add(self, examples: Sequence[Example]) -> None:
        """Write the examples of the next task; they are in the file when this returns."""
        values = [[example.tokens, list(map(int, example.loss_mask))] for example in examples]
        self._file.append({"examples": values})
        self.tasks.append(list(examples))

    def close(self) -> None:
        """Let another run write it."""
        self._file.close()


def _example(value: Sequence[Sequence[int]]) -> Example:
    tokens, loss_mask = value
    return Example(tuple(tokens), tuple(map(bool, loss_mask)))


class QuestionSandboxes:
    """A sandbox for each benchmark of questions, whose functions are those of the question at hand.

    To start one takes a second (it imports pandas), so all questions share it.
    """

    def __init__(self) -> None:
        self._sandboxes: dict[str, BubblewrapSandbox] = {}
        self._env: dict[str, QuestionEnv] = {}

    def of(self, env: QuestionEnv) -> BubblewrapSandbox:
        """The sandbox, for this question from now on. Raises what `BubblewrapSandbox` raises."""
        self._env[env.name] = env
        if env.name not in self._sandboxes:
            functions = {name: partial(self._call, env.name, name) for name in env.functions}
            self._sandboxes[env.name] = BubblewrapSandbox(functions)
        return self._sandboxes[env.name]

    def close(self) -> None:
        """End the processes."""
        for sandbox in self._sandboxes.values():
            sandbox.close()

    def _call(self, benchmark: str, name: str, *arguments: Any, **named: Any) -> Any:
        return self._env[benchmark].functions[name](*arguments, **named)

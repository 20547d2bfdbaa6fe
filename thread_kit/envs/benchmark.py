"""What the kit knows of a benchmark beside its environment: one record, in the benchmark's folder.

`envs/registry.py` has the records by name; a record of one's own is registered there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thread_kit.dialect import AGENT, Dialect
from thread_kit.envs.env import Env, choose_task
from thread_kit.errors.rules import ErrorRules
from thread_kit.prompts import (
    EMPTY,
    Prompt,
    load_instructions,
    load_prompt,
    parse_instructions,
    parse_prompt,
)

if TYPE_CHECKING:
    from thread_kit.methods.stateflow import Machine

LISTED = 200
"""Generated questions have no end; so many of each split are listed."""


def choose_number(text: str) -> dict[str, Any]:
    """The arguments of the task with this number; raises ValueError for what is no number."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"no task {text!r}; tasks have numbers here")
    return {"number": int(text)}


def never(row: Mapping[str, Any]) -> bool:
    """No task stands in for another (`Benchmark.stands_in`)."""
    return False


def find_hardness(row: Mapping[str, Any]) -> str:
    """The group of a task that says how hard it is; "" of others (`Benchmark.group_of`)."""
    return str(row.get("hardness") or "").capitalize()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its tasks, and what methods, tables and the command line need of it.

    name: that of its environment (`Env.name`).
    environment: environment(**arguments) makes a task; (split=..., **choose(text)) the one that a
        person chooses.
    tasks: tasks(split) lists those of a split; where a rule changes which there are, it takes the
        rule, too: tasks(split, by_people=True). Where they have a `type`, a part of them has as
        many of each.
    splits: their names, the one of the papers' numbers first.
    arguments: of a listed task, those that make it again; JSON values only.
    choose: of what a person calls a task, a number or a name, its arguments; raises ValueError.
    rules: flags that have a task played by other rules, with their help. A flag that is set is an
        argument of `environment`, and so a part of the task.

    max_actions: after how many its environment ends an episode by itself, unless another limit is
        chosen (`Env.max_actions`); None is no limit.

    dialect: of its few-shot prompts.
    prompts: a folder that is laid out as the kit's prompts/ (METHOD/BENCHMARK-ROLE.txt), or the
        texts by such names ("react/hanoi"); None is the kit's own folder.
    examples: where each type of task has few-shot prompts of its own (`Env.examples`), the name of
        those of one type, for what is alike with all; "" is the benchmark's name.
    methods: those that it has beyond the common ones (`experiments/method_registry.py`).
    start: actions that are taken before an executor's first call (ADaPT paper, appendix A). look:
        the one that shows ADaPT's planner where it is.
    in_on: whether executors' "put X on Y" is mended (`methods/react.py`).
    react_judges: whether ReAct says itself that it is done; else the environment alone ends it.
    max_depth: d_max of the ADaPT paper (section 4.2), and its number of trials, where
        data/budgets.csv has no line for the benchmark.
    executors: roles of ADaPT's own executor prompts ("executor", "atomic"); else it is ReAct's.
    carry: whether an executor begins where the last success has left the environment, if that can
        undo, and reads the last step of that one (`methods/adapt.py`).
    placeholders: what a plan calls a thing that is not known yet, each with a pattern: in an action
        of an executor that succeeded, its first group is what the next ones read in its place
        (ADaPT paper, appendix A).
    handlers: the names of DecomP's sub-task handlers.
    machines: StateFlow's, by the names of the few-shot prompts (`Env.examples`); behind some a
        variant ("-split").

    error_rules: what they find wrong is proposed in `errors/`.
    adapters: by the name of a model, the adapter (in data/adapters) that has taught it this one.
    published: what the papers' tables call it; None where they have no numbers.
    published_splits: by our name of a split the papers', where it is another.
    first_tasks: whether the papers play the first tasks of a longer list; ours are else spread over
        a list that is longer than a paper's.
    stands_in: whether a task is made here, or of other data, like the published ones but never a
        reproduction of them; stands_in(row) has what a row of results has, its task's arguments
        among them.
    group_of: of such a row, the group of tasks by which tables are divided; "" for none.
    """

    name: str
    environment: Callable[..., Env]
    tasks: Callable[..., Sequence[Any]]
    _: KW_ONLY
    splits: tuple[str, ...] = ("test",)
    arguments: Callable[[Any], dict[str, Any]] = dict
    choose: Callable[[str], dict[str, Any]] = choose_number
    rules: Mapping[str, str] = field(default_factory=dict)
    max_actions: int | None = None

    dialect: Dialect = AGENT
    prompts: str | Path | Mapping[str, str] | None = None
    examples: str = ""
    methods: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    look: str = ""
    in_on: bool = False
    react_judges: bool = True
    max_depth: int = 3
    executors: tuple[str, ...] = ()
    carry: bool = False
    placeholders: Mapping[str, str] = field(default_factory=dict)
    handlers: tuple[str, ...] = ()
    machines: Mapping[str, Machine] = field(default_factory=dict)

    error_rules: type[ErrorRules] = ErrorRules
    adapters: Mapping[str, str] = field(default_factory=dict)
    published: str | None = None
    published_splits: Mapping[str, str] = field(default_factory=dict)
    first_tasks: bool = False
    stands_in: Callable[[Mapping[str, Any]], bool] = never
    group_of: Callable[[Mapping[str, Any]], str] = find_hardness

    def load_prompt(self, name: str, dialect: Dialect | None = None) -> Prompt:
        """A few-shot prompt: "react/hanoi", or a name alone for THREAD's; or one's own .txt file.

        dialect: None is the benchmark's. Raises FileNotFoundError, and PromptError for what is no
        prompt.
        """
        dialect = dialect or self.dialect
        own = self._own_text(name)
        if own is None:
            return load_prompt(name, dialect, self._folder)
        return parse_prompt(own, name, dialect)

    def list_tasks(self, split: str, rules: Mapping[str, bool]) -> Sequence[Any]:
        """The tasks of a split that there are by these rules (see `tasks`)."""
        if not rules:
            return self.tasks(split)
        taken = signature(self.tasks).parameters
        takes_all = any(p.kind is p.VAR_KEYWORD for p in taken.values())
        return self.tasks(split, **{r: on for r, on in rules.items() if takes_all or r in taken})

    def find_arguments(self, split: str, text: str) -> dict[str, Any]:
        """The arguments of the task of a split that a person calls by a number or a name.

        Where `environment` takes no split and number, the number is that of its list. Raises
        ValueError for what is no task.
        """
        chosen = {"split": split, **self.choose(text)}
        taken = signature(self.environment).parameters.values()
        if chosen.keys() <= {p.name for p in taken} or any(p.kind is p.VAR_KEYWORD for p in taken):
            return chosen
        return self.arguments(choose_task(self.tasks(split), split, chosen.get("number", -1)))

    @property
    def no_examples(self) -> Prompt:
        """The few-shot prompt of a model that was taught: the benchmark's marks alone."""
        return replace(EMPTY, dialect=self.dialect)

    def load_instructions(self, name: str, dialect: Dialect | None = None) -> dict[str, Prompt]:
        """The prompts of several agents by the names of their sections: "stateflow/hanoi".

        dialect: None is the benchmark's. Raises FileNotFoundError, and PromptError for what has no
        sections.
        """
        dialect = dialect or self.dialect
        own = self._own_text(name)
        if own is None:
            return load_instructions(name, dialect, self._folder)
        return parse_instructions(own, name, dialect)

    @property
    def _folder(self) -> Path | None:
        return None if isinstance(self.prompts, Mapping | None) else Path(self.prompts)

    def _own_text(self, name: str) -> str | None:
        """The text of a prompt where `prompts` has texts; None where it is a file."""
        if not isinstance(self.prompts, Mapping) or name.endswith(".txt"):
            return None
        path = name if "/" in name else f"thread/{name}"
        if path not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise FileNotFoundError(
                f"the benchmark {self.name!r} has no prompt {path!r}; it has: {known}. "
                "Add it to `prompts`, or give the path of a .txt file"
            )
        return self.prompts[path]


@dataclass(frozen=True, slots=True)
class NumberedTask:
    """A generated question. type: of which kind it is; the kinds come in turn."""

    benchmark: str
    number: int
    type: int
    arguments: dict[str, Any]


def list_questions(
    benchmark: str, kinds: int, arguments: dict[str, Any], *, most: int = LISTED
) -> list[NumberedTask]:
    """The first questions of a split, of which there are `most`. arguments: those that all have."""
    return [
        NumberedTask(benchmark, number, number % kinds, {**arguments, "number": number})
        for number in range(min(most, LISTED))
    ]


def spread_evenly(tasks: Sequence[Any], n: int | None) -> list[Any]:
    """`n` tasks, evenly spread, since a benchmark's order can run from hard to easy; None: all.

    Tasks that have a `type` are spread over each type, as many of each as there are. Raises
    ValueError if there are not so many.
    """
    if n is None:
        return list(tasks)
    if not 1 <= n <= len(tasks):
        raise ValueError(f"{n} tasks: this split has 1 to {len(tasks)}")
    groups: dict[Any, list[Any]] = {}
    for task in tasks:
        groups.setdefault(getattr(task, "type", None), []).append(task)
    shares = dict.fromkeys(groups, 0)
    for _ in range(n):
        shares[min((k for k in groups if shares[k] < len(groups[k])), key=shares.__getitem__)] += 1
    return [
        group[i * len(group) // shares[kind]]
        for kind, group in groups.items()
        for i in range(shares[kind])
    ]

"""The form of `explore`: what there is to choose, each choice filling those that depend on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from html import escape
from typing import Any

import ipywidgets as widgets

from thread_kit.engines.models import MODELS, ModelError, find_adapter
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.exchange import FUNCTIONS
from thread_kit.experiments.ablations import ABLATIONS
from thread_kit.experiments.budgets import CountsActions, budget_of
from thread_kit.experiments.explore_controls import (
    FILE,
    make_choice,
    make_number,
    make_path,
    make_row,
    on_change,
    quiet,
    read_number,
    read_path,
    set_options,
    show_path,
)
from thread_kit.experiments.explore_setup import Setup, default_of
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_builders import has_planner
from thread_kit.experiments.method_registry import TAUGHT, list_methods, load_method, method_slug
from thread_kit.paths import resource
from thread_kit.session.checks import check_numbers
from thread_kit.views.formatting import sanitize

FIRST = {"textcraft": 110}
"""The task that stands there at first: one that the embedded model solves; else 0."""

UNITS = {
    "calls": "calls",
    "new_tokens": "tokens a call",
    "tokens": "tokens in all",
    "actions": "actions",
    "depth": "depth",
    "seconds": "seconds",
}
EXAMPLES, ADAPTER = "its own examples", "taught"
SAME = ""
"""The planner is the model that does all else."""


class SetupForm(widgets.VBox):
    """Benchmark, task and rules, model, method, planner, prompt, phi and psi, budgets.

    code, code_button: the Python code that plays them, and what shows it; for whoever has the form
    to put somewhere.

    attempt: calls what a choice leads to, and shows the error where it raises one.
    """

    def __init__(self, attempt: Callable[[Callable[[], object]], None]) -> None:
        self._attempt = attempt
        self._tasks: Sequence[Any] = ()
        self._examples = ""
        self._make_controls()
        rows = (
            [self.benchmark, self.split, self.number],
            [self.task_text],
            [self.rules],
            [self.model, self.model_file, self.method, self.planner, self.planner_file],
            [self.prompt, self.prompt_file],
            [self.phi, self.psi, self.temperature, self.seed],
            [*self.budgets.values()],
        )
        super().__init__([make_row(*row) for row in rows])
        self._connect()
        self._attempt(self._fill_splits)

    def _make_controls(self) -> None:
        self.benchmark = make_choice("benchmark", [(name, name) for name in BENCHMARKS])
        self.split = make_choice("split")
        self.number = make_number("task", "0", empty="0")
        models = [(f"{model.name} ({model.size} MB)", model.name) for model in MODELS.values()]
        self.model = make_choice("model", [*models, (FILE, FILE)])
        self.model_file = make_path("GGUF file")
        self.planner = make_choice("planner", [("the same model", SAME), *models, (FILE, FILE)])
        self.planner.tooltip = "another model for the planner (ADaPT paper, Table 4)"
        self.planner_file = make_path("planner's GGUF file")
        self.rules = widgets.HBox().add_class("tk-explore-row")
        self.method, self.prompt = make_choice("method"), make_choice("prompt")
        self.prompt_file = make_path(".txt file")
        self.phi, self.psi = (
            make_choice(
                kind, [("the method's", ""), *((f.__name__, f.__name__) for f in FUNCTIONS[kind])]
            )
            for kind in ("phi", "psi")
        )
        self.temperature, self.seed = (
            make_number(label, "0", empty="0") for label in ("temperature", "seed")
        )
        self.budgets = {
            unit: make_number(label, empty="" if unit == "new_tokens" else "no limit")
            for unit, label in UNITS.items()
        }
        self._budgets_of: tuple[str, ...] = ()  # the benchmark, method and prompt that they are of
        self.code_button = widgets.ToggleButton(
            description="Python code", tooltip="show the code that does the same"
        )
        self.task_text = widgets.HTML()
        self.code = widgets.HTML().add_class("tk-explore-code")

    def _connect(self) -> None:
        """A choice fills those that depend on it; the last is the code."""
        fills: dict[Callable[[], None], list[Any]] = {
            self._fill_numbers: [self.split],
            self._fill_task: [self.number],
            partial(self._begin_with, self._fill_splits): [self.benchmark],
            partial(self._begin_with, self._fill_methods): [self.model],
            partial(self._begin_with, self._fill_prompts): [self.method],
            self._fill_budgets: [self.prompt],
            self._write_code: [
                *(self.phi, self.psi, self.temperature, self.seed, self.code_button),
                *(self.planner, self.planner_file, self.model_file, self.prompt_file),
                *self.budgets.values(),
            ],
        }
        for fill, controls in fills.items():
            for control in controls:
                on_change(control, partial(self._attempt, fill))

    # Each choice fills those that depend on it, in this order

    def _begin_with(self, fill: Callable[[], None]) -> None:
        """Another benchmark, model or method: what taught it the one before holds no more."""
        set_options(self.prompt, ())
        fill()

    def _fill_splits(self) -> None:
        benchmark = self._benchmark
        self.rules.children = [self._make_rule(*rule) for rule in benchmark.rules.items()]
        set_options(self.split, ())
        filled = (split for split in benchmark.splits if _has_tasks(benchmark, split))
        set_options(self.split, [(split, split) for split in benchmark.splits], next(filled, None))
        self._fill_numbers()

    def _make_rule(self, name: str, text: str) -> widgets.Checkbox:
        """What has a task played by other rules, with its whole text: they are few."""
        words = name.replace("_", " ")
        layout = widgets.Layout(width="auto")
        rule = widgets.Checkbox(description=f"{words}: {text}", indent=False, layout=layout)
        rule.name = name
        on_change(rule, partial(self._attempt, self._list_by_rules))
        return rule

    def _fill_numbers(self) -> None:
        is_first = self.split.value == self._benchmark.splits[0]
        self._list_tasks()
        with quiet(self.number):
            self.number.value = str(FIRST.get(self.benchmark.value, 0) if is_first else 0)
        self._fill_task()

    def _list_by_rules(self) -> None:
        """A rule can change which tasks there are; the number stays where there are so many."""
        self._list_tasks()
        self._fill_task()

    def _list_tasks(self) -> None:
        self.task_text.value, self.code.value, self._tasks = "", "", ()
        self._tasks = self._benchmark.list_tasks(self.split.value, self._rules)
        last = len(self._tasks) - 1
        self.number.tooltip = f"0 to {last}: another number becomes the nearest of these"

    def _fill_task(self) -> None:
        """The task's text; which methods there are can depend on its type."""
        if not self._tasks:
            self._list_tasks()  # its data may be here by now
        try:
            env = self._benchmark.environment(**self._task)
        except Exception:
            self.task_text.value = self.code.value = ""  # of the task before
            raise
        try:
            text, self._examples = env.reset(), env.examples
            self.budgets["actions"].disabled = not isinstance(env, CountsActions)
        finally:
            env.close()
        with quiet(self.number):
            self.number.value = str(self._find_number(self._tasks))
        self.task_text.value = f'<pre tabindex="0">{escape(sanitize(text))}</pre>'
        self._fill_methods()

    def _fill_methods(self) -> None:
        names = [name for name in list_methods() if self._list_prompts(name)]
        set_options(self.method, [(method_slug(name), name) for name in names], "thread")
        self._fill_prompts()

    def _fill_prompts(self) -> None:
        options = self._list_prompts(self.method.value)
        set_options(self.prompt, options)
        self._fill_budgets()

    def _fill_budgets(self) -> None:
        """Those of the method's paper; what the method fixes itself cannot be chosen."""
        method = self._load_method()
        budget = budget_of(method.name, self.benchmark.value)
        values = {unit: default_of(unit) for unit in ("calls", "new_tokens", "depth")}
        values |= {unit: limit.value for unit, limit in budget.items()} | dict(method.fixed)
        chosen = self.benchmark.value, method.name, self.prompt.value
        with quiet(*self.budgets.values()):
            # For another task what a person has set stays.
            for unit, field in self.budgets.items() if chosen != self._budgets_of else ():
                field.value = "" if values.get(unit) is None else str(values[unit])
                field.tooltip = budget[unit].source if unit in budget else "this kit"
                if unit != "actions":
                    field.disabled = unit in method.fixed
        self._budgets_of = chosen
        for kind, choice in (("phi", self.phi), ("psi", self.psi)):
            choice.disabled = bool({kind, "program"} & set(method.fixed))
        self.planner.disabled = not has_planner(method, self._benchmark)
        self._write_code()

    def _write_code(self) -> None:
        """The code of what is chosen, and the fields for paths where one is asked for."""
        pairs = (
            *((self.model, self.model_file), (self.prompt, self.prompt_file)),
            (self.planner, self.planner_file),
        )
        for choice, field in pairs:
            show_path(choice, field)
        self.code.layout.display = None if self.code_button.value else "none"
        if any(choice.value == FILE and not field.value for choice, field in pairs):
            self.code.value = ""  # it is being written
            return
        code = self.read().write_code("runs/mine.jsonl")
        self.code.value = f'<pre tabindex="0">{escape(code)}</pre>'

    # What is chosen

    @property
    def _benchmark(self) -> Benchmark:
        return BENCHMARKS[self.benchmark.value]

    @property
    def _task(self) -> dict[str, Any]:
        """The arguments of the chosen task, by the chosen rules; raises how to get its data."""
        tasks = self._tasks or self._benchmark.list_tasks(self.split.value, self._rules)
        return self._benchmark.arguments(tasks[self._find_number(tasks)]) | self._rules

    def _find_number(self, tasks: Sequence[Any]) -> int:
        """The number of the task: the nearest to what was typed; raises ValueError."""
        return min(max(round(read_number(self.number) or 0), 0), len(tasks) - 1)

    @property
    def _rules(self) -> dict[str, bool]:
        return {rule.name: True for rule in self.rules.children if rule.value}

    def _find_adapter(self, method: str) -> str | None:
        """The adapter that has taught the model this method on this benchmark."""
        own = self._benchmark.adapters.get(self.model.value)
        if own is None or method not in TAUGHT:
            return None
        # A control has an adapter for each benchmark, of the size of the threads' own.
        size = own.rpartition("-")[2]
        is_thread = method.startswith("thread")
        adapter = own if is_thread else f"{method}-{self._benchmark.name}-{size}"
        try:
            find_adapter(adapter)
        except ModelError:
            return None
        return adapter

    def _list_prompts(self, method: str) -> list[tuple[str, str]]:
        """By what the model can be told a method here: an adapter, the method's examples, others"""
        options = []
        if adapter := self._find_adapter(method):
            options.append((f"none: the adapter {adapter}", ADAPTER))
        try:
            load_method(method, self._examples)
        except (ValueError, FileNotFoundError):
            return options
        options.append((EXAMPLES, EXAMPLES))
        if method == "thread" and self._benchmark.prompts is None:
            of_methods = (*(ablation.prompt for ablation in ABLATIONS.values()), "-async", "-lines")
            names = (path.stem for path in resource("prompts/thread").glob("*.txt"))
            others = [name for name in names if name.startswith(f"{self._examples}-")]
            options += [
                (n, n) for n in sorted(others) if not n.endswith(tuple(filter(None, of_methods)))
            ]
            options.append((FILE, FILE))
        return options

    def _load_method(self) -> SessionMethod:
        taught = self.prompt.value == ADAPTER
        return load_method(self.method.value, self._examples, taught=taught)

    def read(self) -> Setup:
        """All that is chosen; raises ValueError with what is wrong in which field."""
        taught = self.prompt.value == ADAPTER
        prompt = None if taught or self.prompt.value == EXAMPLES else self.prompt.value
        fields = {unit: field for unit, field in self.budgets.items() if not field.disabled}
        limits = {unit: read_number(field) for unit, field in fields.items()}
        if limits.get("new_tokens", 0) is None:
            raise ValueError(f"{UNITS['new_tokens']} has to be limited: give a whole number")
        actions = limits.pop("actions", None)
        numbers = {"temperature": self.temperature, "seed": self.seed}
        options = {name: read_number(field) or 0 for name, field in numbers.items()}
        check_numbers({**options, **limits, "actions": actions})
        functions = {"phi": self.phi, "psi": self.psi}
        plans = not self.planner.disabled and self.planner.value != SAME
        return Setup(
            self.benchmark.value,
            self._task,
            read_path(self.model, self.model_file),
            self._find_adapter(self.method.value) if taught else None,
            self.method.value,
            prompt and read_path(self.prompt, self.prompt_file),
            {
                k: choice.value
                for k, choice in functions.items()
                if choice.value and not choice.disabled
            },
            {**options, **limits},
            None if actions is None else int(actions),
            read_path(self.planner, self.planner_file) if plans else None,
            counts_actions=not self.budgets["actions"].disabled,
        )

    def __repr__(self) -> str:
        task = "no task"
        with suppress(ValueError):  # of a number that is none
            task = " ".join(map(str, self._task.values())) if self._tasks else task
        method = method_slug(self.method.value or "no method")
        return f"SetupForm({self.benchmark.value} {task}, {method}, {self.model.value})"


def _has_tasks(benchmark: Benchmark, split: str) -> bool:
    try:
        return bool(benchmark.tasks(split))
    except Exception:  # its data is not here; whoever chooses it reads why
        return False

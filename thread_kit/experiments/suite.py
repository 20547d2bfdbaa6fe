"""A suite: methods x models x tasks x seeds over one environment, that survives being killed.

Every finished episode is a line of the suite's file at once. Running the suite again plays what is
missing: an episode counts as played if its method, model, prompt, settings, task and seed are those
of a line. Each task is played by all methods before the next one, so that what a suite has at any
moment can be compared. Progress, parallel play and executors are here; one episode is
`experiments/job.py`.
"""

from __future__ import annotations

import pickle
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import nullcontext
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import Any, final

from tqdm.auto import tqdm

from thread_kit.engines.engine import Engine
from thread_kit.envs.env import Env
from thread_kit.experiments.extend import find_replaced
from thread_kit.experiments.job import Job, RunningJob
from thread_kit.experiments.method import GIVEN, Method, PerTaskMethod, SessionMethod
from thread_kit.experiments.own_code import hash_own_code, is_other_code
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import (
    ACTS,
    EpisodeKey,
    ResultsFile,
    broke_down,
    canonical,
    is_name,
)
from thread_kit.experiments.workers import close_idle, run_job
from thread_kit.session.checks import check_numbers
from thread_kit.session.run_together import run_together
from thread_kit.session.session import Session
from thread_kit.trace.header import LIMITS

PLAINLY = f"in one line, without {' '.join(sorted(ACTS))}"

NUMBERS = (*LIMITS, "actions", "temperature")
"""The options that are one."""

ELSEWHERE = {
    "engine": "models={'NAME': engine}",
    "env": "environment=CLASS, and tasks=[...] with its arguments",
    "context": "environment=CLASS, whose reset() gives it",
    "prompt": "methods=[tk.SessionMethod('NAME', prompt)]",
    "seed": "seeds=(3,)",
    "path": "traces=True, which keeps traces beside the file",
    "replay": "traces=True, with which what was killed goes on",
}
"""Where a suite takes what a session has a parameter for (`GIVEN`)."""

Played = tuple[EpisodeKey, dict[str, Any] | None]


@final
class Suite:
    """Every method on every task with every model and seed.

    path: the file of the results (JSONL).
    methods: their names have to differ.
    models: name -> an engine, or a function that loads one: functools.partial(tk.load_model, ...).
        One model at a time is loaded, and closed when its episodes are over; an engine that was
        given stays open.
    environment, tasks: environment(**task) makes the environment of an episode.
    seeds: each is one run over all tasks; above temperature 0 the runs differ. Warns where they
        would be the same.
    traces: keep the trace of every episode, in a folder beside the file. An episode that was killed
        goes on from its trace, and asks the model for nothing twice; without one it begins anew.
        To play all anew, delete the folder together with the file.
    known: rows of other files; what of them this suite would play counts as played, and is written
        into its file as it is.
    options: for every method (`calls`, `new_tokens`, `temperature` ...). Where they say nothing of
        `calls`, `new_tokens` and the environment's `actions`, a method has the budget of its paper
        (`experiments/budgets.py`). Each row has its limits, and where they are from.
    paper: in whose tables, where it gives another paper's method a budget of its own (`budget_of`).

    Raises ValueError for an empty or a double part, one that is no method, model or task, an
    option that no session has, or a seed that no file can hold.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        methods: Sequence[Method],
        models: Mapping[str, Engine | Callable[[], Engine]],
        environment: Callable[..., Env],
        tasks: Sequence[Mapping[str, Any]],
        seeds: Sequence[int] = (0,),
        traces: bool = False,
        known: Iterable[dict[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        paper: str = "",
    ) -> None:
        self.path, self.paper = Path(path), paper
        if not isinstance(models, Mapping):
            raise ValueError(
                f"models={models!r:.80} has no names; give {{'NAME': tk.load_model(...)}}"
            )
        for name, part, example in (
            ("methods", methods, "[tk.load_method('thread', 'textcraft')]"),
            ("tasks", tasks, "[{'number': 0}]"),
            ("seeds", seeds, "(0, 1, 2) or range(3)"),
        ):
            if not isinstance(part, Iterable) or isinstance(part, str | Mapping):
                raise ValueError(f"{name}={part!r:.80} is no list; give {example}")
        self.methods, self.models = list(methods), dict(models)
        self.environment, self.tasks, self.seeds = environment, list(tasks), list(seeds)
        self.options = dict(options or {})
        _check_parts(self.methods, self.models, environment, self.tasks, self.options)
        ordered = sorted(known, key=lambda row: not row["error"])  # of two rows the one without
        self._known = {EpisodeKey.of(row): row for row in ordered}
        self._traces = _traces_beside(self.path) if traces else None
        self._code = {one.name: hash_own_code(one, environment) for one in self.methods}
        _must_differ("method", [method.name for method in self.methods])
        _must_differ("model", list(self.models))
        _must_differ("task", [canonical(task) for task in self.tasks])
        _must_differ("seed", self.seeds)
        for seed in self.seeds:
            check_numbers({"seed": seed})
        chosen = ({**self.options, **getattr(one, "fixed", {})} for one in self.methods)
        if len(self.seeds) > 1 and not all(one.get("temperature") for one in chosen):
            warnings.warn(
                "at temperature 0 the runs of several seeds are one and the same, except for "
                "methods that sample by themselves; give options={'temperature': 0.7}, say",
                stacklevel=2,
            )

    def __len__(self) -> int:
        """How many episodes the suite has."""
        return len(self.methods) * len(self.models) * len(self.tasks) * len(self.seeds)

    def __repr__(self) -> str:
        sizes = map(len, (self.methods, self.models, self.tasks, self.seeds))
        product = " x ".join(map(str, sizes))
        return f"Suite({str(self.path)!r}, methods x models x tasks x seeds = {product})"

    def run(
        self,
        *,
        at_once: int = 1,
        executor: Executor | None = None,
        retry: bool = False,
        extend: bool = False,
        progress: bool = True,
    ) -> Results:
        """Play what the file lacks; the results of this suite, those of earlier runs included.

        at_once: episodes side by side, in the batches of one engine. Faster in all, but an episode
            then takes longer: measure seconds with 1.
        executor: plays the episodes instead, each worker process with an engine of its own (threads
            of one process share it): a ProcessPoolExecutor that spawns, or a Dask client's
            `get_executor()`. The suite has to be picklable then.
        retry: play again what of this suite ended with an error, also after it was solved: its
            trace and its counts end too soon. (Otherwise what broke down before it was solved
            counts as not solved.) A row stays until its new one is there.
        extend: take over what the file has of the same episodes with smaller budgets (calls,
            tokens, seconds, actions): those that no budget can have cut as they are, the others go
            on from their traces, or begin anew where there is none. The new rows take the old
            ones' place.

        An episode that breaks down is a row with its error. Raises ResultsFileError if another
        suite is writing to the file, ValueError if an executor cannot be given what it needs, and
        what loading a model raises.
        """
        if executor is not None:
            self._must_be_picklable(at_once)
        with ResultsFile(self.path) as file:
            earlier = [*file.rows] if extend else []
            mine = self._play_all(file, retry, earlier, at_once, executor, progress)
            rows_of_mine = [row for row in file.rows if EpisodeKey.of(row) in mine]
            self._drop_replaced(file, find_replaced(rows_of_mine, extended=extend) - mine)
            return Results(rows_of_mine)

    def _warn_of_other_code(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Warn of rows from before somebody changed what their method or environment does."""
        others = Counter(
            row["method"]
            for row in rows
            if is_other_code(row.get("code", ""), self._code[row["method"]])
        )
        for method, count in others.items():
            warnings.warn(
                f"{count} of the episodes of {method!r} were played with other code of yours, and "
                "stay as they are; give the method another name, or write into another file",
                stacklevel=3,
            )

    def _drop_replaced(self, file: ResultsFile, replaced: set[EpisodeKey]) -> None:
        """Take out these rows, and their traces, if those lie in the suite's own folder."""
        traces = {row.get("trace") for row in file.rows if EpisodeKey.of(row) in replaced}
        if replaced & {EpisodeKey.of(row) for row in file.rows}:
            file.drop(lambda row: EpisodeKey.of(row) in replaced)
        for trace in filter(None, traces - {row.get("trace") for row in file.rows}):
            path = self.path.parent / trace
            if path.parent == _traces_beside(self.path):
                path.unlink(missing_ok=True)

    def _play_all(
        self,
        file: ResultsFile,
        retry: bool,
        earlier: Sequence[dict[str, Any]],
        at_once: int,
        executor: Executor | None,
        progress: bool,
    ) -> set[EpisodeKey]:
        """Play, write and show; the keys of all episodes of this suite.

        retry: what ended with an error is played although the file has it; the new row takes the
        old one's place.
        """
        here = {EpisodeKey.of(row): row for row in file.rows}
        better = {  # what broke down here counts for nothing where it is known otherwise
            key: row
            for key, row in self._known.items()
            if key not in here or (here[key]["error"] and not row["error"])
        }
        rows = here | better
        if retry:
            rows = {key: row for key, row in rows.items() if not row["error"]}
        done = {key: bool(row["solved"]) for key, row in rows.items()}
        mine: set[EpisodeKey] = set()
        stayed: list[dict[str, Any]] = []
        solved = errors = skipped = 0
        # smoothing=0: the time left comes from the mean of all that was played in this run.
        options = {"smoothing": 0, "miniters": 1, "disable": not progress}
        with tqdm(total=len(self), unit="episode", **options) as bar:
            for key, row in self._episodes(done, earlier, at_once, executor):
                mine.add(key)
                new = better.get(key) if row is None else row
                if new is not None:
                    (file.replace if key in here else file.append)(new)
                skipped += row is None
                if row is None:
                    stayed.append(rows[key])
                solved += done[key] if row is None else row["solved"]
                errors += bool(row and broke_down(row))
                failures = f", {errors} broke down" if errors else ""
                text = f"{key.method}, {key.model}: {solved} solved{failures}"
                bar.initial = skipped
                if skipped == len(mine):  # the clock starts with the first that is played
                    bar.unpause()
                bar.update()
                bar.set_description(text, refresh=row is None)
        self._warn_of_other_code(stayed)
        return mine

    def _episodes(
        self,
        done: Collection[EpisodeKey],
        earlier: Sequence[dict[str, Any]],
        at_once: int,
        executor: Executor | None,
    ) -> Iterator[Played]:
        """The key of each episode when it is over, and its row unless it was there before."""
        # 1. What the file has of each job: the keys that are done, and rows to go on from.
        by_job = defaultdict(list)
        for key in done:
            by_job[key.job].append(key)
        earlier_by_job = defaultdict(list)
        for row in earlier:
            earlier_by_job[EpisodeKey.of(row).job].append(row)
        # 2. One model after the other; of its jobs, all methods on a task before the next one.
        for model, source in self.models.items():
            jobs = [
                Job(
                    method,
                    model,
                    self.environment,
                    task,
                    seed,
                    self.options,
                    paper=self.paper,
                    done=tuple(by_job[job]),
                    earlier=earlier_by_job[job],
                    traces=self._traces,
                    at_once=None if executor else at_once,
                    code=self._code[method.name],
                )
                for seed in self.seeds
                for task in self.tasks
                for method in self.methods
                for job in [(method.name, model, canonical(task), seed)]
            ]
            if executor is None:
                yield from _play_here(jobs, source, at_once)
            else:
                yield from _play_there(jobs, source, executor)

    def _must_be_picklable(self, at_once: int) -> None:
        if at_once != 1:
            raise ValueError(
                f"at_once is {at_once}, but with an executor its workers decide how many episodes "
                "run; give the one or the other"
            )
        for name, source in self.models.items():
            if isinstance(source, Engine):
                raise ValueError(
                    f"the model {name!r} is an engine, which cannot go to another process; give a "
                    "function that loads it, such as functools.partial(tk.load_model, ...)"
                )
        try:
            pickle.dumps((self.methods, self.models, self.environment, self.tasks, self.options))
        except Exception as error:  # whatever an object of somebody else's raises
            raise ValueError(
                f"this suite cannot go to another process ({error}); define its functions at the "
                "top of a module"
            ) from error


def _play_here(
    jobs: Sequence[Job], source: Engine | Callable[[], Engine], at_once: int
) -> Iterator[Played]:
    with nullcontext(source) if isinstance(source, Engine) else source() as engine:
        for running in run_together((RunningJob(job, engine) for job in jobs), at_once):
            yield running.key, None if running.is_done else running.row()


def _play_there(jobs: Sequence[Job], source: Any, executor: Executor) -> Iterator[Played]:
    futures = [executor.submit(run_job, job, source) for job in jobs]
    failure: BaseException | None = None
    try:
        for future in as_completed(futures):
            if future.cancelled():
                continue
            if error := future.exception():
                # The rest is given up, but what is finished by now is still handed over.
                failure = failure or error
                for other in futures:
                    other.cancel()
            else:
                yield future.result()
    finally:
        for other in futures:
            other.cancel()
        close_idle()  # those of an executor that runs in this process
    if failure is not None:
        raise failure


def _traces_beside(path: Path) -> Path:
    """The folder of a suite's traces: a.jsonl has a-traces, a.json has a.json-traces.

    Where a.json is alone, and a-traces is there, that is its folder.
    """
    shared = path.with_name(f"{path.stem}-traces")
    if path.suffix == ".jsonl" or (shared.is_dir() and not path.with_suffix(".jsonl").exists()):
        return shared
    return path.with_name(f"{path.stem}{path.suffix or '.'}-traces")


def _check_parts(
    methods: Sequence[Any],
    models: Mapping[Any, Any],
    environment: Any,
    tasks: Sequence[Any],
    options: Mapping[str, Any],
) -> None:
    """Raises ValueError for what would break down in each episode, or be passed over."""
    for method in methods:
        if not (callable(method) and isinstance(getattr(method, "name", None), str)):
            raise ValueError(
                f"{method!r:.80} is no method; load one, tk.load_method('thread', 'textcraft'), or "
                "see docs/howto/own-method.md"
            )
        if not is_name(method.name):
            raise ValueError(f"{method.name!r:.80} is no name of a method; give a text {PLAINLY}")
    for name, model in models.items():
        if not is_name(name):
            raise ValueError(f"{name!r:.80} is no name of a model; give a text {PLAINLY}")
        if not (isinstance(model, Engine) or callable(model)):
            raise ValueError(
                f"the model {name!r} is no engine and no function that loads one: {model!r:.80}; "
                "give tk.load_model(...), or functools.partial(tk.load_model, NAME)"
            )
    if not callable(environment):
        raise ValueError(
            f"environment={environment!r:.80} makes none; give its class: tk.TextCraft"
        )
    for task in tasks:
        if not isinstance(task, Mapping):
            raise ValueError(
                f"the task {task!r:.80} is not what makes an environment: {{'number': 0}}"
            )
        try:
            canonical(task)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"the task {task!r:.80} is no JSON ({error}); give texts and Python's own numbers"
            ) from error
    own = [method for method in methods if not isinstance(method, SessionMethod | PerTaskMethod)]
    known = [name for name in (*signature(Session).parameters, "actions") if name not in GIVEN]
    for name in options:
        if name not in known and (not own or name in GIVEN):  # one's own may have others
            near = get_close_matches(name, known)
            meant = f"did you mean {near[0]!r}?" if near else "a session has none"
            if name in signature(Suite).parameters:
                meant = f"give it beside the options: Suite(..., {name}=...)"
            if name in ELSEWHERE:
                meant = f"give the suite {ELSEWHERE[name]}"
            raise ValueError(f"there is no option {name!r}; {meant}")
    check_numbers({name: options[name] for name in NUMBERS if name in options})


def _must_differ(what: str, names: Sequence[Any]) -> None:
    if not names:
        raise ValueError(f"a suite without a {what} has nothing to play; give at least one")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the {what} {twice[0]!r} is there twice; name each once")

"""A suite: methods x models x tasks x seeds over one environment, that survives being killed.

Every finished episode is a line of the suite's file at once. Running the suite again plays what is
missing: an episode counts as played if its method, model, prompt, settings, task and seed are those
of a line. Each task is played by all methods before the next one, so that what a suite has at any
moment can be compared. Progress, parallel play and executors are here; one episode is
`experiments/job.py`.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self, final

from tqdm.auto import tqdm

from thread_kit.engines.engine import Engine
from thread_kit.envs.env import Env
from thread_kit.experiments.job import Job, Playing
from thread_kit.experiments.method import Method
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import Key, ResultsFile, canonical
from thread_kit.experiments.workers import close_idle, play
from thread_kit.session.concurrent import run_together

Played = tuple[Key, dict[str, Any] | None]


@final
class Suite:
    """Every method on every task with every model and seed.

    path: the file of the results (JSONL).
    methods: their names have to differ.
    models: name -> an engine, or a function that loads one: functools.partial(tk.load_model, ...).
        One model at a time is loaded, and closed when its episodes are over; an engine that was
        given stays open.
    environment, tasks: environment(**task) makes the environment of an episode.
    seeds: each is one run over all tasks; above temperature 0 the runs differ.
    traces: keep the trace of every episode, in a folder beside the file. An episode that was killed
        goes on from its trace, and asks the model for nothing twice; without one it begins anew.
        To play all anew, delete the folder together with the file.
    options: for every method (`calls`, `new_tokens`, `temperature` ...): all have the same budget.

    Raises ValueError for an empty or a double part.
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
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.methods, self.models = list(methods), dict(models)
        self.environment, self.tasks, self.seeds = environment, list(tasks), list(seeds)
        self.options = dict(options or {})
        self._traces = _traces_beside(self.path) if traces else None
        _must_differ("method", [method.name for method in self.methods])
        _must_differ("model", list(self.models))
        _must_differ("task", [canonical(task) for task in self.tasks])
        _must_differ("seed", self.seeds)

    def __len__(self) -> int:
        """How many episodes the suite has."""
        return len(self.methods) * len(self.models) * len(self.tasks) * len(self.seeds)

    def __repr__(self) -> str:
        return (
            f"Suite({str(self.path)!r}, methods x models x tasks x seeds = {len(self.methods)} x "
            f"{len(self.models)} x {len(self.tasks)} x {len(self.seeds)})"
        )

    def run(
        self,
        *,
        at_once: int = 1,
        executor: Executor | None = None,
        retry: bool = False,
        progress: bool = True,
    ) -> Results:
        """Play what the file lacks; the results of this suite, those of earlier runs included.

        at_once: episodes side by side, in the batches of one engine. Faster in all, but an episode
            then takes longer: measure seconds with 1.
        executor: plays the episodes instead, each worker process with an engine of its own (threads
            of one process share it): a ProcessPoolExecutor that spawns, or a Dask client's
            `get_executor()`. The suite has to be picklable then.
        retry: play again what broke down with an error. (Otherwise it counts as not solved.)

        An episode that breaks down is a row with its error. Raises ResultsFileError if another
        suite is writing to the file, ValueError if an executor cannot be given what it needs, and
        what loading a model raises.
        """
        if executor is not None:
            self._must_travel(at_once)
        with ResultsFile(self.path) as ledger:
            if retry:
                ledger.drop(lambda row: bool(row["error"]))
            mine = self._play_all(ledger, at_once, executor, progress)
            return Results([row for row in ledger.rows if Key.of(row) in mine])

    def _play_all(
        self, ledger: ResultsFile, at_once: int, executor: Executor | None, progress: bool
    ) -> set[Key]:
        """Play, write and show; the keys of all episodes of this suite."""
        mine: set[Key] = set()
        done = {Key.of(row): bool(row["solved"]) for row in ledger.rows}
        with Bar(len(self), hidden=not progress) as bar:
            for key, row in self._episodes(done, at_once, executor):
                mine.add(key)
                if row is not None:
                    ledger.append(row)
                bar.show(key, row, solved=done[key] if row is None else row["solved"])
        return mine

    def _episodes(
        self, done: Collection[Key], at_once: int, executor: Executor | None
    ) -> Iterator[Played]:
        """The key of each episode when it is over, and its row unless it was there before."""
        known = defaultdict(set)
        for key in done:
            known[key.method, key.model, key.task, key.seed].add(key)
        for model, source in self.models.items():
            jobs = [
                Job(
                    method,
                    model,
                    self.environment,
                    task,
                    seed,
                    self.options,
                    frozenset(known[method.name, model, canonical(task), seed]),
                    self._traces,
                    at_once,
                )
                for seed in self.seeds
                for task in self.tasks
                for method in self.methods
            ]
            if executor is None:
                yield from _play_here(jobs, source, at_once)
            else:
                yield from _play_there(jobs, source, executor)

    def _must_travel(self, at_once: int) -> None:
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
        for playing in run_together((Playing(job, engine) for job in jobs), at_once):
            yield playing.key, None if playing.is_done else playing.row()


def _play_there(jobs: Sequence[Job], source: Any, executor: Executor) -> Iterator[Played]:
    futures = [executor.submit(play, job, source) for job in jobs]
    failure: BaseException | None = None
    try:
        for future in as_completed(futures):
            if future.cancelled():
                continue
            if error := future.exception():
                # The rest is given up, but what is finished by now is still handed over.
                failure = failure or error
                _cancel(futures)
            else:
                yield future.result()
    finally:
        _cancel(futures)
        close_idle()  # those of an executor that runs in this process
    if failure is not None:
        raise failure


def _cancel(futures: Sequence[Any]) -> None:
    for future in futures:
        future.cancel()


def _traces_beside(path: Path) -> Path:
    """The folder of a suite's traces: a.jsonl has a-traces, a.json has a.json-traces.

    (All files of one stem shared the first once; it is still the folder of a file that is alone.)
    """
    shared = path.with_name(f"{path.stem}-traces")
    if path.suffix == ".jsonl" or (shared.is_dir() and not path.with_suffix(".jsonl").exists()):
        return shared
    return path.with_name(f"{path.stem}{path.suffix or '.'}-traces")


def _must_differ(what: str, names: Sequence[Any]) -> None:
    if not names:
        raise ValueError(f"a suite without a {what} has nothing to play; give at least one")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"the {what} {twice[0]!r} is there twice; name each once")


class Bar:
    """One bar: episodes, how many are solved and broke down, the rate and the time left.

    What was in the file before counts as over, but neither into the rate nor into the time left.
    """

    def __init__(self, episodes: int, *, hidden: bool = False) -> None:
        self._bar = tqdm(total=episodes, unit="episode", disable=hidden)
        self._before = self._solved = self._broken = 0

    def show(self, key: Key, row: dict[str, Any] | None, *, solved: bool) -> None:
        """Take in an episode that is over. row: None for one that was in the file before."""
        self._solved += solved
        self._broken += bool(row and row["error"])
        self._before += row is None
        said = f"{key.method}, {key.model}: {self._solved} solved"
        if self._broken:
            said += f", {self._broken} broke down"
        self._bar.initial = self._before
        self._bar.set_description(said, refresh=False)
        self._bar.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

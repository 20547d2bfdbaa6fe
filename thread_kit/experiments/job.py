"""One episode of a suite: how it is started, and the row that comes of it."""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from statistics import fmean
from typing import Any

from thread_kit.dialect import Dialect
from thread_kit.engines.engine import Engine
from thread_kit.engines.replay import ReplayError
from thread_kit.envs.env import Env
from thread_kit.exchange import exchange_of
from thread_kit.experiments.ablations import ABLATIONS
from thread_kit.experiments.budgets import (
    CountsActions,
    apply_budget,
    budget_of,
    sources_of,
    with_own_actions,
)
from thread_kit.experiments.episode_facts import (
    claims_success,
    count_trials,
    find_k_max,
    is_out_of_actions,
    list_loop_limits,
    list_states,
)
from thread_kit.experiments.extend import find_earlier, hand_over_trace
from thread_kit.experiments.method import Method, Run
from thread_kit.experiments.results_file import EpisodeKey, canonical, check_row, find_misfits
from thread_kit.experiments.resume import Resumed
from thread_kit.experiments.spent_budget import find_budget
from thread_kit.session.failures import describe_error
from thread_kit.session.replay import Replay
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Event, plain
from thread_kit.trace.header import name_object

IDENTITY = ("name", "sha256", "adapter", "model")
"""Of what an engine says of itself, what makes it another model; not where or how fast it runs."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to play. Travels to other processes, so all of it has to be picklable.

    environment(**task) makes the environment of an episode.
    options: what was chosen instead of the budget of the method's paper, and sampling.
    paper: in whose tables the method has its budget (`budget_of`).
    done: the keys of the episodes that need not be played again, as they stand in the file.
    earlier: rows of the same episode that go on where smaller budgets ended them.
    traces: the folder for them, or None.
    at_once: how many episodes shared the engine's batches (their seconds are not comparable); None:
    as many as the worker processes had.
    """

    method: Method
    model: str
    environment: Callable[..., Env]
    task: Mapping[str, Any]
    seed: int
    options: Mapping[str, Any]
    paper: str = ""
    done: Collection[EpisodeKey] = ()
    earlier: Sequence[dict[str, Any]] = ()
    traces: Path | None = None
    at_once: int | None = 1
    code: str = ""


class RunningJob:
    """A job under way: iterates events as a session does. What it raises becomes its row's error.

    key: known from the start, since it says whether the job is done already.
    """

    def __init__(self, job: Job, engine: Engine) -> None:
        self.job = job
        self.error = ""
        self.is_done = False
        self.key = _key(job, {})
        self._solvable: bool | None = None
        self._limits: dict[str, Any] = {}
        self._row: dict[str, Any] | None = None  # an earlier one that no budget had ended
        self._extends: dict[str, str] = {}
        self._engine = engine
        self._trace: Path | None = None
        self._resumed: Resumed | None = None
        self._env: Env | None = None
        self._run: Run | None = None
        self._events: Iterator[Event] = iter(())
        try:
            self._open()
        except Exception as error:
            self.error = _describe_error(error)
            self._extends = {}  # the row with smaller budgets stays
            if not self.key.settings:
                self.key = self.key._replace(environment=self._environment)
                self._keep_finished()
            self.close()

    def _keep_finished(self) -> None:
        """What the episode would have been is not known; what is finished stays the result."""
        name = self._environment
        here = [key for key in self.job.done if not name or key.environment in ("", name)]
        # Of several budgets that were played, the latest; the others are not touched either.
        finished = [key for key in here if key.settings]
        self.key = (finished or here or [self.key])[-1]
        self.is_done = self.key in self.job.done
        if self.key.settings:
            warnings.warn(
                f"{_describe_episode(self.job)} stays as it was: {self.error}", stacklevel=3
            )

    @property
    def _environment(self) -> str:
        """Its name; "" of one that could not be made, and whose class says none."""
        maker: Any = self.job.environment
        made = self._env or getattr(maker, "func", maker)
        name = getattr(made, "name", "")
        return name if isinstance(name, str) else ""

    def _open(self) -> None:
        self._run = self._start()
        self.key = self._key(self._limits)
        self.is_done = self.key in self.job.done
        earlier = find_earlier(self.job.earlier, self._limits, self._key)
        if earlier:
            self._extends = {"extends": earlier["settings"]}
        if earlier and not self._was_cut(earlier):  # it is what it would be with larger budgets
            self._row = {**earlier, "settings": self.key.settings, **self._extends}
            self._row |= {"limits": self._limits, "budget": self._sources()}
        if self.is_done or self._row:
            self.close()
            return
        self._solvable = solvable(self.job.environment, self.job.task)
        if self.job.traces is not None:
            self.close()
            self._trace = self.job.traces / _file_name(self.key)
            if earlier:
                hand_over_trace(earlier, self._trace)
            self._resumed = Resumed(self._trace, self._engine)
            self._run = self._start(self._resumed.replay)
        self._events = iter(self._run)

    def _start(self, replay: Replay | None = None) -> Run:
        """Start the episode; a replay, which a session alone can have, is repeated first."""
        job = self.job
        self._close_env()
        self._env = job.environment(**job.task)
        own = self._env.max_actions if isinstance(self._env, CountsActions) else None
        budget = budget_of(job.method.name, self._environment, job.paper)
        by_hand = list_own_actions(_list_fixed(job.environment))
        if by_hand or list_own_actions(job.task):  # chosen for this task, or for all
            budget.pop("actions", None)
        options = apply_budget(budget, self._env, job.options)
        options |= {"replay": replay} if replay else {}
        run = job.method(self._engine, self._env, seed=job.seed, path=self._trace, **options)
        if replay and getattr(run, "replay", None) is not replay:  # the method did not hand it on
            run.close()
            assert self._resumed
            self._resumed.forget()
            return self._start()
        self._limits = run.episode.header.get("limits") or {}
        if isinstance(self._env, CountsActions) and (by_hand or self._env.max_actions != own):
            self._limits = {**self._limits, "actions": self._env.max_actions}
        return run

    def _was_cut(self, earlier: Mapping[str, Any]) -> bool:
        """Whether a budget has ended the episode of an earlier row, or a trial of it but the last.

        (Of these, and of ADaPT's executors, a row does not tell; another number of actions could.)
        """
        if find_budget(earlier):
            return True
        before = (earlier.get("limits") or {}).get("actions")
        several = max(earlier.get("trials") or 1, earlier.get("k_max") or 1) > 1
        return several and before != self._limits.get("actions")

    def _key(self, limits: Mapping[str, Any]) -> EpisodeKey:
        """The key with these limits, the settings being what they are otherwise."""
        header = self._run.episode.header if self._run else {}
        return _key(self.job, {**header, "limits": limits} if header else {})

    def _sources(self) -> dict[str, str]:
        name = self._run.episode.header.get("environment") if self._run else None
        budget = budget_of(self.job.method.name, name or "", self.job.paper)
        limits = with_own_actions(self._limits, name or "")
        if own := list_own_actions(self.job.task):
            limits["actions"] = own[0]
        return sources_of(limits, budget)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            event = self._next()
            while self._resumed and self._resumed.replay:
                event = self._next()  # what is only repeated waits for nobody
            return event
        except Exception as error:
            if not isinstance(error, StopIteration):
                self.error = _describe_error(error)
            self._close_env()
            raise StopIteration from error

    def _next(self) -> Event:
        event = next(self._events)
        if self._resumed and self._run and isinstance(self._run.error, ReplayError):
            self._run.close()  # the past of an interrupted episode does not happen again
            self._resumed.forget()
            self._run = self._start()
            self._events = iter(self._run)
            event = next(self._events)
        if self._resumed:
            self._resumed.forget_if_repeated()
        return event

    def close(self) -> None:
        """Give the episode up."""
        if self._run is not None:
            self._run.close()
        self._close_env()

    def _close_env(self) -> None:
        if self._env is not None:
            self._env.close()

    def row(self) -> dict[str, Any]:
        """What came of the episode, for the results file. Tokens; JSON values only.

        failures: threads below the main one that ended in an exception of the method's own code,
        and results that psi failed to make. out_of_actions: the environment had taken its last
        action. budget: where each limit is from. loop: the limits of the method's own loop; None of
        one without, and in rows up to 2026-11-29. seconds: None if the episode was interrupted,
        since nobody knows them. evaluated, reused: of an interrupted one with what was read anew.
        extends: `settings` of the row with smaller budgets that it went on from, if it did. code:
        the hash of what is not the kit's (`own_code.py`).
        state: the last one of StateFlow's machine; None for other methods. trials: how many were
        begun; where the task is solved, by the last of them.
        claimed: what a method with executors finds of its own success; None for others. k_max: the
        levels that ADaPT has used (ADaPT paper, sections 6.3 and F).
        """
        # 1. An earlier row, where no budget had ended the episode.
        if self._row:
            return self._row
        # 2. What came of it, what it cost, and what it was allowed.
        job, episode = self.job, self._run.episode if self._run else Episode()
        used, header = episode.usage, episode.header
        states = list_states(episode)
        went_on = self._resumed is not None and self._resumed.went_on
        row = {
            **self.key._asdict(),
            "task": dict(job.task),
            "environment": header.get("environment") or self._environment or None,
            "solved": episode.solved,
            "reward": episode.reward,
            "status": str(episode.status) if self._run else "not started",
            "detail": episode.detail,
            "error": self.error or _describe_error(self._run.error if self._run else None),
            "failures": self._run.failures if isinstance(self._run, Session) else 0,
            "state": states[-1] if states else None,
            "states": states,
            "trials": count_trials(episode),
            "solvable": self._solvable,
            "threads": len(episode.threads),
            "depth": episode.depth,
            "mean_depth": fmean([thread.depth for thread in episode.threads.values()] or [0]),
            "actions": sum(len(thread.actions) for thread in episode.threads.values()),
            "out_of_actions": is_out_of_actions(episode),
            "calls": used.calls,
            "prompt_tokens": used.prompt,
            "reused": used.reused,
            "evaluated": used.evaluated,
            "generated": used.generated,
            "seconds": None if went_on else round(episode.seconds, 3),
            "at_once": job.at_once,
            "trace": f"{self._trace.parent.name}/{self._trace.name}" if self._trace else None,
            "limits": self._limits or None,
            "budget": self._sources(),
            "loop": list_loop_limits(header.get("program")) or None,
            "temperature": header.get("sampling", job.options).get("temperature"),
            "engine": header.get("model"),
            "others": _other_models(header) or None,
            "claimed": claims_success(episode),
            "k_max": find_k_max(episode),
            **_find_files(job, header),
            **self._extends,
            **({"code": job.code} if job.code else {}),
        }
        # 3. What the environment measures beside, unless it is what no row can hold.
        try:
            return check_row({**row, **self._measure(row)})
        except Exception as error:
            row |= dict.fromkeys(find_misfits(row))
            return {**row, "error": row["error"] or _describe_error(error)}

    def _measure(self, row: Mapping[str, Any]) -> dict[str, Any]:
        measures = dict(self._env.measures) if self._env else {}
        if double := [name for name in measures if name in row]:
            raise ValueError(f"a measure is called {double[0]!r}, as a column is; rename it")
        return plain({name: None if _is_endless(one) else one for name, one in measures.items()})


def _is_endless(value: Any) -> bool:
    """Whether it is a number that is none (NaN), or has no end: neither can stand in a column."""
    if isinstance(value, Real) and not isinstance(value, Integral):
        return not math.isfinite(value)
    try:
        return bool(value != value)  # NaT, and NaN of a Decimal
    except (ValueError, TypeError):  # an array
        return False


def list_own_actions(task: Mapping[str, Any]) -> list[int | None]:
    """The number of actions, if a task's arguments choose one; InterCode calls them turns."""
    return [task[name] for name in ("max_actions", "turns") if name in task]


def _describe_episode(job: Job) -> str:
    """An episode in words."""
    return f"{job.method.name}, {job.model}, {canonical(job.task)}, seed {job.seed}"


def _key(job: Job, header: Mapping[str, Any]) -> EpisodeKey:
    """The key of a job; without a header, that of one that could not be started."""
    prompts = settings = ""
    if header:
        prompts = hash_prompts(header.get("prompts") or {})
        values = {
            "engine": _identify(header.get("model") or {}),
            "limits": header.get("limits"),
            "scope": header.get("scope"),
            "temperature": header.get("sampling", {}).get("temperature"),
        }
        if "program" in header:
            values["program"] = header["program"]
        elif len(header.get("prompts") or {}) > 1:  # which of them the main thread reads
            values["main_prompt"] = next(iter(header["prompts"]))
        if (header.get("dialect") or {}).get("several_lines"):
            values["several_lines"] = True
        if own := _find_exchanged(job, header):
            values["exchange"] = own
        if "dialect" in {**job.options, **getattr(job.method, "fixed", {})}:
            values["dialect"] = header.get("dialect")
        if fixed := _list_fixed(job.environment):
            values["fixed"] = fixed
        values |= _find_files(job, header)
        if others := _other_models(header):
            values["others"] = {name: _identify(model) for name, model in others.items()}
        settings = _hash(values)
    names = job.method.name, job.model, prompts, settings, canonical(job.task), job.seed
    return EpisodeKey(*names, header.get("environment") or "")


def _find_files(job: Job, header: Mapping[str, Any]) -> dict[str, str]:
    """The files that a task is of, where its number alone was given: those at hand."""
    files = (header.get("task") or {}).get("files")
    return {"files": files} if files and "files" not in job.task else {}


def _find_exchanged(job: Job, header: Mapping[str, Any]) -> dict[str, str]:
    """The functions between threads, by kind, that the method's name does not tell."""
    functions = header.get("exchange") or {}
    if "program" in header:  # which exchanges nothing
        return {kind: name for kind, name in functions.items() if kind in job.options}
    prompts = list((header.get("prompts") or {}).values())
    told = exchange_of(
        Dialect.of(header.get("dialect") or {}),
        without_examples=not any(prompt["text"] for prompt in prompts),
    )
    if job.method.name in ABLATIONS:
        told |= ABLATIONS[job.method.name].fixed
    return {
        kind: name
        for kind, name in functions.items()
        if kind in job.options or name != name_object(told[kind])
    }


def _list_fixed(environment: Callable[..., Env]) -> dict[str, Any]:
    """Plain values that a `partial` gives the environment of all tasks."""
    return {
        name: value
        for name, value in getattr(environment, "keywords", {}).items()
        if value is None or isinstance(value, str | int | float)
    }


def _identify(model: Mapping[str, Any]) -> dict[str, Any]:
    engine = {name: model[name] for name in IDENTITY if name in model}
    if engine.get("adapter"):  # the same one under another name is the same
        engine["adapter"] = engine["adapter"]["sha256"]
    return engine


def _other_models(header: Mapping[str, Any]) -> dict[str, Any]:
    """The models beside the first one, by the few-shot prompts that they read."""
    prompts = (header.get("prompts") or {}).values()
    return {prompt["name"]: prompt["model"] for prompt in prompts if prompt.get("model")}


def hash_prompts(hashes: Iterable[str]) -> str:
    """What a row calls its few-shot prompts, by the hash of each."""
    return _hash(sorted(hashes))


def _hash(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def _file_name(key: EpisodeKey) -> str:
    """For people, and with a hash, since different keys can look alike once they are a name.

    At most 150 characters and 230 bytes of words: file systems allow 255 bytes in all.
    """
    parts = [key.method, key.model, *json.loads(key.task).values(), key.seed]
    words = "-".join(re.sub(r"[^\w.]+", "_", str(part)) for part in parts)
    words = words[:150].encode()[:230].decode(errors="ignore")
    return f"{words}-{_hash(key)[:8]}.jsonl"


def _describe_error(error: Exception | None) -> str:
    return describe_error(error) if error else ""


def solvable(environment: Callable[..., Env], task: Mapping[str, Any]) -> bool | None:
    """Whether the oracle's actions earn the full reward; None where it knows none.

    None is no proof that a task cannot be solved. False means that the oracle is wrong, or the task
    is not what it was when the oracle was written.
    """
    return _solvable(environment, canonical(task))


@cache  # many methods and seeds ask for each task; an oracle may be slow
def _solvable(environment: Callable[..., Env], task: str) -> bool | None:
    env = environment(**json.loads(task))
    try:
        env.reset()
        actions = env.oracle()
        if actions is None:
            return None
        return any(math.isclose(env.step(action).reward, 1) for action in actions)
    finally:
        env.close()

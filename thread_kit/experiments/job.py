"""One episode of a suite: how it is started, and the row that comes of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from thread_kit.engines.engine import Engine
from thread_kit.engines.replay import ReplayError
from thread_kit.envs.env import Env
from thread_kit.experiments.method import Method, Run
from thread_kit.experiments.results_file import Key, canonical
from thread_kit.experiments.resume import Interrupted
from thread_kit.session.failures import describe_error
from thread_kit.session.replay import Replay
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Event

IDENTITY = ("name", "sha256", "adapter", "model")
"""Of what an engine says of itself, what makes it another model; not where or how fast it runs."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to play. Travels to other processes, so all of it has to be picklable.

    environment(**task) makes the environment of an episode.
    done: the keys of the episodes that need not be played again.
    traces: the folder for them, or None.
    at_once: how many episodes shared the engine's batches (their seconds are not comparable).
    """

    method: Method
    model: str
    environment: Callable[..., Env]
    task: Mapping[str, Any]
    seed: int
    options: Mapping[str, Any]
    done: Collection[Key] = ()
    traces: Path | None = None
    at_once: int = 1


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
        self._engine = engine
        self._trace: Path | None = None
        self._interrupted: Interrupted | None = None
        self._env: Env | None = None
        self._run: Run | None = None
        self._events: Iterator[Event] = iter(())
        try:
            self._open()
        except Exception as error:
            self.error = _describe_error(error)
            self.is_done = self.key in job.done
            self.close()

    def _open(self) -> None:
        self._run = self._start()
        self.key = _key(self.job, self._run.episode.header)
        self.is_done = self.key in self.job.done
        if self.is_done:
            self.close()
            return
        self._solvable = solvable(self.job.environment, self.job.task)
        if self.job.traces is not None:
            self.close()
            self._trace = self.job.traces / _file_name(self.key)
            self._interrupted = Interrupted(self._trace, self._engine)
            if not isinstance(self._run, Session):  # which alone can repeat a past
                self._interrupted.forget()
            self._run = self._start(self._interrupted.past)
        self._events = iter(self._run)

    def _start(self, past: Replay | None = None) -> Run:
        job = self.job
        engine = past.engine(self._engine) if past else self._engine
        self._close_env()
        self._env = job.environment(**job.task)
        return job.method(engine, self._env, seed=job.seed, path=self._trace, **job.options)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            event = self._next()
            while self._interrupted and self._interrupted.past:
                event = self._next()  # what is only repeated waits for nobody
            return event
        except Exception as error:
            if not isinstance(error, StopIteration):
                self.error = _describe_error(error)
            self._close_env()
            raise StopIteration from error

    def _next(self) -> Event:
        event = next(self._events)
        if self._interrupted and self._run and isinstance(self._run.error, ReplayError):
            self._run.close()  # the past of an interrupted episode does not happen again
            self._interrupted.forget()
            self._run = self._start()
            self._events = iter(self._run)
            event = next(self._events)
        if self._interrupted:
            self._interrupted.forget_if_repeated()
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

        seconds: None if the episode was interrupted, since nobody knows them.
        """
        job, episode = self.job, self._run.episode if self._run else Episode()
        used, header = episode.usage, episode.header
        went_on = self._interrupted is not None and self._interrupted.went_on
        return {
            **self.key._asdict(),
            "task": dict(job.task),
            "environment": header.get("environment"),
            "solved": episode.reward == 1,
            "reward": episode.reward,
            "status": str(episode.status) if self._run else "not started",
            "detail": episode.detail,
            "error": self.error or _describe_error(self._run.error if self._run else None),
            "solvable": self._solvable,
            "threads": len(episode.threads),
            "depth": episode.depth,
            "mean_depth": fmean([thread.depth for thread in episode.threads.values()] or [0]),
            "actions": sum(len(thread.actions) for thread in episode.threads.values()),
            "calls": used.calls,
            "prompt_tokens": used.prompt,
            "reused": used.reused,
            "evaluated": used.evaluated,
            "generated": used.generated,
            "seconds": None if went_on else round(episode.seconds, 3),
            "at_once": job.at_once,
            "trace": f"{self._trace.parent.name}/{self._trace.name}" if self._trace else None,
            "limits": header.get("limits"),
            "temperature": header.get("sampling", {}).get("temperature"),
            "engine": header.get("model"),
        }


def _key(job: Job, header: Mapping[str, Any]) -> Key:
    """The key of a job; without a header, that of one that could not be started."""
    prompts = settings = ""
    if header:
        prompts = _hash(sorted(header.get("prompts") or {}))
        model = header.get("model") or {}
        engine = {name: model[name] for name in IDENTITY if name in model}
        if engine.get("adapter"):  # the same one under another name is the same
            engine["adapter"] = engine["adapter"]["sha256"]
        values = {
            "engine": engine,
            "limits": header.get("limits"),
            "scope": header.get("scope"),
            "temperature": header.get("sampling", {}).get("temperature"),
        }
        if "program" in header:
            values["program"] = header["program"]
        settings = _hash(values)
    return Key(job.method.name, job.model, prompts, settings, canonical(job.task), job.seed)


def _hash(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def _file_name(key: Key) -> str:
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
        return any(env.step(action).reward == 1 for action in actions)
    finally:
        env.close()

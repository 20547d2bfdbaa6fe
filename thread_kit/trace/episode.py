"""The trace of an episode: the tree of threads, their spans, work and costs, derived from events.

A trace is a JSONL file: a header line, then one event a line, appended and flushed as the episode
runs, so that a crash loses at most the call in flight. A torn last line is tolerated. A saved
episode opens with no model and no environment (`Episode.load`).
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thread_kit.dialect import Dialect
from thread_kit.replace_file import replace_file
from thread_kit.requests import Status
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.trace.costs import Usage, sum_work_below
from thread_kit.trace.events import (
    Acted,
    Closed,
    Edited,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Instructed,
    Observed,
    Pictured,
    Prompted,
    Referred,
    Resolved,
    Restarted,
    Returned,
    Spawned,
    Waiting,
    from_json,
    to_json,
)
from thread_kit.trace.header import VERSION, read_header
from thread_kit.trace.jsonl import BLANK, is_whole, take_lines, to_line
from thread_kit.trace.printable import mend_surrogates
from thread_kit.trace.writer import lock_trace

if TYPE_CHECKING:
    from datasets import Dataset


GZIP = b"\x1f\x8b"
"""How a compressed file begins, and no JSON does."""

UNPACKED = 256 * 2**20
"""Bytes that a compressed trace may come to, a thousand times what saved ones do. Only a hostile
model can make one write as much within the default budgets (`INSTANTIATED_CHARACTERS` in
exchange.py, `LINES_BYTES` in session/effects.py); such a trace opens where it is not compressed."""


VALUES = 10_000_000
"""Values that a compressed trace may have, about: `{},` is 3 bytes and takes 80 in memory."""

_UNPACK = "if you trust it, open what gunzip makes of it"

COPIED = 5_000_000
"""Variables of all threads that are not their parents' own, at most: some hundred bytes each."""


class TraceError(ValueError):
    """A file is not a trace that this version can open."""


@dataclass(slots=True)
class Thread:
    """One thread as its events tell it.

    title: what the thread was asked to do, in one line.
    context: the span that the model read before Y, as laid out by the dialect.
    variables: name to value, as they stand now; inherited: as they stood when it was spawned. Both
    are its parent's own dictionary until one of the two changes it (`is_shared`).
    spawned: the children, in order; returned: child to the place in Y of what it returned, or of
    the reference that stands for it, in tokens from the start of Y (first, behind the last).
    future: the name that stands for this thread in its parent; None if the parent waited.
    waits_for: the thread whose end this one waits for, if it is a future.
    resolved: the futures that this thread instantiated, its own and inherited ones, in order.
    edits: what a person changed in it, where a fork begins; replaced: the children in the place of
    whose return a person has put another text.
    length: of `sequence`, in tokens.
    """

    id: int
    parent: int | None
    depth: int
    title: str
    context: Span
    prompt: str
    at: int
    status: Status = Status.GENERATING
    detail: str = ""
    sequence: Sequence = field(default_factory=Sequence)
    variables: dict[str, Any] = field(default_factory=dict)
    inherited: Mapping[str, Any] = field(default_factory=dict)
    is_shared: bool = False
    spawned: list[int] = field(default_factory=list)
    returned: dict[int, tuple[int, int]] = field(default_factory=dict)
    actions: list[Acted] = field(default_factory=list)
    executed: list[ExecutedLine] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    future: str | None = None
    waits_for: int | None = None
    resolved: list[Resolved] = field(default_factory=list)
    edits: list[Edited] = field(default_factory=list)
    replaced: set[int] = field(default_factory=set)
    length: int = 0
    _is_replaced: bool = False  # what comes back next

    def __repr__(self) -> str:
        return f"Thread({self.id}, depth {self.depth}, {self.status}: {self.title!r})"


class Episode:
    """All threads of one run on one task. `header` says what ran; `events` is what happened.

    dialect: the marks that its threads use.
    pictures: what the threads drew, by path in the sandbox: PNG files, in base64.
    at_first: the variables that the main thread begins with, by name.
    prompted: the places among `events` of those that tell of a few-shot prompt.
    usage: what it cost in all; of that, `prompting` is the evaluation of the few-shot prompts.
    Kept while events come in, since the session's budgets ask for it at every call.
    """

    def __init__(self, header: dict[str, Any] | None = None) -> None:
        self.header: dict[str, Any] = {"thread_kit": VERSION, **(header or {})}
        self.dialect = Dialect.of(self.header.get("dialect", {}))
        self.events: list[Event] = []
        self.prompted: list[int] = []
        self.threads: dict[int, Thread] = {}
        self.pictures: dict[str, str] = {}
        self.prompting = Usage()
        self.usage = Usage()
        self.status: Status = Status.GENERATING
        self.reward: float | None = None
        self.detail = ""
        self.seconds = 0.0
        self.at_first: dict[str, Any] = {}  # variables of the main thread
        self._copied = 0  # variables that threads have, and their parents as well

    def add(self, event: Event) -> None:
        """Take in one event; raises ValueError if it speaks of a thread that does not exist."""
        if event.passing:
            return
        for number in (getattr(event, "thread", None), getattr(event, "child", None)):
            if number is not None and not isinstance(event, Spawned):
                self._check_spawned(number, event)
        match event:
            case Prompted():
                self.prompted.append(len(self.events))
                cost = Usage(evaluated=event.evaluated, seconds=event.seconds)
                self.prompting += cost
                self.usage += cost
            case Spawned():
                self._add_thread(event)
            case Restarted():
                self.reward = event.reward if event.actions else None
            case Pictured():
                self.pictures[event.path] = event.png
            case Closed():
                self.status, self.reward = event.status, event.reward
                self.detail, self.seconds = event.detail, event.seconds
            case GeneratedSpan():
                self._add_call(event)
            case Returned() | Referred():
                self._add_returned(event)
            case _:
                self._change_thread(self.threads[event.thread], event)  # type: ignore[attr-defined]
        self.events.append(event)

    def _change_thread(self, thread: Thread, event: Event) -> None:
        match event:
            case ExecutedLine():
                thread.executed.append(event)
                self._change_variables(thread, event.changed, event.gone)
            case Acted():
                thread.actions.append(event)
                thread.status = Status.ACTING
                self.reward = event.reward
            case Observed() | Instructed():
                self._append(thread, event.span)
            case Waiting():
                thread.status, thread.waits_for = Status.WAITING, event.child
            case Resolved():
                thread.status, thread.waits_for = Status.GENERATING, None
                thread.resolved.append(event)
                self._change_variables(thread, event.variables)
            case Edited():
                self._change_variables(thread, event.variables)
                thread.edits.append(event)
                thread._is_replaced |= event.what == "returned"
            case Ended():
                thread.status, thread.detail = event.status, event.detail
                thread.waits_for = None

    def _check_spawned(self, thread: int, event: Event) -> None:
        if thread not in self.threads:
            raise ValueError(f"{event!r} speaks of thread {thread}, which was never spawned")

    def _add_returned(self, event: Returned | Referred) -> None:
        parent = self.threads[event.thread]
        if event.child not in parent.spawned:
            raise ValueError(f"thread {event.child} is no child of {event.thread}")
        start = parent.length
        parent.returned[event.child] = start, start + len(event.span)
        self._append(parent, event.span)
        if isinstance(event, Returned):
            if parent._is_replaced:
                parent.replaced.add(event.child)
            self._change_variables(parent, event.variables)

    def _change_variables(
        self, thread: Thread, changed: Mapping[str, Any], gone: Iterable[str] = ()
    ) -> None:
        """Bind and delete; what a thread shares with its parent or children is copied before.

        Raises ValueError where a file would fill memory with copies.
        """
        if not changed and not gone:
            return
        if thread.is_shared:
            self._copied += len(thread.variables)
            if self._copied > COPIED:
                raise ValueError(f"the threads have more than {COPIED:,} variables of their own")
            thread.variables, thread.is_shared = dict(thread.variables), False
        thread.variables.update(changed)
        for name in gone:
            thread.variables.pop(name, None)

    def _add_thread(self, event: Spawned) -> None:
        depth, scope = 0, self.header.get("scope")
        variables, inherited = dict(event.variables), dict[str, Any]()
        if event.thread in self.threads:
            raise ValueError(f"thread {event.thread} is spawned twice")
        if (event.parent is None) != (event.thread == 0):
            raise ValueError("thread 0 is the main thread, and no other one is without a parent")
        if event.parent is None:
            self.at_first = event.variables
        else:
            self._check_spawned(event.parent, event)
            parent = self.threads[event.parent]
            if event.future is None:
                parent.status = Status.LISTENING
            parent.spawned.append(event.thread)
            parent._is_replaced = False
            variables = self.at_first if scope == "own" else parent.variables
            depth, inherited = parent.depth + 1, variables
            parent.is_shared = parent.is_shared or scope not in ("own", "shared")
        self.threads[event.thread] = Thread(
            id=event.thread,
            parent=event.parent,
            depth=depth,
            title=self.dialect.title(event.context.text),
            context=event.context,
            prompt=event.prompt,
            at=event.at,
            variables=variables,
            inherited=inherited,
            is_shared=event.parent is not None and scope != "shared",
            future=event.future,
        )

    def _add_call(self, event: GeneratedSpan) -> None:
        thread = self.threads[event.thread]
        thread._is_replaced = False
        prompt = len(self.prompt(event.thread)) + len(thread.context) + thread.length
        cost = Usage(
            *(1, prompt, event.reused, event.evaluated, len(event.span), event.seconds),
            *(event.passes, event.drafted, event.accepted),
        )
        thread.usage += cost
        self.usage += cost
        self._append(thread, event.span)

    def _append(self, thread: Thread, span: Span) -> None:
        thread.sequence += span
        thread.length += len(span)
        thread.status = Status.GENERATING

    def prompt(self, thread: int) -> Span:
        """The few-shot prompt q of a thread."""
        stored = self.header.get("prompts", {}).get(self.threads[thread].prompt)
        if stored is None:
            return Span(Provenance.PROMPT, "", ())
        return Span(Provenance.PROMPT, stored["text"], tuple(stored["tokens"]))

    def seen(self, thread: int) -> str:
        """Everything that the model has read in a thread, to the character: q + c + Y."""
        own = self.threads[thread]
        return self.prompt(thread).text + own.context.text + own.sequence.text

    def subtree(self, thread: int = 0) -> list[Thread]:
        """A thread and all below it, in the order of a walk down the tree, children in order."""
        below: list[Thread] = []
        waiting = [thread]
        while waiting:  # no recursion: a tree may be deeper than Python's stack
            below.append(self.threads[waiting.pop()])
            waiting += reversed(below[-1].spawned)
        return below

    def find_event(self, kind: type[Event], number: int = 0) -> int:
        """The place in `events` of one of a kind, where a fork can begin: of the first for 0, of
        the last for -1. Raises ValueError if there are not so many.
        """
        places = [at for at, event in enumerate(self.events) if isinstance(event, kind)]
        if number not in range(-len(places), len(places)):
            raise ValueError(f"there are {len(places)} events {kind.__name__}; no number {number}")
        return places[number]

    def supplemental_work(self, thread: int = 0) -> list[int]:
        """For each token of a thread's sequence, the tokens generated to produce it by others.

        That is, by the threads that were spawned for it, recursively; zero for a token that the
        thread generated itself or observed (THREAD paper, appendix A, Figure 3). The tokens of a
        reference such as `{t1}` stand for those of the child that nobody waited for.
        """
        work = [0] * len(self.threads[thread].sequence)
        for child, (start, stop) in self.threads[thread].returned.items():
            cost = sum(below.usage.generated for below in self.subtree(child))
            work[start:stop] = [cost] * (stop - start)
        return work

    @property
    def solved(self) -> bool:
        """The environment gave the whole reward."""
        return self.reward == 1

    @property
    def last_action(self) -> tuple[int, Acted] | None:
        """The last action of all threads, behind the number of its event; None if there is none."""
        for number in reversed(range(len(self.events))):
            if isinstance(event := self.events[number], Acted):
                return number, event
        return None

    @property
    def depth(self) -> int:
        """The depth of the deepest thread; the main thread alone is 0."""
        return max((thread.depth for thread in list(self.threads.values())), default=0)

    @property
    def summary(self) -> str:
        """One line for people and scripts alike."""
        usage = self.usage
        reward = "none" if self.reward is None else f"{self.reward:g}"
        return (
            f"status={str(self.status).replace(' ', '_')} reward={reward} "
            f"threads={len(self.threads)} calls={usage.calls} prompt_tokens={usage.prompt} "
            f"evaluated={usage.evaluated} reused={usage.reused} generated={usage.generated} "
            f"seconds={self.seconds:.1f}"
        )

    def save(self, path: str | Path) -> Path:
        """Write the episode as JSONL; an old file of this name stays until the new one is whole.

        Raises LockError if a session is writing its trace to the old one, or OSError.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            if path.is_file():
                stack.enter_context(closing(lock_trace(path)))
            part = stack.enter_context(replace_file(path))
            with part.open("w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in self.to_lines())
        return path

    def to_lines(self) -> Iterator[str]:
        """The lines of the JSONL file."""
        yield to_line(self.header)
        for event in self.events:
            yield to_line(to_json(event))

    @classmethod
    def load(cls, path: str | Path) -> Episode:
        """Open a saved episode; no model and no environment is needed.

        path: a file of JSON lines, or one that gzip has compressed.
        Raises FileNotFoundError, or TraceError naming the line and what is wrong with it.
        """
        path = Path(path)
        if path.exists() and not path.is_file():
            raise TraceError(f"{path} is no file; give the path of a trace")
        try:
            data = path.read_bytes()
            if data.startswith(GZIP):
                with gzip.open(io.BytesIO(data)) as file:
                    data = file.read(UNPACKED + 1)
                if len(data) > UNPACKED:
                    raise TraceError(
                        f"{path} comes to more than {UNPACKED / 2**20:.0f} MiB; {_UNPACK}"
                    )
                if sum(map(data.count, (b",", b"[", b"{"))) > VALUES:
                    raise TraceError(f"{path} has more than {VALUES:,} values; {_UNPACK}")
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TraceError(f"{path} is no trace: not UTF-8 text ({error.reason})") from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TraceError(f"{path} is not what gzip writes ({error})") from error
        *lines, last = text.split("\n")
        last = last.strip(BLANK.decode())
        torn = [last] if last else []
        return cls.from_lines(lines + torn, name=str(path), torn=bool(torn))

    @classmethod
    def from_lines(
        cls, lines: Iterable[str], *, name: str = "trace", torn: bool = False
    ) -> Episode:
        """An episode from the lines of a JSONL file; `torn`: the last one may be incomplete.

        Raises TraceError naming the line and what is wrong with it.
        """
        header, *events = lines = list(lines) or [""]
        if header == "" and not events:
            raise TraceError(f"{name} is empty; a trace starts with a header line")
        if torn and events and not is_whole(events[-1]):
            lines.pop()
        episode: Episode | None = None

        def take(data: Any) -> None:
            nonlocal episode
            if episode is None:
                episode = cls(read_header(data))
            else:
                episode.add(from_json(data))

        take_lines(lines, take, name=name, what="this is no trace", error=TraceError)
        assert episode is not None
        return episode

    def __str__(self) -> str:
        from thread_kit.views.text import episode_text

        return episode_text(self)

    def __repr__(self) -> str:
        return (
            f"Episode({self.status}, reward {self.reward}, {len(self.threads)} threads, "
            f"depth {self.depth}, {self.usage.generated} tokens generated)"
        )

    def _repr_html_(self) -> str:
        from thread_kit.views.html import episode_html

        return episode_html(self)


def name_of(path: Path) -> str:
    """The name of a trace: its file's without what says that it is one."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def must_be_episode(value: Any) -> Episode:
    """What is to be an episode; raises TypeError with the remedy if it is something else."""
    if not isinstance(value, Episode):
        raise TypeError(
            f"an episode is wanted, not {value!r:.80}; a trace opens with Episode.load(path), one "
            "that the kit ships with open_episode(name), and a session's is session.episode"
        )
    return value


def to_dataset(episodes: Episode | Iterable[Episode]) -> Dataset:
    """Episodes as a Hugging Face dataset: one row a thread, its spans as lists.

    program: what the main thread ran, "thread" for THREAD. work_below: tokens that all threads
    below generated; `supplemental_work` has them by token, a child's once for each token that it
    returned.
    """
    from datasets import Dataset

    if isinstance(episodes, Episode) or not isinstance(episodes, Iterable):
        episodes = [episodes]
    episodes = map(must_be_episode, episodes)

    def row(number: int, episode: Episode, thread: Thread, work_below: int) -> dict[str, Any]:
        program = episode.header.get("program") or "thread"
        program = program.get("name") if isinstance(program, dict) else program
        model = episode.header.get("model", {}).get("name")
        return {
            "episode": number,
            "program": mend_surrogates(str(program)),
            "model": None if model is None else mend_surrogates(str(model)),
            "task": json.dumps(episode.header.get("task")),
            "reward": episode.reward,
            "thread": thread.id,
            "parent": thread.parent,
            "depth": thread.depth,
            "status": str(thread.status),
            "context": mend_surrogates(thread.context.text),
            "provenance": [str(span.provenance) for span in thread.sequence],
            "text": [mend_surrogates(span.text) for span in thread.sequence],
            "tokens": [list(span.tokens) for span in thread.sequence],
            "calls": thread.usage.calls,
            "reused": thread.usage.reused,
            "evaluated": thread.usage.evaluated,
            "generated": thread.usage.generated,
            "work_below": work_below,
        }

    rows: list[dict[str, Any]] = [
        row(number, episode, thread, below[thread.id])
        for number, episode in enumerate(episodes)
        for below in [sum_work_below(episode.threads.values())]
        for thread in episode.threads.values()
    ]
    return Dataset.from_list(rows)

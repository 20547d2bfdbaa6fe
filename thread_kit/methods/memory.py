"""What earlier episodes have left: logs for RAP, guidelines for AutoGuide, skills for AdaPlanner.

A memory is a JSONL file, one record a line, which `experiments/memories.py` makes from tasks of a
train split. What is most like a text is found by BM25 of stemmed words (package bm25s): no model of
embeddings has to be downloaded, and the same text is always found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from thread_kit.trace.jsonl import replace_lines, take_lines


@dataclass(frozen=True, slots=True)
class Log:
    """A won episode (RAP, section 3.1): L = (T, p, (a, o) ...).

    task: the line that asks. kind: the task's type, or "". plan: in a sentence, or "". steps: of
    actions, and of thoughts, each with what was observed.
    """

    task: str
    kind: str
    plan: str
    steps: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, record: dict[str, Any]) -> Log:
        """From its JSON; raises ValueError for what is none."""
        try:
            steps = tuple((str(action), str(seen)) for action, seen in record["steps"])
            return cls(str(record["task"]), str(record["kind"]), str(record["plan"]), steps)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no log of an episode: {record!r:.80}") from error


@dataclass(frozen=True, slots=True)
class Guideline:
    """What to do in a situation (AutoGuide, section 3): `context` describes it in a phrase."""

    context: str
    guideline: str

    @classmethod
    def of(cls, record: dict[str, Any]) -> Guideline:
        """From its JSON; raises ValueError for what is none."""
        try:
            return cls(str(record["context"]), str(record["guideline"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no guideline: {record!r:.80}") from error


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a memory; raises FileNotFoundError, and ValueError naming the bad line."""
    data = path.read_bytes().rstrip()
    lines = data.split(b"\n") if data else []
    what = "no record of a memory"
    return take_lines(lines, _take_record, name=str(path), what=what, error=ValueError)


def _take_record(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise TypeError(f"{record!r:.80} is no JSON object")
    return record


def write_records(path: Path, records: Iterable[Any]) -> None:
    """Write logs or guidelines, or dictionaries, one a line."""
    rows = [record if isinstance(record, dict) else asdict(record) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_lines(path, rows)


class Index:
    """Texts, and how like a query each of them is."""

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s
        import Stemmer

        self._texts = tuple(texts)
        self._stemmer = Stemmer.Stemmer("porter")
        self._bm25 = bm25s.BM25()
        words = self._split(texts)
        self._is_empty = not any(words)
        if not self._is_empty:
            self._bm25.index(words, show_progress=False)

    def __reduce__(self) -> tuple[type[Index], tuple[tuple[str, ...]]]:
        return Index, (self._texts,)  # a stemmer does not travel to another process

    def score(self, query: str) -> list[float]:
        """By BM25, as a share of the best one: 0.0 to 1.0; all 0.0 if no word is known."""
        known: list[str] = []
        if not self._is_empty:
            known = [word for word in self._split([query])[0] if word in self._bm25.vocab_dict]
        if not known:
            return [0.0] * len(self._texts)
        scores = [float(score) for score in self._bm25.get_scores(known)]
        best = max(scores)
        return [score / best if best > 0 else 0.0 for score in scores]

    def _split(self, texts: Sequence[str]) -> list[list[str]]:
        import bm25s

        words: list[list[str]] = bm25s.tokenize(
            [text[:2_000].lower() for text in texts],
            stopwords="en",
            stemmer=self._stemmer,
            return_ids=False,
            show_progress=False,
        )
        return words


class LogMemory:
    """Logs, and those of them that are most like a situation (RAP, section 3.3)."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self.logs = tuple(logs)
        self._tasks = Index([log.task for log in logs])
        self._plans = Index([log.plan for log in logs])
        steps = [step for log in logs for step in log.steps]
        self._actions = Index([action for action, _ in steps])
        self._seen = Index([seen for _, seen in steps])

    def __repr__(self) -> str:
        return f"LogMemory({len(self.logs)} logs, {_hash(self.logs)})"

    def find(
        self, task: str, kind: str = "", plan: str = "", *, action: str = "", seen: str = "", k: int
    ) -> list[tuple[Log, int]]:
        """The k best logs, the best first, each with its step that is most like the key.

        A log's score is the sum of how like its task, kind and plan are, and its best step: to
        `action` or to what was `seen`, whichever is given. Without a key the step is the first.
        """
        scores = [
            task_score + plan_score + float(bool(kind) and log.kind == kind)
            for log, task_score, plan_score in zip(
                self.logs, self._tasks.score(task), self._plans.score(plan), strict=True
            )
        ]
        places = [0] * len(self.logs)
        if action or seen:
            by_step = self._actions.score(action) if action else self._seen.score(seen)
            first = 0
            for number, log in enumerate(self.logs):
                own = by_step[first : first + len(log.steps)]
                first += len(log.steps)
                if own:
                    places[number] = max(range(len(own)), key=own.__getitem__)
                    scores[number] += own[places[number]]
        best = sorted(range(len(self.logs)), key=lambda number: -scores[number])
        return [(self.logs[number], places[number]) for number in best[:k]]


class GuidelineMemory:
    """Guidelines by their contexts (AutoGuide, section 3.3)."""

    def __init__(self, guidelines: Iterable[Guideline]) -> None:
        self.by_context: dict[str, list[str]] = {}
        for guideline in guidelines:
            known = self.by_context.setdefault(guideline.context, [])
            if guideline.guideline not in known:
                known.append(guideline.guideline)

    def __repr__(self) -> str:
        number = sum(map(len, self.by_context.values()))
        return f"GuidelineMemory({number} guidelines, {_hash(self.by_context)})"


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode(errors="replace")).hexdigest()[:12]

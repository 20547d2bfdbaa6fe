"""The file behind a tape: a line of JSON for each thing that an engine was asked, with its answer.

A header says which model it was. A line is written when its answer is complete, so that a crash
loses at most what was running; half a line at the end is dropped. Calls name the few-shot prompt
that they begin with by its number and do not repeat its tokens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from thread_kit.dialect import Stop
from thread_kit.engines.engine import EngineError, GenerateRequest
from thread_kit.engines.kv_cache import common_prefix
from thread_kit.trace.jsonl import to_line

VERSION = 1
_HEAD = b'{"kind": "tape"'
AROUND = 40
"""Characters shown on both sides of a difference."""

_MALFORMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
"""What reading a line can raise that is JSON but not a tape's, or not even JSON."""


@dataclass(frozen=True, slots=True)
class Request:
    """What decides the answer to a call; the last `given` of the tokens are its own already."""

    tokens: tuple[int, ...]
    stops: tuple[tuple[str, str], ...]
    max_tokens: int
    temperature: float
    seed: tuple[int, ...]
    given: int = 0
    forbid: tuple[str, ...] = ()

    @classmethod
    def of(cls, wanted: GenerateRequest) -> Request:
        """What a call asks for, as plain values that can be compared."""
        return cls(
            tokens=tuple(wanted.seen),
            stops=tuple(sorted((mark, str(stop)) for mark, stop in wanted.stops.items())),
            max_tokens=wanted.max_tokens,
            temperature=float(wanted.temperature),
            seed=tuple(wanted.seed),
            given=len(wanted.given) if wanted.given else 0,
            forbid=tuple(sorted(wanted.forbid)),
        )

    def differences(self, other: Request) -> list[str]:
        """What differs from another request, apart from the tokens: 'name: this, not that'."""
        names = ("stops", "max_tokens", "temperature", "seed", "given", "forbid")
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in names]
        return [f"{name}: {_plain(a)}, not {_plain(b)}" for name, a, b in pairs if a != b]


@dataclass(frozen=True, slots=True)
class Answer:
    """All that a call brought.

    news: [done, total] of what was prefilled, or [token, text] of what was sampled, in order.
    """

    news: tuple[tuple[int, Any], ...]
    text: str
    tokens: tuple[int, ...]
    stop: Stop
    reused: int
    evaluated: int
    seconds: float


class TapeFile:
    """What is on a tape, and how it gets there.

    Raises EngineError for a file that is no tape, or that is damaged before its last line.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = {}
        self.texts: dict[tuple[str, bool], tuple[int, ...]] = {}
        self.prompts: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {}
        self.calls: dict[Request, Answer] = {}
        self._whole = 0  # bytes of the file that are whole lines
        if self.path.is_file():
            self._load()

    # Reading

    def _load(self) -> None:
        raw = self.path.read_bytes()
        if raw[: len(_HEAD)] != _HEAD[: len(raw)]:
            raise self._no_tape(1)
        self._whole = raw.rfind(b"\n") + 1
        for number, line in enumerate(raw[: self._whole].splitlines(), 1):
            try:
                self._take(json.loads(line), number)
            except _MALFORMED:
                raise self._no_tape(number) from None

    def _no_tape(self, number: int) -> EngineError:
        return EngineError(
            f"line {number} of {self.path} is not a tape's; give another path, or delete the file "
            "and record again"
        )

    def _take(self, data: dict[str, Any], number: int) -> None:
        match data.pop("kind"):
            case "tape" if number == 1 and data["version"] == VERSION:
                self.header = data
            case "text" if self.header:
                self.texts[data["text"], data["first"]] = tuple(data["tokens"])
            case "prompt" if self.header:
                news = tuple((done, total) for done, total in data["news"])
                self.prompts[tuple(data["tokens"])] = news
            case "call" if self.header:
                prompt = list(self.prompts)[data["prompt"]] if data["prompt"] is not None else ()
                request = Request(
                    (*prompt, *data["tokens"]),
                    tuple((mark, stop) for mark, stop in data["stops"]),
                    data["max_tokens"],
                    data["temperature"],
                    tuple(data["seed"]),
                    data.get("given", 0),
                    tuple(data.get("forbid", ())),
                )
                answer = data["answer"]
                answer["news"] = tuple((a, b) for a, b in answer["news"])
                answer["tokens"] = tuple(answer["tokens"])
                answer["stop"] = Stop(answer["stop"])
                self.calls[request] = Answer(**answer)
            case kind:
                raise ValueError(kind)

    # Writing

    def open(self, header: dict[str, Any]) -> None:
        """Write the header of a new tape; an older one has to be of the same model."""
        plain = json.loads(to_line(header))
        if not self.header:
            self._write("tape", {"version": VERSION, **plain})
            self.header = {"version": VERSION, **plain}
            return
        was, now = self.header["model"], plain["model"]
        for name in {**was, **now}:
            if was.get(name) != now.get(name):
                raise EngineError(
                    f"{self.path} was recorded with another model: its {name} is "
                    f"{was.get(name)!r}, not {now.get(name)!r}; give another path for this one"
                )

    def add_text(self, text: str, first: bool, tokens: tuple[int, ...]) -> None:
        if (text, first) not in self.texts:
            self._write("text", {"text": text, "first": first, "tokens": tokens})
            self.texts[text, first] = tokens

    def add_prompt(self, tokens: tuple[int, ...], news: tuple[tuple[int, int], ...]) -> None:
        if tokens not in self.prompts:
            self._write("prompt", {"tokens": tokens, "news": news})
            self.prompts[tokens] = news

    def add_call(self, request: Request, answer: Answer) -> None:
        """The first answer to a request stays."""
        if request in self.calls:
            return
        number, tokens = None, request.tokens
        for n, prompt in enumerate(self.prompts):
            rest = request.tokens[len(prompt) :]
            if len(rest) < len(tokens) and request.tokens[: len(prompt)] == prompt:
                number, tokens = n, rest
        data = {
            "prompt": number,
            "tokens": tokens,
            "stops": request.stops,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            **({"given": request.given} if request.given else {}),
            **({"forbid": request.forbid} if request.forbid else {}),
            "answer": {name: getattr(answer, name) for name in Answer.__slots__},
        }
        self._write("call", data)
        self.calls[request] = answer

    def _write(self, kind: str, data: dict[str, Any]) -> None:
        # Opened for each line and unbuffered: nothing waits in memory, and no file is left open.
        line = (to_line({"kind": kind, **data}) + "\n").encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("r+b" if self.path.exists() else "wb", buffering=0) as file:
            file.truncate(self._whole)  # half a line, of a process that died while it wrote
            file.seek(self._whole)
            while line:
                written = file.write(line)
                self._whole += written
                line = line[written:]
        self.__dict__.pop("_spans", None)

    # What is not there

    def missing_text(self, text: str, first: bool) -> EngineError:
        """An error that says how a text differs from the nearest one on the tape."""
        if (text, not first) in self.texts:
            place = "the beginning" if first else "the middle"
            return EngineError(
                f"the text {text[:AROUND]!r} is on the tape {self.path}, and not at {place} of a "
                f"context; {_REMEDY}"
            )
        nearest = max(
            (one for one, _ in self.texts), key=lambda one: _shared(one, text), default=""
        )
        return EngineError(
            f"a text of {len(text)} characters is not on the tape {self.path}; "
            f"{_where(text, nearest, _shared(text, nearest))}; {_REMEDY}"
        )

    def missing_prompt(self, tokens: tuple[int, ...]) -> EngineError:
        return EngineError(
            f"a few-shot prompt of {len(tokens)} tokens is not on the tape {self.path}: "
            f"{self._text(tokens)[:AROUND]!r}...; {_REMEDY}"
        )

    def missing_call(self, request: Request) -> EngineError:
        """An error that says how a call differs from the nearest one on the tape."""
        if not self.calls:
            return EngineError(f"the tape {self.path} has no calls; {_REMEDY}")
        nearest = max(
            self.calls,
            key=lambda one: (
                common_prefix(one.tokens, request.tokens),
                one.tokens == request.tokens,
                -len(request.differences(one)),
            ),
        )
        same = common_prefix(nearest.tokens, request.tokens)
        found = request.differences(nearest)
        if nearest.tokens != request.tokens:
            here, there = self._text(request.tokens), self._text(nearest.tokens)
            found = [_where(here, there, _shared(here, there)), *found]
        return EngineError(
            f"a call is not on the tape {self.path}; the nearest one agrees in {same} of "
            f"{len(request.tokens)} tokens; {'; '.join(found)}; {_REMEDY}"
        )

    @cached_property
    def _spans(self) -> dict[int, list[tuple[tuple[int, ...], str]]]:
        """Tokens whose text the tape knows, by their first token, the longest first."""
        spans = {tokens: text for (text, _), tokens in self.texts.items() if tokens}
        for answer in self.calls.values():
            if answer.tokens:
                spans[answer.tokens] = answer.text
        by_first: dict[int, list[tuple[tuple[int, ...], str]]] = {}
        for tokens, text in sorted(spans.items(), key=lambda span: -len(span[0])):
            by_first.setdefault(tokens[0], []).append((tokens, text))
        return by_first

    def _text(self, tokens: tuple[int, ...]) -> str:
        """What tokens say, as far as the tape knows: sequences are spans, one after another."""
        text, at = "", 0
        while at < len(tokens):
            for span, said in self._spans.get(tokens[at], ()):
                if tokens[at : at + len(span)] == span:
                    text, at = text + said, at + len(span)
                    break
            else:
                text, at = text + f"<{tokens[at]}>", at + 1
        return text


_REMEDY = "record it: give TapeEngine an engine beside the tape"


def _plain(value: Any) -> Any:
    """Stops are shown as the strings that they are."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return [mark for mark, _ in value]
    return list(value) if isinstance(value, tuple) else value


def _shared(a: str, b: str) -> int:
    """How many characters two texts share from their start."""
    return common_prefix([*a], [*b])


def _where(here: str, there: str, at: int) -> str:
    start = max(at - AROUND, 0)
    return (
        f"at character {at} it has {here[start : at + AROUND]!r} where the tape has "
        f"{there[start : at + AROUND]!r}"
    )

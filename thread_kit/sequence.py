"""A thread's token sequence: spans of tokens, each with its provenance.

Tokens are the state. A sequence is never taken apart and tokenized again: what the model generated
stays the tokens that it generated, and what came from elsewhere is tokenized once, on its way in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain


class Provenance(StrEnum):
    """Where the tokens of a span come from."""

    PROMPT = "few-shot"
    CONTEXT = "context"
    GENERATED = "generated"
    RETURNED = "returned"
    REFERENCE = "reference"
    OBSERVED = "observed"
    INSTRUCTION = "instruction"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of tokens of one provenance, with the text that they spell."""

    provenance: Provenance
    text: str
    tokens: tuple[int, ...]

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Y of the papers: spans in order; `Y + span` is a new sequence, Y itself stays as it is."""

    spans: tuple[Span, ...] = ()

    def __add__(self, span: Span) -> Sequence:
        return Sequence((*self.spans, span))

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __len__(self) -> int:
        """Number of tokens."""
        return sum(len(span.tokens) for span in self.spans)

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(chain.from_iterable(span.tokens for span in self.spans))

    @property
    def last_line(self) -> str:
        """What follows the last line break."""
        return self.text.rpartition("\n")[2]

    @property
    def last_line_is_own(self) -> bool:
        """The last line begins with what the thread generated, not with somebody else's text."""
        rest = len(self.last_line)
        for span in reversed(self.spans):
            if span.text and rest <= len(span.text):
                return rest > 0 and span.provenance is Provenance.GENERATED
            rest -= len(span.text)
        return False

    @property
    def own_end(self) -> str:
        """The lines that the thread has generated since the last of somebody else's text."""
        own, before = "", ""
        for span in reversed(self.spans):
            if span.provenance is not Provenance.GENERATED and span.text:
                before = span.text
                break
            own = span.text + own
        return own if not before or before.endswith("\n") else own.partition("\n")[2]

    def own_lines(self, *, complete: bool = False) -> list[str]:
        """The complete lines that the thread generated itself, to the last character.

        A line that holds anything returned by a child or observed in the environment, or that such
        a text breaks, is left out: it is somebody else's, and must never be executed as the
        thread's code. A last line without a line break counts only where `complete` says that
        nothing will follow it.
        """
        lines: list[str] = []
        line, own = "", True
        for span in self.spans:
            first, *rest = span.text.split("\n")
            line += first
            generated = span.provenance is Provenance.GENERATED
            own = own and (generated or not span.text)
            for part in rest:
                if own:
                    lines.append(line)
                line, own = part, generated
            own = own or not line
        if complete and own and line:
            lines.append(line)
        return lines

    def own_runs(self, *, complete: bool = False) -> list[list[str]]:
        """Runs of own complete lines, between what others wrote; for a dialect of code.

        Here the rest of a line behind what came back is a line of its own, and what stands before
        it is none. What is above a foreign text is thus never part of the same block of code as
        what is below it.
        """
        runs: list[list[str]] = [[]]
        line = ""
        for span in self.spans:
            if span.provenance is Provenance.GENERATED:
                *whole, last = (line + span.text).split("\n")
                runs[-1] += whole
                line = last
            elif span.text:
                runs.append([])
                line = ""
        if complete and line:
            runs[-1].append(line)
        return runs

"""Few-shot prompts: plain text files in the papers' form (a context, a response, repeated)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from thread_kit.dialect import AGENT, Dialect
from thread_kit.paths import resource


class PromptError(ValueError):
    """A few-shot prompt cannot be used; the message names the file and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Example:
    """One thread that went well: its context c and its whole sequence Y."""

    context: str
    response: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """q of the papers: the examples that every thread reads before its own context."""

    name: str
    examples: tuple[Example, ...]
    dialect: Dialect = AGENT

    @property
    def text(self) -> str:
        """The prompt as the model reads it."""
        return "".join(self.dialect.example(e.context, e.response) for e in self.examples)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Prompt({self.name!r}, {len(self.examples)} examples, {len(self.text)} characters)"


EMPTY = Prompt("none", ())
"""No examples, for models that were taught the language of threads."""


def load_prompt(
    name_or_path: str | Path, dialect: Dialect = AGENT, folder: Path | None = None
) -> Prompt:
    """A prompt of the project, or one's own file.

    "react/textcraft" is prompts/react/textcraft.txt; a name alone is one of THREAD's.
    folder: another one that is laid out as prompts/; None is the project's.

    Raises FileNotFoundError; PromptError for a file that is empty, not UTF-8 or has no examples.
    """
    path, known_as = Path(name_or_path), str(name_or_path)
    if path.suffix == ".txt":
        known_as = path.stem
    else:
        method, _, name = str(name_or_path).rpartition("/")
        folder = (folder or resource("prompts")) / (method or "thread")
        path = folder / f"{name}.txt"
        if not path.is_file():
            head = f"{method}/" if method else ""
            known = ", ".join(sorted(f"{head}{file.stem}" for file in folder.glob("*.txt")))
            raise FileNotFoundError(
                f"there is no prompt {str(name_or_path)!r}; known: {known or 'none'}. "
                "Or give the path of a .txt file"
            )
    if not path.is_file():
        raise FileNotFoundError(f"there is no prompt file {path}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptError(
            f"the prompt {path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from error
    return parse_prompt(text, known_as, dialect)


def parse_prompt(text: str, name: str = "prompt", dialect: Dialect = AGENT) -> Prompt:
    """A prompt from its text: "Prompt:", a context, "Response:", the start mark, a response ...

    Raises PromptError.
    """
    if not text.strip():
        raise PromptError(f"the prompt {name} is empty; write at least one example into it")
    examples = []
    _, *parts = re.split(r"^Prompt:[ \t]*\n", text.replace("\r\n", "\n"), flags=re.MULTILINE)
    if not parts:
        raise PromptError(
            f"the prompt {name} has no example; an example starts with a line 'Prompt:'"
        )
    for number, part in enumerate(parts, 1):
        context, mark, response = part.partition(f"\nResponse:\n{dialect.start}\n")
        if not mark:
            raise PromptError(
                f"example {number} of the prompt {name} has no response; after the context come a "
                f"line 'Response:' and a line {dialect.start!r}"
            )
        if not response.rstrip().endswith(dialect.end):
            raise PromptError(
                f"example {number} of the prompt {name} does not end with {dialect.end!r}"
            )
        if dialect.end in response.rstrip().removesuffix(dialect.end):
            raise PromptError(
                f"example {number} of the prompt {name} goes on behind its {dialect.end!r}"
            )
        examples.append(Example(context.strip("\n"), response.strip("\n")))
    return Prompt(name, tuple(examples), dialect)

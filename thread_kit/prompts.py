"""Few-shot prompts: plain text files in the papers' form (a context, a response, repeated).

Prompts that instruct, as those of StateFlow's agents, are the sections of one file:
`load_instructions`.
"""

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
    """q of the papers: the examples that every thread reads before its own context.

    instructions: what stands before them. opening: what stands before the instructions of several
    agents alike. closing: what stands behind the examples, the last thing before the context.
    """

    name: str
    examples: tuple[Example, ...]
    dialect: Dialect = AGENT
    instructions: str = ""
    opening: str = ""
    closing: str = ""

    @property
    def text(self) -> str:
        """The prompt as the model reads it."""
        examples = (self.dialect.example(e.context, e.response) for e in self.examples)
        closing = f"Instructions:\n{self.closing}\n\n\n" if self.closing else ""
        return "".join([self.opening, self.instructions, *examples, closing])

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def __repr__(self) -> str:
        parts = "instructions" if self.instructions else f"{len(self.examples)} examples"
        return f"Prompt({self.name!r}, {parts}, {len(self.text)} characters)"


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
    text, known_as = _read(name_or_path, folder)
    return parse_prompt(text, known_as, dialect)


def load_instructions(
    name_or_path: str | Path, dialect: Dialect = AGENT, folder: Path | None = None
) -> dict[str, Prompt]:
    """The prompts of several agents by the names of their sections, from one file.

    name_or_path, folder: as in `load_prompt`. Raises what that raises.
    """
    text, known_as = _read(name_or_path, folder)
    return parse_instructions(text, known_as, dialect)


def _read(name_or_path: str | Path, folder: Path | None) -> tuple[str, str]:
    """The text of a prompt file, and the name of the prompt."""
    path, known_as = Path(name_or_path), str(name_or_path)
    if path.suffix == ".txt":
        known_as = path.stem
    else:
        method, _, name = str(name_or_path).rpartition("/")
        folder = (folder or resource("prompts")) / (method or "thread")
        path = folder / f"{name}.txt"
        if not path.is_file():
            head = f"{method}/" if method else ""
            known = sorted(f"{head}{file.stem}" for file in folder.glob("*.txt"))
            alike = [one for one in known if one.startswith(f"{head}{name}-")]
            raise FileNotFoundError(
                f"there is no prompt {str(name_or_path)!r}; known: "
                f"{', '.join(alike or known) or 'none'}. Or give the path of a .txt file"
            )
    if not path.is_file():
        raise FileNotFoundError(f"there is no prompt file {path}")
    try:
        return path.read_text(encoding="utf-8-sig"), known_as
    except UnicodeDecodeError as error:
        raise PromptError(
            f"the prompt {path} is not UTF-8 text (byte {error.start}); save it as UTF-8"
        ) from error


_SECTION = re.compile(r"^\[([A-Z]\w*(?: \w+)*)\][ \t]*\n", re.MULTILINE)


def parse_instructions(
    text: str, name: str = "prompt", dialect: Dialect = AGENT
) -> dict[str, Prompt]:
    """The prompts of several agents: a line "[Name]" opens each.

    What stands before the first of them is the `opening` of each. Raises PromptError for a text
    without a section, for an empty one, and for two of one name.
    """
    first, *parts = _SECTION.split(text.replace("\r\n", "\n"))
    if not parts:
        raise PromptError(
            f"the prompt {name} has no section; a section starts with a line like '[Solve]'"
        )
    opening = first.strip("\n") + "\n" if first.strip("\n") else ""
    prompts: dict[str, Prompt] = {}
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        if title in prompts or not body.strip():
            problem = "is there twice" if title in prompts else "is empty"
            raise PromptError(f"the section [{title}] of the prompt {name} {problem}")
        instructions = body.strip("\n") + "\n\n\n"
        prompts[title] = Prompt(f"{name}: {title}", (), dialect, instructions, opening)
    return prompts


def parse_prompt(text: str, name: str = "prompt", dialect: Dialect = AGENT) -> Prompt:
    """A prompt from its text: "Prompt:", a context, "Response:", the start mark, a response ...

    What stands behind a line "Instructions:", at the end, is read behind the examples. Raises
    PromptError.
    """
    if not text.strip():
        raise PromptError(f"the prompt {name} is empty; write at least one example into it")
    text, closing = _split_closing(text.replace("\r\n", "\n"), name, dialect)
    first, *parts = re.split(r"^Prompt:[ \t]*\n", text, flags=re.MULTILINE)
    if not parts:
        raise PromptError(
            f"the prompt {name} has no example; an example starts with a line 'Prompt:'"
        )
    if first.strip():
        raise PromptError(
            f"the prompt {name} has a text before its first 'Prompt:', which no thread would read: "
            f"{first.strip()[:60]!r}; take it out, or give Prompt(..., instructions=...)"
        )
    examples = [
        _parse_example(part, f"example {number} of the prompt {name}", dialect)
        for number, part in enumerate(parts, 1)
    ]
    return Prompt(name, tuple(examples), dialect, closing=closing)


def _split_closing(text: str, name: str, dialect: Dialect) -> tuple[str, str]:
    """The examples, and what is told behind the end mark of one, below "Instructions:"."""
    heading = rf"(?<={re.escape(dialect.end)})[ \t]*\n\s*^Instructions:[ \t]*(?:\n|\Z)"
    examples, *closings = re.split(heading, text, maxsplit=1, flags=re.MULTILINE)
    closing = "".join(closings).strip("\n")
    if closings and (not closing.strip() or re.search(r"^Prompt:[ \t]*$", closing, re.MULTILINE)):
        raise PromptError(
            f"in the prompt {name} a text has to stand behind the line 'Instructions:', and no "
            "example; the examples come first"
        )
    return examples, closing


def _parse_example(text: str, name: str, dialect: Dialect) -> Example:
    context, mark, response = text.partition(f"\nResponse:\n{dialect.start}\n")
    if not mark:
        raise PromptError(
            f"{name} has no response; after the context come a line 'Response:' and a line "
            f"{dialect.start!r}"
        )
    if not response.rstrip().endswith(dialect.end):
        raise PromptError(f"{name} does not end with {dialect.end!r}; its response ends there")
    if dialect.end in response.rstrip().removesuffix(dialect.end):
        raise PromptError(
            f"{name} goes on behind its {dialect.end!r}; the next example begins with a line "
            "'Prompt:'"
        )
    return Example(context.strip("\n"), response.strip("\n"))

"""Which lines of a thread's text are Python that can bind or print something, and which are prose.

Lines are only parsed here and never run; `sandbox/namespace.py` runs them in a sandbox.

Python's own parser for what a model wrote: without warnings, and by several threads at once.
"""

from __future__ import annotations

import ast
import functools
import keyword
import re
import textwrap
import threading
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

from thread_kit.dialect import REFERENCE

# Python's own parser recurses: 10,000 minus signs overflow the stack of a thread with 512 KiB.
LINE_CHARACTERS = 4_000

NAME_CHARACTERS = 100  # a name can stand for its value many times in one text

SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Import | ast.ImportFrom | ast.Expr
# In a program these count as well; as lines of a thread they are prose ("raise hopes").
IN_PROGRAMS = ast.Delete | ast.Assert | ast.Raise
COMPOUND = (
    ast.For | ast.While | ast.If | ast.With | ast.Try | ast.Match | ast.FunctionDef | ast.ClassDef
)
HEADERS = 8  # lines like "for x in y:" that may follow one another where prose stands below them
BRACKETS = 200  # Python's own limit
LONG_TEXTS = 100  # whose ends are looked for, in one run of lines
LONGEST = 2_000  # lines of one statement; what is longer is taken for lines

_MARKS = re.compile(
    r"""\#[^\n]* | \\\n | [()\[\]{}] | \n
      | (?P<quotes>'{3}|"{3}) (?:\\.|(?!(?P=quotes)).)* (?P<close>(?P=quotes))? | ['"]""",
    re.VERBOSE | re.DOTALL,
)
_STRINGS = {
    quote: re.compile(rf"{quote}(?:\\.|[^{quote}\\\n])*+(?P<close>{quote}?)", re.DOTALL)
    for quote in ("'", '"')
}
CLAUSE = re.compile(r"\s*(?:el(?:if\b.*|se\s*):|except\b.*:|finally\s*:|[)\]}])")


def is_variable_name(name: str) -> bool:
    """Whether this can name a variable: what a line can bind, a text refer to, a child hand up.

    As Python spells it (NFKC), no keyword, and at most `NAME_CHARACTERS` characters.
    """
    return (
        len(name) <= NAME_CHARACTERS
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and unicodedata.normalize("NFKC", name) == name
    )


def executable(line: str) -> bool:
    """Whether a line is Python that can bind or print something, and not prose.

    Assignments, imports, and expressions with a call or a walrus; not `Done`, `yes or no`,
    `Answer: 42`, blocks. Spaces around the line do not count: an indented line stands alone.
    """
    return parsed(line) is not None


def parsed(line: str, *, block: bool = False) -> ast.Module | None:
    """The syntax tree of an `executable` line, None for prose.

    block: it may be what `blocks` made: several lines, and any statement.
    """
    source = textwrap.dedent(line).strip() if block else line.strip()
    if "\r" in source or ("\n" in source and not block):
        return None
    if (tree := _read(source)) is None:
        return None
    kinds = SIMPLE | IN_PROGRAMS | COMPOUND if block else SIMPLE
    all_known = all(isinstance(statement, kinds) for statement in tree.body)
    return tree if all_known and any(map(_acts, tree.body)) else None


def is_python(text: str) -> bool:
    """Whether a text is Python, be it one that does nothing, such as a comment or a name.

    What is longer than may be parsed is none.
    """
    return _read(textwrap.dedent(text).strip()) is not None


def _read(source: str) -> ast.Module | None:
    if len(source) > LINE_CHARACTERS:
        return None
    try:
        return statements(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def blocks(lines: Iterable[str]) -> list[str]:
    """The lines, with those that make one statement of several lines put together.

    "for x in y:" goes with the indented lines below it, "x = [" with those up to the bracket. What
    is no code, or never complete, stays a line by itself. A statement that would be no line of code
    by itself ends in a line break, which tells it from prose (`uses`).
    """
    return list(_blocks(tuple(lines)))


# A thread's text is looked at after each call of the model, and only its last run of lines is new.
@functools.lru_cache(maxsize=4096)
def _blocks(lines: tuple[str, ...]) -> tuple[str, ...]:
    whole: list[str] = []
    start, tries = 0, iter(range(LONG_TEXTS))
    while start < len(lines):
        length = _count_lines(lines, start, tries) if lines[start].strip() else 1
        while length > 1 and not lines[start + length - 1].strip():
            length -= 1  # a blank line is a part of what it stands in, and of nothing above it
        block = "\n".join(lines[start : start + length])
        is_line = length == 1 and (parsed(block) or not parsed(block, block=True))
        whole.append(block if is_line else block + "\n")
        start += length
    return tuple(whole)


def _count_lines(lines: tuple[str, ...], start: int, tries: Iterator[int]) -> int:
    """How many lines from `start` on are one statement; they are parsed a few times at most.

    tries: one for each look for the end of a long text in quotes, so that these have an end.
    """
    depth = len(lines[start]) - len(lines[start].lstrip())
    # 1. No more lines than may be parsed.
    end, room = start, LINE_CHARACTERS
    while end < len(lines) and room >= 0:
        room -= max(0, len(lines[end]) - depth) + 1
        end += 1
    if room < -1 and (length := _count_too_long(lines, start, depth, tries)) >= end - start:
        return length
    # 2. Where it can end.
    ends = _find_ends(lines[start:end], depth)
    # 3. Python says whether all of that is a statement, be it one that does nothing: none of its
    #    lines stands alone. Or the beginning, with prose below it.
    for length in (*ends[-1:], *ends[:HEADERS]):
        if length > 1 and is_python("\n".join(lines[start : start + length])):
            return length
    return 1


def _count_too_long(lines: tuple[str, ...], start: int, depth: int, tries: Iterator[int]) -> int:
    """How many lines a statement has that is too long to be parsed, and so is not run; else 1.

    It begins with the header of a block, or with a text in three quotes.
    """
    first, rest = lines[start].strip(), lines[start : start + LONGEST]
    if first.endswith(":") and is_python(f"{first} pass"):
        return max(_find_ends(rest, depth), default=1)
    if ('"""' in first or "'''" in first) and next(tries, None) is not None:
        return next(_ends_of_lines("\n".join(rest) + "\n"), 1)
    return 1


def _find_ends(lines: Sequence[str], depth: int) -> list[int]:
    """After how many lines a statement can end: each whole line of code that belongs to it."""
    ends: list[int] = []
    following = 0
    is_decorated = False
    for whole in _ends_of_lines("\n".join(lines) + "\n"):
        line = lines[following]
        if not ends or not line.strip() or _goes_on(line, depth) or is_decorated:
            ends.append(whole)
        elif not line.lstrip().startswith("#"):
            break
        is_decorated = line.lstrip().startswith("@")
        following = whole
    return ends


def _ends_of_lines(source: str) -> Iterator[int]:
    """The numbers of lines after which no bracket, no string and no backslash is open."""
    row = depth = at = 0
    open_until = dict.fromkeys(_STRINGS, 0)
    while mark := _MARKS.search(source, at):
        text, at = mark[0], mark.end()
        # Where a string is never closed, its quote counts for nothing; the next one of its kind
        # would be an escaped one, and is not closed either: looked for again at each, in a line of
        # nothing else, that would take the square of its length.
        if text in _STRINGS and at > open_until[text]:
            string = _STRINGS[text].match(source, mark.start())
            assert string
            if string["close"]:
                text, at = string[0], string.end()
            else:
                open_until[text] = string.end()
        row += text.count("\n")
        if text in "([{":
            depth += 1
            if depth > BRACKETS:
                return
        elif text in ")]}":
            depth -= 1
        elif mark["quotes"] and not mark["close"]:
            return
        elif text == "\n" and depth <= 0:
            yield row


def _goes_on(line: str, depth: int) -> bool:
    own = len(line) - len(line.lstrip())
    return own > depth or (own == depth and bool(CLAUSE.match(line)))


def _acts(statement: ast.stmt) -> bool:
    match statement:
        case ast.AnnAssign(value=None):  # "Answer: 42"
            return False
        case ast.Assert(ast.Name()) | ast.Raise(None | ast.Name()):  # "raise hopes"
            return False
        case ast.Expr(value):  # without a call it can neither print nor bind: "yes or no"
            return any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(value))
    return True


def prints(tree: ast.Module) -> bool:
    """Whether a line calls `print`."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id == "print" for called in calls)


def bound(tree: ast.Module) -> Iterator[str]:
    """The names that a line binds, if it runs to its end."""
    loops = [n.target for n in ast.walk(tree) if isinstance(n, ast.comprehension)]
    local = {id(n) for target in loops for n in ast.walk(target)}  # gone when the loop is over
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in local:
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.MatchAs | ast.MatchStar) and (
            node.name  # "case _" binds nothing
        ):
            yield node.name


def assigned(lines: Iterable[str]) -> set[str]:
    """The names that lines of Python bind; prose binds none."""
    trees = (parsed(line, block="\n" in line) for line in lines)
    return {name for tree in trees if tree for name in bound(tree)}


def lost(lines: Iterable[tuple[str, str | None, Collection[str]]]) -> dict[str, str]:
    """The names that failed lines should have bound, and none behind them has, with the errors.

    lines: each with its error, if any, and the names that it has changed.
    """
    names: dict[str, str] = {}
    for line in lines:
        note_lost(names, *line)
    return names


def note_lost(
    names: dict[str, str], line: str, error: str | None, changed: Collection[str]
) -> None:
    """Add to lost names those of one more line that failed; take off those that it has bound.

    A line that fails may have bound some before; what half a block has bound is not its value.
    """
    for name in assigned([line]):
        if error is None:
            names.pop(name, None)
        else:
            names[name] = error
    for name in () if "\n" in line else changed:
        names.pop(name, None)


def _parse_naming(line: str, names: Collection[str]) -> ast.Module | None:
    """The syntax tree of a line that has one of these names; None for prose, and of other lines."""
    return parsed(line, block="\n" in line) if any(name in line for name in names) else None


def find_read(line: str, names: Collection[str]) -> list[str]:
    """Those of the names that a line of Python reads as variables, and does not bind itself."""
    if (tree := _parse_naming(line, names)) is None:
        return []
    read, own = set[str](), set(bound(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()):
                read.add(name)
            case ast.Name(name) | ast.arg(name) | ast.ExceptHandler(name=str(name)):
                own.add(name)
    return [name for name in names if name in read - own]


def uses(line: str, names: Collection[str]) -> list[str]:
    """Those of the names that a line of Python uses: as a variable, or as `{name}` in a string.

    A line of prose uses nothing, whatever it speaks of.
    """
    if (tree := _parse_naming(line, names)) is None:
        return []
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name):
                found.add(name)
            case ast.Constant(str(text)):
                found.update(REFERENCE.findall(text))
    return [name for name in names if name in found]


TRIES = 100
_lock = threading.RLock()  # the filters of `warnings` belong to the whole process


@contextmanager
def quiet() -> Iterator[None]:
    """Without Python's warnings about a source: a model's '\\d' is not the user's problem."""
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def statements(source: str) -> ast.Module:
    """The syntax tree of lines of code, to be read alone; raises what `ast.parse` raises."""
    tree: ast.Module = _parsed_before(source, "exec")
    return tree


def expression(source: str) -> ast.Expression:
    """The syntax tree of one expression, to be read alone; raises what `ast.parse` raises."""
    tree: ast.Expression = _parsed_before(source, "eval")
    return tree


def literal(text: str) -> Any:
    """The value of a literal; raises what `ast.literal_eval` raises."""
    return ast.literal_eval(expression(text.lstrip(" \t")))


def _parsed_before(source: str, mode: Literal["exec", "eval"]) -> Any:
    """A line is parsed some five times on its way, the text of a variable after each call."""
    return (_parse_once if len(source) <= LINE_CHARACTERS else _parse)(source, mode)


def _parse(source: str, mode: Literal["exec", "eval"]) -> Any:
    # Python 3.11 counts the depth of a syntax tree in one place for all threads, and raises a
    # SystemError where two build one at a time (CPython issue 106905). The lock keeps ours apart,
    # not those of others: `inspect` parses, too, to read the signature of a built-in function.
    with quiet():
        for _ in range(TRIES - 1):
            with suppress(SystemError):
                return ast.parse(source, mode=mode)
        return ast.parse(source, mode=mode)


_parse_once = functools.lru_cache(maxsize=64)(_parse)

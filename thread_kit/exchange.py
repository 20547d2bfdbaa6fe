"""phi, psi, xi and the observation abstraction: what passes between threads and environment.

Small pure functions of text, each the member of a family (THREAD paper, sections 2.3 and 3, and the
ablations of E.2). Any function of the same form can take their place.

    phi(Y, variables, dialect) -> the context of a child
    psi(child)                 -> what the parent gets back, before the closing mark
    xi(Y, variables, dialect)  -> the action
    abstract(observation, own) -> what the thread reads of it; own: its variables (`Known`)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from thread_kit.code_lines import is_variable_name
from thread_kit.dialect import FUTURE, REFERENCE, Dialect, Variables, as_comment
from thread_kit.sequence import Provenance, Sequence

if TYPE_CHECKING:
    from thread_kit.requests import Finished

Phi = Callable[[Sequence, Variables, Dialect], str]
Psi = Callable[["Finished"], str]
Xi = Callable[[Sequence, Variables, Dialect], str]
Abstract = Callable[[str, Variables], str]


class Known(dict[str, Any]):
    """The variables of a thread. own: the names that lines of its own text have assigned."""

    def __init__(self, variables: Variables, own: Collection[str]) -> None:
        super().__init__(variables)
        self.own = own


INSTANTIATED_CHARACTERS = 25_000
"""What a text may grow to: some 6,000 tokens of English. So 200 calls of a hostile model, of which
each spawns, write some 40 MB of trace in contexts where every character is a token, and 220 MB
where it is four (emoji); what their lines write has a bound of its own (`LINES_BYTES` in
session/effects.py). A variable that is longer comes to a child all the same, by its name."""


def instantiate(text: str, variables: Variables) -> str:
    """`{name}` becomes the value of the variable; an unknown name stays as it is written.

    One pass: braces inside a value are text and are not looked up again. A value that would make
    the text longer than INSTANTIATED_CHARACTERS stays a name, too: a few hundred tokens of a model
    could ask for gigabytes.
    """
    room = INSTANTIATED_CHARACTERS - len(text)
    texts: dict[str, str] = {}  # a name may stand there thousands of times

    def value(match: re.Match[str]) -> str:
        nonlocal room
        name = match[1]
        if name not in texts:
            if name not in variables:
                return match[0]
            texts[name] = str(variables[name])
        if len(texts[name]) > room:
            return match[0]
        room -= len(texts[name])
        return texts[name]

    return REFERENCE.sub(value, text)


def references(text: str) -> list[str]:
    """The names that a text refers to as `{name}`."""
    return [name for name in REFERENCE.findall(text) if is_variable_name(name)]


def mentioned(text: str, variables: Variables) -> dict[str, Any]:
    """The variables that a text refers to as `{name}`: they come up through psi with it."""
    return {name: variables[name] for name in references(text) if name in variables}


def coming_up(
    text: str, child: Finished, futures: Collection[str] = ()
) -> tuple[str, dict[str, Any]]:
    """What psi took from a child as its parent reads it, and the variables that come up with it.

    futures: the names that stand for children of the parent. `{t1}` means another thread to the
    child than to its parent, so such a name cannot come up: its value stands in its place.
    """
    local = {*child.futures, *futures}
    values = {name: value for name, value in child.variables.items() if name in local}
    text = instantiate(text, values)
    named = mentioned(text, child.variables)
    return text, {name: value for name, value in named.items() if name not in local}


def phi_last_line(sequence: Sequence, variables: Variables, dialect: Dialect) -> str:
    """phi of the papers: the last line, from behind its first comma, instantiated.

    "First, I need to find the {obj}. =>" gives "I need to find the mug. =>". The line is cut before
    it is instantiated, so that a comma inside a value cuts nothing (THREAD paper, section 3; the
    cut is in what G.3 to G.5 print); a mark on a line of its own belongs to the line above.
    """
    line = dialect.bare(sequence.text).rstrip().rpartition("\n")[2]
    own = min((line.partition(mark)[0] for mark in dialect.listens), key=len)
    if ", " in own:  # a comma in what a child said cuts nothing
        line = line.partition(", ")[2]
    return f"{instantiate(line, variables)} {dialect.listen}"


def phi_whole_line(sequence: Sequence, variables: Variables, dialect: Dialect) -> str:
    """phi of the papers in a dialect of code: the last line with text, whole, instantiated.

    "The slope in {a} is =>0.3<= and in {b} is =>" gives "The slope in A is =>0.3<= and in B is =>":
    what other children returned stays in the line (THREAD paper, 2.1), and no comma cuts it, as
    none cuts the lines printed in G.1 and G.2. The mark may stand on a line of its own there.
    """
    line = dialect.bare(sequence.text.rstrip()).rstrip().rpartition("\n")[2]
    return f"{instantiate(line, variables)} {dialect.listen}"


def phi_own_line(sequence: Sequence, variables: Variables, dialect: Dialect) -> str:
    """phi where nobody waits: the last line as the thread itself wrote it, instantiated.

    "The slope in {a} is ~>{t1}<= and in {b} is ~>" gives "The slope in A is ... and in B is =>".
    This kit's own, for the asynchronous dialect of code: what another child returned is left out,
    so that a child asks the same whether its elder was waited for or not.
    """
    own: list[str] = []
    for span in sequence:
        if span.provenance is Provenance.GENERATED:
            own.append(span.text)
        elif own:
            own[-1] = f"{dialect.bare(own[-1]).rstrip()} ..."
    line = dialect.bare("".join(own).rpartition("\n")[2]).strip()
    return f"{instantiate(line, variables)} {dialect.listen}"


def phi_full_sequence(sequence: Sequence, variables: Variables, dialect: Dialect) -> str:
    """Ablation 2 of THREAD paper, E.2: the child sees the parent's whole sequence.

    The last line is instantiated, as of the other phi. All above it stays as it was written: a
    variable that was bound anew since then would make it say what never was.
    """
    above, br, line = dialect.bare(sequence.text.rstrip()).rstrip().rpartition("\n")
    return f"{above}{br}{instantiate(line, variables)} {dialect.listen}"


def psi_print(child: Finished) -> str:
    """psi of the papers: what the last line with a `print(...)` of the child printed.

    References stay uninstantiated ("You have found {obj_ID}."); `mentioned` says which variables
    come up with them. Where a line of the child failed and its answer has no value for that, the
    error is returned (THREAD paper, E.4, of questions; on other tasks the kit's own). A child that
    did not end by itself returns what stopped it, never an empty text that its parent could mistake
    for an answer.
    """
    if child.status.is_end:
        answer = child.printed or ""
        named = references(answer)
        errors = [child.lost[name] for name in named if name in child.lost]
        has_no_value = not answer or any(name not in child.variables for name in named)
        if child.error and has_no_value:
            errors.append(child.error)
        return errors[0] if errors else answer
    why = f": {child.error}" if child.status == "failed" else ""
    return f"Error: the thread did not finish ({child.status}{why})."


def unless_replaced(psi: Psi) -> Psi:
    """psi, except where a person has put another text in the place of what it would take."""

    def either(child: Finished) -> str:
        return psi(child) if child.instead is None else child.instead

    return either


def psi_full_sequence(child: Finished) -> str:
    """The whole sequence of the child: nothing is held back from the parent."""
    return child.sequence.text


def find_action(sequence: Sequence, dialect: Dialect) -> str | None:
    """The action with which a sequence ends, as it is written; None where it ends with none.

    A line that begins with somebody else's text is never an action. A mark on a line of its own
    belongs to the line above.
    """
    own = sequence.own_end
    if not dialect.several_lines:
        own = dialect.bare(own).rstrip().rpartition("\n")[2]
    return read_action(own, dialect)


def read_action(text: str, dialect: Dialect) -> str | None:
    """The action with which a text ends, without its mark; None where it ends with none.

    A mark of what comes back that a model has written behind it is none of it, nor is what follows
    on lines of its own.
    """
    lines = dialect.action_lines(dialect.bare(text).split("\n"))
    if not lines:
        return None
    first = lines[0].lstrip()
    mark = next(mark for mark in dialect.actions if first.startswith(mark))
    lines = [first.removeprefix(mark), *lines[1:]]
    own = takewhile(lambda line: line.strip() != dialect.close, lines)
    return "\n".join(own).strip().removesuffix(dialect.close).rstrip()


def xi_after_mark(sequence: Sequence, variables: Variables, dialect: Dialect) -> str:
    """xi of the papers: what follows the action mark at the end of a sequence, instantiated."""
    return instantiate(find_action(sequence, dialect) or "", variables)


def xi_code(sequence: Sequence, variables: Variables, dialect: Dialect) -> str:
    """xi in a dialect of code: what follows the action mark, as it stands; it is a line of code.

    A name like `t1` that is no variable may stand for a child that nobody has waited for; said in a
    comment, it is waited for (`thread.thread`).
    """
    code = xi_after_mark(sequence, {}, dialect)
    futures = [name for name in dict.fromkeys(FUTURE.findall(code)) if name not in variables]
    return " ".join([code, *(["#"] if futures else []), *(f"{{{name}}}" for name in futures)])


def abstract_own_values(observation: str, variables: Variables) -> str:
    """The observation abstraction, by the names that the thread has assigned in its own text.

    As `abstract_values`, but nothing is shown by a name that only a thread above has written
    (THREAD paper, G.3 to G.5: whoever acts has bound the names first).
    """
    own = variables.own if isinstance(variables, Known) else variables
    return abstract_values(observation, {n: v for n, v in variables.items() if n in own})


def abstract_values(observation: str, variables: Variables) -> str:
    """The observation abstraction by all names that the thread knows, inherited ones, too.

    Values of string variables are shown as `{name}`. So "Crafted 3 minecraft:dark_oak_sign" reads
    "Crafted 3 minecraft:{target_item}" (THREAD paper, G.5), and parent and child go on speaking of
    the same thing by the same name. Of two variables with one value the latest defined is shown;
    whole words only; an identifier form with underscores counts as the value. One pass, so that a
    name put in is never replaced itself; where the text would grow beyond INSTANTIATED_CHARACTERS
    (a long name for a comma), the value stays.
    """
    names: dict[str, str] = {}
    for name in reversed(list(variables)):
        value = variables[name]
        if isinstance(value, str) and value.strip():
            for form in (value, value.replace(" ", "_")):
                if form in observation:  # else a pattern of all that the thread has ever bound
                    names.setdefault(form, name)
    if not names:
        return observation
    forms = "|".join(map(re.escape, names))
    room = INSTANTIATED_CHARACTERS - len(observation)

    def abstract(match: re.Match[str]) -> str:
        nonlocal room
        more = len(names[match[0]]) + 2 - len(match[0])
        if more > max(room, 0):
            return match[0]
        room -= more
        return f"{{{names[match[0]]}}}"

    return re.sub(rf"(?<!\w)(?:{forms})(?!\w)", abstract, observation)


def as_observed(observation: str, variables: Variables) -> str:
    """No abstraction: the observation as the environment gave it."""
    return observation


FUNCTIONS: dict[str, tuple[Callable[..., str], ...]] = {
    "phi": (phi_last_line, phi_whole_line, phi_own_line, phi_full_sequence),
    "psi": (psi_print, psi_full_sequence),
    "abstract": (abstract_own_values, abstract_values, as_observed),
}
"""The kit's own that a person can choose from, by kind."""


def exchange_of(
    dialect: Dialect, *, without_examples: bool = False, **own: Callable[..., str] | None
) -> dict[str, Any]:
    """phi, psi, xi and the abstraction of a session; `own` are those that it is given.

    without_examples: the model reads none. The kit's adapters were taught with inherited names,
        too, and what comes back speaks of these as well then.
    """
    abstract = as_observed if dialect.as_observed else abstract_own_values
    functions: dict[str, Callable[..., str]] = {"phi": phi_last_line, "psi": psi_print}
    functions |= {
        "xi": xi_after_mark,
        "abstract": abstract_values if without_examples else abstract,
    }
    if dialect.code:
        phi = phi_own_line if dialect.spawn else phi_whole_line
        functions |= {"phi": phi, "xi": xi_code, "abstract": as_comment}
    return functions | {name: function for name, function in own.items() if function is not None}

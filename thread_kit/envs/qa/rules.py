"""Plays the threads of a data question by rule, in the place of a model: for teaching and tests.

`Script` says for each context what a thread with it writes, in the segments that the listen marks
cut. What comes back is the real environment's, so an answer at the end is the sandbox's, too.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from thread_kit.dialect import Dialect
from thread_kit.envs.qa.kinds import Kind

Segments = list[str]
"""What a thread writes, up to each mark and behind the last one; without the marks."""


class Script(ABC):
    """A function for `ScriptedEngine`: from all that a thread sees to what it writes next.

    dialect: `QA`, or `QA_ASYNC`: then the threads do not wait for children that are independent.
    lines: one request a line, as in the method "thread, lines". variables: threads bind names and
    hand them over; without, all values stand in the text (THREAD paper, E.2, ablation 1).
    """

    def __init__(self, dialect: Dialect, *, lines: bool = False, variables: bool = True) -> None:
        self.dialect = dialect
        self.lines = lines
        self.variables = variables

    @property
    def is_async(self) -> bool:
        return self.dialect.spawn is not None

    def __call__(self, seen: str) -> str:
        head, start, written = seen[seen.rindex("Prompt:\n") :].partition(f"{self.dialect.start}\n")
        context = self.dialect.asked(head + start).strip().removesuffix(self.dialect.listen)
        # Where a child reads all of its parent's text, the last line is what it is asked.
        segments = self.write(context.strip().rpartition("\n")[2], written)
        place = sum(written.count(mark) for mark in self.dialect.listens)
        return segments[place] + (self.dialect.end if place + 1 == len(segments) else "")

    @abstractmethod
    def write(self, context: str, written: str) -> Segments:
        """What a thread with this context writes. Each segment but the last ends in a mark.

        written: its sequence so far, with what came back.
        """

    @property
    def mark(self) -> str:
        """The mark behind which an independent child is asked."""
        return self.dialect.spawn or self.dialect.listen

    def bind(self, **values: object) -> str:
        """The first lines of a thread: the names of what it is about."""
        lines = [f"{name} = {value!r}\n" for name, value in values.items()]
        return "".join(lines) if self.variables else ""

    def use(self, name: str, value: object) -> str:
        """A bound value in code: its name."""
        return name if self.variables else repr(value)

    def refer(self, name: str, value: object) -> str:
        """A bound value in a sentence: `{name}`."""
        return f"{{{name}}}" if self.variables else str(value)

    def hand_over(self, name: str, code: str) -> str:
        """The last lines of a thread, which return the value of an expression."""
        return f"{name} = {code}\nprint('{{{name}}}')\n" if self.variables else f"print({code})\n"

    def write_table(
        self, names: str, subjects: Mapping[str, str], request: str, join: str, written: str
    ) -> Segments:
        """A thread that asks for the values of each subject and makes one table of them.

        names: the lines that bind its names. subjects: by the names that are bound. request: a
        sentence with [number] and [subject]. join: code that adds a table, {}, to `table`.
        """
        # 1. The requests.
        requests = [
            request.replace("[number]", str(number)).replace("[subject]", self.refer(*subject))
            + f" {self.mark}"
            for number, subject in enumerate(subjects.items(), 1)
        ]
        # 2. One table of what came back: of named values, or of files.
        paths, columns = [*self.read_paths(written), *subjects], []
        for number, subject in enumerate(subjects.items(), 1):
            source = f"t{number}" if self.variables else repr(paths[number - 1])
            is_file = self.is_async or not self.variables
            table = f"pd.read_csv({source})" if is_file else f"pd.DataFrame(series_{number})"
            columns.append(f"{table}.rename(columns={{'value': {self.use(*subject)}}})")
        code = f"\ntable = {columns[0]}\n"
        code += "".join(f"table = {join.format(column)}\n" for column in columns[1:])
        end = code + self.hand_over("table_path", "save(table)")
        return [names + requests[0], *(f"\n{text}" for text in requests[1:]), end]

    def return_series(self, number: str) -> str:
        """The end of a thread that has looked values up: they are handed over, or their file is."""
        if self.is_async or not self.variables:
            return "\n" + self.hand_over(f"path_{number}", f"save(pd.DataFrame(series_{number}))")
        return f"\nprint('{{series_{number}}}')\n"

    def show(self, code: str) -> str:
        """An action that shows what a line of code prints."""
        return f"# > print({code}) {self.dialect.listen}"

    def ask(self, start: str, *subjects: str, others: Sequence[str] = ()) -> Segments:
        """The segments that ask independent children; an async thread then looks at the answers.

        start: of the sentence that asks of each of the subjects. others: sentences by themselves.
        """
        first, *more = subjects
        between = f".\n{start.strip()} " if self.lines else " and "
        requests = [f"{start} {first} is", *(f"{between}{subject} is" for subject in more)]
        requests += [f"\n{text}" for text in others]
        segments = [f"{request} {self.mark}" for request in requests]
        if self.is_async:
            names = ", ".join(f"t{n}" for n, _ in enumerate(requests, 1))
            segments.append(f".\n{self.show(names)}")
        return segments

    def conclude(
        self,
        kind: Kind,
        figures: Sequence[float],
        answer: str,
        fields: Mapping[str, str],
        places: Sequence[str] = (),
    ) -> str:
        """The end of a main thread: the concluding sentence, and the answer (G.1)."""
        return f"\n{kind.conclude(figures, answer, fields, places)}\nFinal Answer: {answer}\n"

    def read_figures(self, written: str) -> tuple[float, ...]:
        """The numbers that have come back, or that an action has shown."""
        listen, close = re.escape(self.dialect.listen), self.dialect.close
        returned = re.findall(rf"{listen}([-\d. e]+?){close}", written)
        return tuple(float(number) for numbers in returned for number in numbers.split())

    def read_paths(self, written: str) -> list[str]:
        """The files that have come back, where no names stand for them."""
        return re.findall(rf"{re.escape(self.dialect.listen)}(/\S+?){self.dialect.close}", written)


def read_subjects(text: str, dialect: Dialect) -> list[str]:
    """Whom a sentence is about: those who were asked before, and last the one that is asked."""
    answer = f"{re.escape(dialect.listen)}.*?{re.escape(dialect.close)}"
    return re.split(rf" is (?:{answer}|\.\.\.) and ", text)

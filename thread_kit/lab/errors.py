"""What went wrong in an episode: the paper's types of errors, and rules that propose one.

THREAD paper, E.1: the first error of a failed episode is held responsible for its failure (Tables 9
to 12). There it was found by hand; here rules read the trace and propose it, and `review.py` is for
people to say what it was.

What the rules can see is what an environment says: that an action is refused, that an item is used
which could not be found, that code fails, that a budget is spent. They know TextCraft's and
ALFWorld's observations. Not covered: a plan that is executed well and is the wrong one counts as
inadequate only at its end, and a misreading that leads to no refused action is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from thread_kit.envs.textcraft_oracle import TAGS, Recipe, is_member
from thread_kit.events import Acted, Closed, Ended, Event, ExecutedLine, Instructed, Returned
from thread_kit.methods.react import NO_ACTION
from thread_kit.thread import Status
from thread_kit.trace import Episode


class ErrorType(StrEnum):
    """The types of Tables 9 and 11, and what the paper calls other."""

    INADEQUATE_PLAN = "inadequate plan"
    INVALID_ACTION = "invalid action"
    MISREAD_OBSERVATION = "misread observation"
    WRONG_ANALYSIS = "wrong analysis"
    RUNTIME_ERROR = "runtime error"
    OUT_OF_CONTEXT = "out of context"
    OUT_OF_BUDGET = "out of budget"
    OTHER = "other"


ABOUT = {
    ErrorType.INADEQUATE_PLAN: "the steps do not suffice, or come in the wrong order",
    ErrorType.INVALID_ACTION: "the environment knows no such action, or no such recipe",
    ErrorType.MISREAD_OBSERVATION: "it goes on as if the environment had said something else",
    ErrorType.WRONG_ANALYSIS: "the information is there, but the analysis does not answer",
    ErrorType.RUNTIME_ERROR: "a line of code fails",
    ErrorType.OUT_OF_CONTEXT: "a thread has more to read than the model can see",
    ErrorType.OUT_OF_BUDGET: "calls, tokens, seconds or levels are used up",
    ErrorType.OTHER: "none of these",
}

BUDGETS = (
    Status.OUT_OF_CALLS,
    Status.OUT_OF_TOKENS,
    Status.OUT_OF_TIME,
    Status.OUT_OF_DEPTH,
    Status.TRUNCATED,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """An error. event: its number in the trace; why: what the rule saw."""

    type: ErrorType
    event: int
    thread: int
    why: str


def propose(episode: Episode) -> Finding | None:
    """The first error that a rule finds in a failed episode; None for one that is solved.

    Raises ValueError for an episode that is not over.
    """
    if episode.status.is_live:
        raise ValueError("the episode is not over; what went wrong can be said when it is")
    if episode.reward == 1:
        return None
    if found := next(findings(episode), None):
        return found
    last = len(episode.events) - 1
    if episode.header.get("environment") is None:
        return Finding(ErrorType.WRONG_ANALYSIS, last, 0, "it ended with a wrong answer")
    return Finding(ErrorType.INADEQUATE_PLAN, last, 0, "it ended before the task was solved")


def findings(episode: Episode) -> Iterator[Finding]:
    """All errors that the rules find, in the order of time."""
    asked = episode.threads[0].context.text if episode.threads else ""
    judge = JUDGES.get(str(episode.header.get("environment")), Judge)(asked)
    for number, event in enumerate(episode.events):
        found = judge.of_action(event) if isinstance(event, Acted) else _of_thread(event)
        if found:
            yield Finding(found[0], number, getattr(event, "thread", 0), found[1])


def _of_thread(event: Event) -> tuple[ErrorType, str] | None:
    match event:
        case ExecutedLine(error=str(error)):
            return ErrorType.RUNTIME_ERROR, f"{error}, in {event.line.strip()}"
        case Instructed(span=span) if NO_ACTION in span.text:
            return ErrorType.INVALID_ACTION, "a line that is no action was to be executed"
        case Ended(status=Status.OUT_OF_CONTEXT):
            return ErrorType.OUT_OF_CONTEXT, event.detail
        case Ended(thread=0, status=status) if status in BUDGETS:
            return ErrorType.OUT_OF_BUDGET, event.detail
        case Closed(status=Status.STOPPED | Status.FAILED):
            return ErrorType.OTHER, event.detail
    return None


class Judge:
    """What is wrong with an action, from what the environment said; here: nothing is known.

    context: what the main thread was asked.
    """

    def __init__(self, context: str) -> None:
        self.context = context

    def of_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        return None


COMMAND = re.compile(r"craft \d+ .+ using \d+ .+")


class CraftingJudge(Judge):
    """TextCraft: a refused command is invalid, or lacks what was never got, or could not be got."""

    REFUSED = ("Could not execute", "Could not extract recipe", "Could not find a valid recipe")

    def __init__(self, context: str) -> None:
        super().__init__(context)
        self._recipes = [Recipe.parse(line) for line in context.split("\n") if COMMAND.match(line)]
        self._failed: set[str] = set()  # items that could not be found, and were not made since

    def of_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        said = acted.observation
        if said.startswith(self.REFUSED):
            return ErrorType.INVALID_ACTION, said
        if got := re.match(r"(?:Got|Crafted) \d+ (?:minecraft:)?(.+)", said):
            self._failed.discard(got[1].replace("_", " "))
        elif said.startswith("Could not find enough items"):
            return self._short_of(acted)
        elif missed := re.match(r"Could not find (.+)", said):
            self._failed.add(missed[1])
        return None

    def _short_of(self, acted: Acted) -> tuple[ErrorType, str]:
        try:
            recipe = Recipe.parse(acted.action)
        except ValueError:
            return ErrorType.INVALID_ACTION, acted.observation
        if not any(_is_use(recipe, one) for one in self._recipes):
            return ErrorType.INVALID_ACTION, f"no command says: {recipe}"
        held = acted.info.get("inventory", {})
        short = [item for count, item in recipe.inputs if held.get(item, 0) < count]
        if kinds := [item for item in short if item in TAGS]:
            return ErrorType.INVALID_ACTION, f"{kinds[0]} are a kind, an action names a member"
        if failed := [item for item in short if item in self._failed]:
            return ErrorType.MISREAD_OBSERVATION, f"{failed[0]} could not be found, and is used"
        return ErrorType.INADEQUATE_PLAN, f"there are not enough {', '.join(short)}"


def _is_use(action: Recipe, command: Recipe) -> bool:
    """Whether an action is a command, with members in the place of kinds."""
    used = action.inputs
    return action.output == command.output and all(
        any(n == count and (item == asked or is_member(item, asked)) for count, item in used)
        for n, asked in command.inputs
    )


class HouseholdJudge(Judge):
    """ALFWorld: an action without effect is invalid; or something is taken that was not seen."""

    def __init__(self, context: str) -> None:
        super().__init__(context)
        self._seen = ""  # what was observed last

    def of_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        said, before = acted.observation.strip(), self._seen
        if said != "Nothing happens.":
            self._seen = said
            return None
        taken = re.match(r"take (.+?) from (.+)", acted.action)
        if taken and taken[1] not in before:
            return ErrorType.MISREAD_OBSERVATION, f"{taken[1]} is taken, and was not seen there"
        return ErrorType.INVALID_ACTION, f"nothing happens: {acted.action}"


JUDGES: dict[str, type[Judge]] = {"textcraft": CraftingJudge, "alfworld": HouseholdJudge}


def runs_of_actions(episode: Episode) -> list[tuple[int, bool]]:
    """For each action, how many its thread has taken in a row, and whether it misreads feedback.

    A row ends where a child returns: what it says is no observation (THREAD paper, Figure 5).
    """
    misread = {
        found.event for found in findings(episode) if found.type is ErrorType.MISREAD_OBSERVATION
    }
    lengths: dict[int, int] = {}
    rows = []
    for number, event in enumerate(episode.events):
        if isinstance(event, Returned):
            lengths[event.thread] = 0
        elif isinstance(event, Acted):
            lengths[event.thread] = lengths.get(event.thread, 0) + 1
            rows.append((lengths[event.thread], number in misread))
    return rows


__all__ = ["ABOUT", "ErrorType", "Finding", "findings", "propose", "runs_of_actions"]

"""Error rules: what is wrong with an event of an episode, benchmark by benchmark."""

from __future__ import annotations

import re

from thread_kit.envs.textcraft.planner import TAGS, Recipe, is_member
from thread_kit.errors.error_types import ErrorType
from thread_kit.methods.adaplanner import WAITS
from thread_kit.methods.common import NO_ACTION
from thread_kit.requests import Status
from thread_kit.trace.events import (
    Acted,
    Closed,
    Ended,
    Event,
    ExecutedLine,
    Instructed,
    Restarted,
)

BUDGETS = (
    Status.OUT_OF_CALLS,
    Status.OUT_OF_TOKENS,
    Status.OUT_OF_TIME,
    Status.TRUNCATED,
)

OUT_OF_ACTIONS = "the environment's last action is used up"


class ErrorRules:
    """What is wrong with an event; of actions nothing is known here, and every one is right.

    context: what the main thread was asked. unsolved: what an episode lacks that ends unsolved, and
    in which no event was wrong.
    """

    unsolved = (ErrorType.INADEQUATE_PLAN, "it ended before the task was solved")

    def __init__(self, context: str) -> None:
        self.context = context

    def check_event(self, event: Event) -> tuple[ErrorType, str] | None:
        match event:
            case Acted():
                return self.check_action(event) or _check_limit(event)
            case ExecutedLine(error=str(error)) if not error.endswith(WAITS):
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

    def check_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        return None


def _check_limit(acted: Acted) -> tuple[ErrorType, str] | None:
    """THREAD paper, Table 10: the maximum number of actions allowed is no inadequate plan."""
    if acted.truncated and acted.reward != 1:
        return ErrorType.OUT_OF_BUDGET, OUT_OF_ACTIONS
    return None


COMMAND = re.compile(r"craft \d+ .+? using \d+ [^,]+(, \d+ [^,]+)*")


LINE_CHARACTERS = 1_000
"""Of a line that can be a command: the pattern takes the square of what it reads."""


class TextCraftRules(ErrorRules):
    """TextCraft: a refused command is invalid, or lacks what was never got, or could not be got."""

    REFUSED = (
        "Could not execute",
        "Could not extract recipe",
        "Could not find a valid recipe",
        "Wrong item format",
    )

    def __init__(self, context: str) -> None:
        super().__init__(context)
        lines = (line for line in context.split("\n") if len(line) <= LINE_CHARACTERS)
        commands = filter(COMMAND.fullmatch, lines)
        self._recipes = [Recipe.parse(command) for command in commands]
        self._failed: set[str] = set()  # items that could not be found, and were not made since

    def check_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        observation = acted.observation
        if observation.startswith(self.REFUSED):
            return ErrorType.INVALID_ACTION, observation
        if obtained := re.match(r"(?:Got|Crafted) \d+ (?:minecraft:)?(.+)", observation):
            self._failed.discard(obtained[1].replace("_", " "))
        elif observation.startswith("Could not find enough items"):
            return self._short_of(acted)
        elif missed := re.match(r"Could not find (.+)", observation):
            self._failed.add(missed[1])
        return None

    def _short_of(self, acted: Acted) -> tuple[ErrorType, str]:
        # As the game reads it: one is made where no number is said, commas need no space.
        action = re.sub(r"^craft (?!\d)", "craft 1 ", acted.action.strip().replace("_", " "))
        action = ", ".join(map(str.strip, action.split(",")))
        try:
            recipe = Recipe.parse(action)
        except ValueError:
            return ErrorType.INVALID_ACTION, acted.observation
        if not any(_uses(recipe, known) for known in self._recipes):
            return ErrorType.INVALID_ACTION, f"no command says: {recipe}"
        held = acted.info.get("inventory", {})
        short = [item for count, item in recipe.inputs if held.get(item, 0) < count]
        if kinds := [item for item in short if item in TAGS]:
            return ErrorType.INVALID_ACTION, f"{kinds[0]} are a kind, an action names a member"
        if failed := [item for item in short if item in self._failed]:
            return ErrorType.MISREAD_OBSERVATION, f"{failed[0]} could not be found, and is used"
        return ErrorType.INADEQUATE_PLAN, f"there are not enough {', '.join(short)}"


def _uses(action: Recipe, command: Recipe) -> bool:
    """Whether an action is a command, with members in the place of kinds."""
    used = action.inputs
    if action.output != command.output or len(used) != len(command.inputs):
        return False
    return all(
        any(n == count and (item == asked or is_member(item, asked)) for count, item in used)
        for n, asked in command.inputs
    )


TASK = re.compile(
    r"Your task is to: (?:put|find|clean|heat|cool|examine|look at)(?P<two> two)?"
    r"(?: (?:a|an|some|the))?(?: (?:clean|hot|cool))? (?P<thing>[a-z]+)\b.* (?P<target>[a-z]+)"
)


class AlfWorldRules(ErrorRules):
    """ALFWorld: an action without effect is invalid, and an observation is misread by who takes a
    thing where none was seen, or sees the task's thing and goes on to look for it elsewhere (THREAD
    paper, Table 10). No such thing is one that was put there, or of two one where both belong. To
    go where one stands is refused, too, and changes nothing: that is held responsible for nothing.
    """

    def __init__(self, context: str) -> None:
        super().__init__(context)
        self._task = TASK.search(context)
        self._in_vain: set[tuple[str, ...]] = set()  # actions from the start, the last did nothing
        self._forget()

    def _forget(self) -> None:
        self._seen: dict[str, str] = {}  # what was observed last of each place
        self._held, self._found = "", ""  # what is in the hand; what was seen and could be taken
        self._put: set[str] = set()
        self._place = ""
        self._done: tuple[str, ...] = ()

    def check_event(self, event: Event) -> tuple[ErrorType, str] | None:
        if isinstance(event, Restarted):
            seen = self._seen
            self._forget()
            if event.restored:  # what was seen stays known; the household is what it was
                self._seen = seen
                for action in event.actions:
                    self._done += (action,)
                    if self._done not in self._in_vain:
                        self._move(action)
        return super().check_event(event)

    def check_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        observation = acted.observation.strip()
        action = acted.info.get("done", acted.action)  # the nearest one may have been taken
        self._done += (action,)
        if observation == "Nothing happens.":
            self._in_vain.add(self._done)
            return self._refused(action)
        if visited := re.fullmatch(r"(?:go to|open) (.+)", action):
            passed = self._found if visited[1] != self._place else ""
            self._found = "" if self._held else self._find_thing(visited[1], observation)
            self._seen[visited[1]], self._place = observation, visited[1]
            if passed:
                return ErrorType.MISREAD_OBSERVATION, f"{passed} was seen, and is passed by"
        else:
            self._move(action)
        return None

    def _move(self, action: str) -> None:
        """Where an action that was done goes, what it takes into the hand, or puts down."""
        if visited := re.fullmatch(r"(?:go to|open) (.+)", action):
            self._place = visited[1]
        elif taken := re.fullmatch(r"take (.+) from (.+)", action):
            self._held, self._found = taken[1], ""
        elif put := re.fullmatch(r"(?:put|move) (.+) (?:in/on|to) (.+)", action):
            self._seen[put[2]] = f"{self._seen.get(put[2], '')} {put[1]}"
            self._held = ""
            self._put.add(put[1])

    def _find_thing(self, place: str, observation: str) -> str:
        """The first of the task's things that is to be taken from a place; "" if there is none."""
        if not self._task or (self._task["two"] and place.startswith(f"{self._task['target']} ")):
            return ""
        things = re.findall(rf"\b{self._task['thing']} \d+\b", observation)
        return next((thing for thing in things if thing not in self._put), "")

    def _refused(self, action: str) -> tuple[ErrorType, str] | None:
        if self._place and action == f"go to {self._place}":
            return None
        taken = re.fullmatch(r"take (.+?) from (.+)", action)
        seen = self._seen.get(taken[2]) if taken else None
        if taken and seen is not None and not re.search(rf"\b{re.escape(taken[1])}\b", seen):
            return ErrorType.MISREAD_OBSERVATION, f"{taken[1]} is taken, and was not seen there"
        return ErrorType.INVALID_ACTION, f"nothing happens: {action}"


class InterCodeRules(ErrorRules):
    """InterCode: a command that fails is invalid, which a later one can mend."""

    def check_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        return (ErrorType.INVALID_ACTION, acted.observation) if acted.info.get("failed") else None


NUMBER = re.compile(r"-?\d+(?:\.(\d+))?(?:e([-+]?\d+))?")


class QuestionRules(ErrorRules):
    """Questions about data (Tables 11 and 12): what was looked up, computed, and made of it.

    The answer decides, so an episode that came to none and in which no code failed has the wrong
    analysis. A number counts as computed if some line of code printed it, rounded as it likes; a
    program that prints nothing but its answer has thus the wrong analysis and never misreads it.
    """

    unsolved = (ErrorType.WRONG_ANALYSIS, "it ended without an answer")

    def __init__(self, context: str) -> None:
        super().__init__(context)
        self._printed: list[tuple[float, float]] = []  # numbers, and by how much they are rounded

    def check_event(self, event: Event) -> tuple[ErrorType, str] | None:
        if isinstance(event, ExecutedLine):
            if event.error and event.error.startswith("LookupError"):
                return ErrorType.WRONG_INFORMATION, event.error
            for number in NUMBER.finditer(event.printed or ""):
                self._printed.append((float(number[0]), _rounding(*number.groups())))
        return super().check_event(event)

    def check_action(self, acted: Acted) -> tuple[ErrorType, str] | None:
        info = acted.info
        if info.get("solved"):
            return None
        if not info.get("figures"):
            return ErrorType.OTHER, "a wrong answer; what it takes is written down nowhere"
        if missing := [need for need in info["needs"] if need not in info["asked"]]:
            return ErrorType.WRONG_INFORMATION, f"never looked up: {', '.join(missing[0])}"
        figures = ", ".join(f"{figure:.6g}" for figure in info["figures"])
        if not all(map(self._has_printed, info["figures"])):
            return ErrorType.WRONG_ANALYSIS, f"never computed: {figures}"
        return ErrorType.MISREAD_RESULTS, f"{info['answer']!r}, from {figures}"

    def _has_printed(self, figure: float) -> bool:
        return any(abs(number - figure) <= by + 1e-9 for number, by in self._printed)


def _rounding(decimals: str | None, exponent: str | None) -> float:
    """By how much a number may have been rounded; a whole one was counted, and not rounded."""
    if decimals is None and exponent is None:
        return 0
    power = min(int((exponent or "0")[:5]), 300)  # of floats
    return 0.5 * 10.0 ** (power - len(decimals or ""))

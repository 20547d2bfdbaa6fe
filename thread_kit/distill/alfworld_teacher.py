"""The teacher of threads for ALFWorld: a function of one thread's text to the text that comes next.

Like `speak_thread` for TextCraft it never sees a variable's value, a parent, the household
or the environment's state: it looks at one place after the other, first at those that stand open.
So whatever it does, a model that reads the same text can learn to do.

The form of the threads (what is distilled; there is no few-shot prompt):

    the task           obj = ' mug'[1:]; target = ' cabinet'[1:] + ' 1'; spots = [...]
                       First, I need to find a {obj}. =>
                       Then, I need to heat the {item}. =>
                       Finally, I need to put the {item} in the {target}. =>
    I need to find a mug. =>
                       place = spots[0]; So, I need to check the {place} for a {obj}. =>
                       place = spots[1] ... until a child says that it took one
    I need to check the shelf 2 for a mug. =>
                       > go to {place} =>, > examine {place} => for who stands there already,
                       > open {place} => if it is closed, and
                       > take {item} from {place} => if one is there
    I need to heat the mug 1. =>
                       > go to microwave 1 =>, > heat {item} with microwave 1 =>
    I need to put the mug 1 in the cabinet 1. =>
                       > go to {target} =>, > open {target} =>, > put {item} in/on {target} =>

The interpreter makes the list of places and picks from it. Names come down as variables, and come
back abstracted: "On the {place}, you see a {obj} 1". The model decides, counts, and copies a kind
of thing once and the digit behind it once. What is looked for is always {obj}, and what is not
there is always feedback in the same words: a small model mixes up what differs without need. A name
is copied with the blank before it, so that it is spelt with the tokens that it has in the text.
What fails is tried again: a thing that is nowhere is read once more from the task, a thing that
cannot be taken is looked at once more, a place that does not exist is read once more.
"""

from __future__ import annotations

import re

from thread_kit.dialect import AGENT
from thread_kit.distill.textcraft_teacher import TeacherError, read

STEPS = {
    "clean": ("clean", "sinkbasin 1"),
    "hot": ("heat", "microwave 1"),
    "cool": ("cool", "fridge 1"),
}
"""By what a thing has to be: what to do, and with what. Of each there is a first one."""

_TASKS = {
    "made": r"put a (?P<state>clean|hot|cool) (?P<obj>\w+) in (?P<target>\w+)"
    r"|(?P<verb>clean|heat|cool) some (?P<obj2>\w+) and put it in (?P<target2>\w+)",
    "two": r"put two (?P<obj>\w+) in (?P<target>\w+)"
    r"|find two (?P<obj2>\w+) and put them in (?P<target2>\w+)",
    "look": r"look at (?P<obj>\w+) under the (?P<target>\w+)"
    r"|examine the (?P<obj2>\w+) with the (?P<target2>\w+)",
    "pick": r"put a (?P<obj>\w+) in (?P<target>\w+)|put some (?P<obj2>\w+) on (?P<target2>\w+)",
}
"""The package's own phrases."""

FIND = "First, I need to find a {obj}. =>"
PUT = "I need to put the {item} in the {target}. =>"
TOOK = "print('I took the {item} from the {place}.')\n"
LIT = "print('I turned on the {item}.')\n"
NOT_THERE = "It is not there."
NOTHING = "Nothing happens."
THE_END = "There is no other place."
NOWHERE = "I did not find it."
NOT_PUT = "I could not put it there."
OPEN_FIRST = """\
shut = ['fridge', 'microwave', 'safe', 'cabinet', 'drawer']
spots = [p for p in spots if p.split()[0] not in shut] + [p for p in spots if p.split()[0] in shut]
spots += ['end']
"""
TRIES = 2
"""So often a thing is taken or put, and the task's own words are read again."""


def speak_alfworld(text: str) -> str:
    """What comes next in a thread: `text` is its context and its sequence so far.

    Raises TeacherError for a text that is not of the form that it teaches.
    """
    request, feedback = read(text)
    if task := re.fullmatch(r"Your task is to: (.+)\.", request):
        return _task(task[1], feedback)
    if re.fullmatch(r"I need to find a \w+\.", request):
        return _look_for("check the {place} for a {obj}", TOOK, feedback)
    if re.fullmatch(r"I need to find a \w+ and turn it on\.", request):
        return _look_for("look at the {place} for a {obj}", LIT, feedback)
    if re.fullmatch(r"I need to (check|look at) the end for a \w+\.", request):
        return f"print({THE_END!r})\n{AGENT.end}"
    if re.fullmatch(r"I need to check the \w+ \d+ for a \w+\.", request):
        return _at_place("take {item} from {place}", TOOK, feedback)
    if re.fullmatch(r"I need to look at the \w+ \d+ for a \w+\.", request):
        return _at_place("use {item}", LIT, feedback)
    if step := re.fullmatch(r"I need to (clean|heat|cool) the \w+ \d+\.", request):
        return _make(step[1], feedback)
    if re.fullmatch(r"I need to put the \w+ \d+ in the \w+ \d+\.", request):
        return _put(feedback)
    raise TeacherError(f"not a request of this form: {request!r}")


def _task(task: str, feedback: list[str]) -> str:
    kind, match = next(
        ((kind, parts) for kind, form in _TASKS.items() if (parts := re.fullmatch(form, task))),
        (None, None),
    )
    if kind is None or match is None:
        raise TeacherError(f"not a task of ALFWorld: {task!r}")
    named = {name.rstrip("2"): value for name, value in match.groupdict().items() if value}
    obj, target = _copy("obj", named["obj"]), f"{_copy('target', named['target'])} + ' 1'"
    # What was read wrongly is read again, and the step is done again.
    asked = [reply for reply in feedback if reply not in (NOWHERE, NOT_PUT)]
    again = feedback[-1] if feedback else ""
    if len(feedback) - len(asked) > TRIES:
        return AGENT.end
    if kind == "look":
        begin = f"{obj}\nspots = places\n{OPEN_FIRST}{FIND}"
        # A lamp may be where the thing was: it is a step to see that.
        lamp = _copy("obj", named["target"])
        spots = "" if again == NOWHERE else "spots = [place] + spots\n"
        steps = [begin, f"{lamp}\n{spots}Then, I need to find a {{obj}} and turn it on. =>"]
    else:
        # What lies in the target's kind is brought already; or is yet to be heated, and counts.
        elsewhere = "[p for p in places if p.split()[0] != target.split()[0]]"
        spots = "places" if kind == "made" else elsewhere
        begin = f"{obj}\n{target}\nspots = {spots}\n{OPEN_FIRST}{FIND}"
        steps = [begin]
        if kind == "made":
            state = named.get("state") or named["verb"]
            verb = STEPS[state][0] if state in STEPS else state
            steps += [f"Then, I need to {verb} the {{item}}. =>"]
        if kind == "two":
            steps += [f"Then, {PUT}"]
            steps += ["spots = spots[spots.index(place):]\nNow, I need to find a {obj}. =>"]
        steps += [f"Finally, {PUT}"]
        if again == NOT_PUT:
            steps[len(asked)] = f"{target}\n{steps[len(asked)]}"
    return [*steps, AGENT.end][min(len(asked), len(steps))]


def _copy(name: str, word: str) -> str:
    """The line that gives a variable a word of the task."""
    return f"{name} = ' {word}'[1:]"


def _look_for(request: str, printed: str, feedback: list[str]) -> str:
    if feedback and feedback[-1] == THE_END:
        return f"print({NOWHERE!r})\n{AGENT.end}"
    if feedback and feedback[-1] != NOT_THERE:
        return f"{printed}{AGENT.end}"
    return f"place = spots[{len(feedback)}]\nSo, I need to {request}. =>"


def _at_place(act: str, printed: str, feedback: list[str]) -> str:
    if not feedback:
        return "> go to {place} =>"
    seen = feedback[-1]
    # A thread before this one came here, or what was to be taken is called otherwise.
    if seen == NOTHING and feedback.count(NOTHING) <= TRIES:
        return "> examine {place} =>"
    if seen.endswith(" is closed."):
        return "> open {place} =>"
    if seen.startswith(("You pick up ", "You turn on ")):
        return f"{printed}{AGENT.end}"
    if number := re.search(r"\ba \{obj\} (\d+)", seen):
        return f"item = f'{{obj}} {number[1]}'\n> {act} =>"
    return f"print({NOT_THERE!r})\n{AGENT.end}"


def _make(verb: str, feedback: list[str]) -> str:
    state, tool = next((state, tool) for state, (done, tool) in STEPS.items() if done == verb)
    steps = [f"> go to {tool} =>", f"> {verb} {{item}} with {tool} =>"]
    return [*steps, f"print('The {{item}} is {state}.')\n{AGENT.end}"][min(len(feedback), 2)]


def _put(feedback: list[str]) -> str:
    if not feedback:
        return "> go to {target} =>"
    if feedback[-1].endswith(" is closed."):
        return "> open {target} =>"
    if feedback.count(NOTHING) > TRIES:
        return f"print({NOT_PUT!r})\n{AGENT.end}"
    if feedback[-1].startswith("You put "):
        return f"print('The {{item}} is in the {{target}}.')\n{AGENT.end}"
    return "> put {item} in/on {target} =>"

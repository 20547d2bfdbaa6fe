"""Teachers: they play TextCraft in the form that a model is taught, from what the model reads.

`speak_thread` is the teacher of the thread adapter: a function of one thread's context and sequence
to the text that comes next, up to the next listen mark. It never sees a variable's value, a parent
or the environment, so whatever it does, a model that reads the same text can learn to do.

`react_script` plays the same game in one line of context (ReAct, Yao et al. 2023, in the form of
ADaPT, appendix E): thoughts, actions, observations, no variables and no children.

The form of the threads (what is distilled; there is no few-shot prompt):

    the task           made = {...}; recipe = made['note block']
                       First, I need to do 1 x {recipe} =>
    I need to do 2 x craft 4 oak planks using 1 oak logs =>
                       for each ingredient: n = 2 * 1; First, I need {n} oak logs. =>
                       1 of 2; > craft ...; 2 of 2; > craft ...; print('I have oak planks.')
    I need 8 planks. =>
                       > get 8 planks =>Could not find planks<=  then a recipe is looked up and a
                       child does it; or Got ..., and nothing is left to do

The interpreter multiplies, divides and looks up; the model decides, copies and keeps to the form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from thread_kit.dialect import AGENT
from thread_kit.envs.textcraft.planner import TAGS, Recipe, is_member, members

MADE = "made = {c.split(' using ')[0].split(' ', 2)[2]: c for c in commands}"
RUNS = "runs = -(-{count} // int(recipe.split()[1]))"
DO = "First, I need to do {runs} x {recipe} =>"


class TeacherError(ValueError):
    """A teacher was asked to go on with a text that is not of its form."""


def speak_thread(text: str) -> str:
    """What comes next in a thread: `text` is its context and its sequence so far.

    Raises OracleError for a text that is not of the form that it teaches.
    """
    request, feedback = read(text)
    if goal := re.fullmatch(r"Goal: craft (.+)\.", request):
        return _task(goal[1], feedback)
    if need := re.fullmatch(r"I need (\d+) (.+)\.", request):
        return _need(int(need[1]), need[2], feedback)
    if do := re.fullmatch(r"I need to do (\d+) x (craft .+)", request):
        return _do(int(do[1]), Recipe.parse(do[2]), feedback)
    raise TeacherError(f"not a request of this form: {request!r}")


def read(text: str) -> tuple[str, list[str]]:
    """What a thread is asked for (the last line of its context), and what came back so far.

    Raises OracleError for a text without a context.
    """
    context, mark, Y = text.removeprefix("Prompt:\n").partition(f"\n\nResponse:\n{AGENT.start}\n")
    if not mark:
        raise TeacherError(f"no context in {text!r}")
    request = context.rsplit("\n", 1)[-1].removesuffix(AGENT.listen).rstrip()
    return request, [part.rsplit("=>", 1)[-1] for part in Y.split(f"{AGENT.close}\n")[:-1]]


def _task(goal: str, feedback: list[str]) -> str:
    if feedback:
        return AGENT.end
    return f"{MADE}\nrecipe = made[{goal!r}]\n{DO.replace('{runs}', '1')}"


def _need(count: int, item: str, feedback: list[str]) -> str:
    match feedback:
        case []:
            return f"> get {count} {item} =>"
        case [got] if got.startswith("Got "):
            return f"{_have(item)}{AGENT.end}"
        case [_]:
            return f"{_look_up(item)}\n{RUNS.replace('{count}', str(count))}\n{DO}"
    return f"{_have(_name(feedback[-1]))}{AGENT.end}"


def _look_up(item: str) -> str:
    if item not in TAGS:
        return f"recipe = made[{item!r}]"
    but = "" if is_member(f"white {item}", item) else f" and m != 'white {item}'"
    return f"recipe = [made[m] for m in made if m.endswith(' {item}'){but}][0]"


def _do(runs: int, recipe: Recipe, feedback: list[str]) -> str:
    had = [_name(reply) for reply in feedback if reply.startswith("I have ")]
    crafted = len(feedback) - len(had)
    if len(had) < len(recipe.inputs):
        count, item = recipe.inputs[len(had)]
        word = "Then" if had else "First"
        return f"n = {runs} * {count}\n{word}, I need {{n}} {item}. =>"
    if crafted < runs:
        counts = [count for count, _ in recipe.inputs]
        action = replace(recipe, inputs=tuple(zip(counts, had, strict=True)))
        return f"{crafted + 1} of {runs}\n> {action} =>"
    return f"{_have(recipe.output)}{AGENT.end}"


def _have(item: str) -> str:
    return f"print({f'I have {item}.'!r})\n"


def _name(reply: str) -> str:
    """The item of "I have oak planks."."""
    item = re.fullmatch(r"I have (.+)\.", reply)
    if not item:
        raise TeacherError(f"a child said {reply!r}")
    return item[1]


def react_script(goal: str, commands: Sequence[str]) -> list[str]:
    """The replies, call by call, of one ReAct trajectory that crafts `goal`."""
    made = {recipe.output: recipe for recipe in map(Recipe.parse, commands)}
    replies: list[str] = []
    for text in _react(made[goal], 1, made):
        if replies and not replies[-1].endswith(AGENT.listen):
            replies[-1] += text
        else:
            replies.append(text)
    return [*replies, AGENT.end]


def _react(recipe: Recipe, runs: int, made: dict[str, Recipe]) -> Iterator[str]:
    yield f"Think: I need to do {runs} x {recipe}\n"
    had: list[tuple[int, str]] = []
    for count, item in recipe.inputs:
        yield f"> get {runs * count} {item} =>"
        name = next((name for name in members(item, made) if name in made), None)
        if name:
            used = made[name]
            yield from _react(used, ceil(runs * count / used.count), made)
            yield f"Think: I have {name}, back to {recipe}\n"
        had.append((count, name or item))
    for run in range(runs):
        yield f"{run + 1} of {runs}\n> {replace(recipe, inputs=tuple(had))} =>"

"""Teachers: they play TextCraft in the form that a model is taught, from what the model reads.

`speak_thread` is the teacher of the thread adapter: a function of one thread's context and sequence
to the text that comes next, up to the next listen mark. It never sees a variable's value, a parent
or the environment, so whatever it does, a model that reads the same text can learn to do.

`react_script` plays the same game in one line of context (ReAct, Yao et al. 2023, in the form of
ADaPT, appendix G): thoughts, actions, observations, no variables and no children.

The form of the threads (what is distilled; there is no few-shot prompt):

    the task           made = {...}; recipe = made[' note block']
                       First, I need to do 1 x {recipe} =>
    I need to do 2 x craft 4 oak planks using 1 oak logs =>
                       for each ingredient: n = 2 * 1; First, I need {n} oak logs. =>
                       1 of 2; > craft ...; 2 of 2; > craft ...; print('I have oak planks.')
    I need 8 planks. =>
                       > get 8 planks =>Could not find planks<=  then a recipe is looked up and a
                       child does it; or Got ..., and nothing is left to do

A name is copied with the blank before it, so that it is spelt with the tokens that it has in the
text. What fails is tried again: a look-up under no recipe's name ("Again, I need to do ..."), an
ingredient of which the game had too little ("Again, I need ...").

The interpreter multiplies, divides and looks up; the model decides, copies and keeps to the form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from thread_kit.dialect import AGENT
from thread_kit.envs.textcraft.planner import TAGS, Recipe, is_member, members

MADE = "made = {' ' + c.split(' using ')[0].split(' ', 2)[2]: c for c in commands}"
RUNS = "runs = -(-{count} // int(recipe.split()[1]))"
DO = "I need to do {runs} x {recipe} =>"
NO_RECIPE = "There is no such recipe."
NONE = "I have no "
REFUSED = "Could not "
TRIES = 3
"""So often a thread looks the same thing up, or gets what is missing, before it gives up."""


class TeacherError(ValueError):
    """A teacher was asked to go on with a text that is not of its form."""


def speak_thread(text: str) -> str:
    """What comes next in a thread: `text` is its context and its sequence so far.

    Raises TeacherError for a text that is not of the form that it teaches.
    """
    request, feedback = read(text)
    if re.fullmatch(r"I need to do .+ x \{recipe\}", request):  # nothing was found under the name
        return f"print({NO_RECIPE!r})\n{AGENT.end}"
    if goal := re.fullmatch(r"Goal: craft (.+)\.", request):
        return _task(goal[1], feedback)
    if need := re.fullmatch(r"I need (\d+) (.+)\.", request):
        return _need(int(need[1]), need[2], feedback)
    if do := re.fullmatch(r"I need to do (\d+) x (craft .+)", request):
        return _do(int(do[1]), Recipe.parse(do[2]), feedback)
    raise TeacherError(f"not a request of this form: {request!r}")


def read(text: str) -> tuple[str, list[str]]:
    """What a thread is asked for (the last line of its context), and what came back so far.

    Raises TeacherError for a text without a context.
    """
    context, mark, Y = text.removeprefix("Prompt:\n").partition(f"\n\nResponse:\n{AGENT.start}\n")
    if not mark:
        raise TeacherError(f"no context in {text!r}")
    request = context.rsplit("\n", 1)[-1].removesuffix(AGENT.listen).rstrip()
    return request, [part.rsplit("=>", 1)[-1] for part in Y.split(f"{AGENT.close}\n")[:-1]]


def _task(goal: str, feedback: list[str]) -> str:
    do = DO.replace("{runs}", "1")
    if not feedback:
        return f"{MADE}\nrecipe = made[' {goal}']\nFirst, {do}"
    if feedback[-1] == NO_RECIPE and len(feedback) < TRIES:
        return f"recipe = made[' {goal}']\nAgain, {do}"
    return AGENT.end


def _need(count: int, item: str, feedback: list[str]) -> str:
    if not feedback or (feedback[-1] == NO_RECIPE and len(feedback) < 2 * TRIES):
        return f"> get {count} {item} =>"
    if feedback[-1].startswith("Got "):
        return f"{_have(item)}{AGENT.end}"
    if len(feedback) % 2:
        word = "First" if len(feedback) == 1 else "Again"
        return f"{_look_up(item)}\n{RUNS.replace('{count}', str(count))}\n{word}, {DO}"
    if name := _read_name(feedback[-1]):
        return f"{_have(name)}{AGENT.end}"
    return f"print({f'{NONE}{item}.'!r})\n{AGENT.end}"


def _look_up(item: str) -> str:
    if item not in TAGS:
        return f"recipe = made[' {item}']"
    but = "" if is_member(f"white {item}", item) else f" and m != ' white {item}'"
    return f"recipe = [made[m] for m in made if m.endswith(' {item}'){but}][0]"


def _do(runs: int, recipe: Recipe, feedback: list[str]) -> str:
    crafted = sum(reply.startswith("Crafted ") for reply in feedback)
    refused = [n for n, reply in enumerate(feedback) if reply.startswith(REFUSED)]
    if crafted == runs:
        return f"{_have(recipe.output)}{AGENT.end}"
    if len(refused) == TRIES:
        return f"print({f'{NONE}{recipe.output}.'!r})\n{AGENT.end}"
    # What was asked for since the game last refused, all of it anew: it does not say what it lacks.
    replies = feedback[refused[-1] + 1 :] if refused else feedback
    had = [_read_name(reply) for reply in replies if not reply.startswith("Crafted ")]
    if len(had) > len(recipe.inputs):
        raise TeacherError(f"not what the game says of a command: {replies[-1]!r}")
    if len(had) < len(recipe.inputs):
        count, item = recipe.inputs[len(had)]
        word = "Then" if had else "Again" if refused else "First"
        return f"n = {runs - crafted} * {count}\n{word}, I need {{n}} {item}. =>"
    names = [name or item for name, (_, item) in zip(had, recipe.inputs, strict=True)]
    counts = [count for count, _ in recipe.inputs]
    action = replace(recipe, inputs=tuple(zip(counts, names, strict=True)))
    return f"{crafted + 1} of {runs}\n> {action} =>"


def _have(item: str) -> str:
    return f"print({f'I have {item}.'!r})\n"


def _read_name(reply: str) -> str:
    """The item of "I have oak planks."; "" for "I have no oak planks.", and for anything else."""
    item = re.fullmatch(r"I have (?!no )(.+)\.", reply)
    return item[1] if item else ""


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

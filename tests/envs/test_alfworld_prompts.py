"""ALFWorld's few-shot prompts: every line of every example is true in a generated game."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from functools import cache

import pytest
from helpers.episodes import of_kind
from helpers.printed import Printed
from helpers.proofs import drop_shown_in_kind
from helpers.shown_games import SHOWN, ShownGame

from thread_kit.dialect import REFERENCE
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.benchmark import ALFWORLD
from thread_kit.envs.alfworld.env import AlfWorld
from thread_kit.envs.alfworld.generator import KINDS
from thread_kit.envs.env import Env, Step
from thread_kit.experiments.budgets import budget_of
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.common import add_verdicts
from thread_kit.prompt_check import check_prompt, speak_examples
from thread_kit.prompts import Prompt, PromptError, load_instructions, load_prompt
from thread_kit.requests import Status
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted

THREAD_SHOWN = {
    "pick": ("pick-103", "pick-100"),
    "clean": ("clean-108", "clean-189"),
    "heat": ("heat-262", "heat-122"),
    "cool": ("cool-124", "cool-201"),
    "look": ("look-115", "look-187"),
    "pick2": ("pick2-123", "pick2-157"),
}
"""Two of each type, with the task in ALFWorld's two wordings."""

PROVED_ABLATIONS = ["thread, no variables", "thread, whole sequence", "thread, as observed"]

needs_engine = pytest.mark.alfworld


pytestmark = pytest.mark.usefixtures("alfworld_process")


@cache
def thread_prompt(name: str) -> Prompt:
    return load_prompt(f"alfworld-{name}")


def act_for_child(context: str, env: Env) -> dict[str, object]:
    """What a thread with this context would do, for those that no example shows to the word."""
    for pattern, act in ACTS.items():
        if asked := re.search(pattern, context):
            return act(env, *asked.groups())
    raise AssertionError(context)


def visit(env: Env, place: str) -> str:
    seen = env.step(f"go to {place}").observation
    if seen == f"The {place} is closed.":
        seen = env.step(f"open {place}").observation
    return seen


def take_at(env: Env, place: str, obj: str) -> dict[str, object]:
    if not (there := re.search(rf"\ba ({obj} \d+)", visit(env, place))):
        return {}
    env.step(f"take {there[1]} from {place}")
    return {"item": there[1], "place": place}


def take_somewhere(env: InTurn, obj: str) -> dict[str, object]:
    return next(found for place in env.places if (found := take_at(env, place, obj)))


def use_at(env: Env, obj: str, place: str) -> dict[str, object]:
    if not (there := re.search(rf"\ba ({obj} \d+)", visit(env, place))):
        return {}
    env.step(f"use {there[1]}")
    return {"lamp": there[1], "place": place}


def use_somewhere(env: InTurn, obj: str) -> dict[str, object]:
    return next(found for place in env.places if (found := use_at(env, obj, place)))


def treat(env: Env, verb: str, item: str, tool: str) -> dict[str, object]:
    env.step(f"go to {tool}")
    env.step(f"{verb} {item} with {tool}")
    return {"item": item}


def put_in(env: Env, item: str, target: str) -> dict[str, object]:
    visit(env, target)
    env.step(f"put {item} in/on {target}")
    return {"item": item, "target": target}


ACTS = {
    r"check the (.+) for (?:the|another) (\w+)\. =>$": take_at,
    r"look for (?:the|another) (\w+) (?:in .+ )?and take it\. =>$": take_somewhere,
    r"look for the (\w+) (?:in .+ )?and switch it on\. =>$": use_somewhere,
    r"find the (\w+) at the (.+) and switch it on\. =>$": use_at,
    r"(clean|heat|cool) the (.+) (?:at|with) the (.+)\. =>$": treat,
    r"put the (.+) in the (.+)\. =>$": put_in,
}


class InTurn(Env):
    """Two games, one after the other: the second begins when the first is won."""

    name = "alfworld"

    def __init__(self, *names: str):
        self.task = {}
        self.left = list(names)
        self.won = 0
        self.begin()

    def begin(self) -> None:
        self.game = AlfWorld("generated", self.left.pop(0), max_actions=None)
        self.game.reset()

    @property
    def places(self) -> list[str]:
        if self.game.won:
            self.begin()
        target = self.game.goal.rstrip(".").rpartition(" ")[2]
        return sorted(self.game.variables["places"], key=lambda p: p.startswith(target))

    def step(self, action: str) -> Step:
        if self.game.won:
            self.begin()
        step = self.game.step(action)
        self.won += step.terminated
        return step

    def reset(self) -> str:
        raise NotImplementedError

    def again(self) -> Env:
        raise NotImplementedError

    def oracle(self) -> None:
        return None


# THREAD


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "look"])
def test_threads_search_places_of_the_targets_kind_too(kind):
    """As those of G.3 do, where what is looked for may lie already; of two, not the target."""
    games = [e for e in thread_prompt(kind).examples if "Your task is to" in e.context]
    assert len(games) == 2
    for example in games:
        room = re.findall(r"\ban? (\w+ \d+)", example.context)
        target = re.search(r"^target = '((\w+) \d+)'$", example.response, re.M)
        places = re.search(r"^places = (\[.*\])$", example.response, re.M)
        assert target
        assert places
        left_out = {place for place in room if place.startswith(f"{target[2]} ")}
        left_out -= set(re.findall(r"'([^']+)'", places[1]))
        assert left_out <= ({target[1]} if kind == "pick2" else set())


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["thread", *PROVED_ABLATIONS])
def test_a_thread_prompt_is_proved_in_two_generated_games(method, kind):
    made = load_method(method, f"alfworld-{kind}")
    env = InTurn(*THREAD_SHOWN[kind])
    problems = check_prompt(made.prompt, env, act_for_child, **made.fixed)
    assert drop_shown_in_kind(problems, made.prompt, ACTS) == []
    assert env.won == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["thread", *PROVED_ABLATIONS])
def test_a_thread_prompt_shows_two_rooms_and_the_way_back_from_a_mistake(method, kind):
    prompt = load_method(method, f"alfworld-{kind}").prompt
    rooms = [e.context for e in prompt.examples if e.context.startswith("You are in")]
    assert len(set(rooms)) == 2
    assert prompt.text.count("=>Nothing happens.<=") == 1
    others = [e for e in prompt.examples if e.context not in rooms]
    assert all("My part is to " in e.response for e in others)


@pytest.mark.parametrize("kind", KINDS)
def test_a_thread_prompt_shows_closed_and_empty_places_long_searches_and_both_wordings(kind):
    examples = thread_prompt(kind).examples
    tasks = [e.context.rpartition("Your task is to: ")[2] for e in examples[:2]]
    assert len({task.split(" ")[0] + str(" it in " in task) for task in tasks}) == 2 or {
        task.split(" ")[1] for task in tasks
    } == {"a", "some"}
    checks = "\n".join(e.response for e in examples if e.context.startswith("I need to check"))
    assert "\n> open {place} =>" in checks
    assert kind == "look" or "\nseen = []\nnumber = 'no number'\n" in checks
    assert re.search(r"\nnumber = [2-9]\n", checks) or kind in ("heat", "pick", "look")
    looked = [e.response.count("So, I need to") for e in examples]
    assert max(looked) >= 6
    if kind in ("clean", "heat", "cool", "pick"):  # a target that the search has opened
        puts = [e.response for e in examples if e.context.startswith("I need to put")]
        assert any("> go to {target} =>The {target} is open." in put for put in puts)


@needs_engine
def test_the_check_finds_what_is_not_true_in_the_game():
    prompt = thread_prompt("clean")
    wrong = [
        type(one)(one.context, one.response.replace("a cloth 1, and", "a cloth 3, and"))
        for one in prompt.examples
    ]
    problems = check_prompt(Prompt("p", tuple(wrong)), InTurn(*THREAD_SHOWN["clean"]))
    assert "a cloth 1, and a {obj} 1" in problems[0]


def test_the_task_general_pair_shows_nothing_that_is_not_proved_with_a_type():
    proved = {example for kind in KINDS for example in thread_prompt(kind).examples}
    main, others = thread_prompt("main"), thread_prompt("others")
    assert main.examples == tuple(thread_prompt(kind).examples[0] for kind in KINDS)
    assert set(others.examples) <= proved - set(main.examples)
    # as docs/fidelity/thread.md counts them
    assert (len(main.examples), len(others.examples), len(set(others.examples))) == (6, 18, 18)


def forms(prompt: Prompt) -> set[str]:
    """What the threads of a prompt ask of a child, as patterns of its context."""
    text = "\n".join(example.response for example in prompt.examples)
    asked = re.findall(r"^(?!>)\w+, (.+?=>)", text, re.MULTILINE)
    return {"(.+)".join(map(re.escape, REFERENCE.split(form)[::2])) for form in asked}


def test_the_task_general_pair_asks_for_what_the_others_show_and_for_nothing_else():
    main, others = thread_prompt("main"), thread_prompt("others")
    contexts = [example.context for example in others.examples]
    asked = forms(main) | forms(others)
    assert len(asked) == 10
    for form in asked:
        assert any(re.fullmatch(form, context) for context in contexts), form
    for context in contexts:
        assert any(re.fullmatch(form, context) for form in asked), context


def either(shown: Callable[[str], str], unshown: Callable[[str], str]) -> Callable[[str], str]:
    """What the examples say next; of a thread that none shows, the other."""

    def speak(text: str) -> str:
        try:
            return shown(text)
        except PromptError:
            return unshown(text)

    return speak


@needs_engine
def test_the_task_general_pair_wins_a_game_that_it_shows():
    method = load_method("thread, task-general", "alfworld-clean")
    main = method.fixed["main_prompt"]
    env = AlfWorld("generated", THREAD_SHOWN["clean"][0])
    shown = speak_examples([main, method.prompt])
    unshown = re.compile(r"check the (\w+ \d+) for the \w+\. =>\n\nResponse:\n#START#\n(.*)", re.S)

    def speak(text: str) -> str:
        place, written = unshown.search(text.rpartition("Prompt:\n")[2]).groups()
        if not written:
            return f"> go to {place} =>"
        if written.endswith("is closed.<=\n"):
            return f"> open {place} =>"
        return "print('There is no {obj} at the {place}.')\n#END#"

    episode = play(method.name, "clean", env, either(shown, speak))
    assert env.won
    prompts = [thread.prompt for thread in episode.threads.values()]
    assert prompts == [main.sha256] + [method.prompt.sha256] * (len(prompts) - 1)
    assert load_method(method.name, "alfworld-look").fixed == method.fixed


# The other methods

ACT = re.compile(r"^> (.+?) =>(.*?)<=$", re.MULTILINE)


def steps(text: str) -> list[tuple[str, str]]:
    """(action, observation) of a text."""
    return ACT.findall(text)


def play(method: str, kind: str, env: Env, speak: Callable[[str], str]) -> Episode:
    made = load_method(method, f"alfworld-{kind}")
    return made(ScriptedEngine(speak), env, seed=0, path=None).run(progress=False)


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
def test_both_examples_of_a_react_prompt_are_won_games(kind):
    prompt = load_prompt(f"react/alfworld-{kind}")
    assert len(prompt.examples) == 2
    for name, example in zip(SHOWN[kind], prompt.examples, strict=True):
        env = ShownGame(name)
        episode = play("react", kind, env, speak_examples([prompt]))
        assert env.won
        text = episode.threads[0].sequence.text
        assert f"{text}#END#" == example.response  # nobody asks a winner
        assert episode.header["prompts"].keys() == {prompt.sha256}


@needs_engine
def test_what_react_says_of_itself_ends_no_game():
    """As in the code of ReAct and of Reflexion (StateFlow paper, B.1): the environment does."""
    said = ["Task failed!\n#END#", " think: I am done. Task completed! =>", "#END#", " look =>"]
    words = iter(said)
    env = AlfWorld("generated", SHOWN["pick"][0])
    episode = play("react", "pick", env, lambda text: next(words, "> look =>"))
    text = episode.threads[0].sequence.text
    # Behind the end mark stands ">", as before every reply in that code, and what follows is done.
    thought = "> think: I am done. Task completed! =>OK.<=\n"
    assert text.startswith(f"Task failed!\n#END#\n{thought}#END#\n> look =>You are")
    assert [event.action for event in of_kind(episode, Acted)] == ["look"] * 50
    assert episode.last_action[1].truncated  # the game's fifty actions
    words = iter(["Task failed!\n#END#"])
    episode = play("react-by-type", "pick", env.again(), lambda text: next(words))
    assert (episode.status, episode.threads[0].sequence.text) == (
        Status.ENDED,
        "Task failed!\n#END#",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_an_executor_by_type_has_reacts_examples_and_judges_itself(kind):
    react, executor = (load_method(name, f"alfworld-{kind}") for name in ("react", "react-by-type"))
    assert "Task completed" not in react.prompt.text
    assert executor.prompt.closing == load_prompt("adapt/alfworld-executor").closing
    for shown, judged in zip(react.prompt.examples, executor.prompt.examples, strict=True):
        assert judged.context == shown.context
        body = shown.response.removesuffix("#END#")
        assert judged.response == f"{body}Task completed!\n#END#"


def test_a_machine_puts_a_wrong_thing_back_and_gives_up_when_the_model_repeats_itself():
    replies = [
        *("The object is: mug. =>", "On the desk. =>", "> go to desk 1 =>"),
        *("> take pen 1 from desk 1 =>", "> put pen 1 in/on desk 1 =>"),
        *("> go to bed 1 =>",) * 3,
    ]
    seen = [
        "On the desk 1, you see a pen 1.",
        "You pick up the pen 1 from the desk 1.",
        "You put the pen 1 in/on the desk 1.",
        *("On the bed 1, you see nothing.",) * 3,
    ]
    text = "".join(f"{reply}{back}<=\n" for reply, back in zip(replies[2:], seen, strict=True))
    context = "You are in a room.\nYour task is to: put a mug in shelf."
    env = Printed(context, [*steps(text), ("never", "reached")], wins=True)
    episode = play("sf_chat", "pick", env, script(replies))
    text = episode.threads[0].sequence.text
    assert re.findall(r"^\[(\w+)\]", text, re.MULTILINE) == [
        *("Init", "Plan", "Pick", "Pick", "Pick_Error"),
        *("Pick", "Pick", "Pick"),
    ]
    assert episode.status is Status.ENDED
    assert env.left == [("never", "reached")]


def script(replies: list[str]) -> Callable[[str], str]:
    left = iter(replies)
    return lambda text: next(left)


ROLES = ["atomic", "executor"]


@needs_engine
def test_every_atomic_skill_is_true_in_its_game():
    atomic, hybrid = (load_prompt(f"adapt/alfworld-{role}").examples for role in ROLES)
    assert hybrid[: len(atomic)] == atomic
    for kind, own in zip(("heat", "look"), hybrid[len(atomic) :], strict=True):
        assert own.context == AlfWorld("generated", SHOWN[kind][0]).reset()
        whole = add_verdicts(load_prompt(f"react/alfworld-{kind}")).examples[0]
        assert own.response == whole.response  # ReAct's asks in the other words (`ShownGame`)
    rooms = rooms_by_text()
    for example in atomic:
        room, _, task = example.context.partition("\nYour task is to: ")
        env = AlfWorld("generated", rooms[room])
        env.reset()
        shown = steps(example.response)
        took = re.findall(r"take .+? from .+?(?= =>)", load_prompt(won_with(room)).text)
        held = re.search(r"You are carrying: an? (.+?)\.", example.response)
        for take in [take for take in took if held and f"take {held[1]} from" in take][:1]:
            place = take.partition(" from ")[2]
            env.step(f"go to {place}")
            env.step(f"open {place}")
            if shown[0][0] != take:
                env.step(take)
        assert [(act, env.step(act).observation) for act, _ in shown] == shown, task


def rooms_by_text() -> dict[str, str]:
    """The games by the first line of their contexts, as the proved prompts have them."""
    return {
        example.context.partition("\n")[0]: name
        for kind, pair in SHOWN.items()
        for name, example in zip(pair, load_prompt(f"react/alfworld-{kind}").examples, strict=True)
    }


def won_with(room: str) -> str:
    """ReAct's prompt that has a game of this room."""
    return f"react/alfworld-{rooms_by_text()[room].partition('-')[0]}"


TASK = re.compile(
    r"(find and take (?:a|another)|put the|clean the|heat the|cool the|find and use the) "
    r"(?:cleaned |heated |cooled )?(\w+) (?:from|in|with|on) (\w+)"
)


def executor(planned: set[str], places: dict[str, str]) -> Callable[[str], str]:
    """Does what is atomic in all places of a kind, and fails at what the planner shows a plan for.

    places: where the things of a game are, by their kinds; nobody looks for them elsewhere.
    """

    def speak(text: str) -> str:
        asked, _, Y = text.rpartition("Prompt:\n")[2].partition("\n\nResponse:\n#START#\n")
        room, _, task = asked.removesuffix(".").partition("\nYour task is to: ")
        if asked in planned:
            return "Task failed!\n#END#"
        if alone := re.fullmatch(r"find and take (?:a|another) (\w+)", task):
            task += f" from {places[alone[1]]}"
        task = re.sub(
            r"^use the desklamp .+", f"find and use the desklamp on {places['lamp']}", task
        )
        verb, thing, kind = TASK.match(task).groups()
        verb = {"find and take": "take", "find and use": "use"}.get(verb.rpartition(" ")[0], verb)
        verb = verb.removesuffix(" the")
        done = steps(Y)
        last = done[-1][1] if done else ""
        if re.match(rf"You (pick|{verb}|turn)", last) and last.split()[1] == SAID.get(verb, verb):
            return "Task completed!\n#END#"
        there = re.search(rf"\b{thing} \d", last if verb in ("take", "use") else Y)
        if last.endswith("is closed.") and verb in ("take", "put", "use"):
            return f"> open {done[-1][0].removeprefix('go to ')} =>"
        here = [act.removeprefix("go to ") for act, _ in done if act.startswith(f"go to {kind} ")]
        if here and there:
            behind = {"take": f" from {here[-1]}", "put": f" in/on {here[-1]}", "use": ""}
            return f"> {verb} {there[0]}{behind.get(verb, f' with {here[-1]}')} =>"
        left = [place for place in sorted(re.findall(rf"{kind} \d", room)) if place not in here]
        return f"> go to {left[0]} =>" if left else "Task failed!\n#END#"

    return speak


SAID = {"take": "pick", "use": "turn"}

TWO = {
    "put two": ["find and take a mug", "put the mug in cabinet", "find and take another mug"],
    "another": [f"find and take another mug from {kind}" for kind in ("sinkbasin", "countertop")],
}
"""Plans for two things, which the prompt has no example of (ADaPT paper, appendix A)."""


def plan_two(asked: str, *, detailed: bool) -> str | None:
    """The plan for what the planner's prompt does not show; detailed: as of Plan-and-Execute."""
    key = next((key for key in TWO if key in asked.rpartition("\n")[2]), None)
    if key is None:
        return None
    listed, order = list(TWO[key]), "(Step 1 OR Step 2)"
    if key == "put two":
        listed[2:] = [*(TWO["another"] if detailed else listed[2:]), "put the mug in cabinet"]
        order = "(Step 1 AND Step 2 AND Step 3 AND Step 4)"
    if detailed:
        order = "(Step 1 AND Step 2 AND (Step 3 OR Step 4) AND Step 5)"
    lines = [f"Step {n}: {step}\n" for n, step in enumerate(listed, 1)]
    return f"{''.join(lines)}Execution order: {order}\n#END#"


def play_plans(method: str, kind: str, planner: Prompt) -> tuple[AlfWorld, Episode]:
    """The first game of a type, by a scripted executor and the plans of a prompt."""
    plan = speak_examples([planner])
    react = load_prompt(f"react/alfworld-{kind}").examples[0]
    taken = re.search(r"take (\w+) \d+ from (\w+) \d+ =>", react.response)
    places = {taken[1]: taken[2], "lamp": "sidetable"}
    planned = {one.context for one in planner.examples}
    env = AlfWorld("generated", SHOWN[kind][0], max_actions=None)

    def speak(text: str) -> str:
        asked = text.rpartition("Prompt:\n")[2].partition("\n\nResponse:\n")[0]
        if text.startswith(planner.text):
            return plan_two(asked, detailed=method != "adapt") or plan(text)
        if plan_two(asked, detailed=False) and " from " not in asked:
            return "Task failed!\n#END#"
        return executor(planned, places)(text)

    return env, play(method, kind, env, speak)


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
def test_the_planners_examples_lead_to_the_goal(kind):
    env, episode = play_plans("adapt", kind, load_prompt("adapt/alfworld-planner"))
    assert env.won
    assert episode.reward == 1


def test_the_planner_thinks_before_each_step_and_tries_four_kinds_of_places():
    """ADaPT paper, appendix G."""
    examples = load_prompt("adapt/alfworld-planner").examples
    for example in examples:
        lines = example.response.splitlines()[:-2]
        assert [line[:4] for line in lines] == ["thin", "Step"] * (len(lines) // 2) + ["thin"]
    order = "Execution order: (Step 1 OR Step 2 OR Step 3 OR Step 4)"
    assert [one.context for one in examples if order in one.response] == [examples[-1].context]


def test_a_plan_to_find_something_covers_all_places_of_the_kinds_that_it_names():
    """ADaPT paper, appendix G: "from desk", and not from each of 7 of 29 places."""
    for name in ("adapt/alfworld-planner", "plan_and_execute/alfworld"):
        for example in load_prompt(name).examples:
            room = example.context.partition("\n")[0]
            kinds = re.findall(
                r"^Step \d+: find and \w+ .+ (?:from|on) (.+)$", example.response, re.MULTILINE
            )
            assert kinds or name.startswith("adapt")
            for kind in kinds:
                assert re.search(rf"\b{kind} 1\b", room), kind
            assert not re.search(r"^Step \d+: .*\d", example.response, re.MULTILINE)


def test_the_executor_goes_through_all_places_of_a_kind_and_checks_what_it_assumes():
    examples = load_prompt("adapt/alfworld-atomic").examples
    for example in examples:
        acts = [act for act, _ in steps(example.response)]
        if kind := re.search(r"find and take .+ from (\w+)\.$", example.context):
            room = re.findall(rf"{kind[1]} \d", example.context.partition("\n")[0])
            gone = [act.removeprefix("go to ") for act in acts if act.startswith("go to")]
            assert gone == sorted(room)
        else:  # appendix A, Table 5: "assuming that the robot is carrying an object"
            assert acts[1] == "inventory"
    assert all(one.response.endswith("Task completed!\n#END#") for one in examples)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("alfworld-atomic", ("Task completed!", "Task failed!")),
        ("alfworld-executor", ("Task completed!", "Task failed!")),
        ("alfworld-planner", ("one thing", "brackets")),
        ("webshop-executor", ("Task completed!", "Task failed!", "clicked")),
        ("webshop-planner", ("module", "before", "execution order")),
    ],
)
def test_what_adapt_is_told_stands_behind_its_examples(name, said):
    """ADaPT paper, appendix G; of the executor in a household its released code."""
    prompt = load_prompt(f"adapt/{name}")
    told = prompt.text.rpartition("#END#\n\n\n")[2]
    assert told == f"Instructions:\n{prompt.closing}\n\n\n"
    assert all(words in told for words in said)


def longest_searches(prompt: Prompt) -> list[int]:
    """Of each example, to how many places it goes before it has taken something."""
    taken = [re.split(r"^> take ", one.response, flags=re.MULTILINE) for one in prompt.examples]
    return [max(part.count("> go to ") for part in parts[:-1] or parts) for parts in taken]


def test_searches_are_as_long_as_in_the_released_prompts():
    """The longest of a type before a take, in ADaPT's code, whose ReAct games are ReAct's."""
    released = {"pick": 8, "clean": 8, "heat": 3, "cool": 10, "look": 7, "pick2": 3}
    for kind, length in released.items():
        assert max(longest_searches(load_prompt(f"react/alfworld-{kind}"))) >= length
    assert sorted(longest_searches(load_prompt("decomp/alfworld-find")))[-2:] == [7, 7]


@needs_engine
@pytest.mark.parametrize("kind", KINDS)
def test_the_plans_that_never_change_lead_to_the_goal(kind):
    env, episode = play_plans("plan-and-execute", kind, load_prompt("plan_and_execute/alfworld"))
    assert env.won
    asked = [one for one in episode.threads.values() if one.parent == 0]
    assert {one.prompt for one in asked} == {load_prompt("adapt/alfworld-executor").sha256}


@needs_engine
@pytest.mark.parametrize("game", ["clean-101", "heat-108", "cool-102", "look-107", "pick2-101"])
def test_the_handlers_of_decomp_win_the_games_that_they_show(game):
    kind = game.partition("-")[0]
    method = load_method("decomp", f"alfworld-{kind}")
    prompts = [method.prompt, *method.fixed["prompts"]]
    env = AlfWorld("generated", game)
    episode = play("decomp", kind, env, speak_examples(prompts))
    assert env.won
    room = env.reset().partition("\n")[0]
    examples = [example for prompt in prompts for example in prompt.examples]
    shown = {one.response for one in examples if one.context.startswith(f"{room}\n")}
    assert {one.sequence.text for one in episode.threads.values()} == shown


def test_every_example_of_decomp_and_tdag_is_of_one_of_these_games():
    rooms = rooms_by_text()
    played = {"clean-101", "heat-108", "cool-102", "look-107", "pick2-101"}
    for name in ("decomp", "tdag"):
        method = load_method(name, "alfworld-heat")
        own = [method.prompt, *method.fixed["prompts"]]
        own = [prompt for prompt in own if not prompt.name.startswith("adapt/")]
        for prompt in own:
            lines = [example.context.splitlines() for example in prompt.examples]
            found = [[rooms[line] for line in one if line in rooms] for one in lines]
            assert {len(one) for one in found} == {1}
            assert {game for one in found for game in one} <= played, prompt


DEEDS = ("take", "put", "heat", "use", "open drawer 4")  # the last one finds nothing


@needs_engine
@pytest.mark.parametrize("game", ["heat-108", "look-107", "pick2-101"])
def test_tdags_decomposer_and_generator_lead_to_the_goal(game):
    """Its agents do what ReAct's example of the game does, one deed each, or fail at it."""
    kind = game.partition("-")[0]
    method = load_method("tdag", f"alfworld-{kind}")
    generator, agent = method.fixed["prompts"]
    examples = speak_examples([method.prompt, generator])
    env = AlfWorld("generated", game)
    context = env.reset()
    won = load_prompt(f"react/alfworld-{kind}").examples[SHOWN[kind].index(game)]
    shown = next(one.response for one in method.prompt.examples if one.context == context)
    acts = [action for action, seen in steps(won.response) if seen != "Nothing happens."]
    results = re.findall(r"^result =>(.+?)<=$", shown, re.MULTILINE | re.DOTALL)

    def speak(text: str) -> str:
        if not text.startswith(agent.text):
            return examples(text)
        done = steps(text.removeprefix(agent.text))
        if done and done[-1][0].startswith(DEEDS):
            return f"{results.pop(0)}\n#END#"
        return f"> {acts.pop(0)} =>"

    episode = play("tdag", kind, env, speak)
    assert env.won
    assert (acts, len(results)) == ([], 1)  # the last agent has won, and nobody asks it more
    text = episode.threads[0].sequence.text.removesuffix("Task completed!<=\n")
    assert shown.startswith(f"{text}{results[0]}<=\n")


@needs_engine
def test_the_trials_that_reflexion_shows_went_as_it_shows_them():
    rooms = rooms_by_text()
    for example in load_prompt("reflexion/alfworld").examples:
        env = AlfWorld("generated", rooms[example.context.partition("\n")[0]])
        assert example.context.startswith(env.reset())
        for action, observation in steps(example.context):
            assert env.step(action).observation == observation
        assert not env.won


@pytest.mark.parametrize("name", ["plan-and-execute", "decomp", "tdag"])
def test_a_method_with_prompts_for_all_types_travels_to_other_processes(name):
    for kind in KINDS:
        made = load_method(name, f"alfworld-{kind}")
        assert pickle.loads(pickle.dumps(made)).prompt == made.prompt


@pytest.mark.parametrize("name", ALFWORLD.methods)
def test_the_variants_are_there_for_every_type_and_on_alfworld_only(name):
    for kind in KINDS:
        made = load_method(name, f"alfworld-{kind}")
        assert made.name == name
        assert pickle.loads(pickle.dumps(made)).prompt == made.prompt  # it travels, too
    with pytest.raises(ValueError, match=re.escape(f"no method '{name}' on textcraft")):
        load_method(name, "textcraft")


SHARING = ("react-hybrid", "try again", "plan-and-execute", "reflexion", "adapt")
BY_TYPE = tuple(
    f"{name}-by-type" for name in ("react", "try-again", "plan-and-execute", "reflexion", "adapt")
)


def executor_of(name: str, kind: str) -> tuple[str, int]:
    """The name of the executor's prompt, and its iterations."""
    method = load_method(name, f"alfworld-{kind}")
    keywords = method.fixed["program"].keywords
    actor = keywords.get("actor")
    prompt = keywords.get("executor", method.prompt)
    assert budget_of(name, "alfworld")["actions"].value is None
    return prompt.name, (actor.keywords if actor else keywords)["iterations"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_methods_of_the_adapt_paper_share_one_executor(kind):
    """ADaPT paper, section 4.2 and Table 1; Table 6; section 6.2, Figure 5."""
    for name in SHARING:
        assert executor_of(name, kind) == ("adapt/alfworld-executor", 60 if "react" in name else 20)
    for name in BY_TYPE:
        assert executor_of(name, kind) == (f"react/alfworld-{kind}", 60 if "react" in name else 20)
    for name in ("react-atomic", "adapt-atomic"):
        assert executor_of(name, kind)[0] == "adapt/alfworld-atomic"


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("examples", ["alfworld-heat", "textcraft"])
def test_d_max_has_a_name(depth, examples):
    method = load_method(f"adapt-d{depth}", examples)
    assert method.fixed["program"].keywords["max_depth"] == depth
    assert method.prompt == load_method("adapt", examples).prompt


WORDINGS = {
    "clean": ("put a clean", "clean some"),
    "heat": ("put a hot", "heat some"),
    "cool": ("put a cool", "cool some"),
    "look": ("look at", "examine the"),
}


@pytest.mark.parametrize("kind", WORDINGS)
def test_both_wordings_of_a_task_are_shown(kind):
    """As in the released examples of ReAct and THREAD, and in StateFlow's Table 11."""
    plans = load_instructions("stateflow/alfworld")[f"Plan {kind}"].text
    for text in (load_prompt(f"react/alfworld-{kind}").text, thread_prompt(kind).text, plans):
        assert all(f"Your task is to: {words}" in text for words in WORDINGS[kind])

"""AutoGuide: what a pair of trajectories teaches, and which guidelines an agent reads where."""

from __future__ import annotations

import re
from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import Lock, play

from thread_kit.dialect import AGENT
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import AlfWorld
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.envs.webshop.env import WebShop
from thread_kit.experiments.memories import (
    list_shown_guidelines,
    main,
    make_guidelines,
    make_log,
    make_skills,
    read_steps,
)
from thread_kit.experiments.memory_builders import load_guides
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.autoguide import HEADING, autoguide, choose, deviate, extract_guideline
from thread_kit.methods.memory import Guideline, GuidelineMemory, read_records, write_records
from thread_kit.paths import resource
from thread_kit.prompts import Example, Prompt, load_prompt
from thread_kit.requests import Status
from thread_kit.trace.events import Acted

ROLES = {
    name: Prompt(name, (Example(name, "#END#"),))
    for name in ("identify", "match", "select", "extract")
}
MEMORY = GuidelineMemory(
    [
        *(Guideline("Closed.", f"Rule {n}.") for n in range(1, 6)),
        Guideline("Open.", "Go in."),
        Guideline("Open.", "Go in."),
    ]
)
WON = (("> look", "A lock."), ("> push", "It moves."), ("> open", "It opens."))
LOST = (("> look", "A lock."), ("> pull", "Nothing happens."))


def by_role(**replies):
    """A script for all roles, each with its replies in order; "act" is the agent."""
    left = {role: list(said) for role, said in replies.items()}

    def speak(text):
        role = next((name for name, prompt in ROLES.items() if text.startswith(prompt.text)), "act")
        return left[role].pop(0)

    return speak


def guide(speak, **options):
    roles = {name: ROLES[name] for name in ("identify", "match", "select")}
    program = partial(autoguide, **{"memory": MEMORY, **roles, **options})
    return play(program, speak, env=Lock(tries=2), prompts=list(roles.values()), new_tokens=10**5)


# The agent


def test_each_action_is_taken_with_the_guidelines_of_its_own_context():
    episode = guide(
        by_role(
            identify=["Closed.#END#", "Half open.#END#"],
            match=["2#END#"],
            select=["4, 2, 9, 1#END#"],
            act=["> open =>", "> open =>"],
        ),
        k=2,
    )
    assert episode.reward == 1
    # Algorithm 2: the context stays in the trajectory, its guidelines do not
    first, second = (
        t.sequence.text for t in episode.threads.values() if HEADING in t.sequence.text
    )
    step = "> open =>Nothing happens.<=\n"
    assert first == f"Context: Closed.\n{HEADING}\n- Rule 4.\n- Rule 2.\n{step}"
    assert second == (
        f"Context: Closed.\n{step}Context: Open.\n{HEADING}\n- Go in.\n> open =>It opens.<=\n"
    )
    assert "1. Closed.\n2. Open.\nContext: Half open." in "".join(
        thread.context.text for thread in episode.threads.values()
    )


def test_where_no_context_is_known_the_agent_has_no_guidelines():
    episode = guide(
        by_role(identify=["New.#END#"] * 2, match=["none#END#"] * 2, act=["> open =>"] * 2)
    )
    assert episode.reward == 1
    texts = [thread.sequence.text for thread in episode.threads.values()]
    assert "Context: New.\n> open =>Nothing happens.<=\n" in texts
    assert HEADING not in "".join(texts)


def test_what_was_done_before_is_read_again_with_other_guidelines():
    episode = guide(
        by_role(identify=["Open.#END#"] * 2, act=["think: hm.\n> open =>", "> open =>"])
    )
    assert [event.action for event in of_kind(episode, Acted)] == ["open", "open"]
    told = f"{HEADING}\n- Go in.\n"
    step = "think: hm.\n> open =>Nothing happens.<=\n"
    texts = [thread.sequence.text for thread in episode.threads.values()]
    assert f"Context: Open.\n{step}Context: Open.\n{told}> open =>It opens.<=\n" in texts
    identified = [
        thread.context.text
        for thread in episode.threads.values()
        if thread.prompt == ROLES["identify"].sha256
    ]
    assert identified[1].startswith(
        "Prompt:\nA lock.\nTask: open it.\nContext: Open.\nthink: hm.\n> open =>Nothing"
    )


def test_it_ends_with_its_iterations_or_where_the_agent_ends():
    speak = by_role(identify=["Open.#END#"] * 3, act=["> push =>"] * 3)
    assert guide(speak, iterations=3).status is Status.OUT_OF_CALLS
    speak = by_role(identify=["Open.#END#"], act=["Task failed!\n#END#"])
    assert guide(speak).status is Status.ENDED


def test_where_reacts_own_word_ends_nothing_the_guided_agent_goes_on_as_well():
    """As `react` does on ALFWorld and WebShop, whose examples it reads."""
    replies = ["> pull =>", "Task completed!\n#END#", "#END#", "> open =>", "> open =>"]
    said = {"identify": ["Open.#END#"] * 5, "act": replies}
    episode = guide(by_role(**said), judges=False)
    assert episode.reward == 1
    texts = [thread.sequence.text for thread in episode.threads.values()]
    assert any("Task completed!\n#END#\n>#END#\n>> open =>" in text for text in texts)
    assert guide(by_role(**said)).reward == 0
    for name in ("alfworld-heat", "webshop"):
        assert load_method("autoguide", name).fixed["program"].keywords["judges"] is False


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("2, 1", ["b", "a"]),
        ("none", []),
        ("None of the 3 fits.", []),
        ("3 and 3", ["c"]),
        ("0 4 -1", ["a"]),
        ("1 2 3", ["a", "b"]),
    ],
)
def test_items_are_chosen_by_number(reply, chosen):
    assert choose(["a", "b", "c"], reply, 2) == chosen


def test_k_is_two_as_in_the_paper():
    """Appendix B, Tables 7 and 8."""
    said = {"identify": ["Closed.#END#"], "select": ["5, 4, 3#END#"], "act": ["> open =>"]}
    texts = [t.sequence.text for t in guide(by_role(**said), iterations=1).threads.values()]
    assert any(f"{HEADING}\n- Rule 5.\n- Rule 4.\n> open" in text for text in texts)


# Extraction


def test_a_guideline_is_learnt_of_the_first_step_in_which_a_pair_differs():
    assert deviate(WON, LOST) == 1
    assert deviate(WON, WON[:2]) == 2
    roles = {name: ROLES[name] for name in ("identify", "match", "extract")}
    program = partial(extract_guideline, won=WON, lost=LOST, known=("Open.", "Closed."), **roles)
    speak = by_role(identify=["Shut.#END#"], match=["2#END#"], extract=["When shut,\npush.#END#"])
    episode = play(program, speak, env=Lock(), prompts=list(roles.values()), new_tokens=10**5)
    contexts = [thread.context.text for thread in episode.threads.values()]
    assert contexts[1] == (
        "Prompt:\nA lock.\nTask: open it.\n> look =>A lock.<=\n\nResponse:\n#START#\n"
    )
    assert contexts[3] == (
        "Prompt:\nA lock.\nTask: open it.\n"
        "Failed:\n> look =>A lock.<=\n> pull =>Nothing happens.<=\n"
        "Successful:\n> look =>A lock.<=\n> push =>It moves.<=\n> open =>It opens.<=\n"
        "Context: Closed.\n\nResponse:\n#START#\n"
    )


@pytest.mark.parametrize("role", ["identify", "extract"])
def test_of_what_a_budget_has_cut_nothing_is_learnt(role):
    roles = {name: ROLES[name] for name in ("identify", "match", "extract")}
    extraction = partial(extract_guideline, won=WON, lost=LOST, known=(), **roles)
    said = {"identify": ["Shut.#END#"], "extract": ["Push.#END#"], role: ["word " * 99]}
    found = {}

    def program(thread):
        found.update((finished := (yield from extraction(thread))).variables)
        return finished

    play(program, by_role(**said), env=Lock(), prompts=list(roles.values()), new_tokens=50)
    assert found == {
        "context": "" if role == "identify" else "Shut.",
        "guideline": "" if role == "extract" else "Push.",
    }


def test_the_kit_makes_guidelines_of_what_react_fails_at_and_the_oracle_wins():
    def speak(text):
        asked = text.rpartition("Prompt:\n")[2]
        if "Successful:" in asked:
            assert "> click[nothing] =>Invalid action!<=" in asked
            assert "click[Buy Now]" in asked
            return "When it is open, search.#END#"
        if text.startswith(load_prompt("autoguide/webshop-context").text):
            return "The search box is open.#END#"
        if text.startswith(load_prompt("autoguide/match").text):
            return "none#END#"
        return "Task failed!\n#END#" if "Invalid" in asked else "> click[nothing] =>"

    benchmark = BENCHMARKS["webshop"]
    tasks = (WebShop("train", number) for number in range(20))
    env = next(env for env in tasks if make_log(env, benchmark.start))  # the oracle can be followed
    engine = ScriptedEngine(speak, context=10**6)
    made = list(make_guidelines(benchmark, [env.again()], engine, calls=9))
    assert made[:-1] == list_shown_guidelines(benchmark)
    assert made[-1] == Guideline("The search box is open.", "When it is open, search.")


@pytest.mark.parametrize("name", ["alfworld", "webshop"])
def test_the_kits_own_guidelines_are_those_of_the_pairs_that_its_prompt_shows(name, tmp_path):
    kept = read_records(resource("data/memories") / f"autoguide-{name}.jsonl")
    out = tmp_path / "guidelines.jsonl"
    assert main(["autoguide", "--env", name, "--tasks", "0", "--out", str(out)]) == 0
    assert read_records(out) == kept
    assert load_method("autoguide", "alfworld-heat" if name == "alfworld" else name)


def test_the_kit_makes_skills_of_the_plans_that_solved_their_tasks(tmp_path, monkeypatch):
    benchmark = BENCHMARKS["textcraft"]
    env = benchmark.environment(split="train", number=0)
    plan = "# [Step 1] all\n" + "\n".join(f"act({action!r})" for action in env.oracle())
    engine = ScriptedEngine(lambda text: f"{plan}\n#END#", context=10**6)
    (skill,) = make_skills(benchmark, [env], engine, new_tokens=10**5)
    assert skill == {"kind": "textcraft", "context": env.again().reset(), "plan": plan}
    write_records(tmp_path / "adaplanner-textcraft.jsonl", [skill])
    monkeypatch.setenv("THREAD_KIT_MEMORIES", str(tmp_path))
    prompts = [
        load_method(name, "textcraft").prompt for name in ("adaplanner", "adaplanner, skills")
    ]
    assert prompts[1].examples == (
        *prompts[0].examples,
        Example(skill["context"], f"{plan}\n#END#"),
    )


# The prompts


def test_of_a_trajectory_the_thoughts_are_left_out():
    text = "> think: go =>OK.<=\n> think[go] =>OK.<=\n> think of it =>Hm.<=\n> go =>There.<=\n"
    steps = read_steps(text, load_prompt("react/webshop").dialect)
    assert steps == (("> think of it", "Hm."), ("> go", "There."))


def test_steps_are_read_behind_every_mark_that_is_played():
    text = ">go =>There.<=\n# > take x =>Taken.<=\n>think: on =>OK.<=\n"
    assert read_steps(text, AGENT) == (("> go", "There."), ("> take x", "Taken."))


@pytest.mark.parametrize("name", ["webshop-context", "webshop-guideline"])
def test_trajectories_of_the_shop_really_went_so(name):
    shown = (WebShop("train", 17), WebShop("train", 36, by_people=True))
    for example in load_prompt(f"autoguide/{name}").examples:
        env = next(env for env in shown if example.context.startswith(env.reset()))
        for part in re.split("Successful:", example.context):
            env = env.again()
            steps = read_steps(part, load_prompt("react/webshop").dialect)
            assert steps
            for action, seen in steps:
                step = env.step(action.removeprefix("> "))
                assert step.observation.strip() == seen
            if "Buy Now" in steps[-1][0]:
                assert (step.reward == 1) == ("Failed:" not in part)


@pytest.mark.alfworld
@pytest.mark.usefixtures("alfworld_process")
@pytest.mark.parametrize("name", ["alfworld-context", "alfworld-guideline"])
def test_trajectories_of_the_household_really_went_so(name):
    games = ["pick-100", "heat-108", "heat-101", "clean-101", "cool-103", "look-107", "pick2-100"]
    shown = [AlfWorld("generated", game) for game in games]
    rooms = {env.reset(): env for env in shown}
    types = set()
    for example in load_prompt(f"autoguide/{name}").examples:
        env = next(env for room, env in rooms.items() if example.context.startswith(room))
        types.add(env.type)
        for part in re.split("Successful:", example.context):
            env = env.again()
            env.reset()
            for action, seen in read_steps(part, load_prompt("react/alfworld-pick").dialect):
                step = env.step(action.removeprefix("> "))
                assert step.observation.strip() == seen
            if "Context:" in part and "guideline" in name:
                assert step.reward == 1
            env.close()
    assert types == {"pick", "look", "clean", "heat", "cool", "pick2"}


def test_contexts_of_the_two_prompts_are_the_same_phrases():
    for name in ("alfworld", "webshop"):
        guides = load_guides(BENCHMARKS[name])
        known = {e.response.removesuffix("#END#").strip() for e in guides["identify"].examples}
        used = {e.context.rpartition("Context: ")[2] for e in guides["extract"].examples}
        assert used <= known

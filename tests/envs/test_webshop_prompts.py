"""WebShop's few-shot prompts: every line of every example is true in the synthetic shop."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.webshop.benchmark import WEBSHOP
from thread_kit.envs.webshop.env import INVALID, WebShop
from thread_kit.exchange import abstract_values, exchange_of
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_registry import load_method
from thread_kit.prompt_check import check_prompt, speak_examples
from thread_kit.prompts import Prompt
from thread_kit.requests import Status
from thread_kit.trace.episode import Episode

SHOWN = (WebShop("train", 17), WebShop("train", 36, by_people=True))
"""The purchases that the examples are from."""

ACT = re.compile(r"^> (.+?) =>(.*?)<=$", re.MULTILINE | re.DOTALL)


def play(method: str, env: WebShop, *more: Prompt) -> Episode:
    """An episode of a method whose model says what its examples say."""
    made = load_method(method, "webshop")
    prompts = (made.prompt, *made.fixed.get("prompts", ()), *more)
    return say(speak_examples(prompts), made, env)


def say(words: Callable[[str], str], made: SessionMethod, env: WebShop) -> Episode:
    """An episode of a method whose model says these words."""
    engine = ScriptedEngine(words, context=10**6)
    return made(engine, env.again(), seed=0, path=None).run(progress=False)


ABLATED = ("thread, no variables", "thread, whole sequence")


@pytest.mark.parametrize("method", ["thread", *ABLATED])
def test_the_thread_prompt_is_proved_in_the_shop(method):
    env = SHOWN[0].again()
    made = load_method(method, "webshop")
    assert made.prompt.examples[0].context == env.reset()
    assert check_prompt(made.prompt, env, **made.fixed) == []
    assert env.step("load").reward == 1


def test_thread_reads_pages_as_they_are():
    """As printed in THREAD paper, G.4, and as the authors' code does."""
    made = load_method("thread", "webshop")
    assert made.prompt.dialect.as_observed
    pages = [page for e in made.prompt.examples for _, page in ACT.findall(e.response)]
    assert not any("{" in page for page in pages)
    episode = play("thread", SHOWN[0])
    assert episode.header["exchange"]["abstract"] == "as_observed"
    assert exchange_of(made.prompt.dialect, without_examples=True)["abstract"] is abstract_values
    assert not any("{" in act.observation for t in episode.threads.values() for act in t.actions)
    with pytest.raises(ValueError, match="'thread, as observed' is 'thread'"):
        load_method("thread, as observed", "webshop")


@pytest.mark.parametrize("method", [*ABLATED, "thread, separate prompt"])
def test_ablations_have_the_threads_and_actions_of_thread(method):
    """Variables, or one part of phi, are taken away (E.2); what the threads do stays."""
    made = load_method(method, "webshop")
    mains = [made.fixed["main_prompt"]] if "main_prompt" in made.fixed else []
    episodes = play("thread", SHOWN[0]), play(method, SHOWN[0], *mains)
    for what in (lambda t: t.parent, lambda t: [act.action for act in t.actions]):
        was, now = ([what(t) for t in episode.threads.values()] for episode in episodes)
        assert was == now
    assert episodes[1].reward == 1
    if method == ABLATED[0]:
        assert not any(thread.variables for thread in episodes[1].threads.values())


@pytest.mark.parametrize("method", ["thread", *ABLATED])
def test_threads_that_count_judge_by_the_page_alone(method):
    """THREAD paper, G.4: buttons and title, and no [Features]."""
    prompt = load_method(method, "webshop").prompt
    counting = [one for one in prompt.examples if "print('It has " in one.response]
    assert len(counting) == 2
    for example in counting:
        acts = [act for act, _ in ACT.findall(example.response)]
        assert acts[1:] == ["click[< Prev]"]
        assert re.search(
            r"has \d of them\.\nI go back to the results\.\n> click\[< Prev\]", example.response
        )


@pytest.mark.parametrize("env", SHOWN, ids=["generated", "of people"])
@pytest.mark.parametrize("method", ["react", "decomp"])
def test_examples_buy_the_right_thing(method, env):
    assert play(method, env).reward == 1


def test_the_naive_executor_searches_with_all_words_and_buys_what_comes_first():
    """ADaPT paper, appendix D: "inputs the user query in the search bar and buys the first"."""
    (example,) = WEBSHOP.load_prompt("naive/webshop").examples
    asked, price = re.fullmatch(
        r"Instruction: Look for (.+), and price lower than (.+)0 dollars", example.context
    ).groups()
    search, first = ACT.findall(example.response)[1:3]
    words = re.sub(r"\b(that offer|with|and|color|size)\b|[,:]", "", asked).split()
    assert search[0] == f"search[{' '.join(words)} price lower than {price}]"
    assert first[0] == "click" + re.findall(r"\[B0.+?\]", search[1])[0]
    assert play("naive", SHOWN[0]).reward == 1
    stubborn = say(lambda text: "Task failed!\n#END#", load_method("naive", "webshop"), SHOWN[0])
    assert stubborn.status is Status.OUT_OF_CALLS  # what it says of itself ends nothing
    assert stubborn.usage.calls == 15


def test_what_react_says_of_itself_ends_no_purchase():
    """As in ReAct's code; the executor of the ADaPT paper judges itself (section 3.1)."""
    words = iter(["Task completed!\n#END#", " search[lamp] =>", "> click[Buy Now] =>"])
    product = re.compile(r"\[(B0\w{8})\]")

    def reply(text: str) -> str:
        found = product.findall(text.rpartition("=>\n")[2])
        return f"> click[{found[0]}] =>" if found else next(words)

    method = load_method("react", "webshop")
    assert "Task completed" not in method.prompt.text
    episode = say(reply, method, SHOWN[0])
    text = episode.threads[0].sequence.text
    assert "\nTask completed!\n#END#\n> search[lamp] =>\n[Back to Search]" in text
    assert text.endswith("> click[Buy Now] =>You have clicked Buy Now.<=\n")
    assert episode.status is Status.ENDED  # nobody is asked when everything is over
    executor = load_method("react-hybrid", "webshop")
    episode = say(lambda text: "Task completed!\n#END#", executor, SHOWN[0])
    assert episode.threads[0].sequence.text.endswith("Task completed!\n#END#")


def test_reacts_examples_search_click_and_read_as_the_shop_answers():
    for example, env in zip(WEBSHOP.load_prompt("react/webshop").examples, SHOWN, strict=True):
        env = env.again()
        assert example.context == env.reset()
        for action, observation in ACT.findall(example.response):
            assert env.step(action).observation == observation.strip()


EXECUTOR = WEBSHOP.load_prompt("adapt/webshop-executor")


def test_the_executors_examples_are_true_one_after_the_other():
    """All but the last are one purchase, step by step; the last is a whole one."""
    env = SHOWN[0].again()
    for example in EXECUTOR.examples[:-1]:
        for action, observation in ACT.findall(example.response):
            assert env.step(action).observation == observation.strip(), example.context
    assert env.step("load").reward == 1
    env = SHOWN[1].again()
    assert EXECUTOR.examples[-1].context == env.reset()
    for action, observation in ACT.findall(EXECUTOR.examples[-1].response):
        assert env.step(action).observation == observation.strip()


def test_a_search_and_a_purchase_begin_at_the_results_as_in_the_paper():
    """ADaPT paper, appendix G (Buy), and its code: `search` goes back, `buy` wants the results."""
    seen = {e.context.partition("[")[0]: e.response for e in EXECUTOR.examples[:-1]}
    search, buy = seen["Instruction: Search"], seen["Instruction: Buy"]
    results = "> load =>\n[Back to Search]\nPage 1"
    assert search.startswith(results)
    assert search.index("> click[Back to Search] =>") < search.index("> search[")
    assert buy.startswith(results)
    assert ACT.findall(buy)[1][0] == "click[B0Y661XDL1]"
    for match in (e.response for e in EXECUTOR.examples if "DetailMatch" in e.context):
        assert match.rpartition("=>\n")[2].startswith("[Back to Search]\nPage 1")


def test_plans_name_the_executors_modules_and_products_that_are_there():
    modules = {re.search(r": (\w+)\[", e.context)[1] for e in EXECUTOR.examples[:-1]}
    assert modules == {"Search", "SimpleMatch", "DetailMatch", "Buy"}
    for name in ("adapt/webshop-planner", "plan_and_execute/webshop"):
        for example in WEBSHOP.load_prompt(name).examples:
            if failed := re.search(r"^Failed so far: (\w+\[.+\])$", example.context, re.M):
                assert example.context.endswith(f"\nInstruction: {failed[1]}.")
            for module, arguments in re.findall(r"Step \d+: (\w+)\[(.+)\]", example.response):
                assert module in modules
                named = re.findall(r"\bB0\w{8}\b", arguments)
                assert all(f"[{product}]" in example.context for product in named)


def test_the_second_plan_narrows_down_by_price_and_searches_again_at_last():
    """ADaPT paper, appendix G: two products in detail, or a search with another query."""
    first, second = WEBSHOP.load_prompt("adapt/webshop-planner").examples
    steps = re.findall(r"^Step \d+: (\w+)\[(.+)\]", second.response, re.MULTILINE)
    assert [module for module, _ in steps] == ["DetailMatch", "DetailMatch", "Search"]
    assert f"Search[{steps[2][1]}]" not in first.response
    assert "(Step 1 OR Step 2 OR Step 3)" in second.response


def test_the_handlers_of_decomp_play_all_that_their_prompts_show():
    """The handlers that THREAD's authors released for the shop."""
    method = load_method("decomp", "webshop")
    prompts = [method.prompt, *method.fixed["prompts"]]
    played = {
        thread.sequence.text for env in SHOWN for thread in play("decomp", env).threads.values()
    }
    assert len(WEBSHOP.handlers) == 4
    assert played == {example.response for prompt in prompts for example in prompt.examples}


@pytest.mark.parametrize("name", ["reflexion/webshop", "lats/webshop-value"])
def test_trajectories_that_are_judged_really_went_so(name):
    judged = WEBSHOP.load_prompt(name).examples
    for example in judged:
        env = next(env for env in SHOWN if example.context.startswith(env.reset())).again()
        tried = ACT.findall(example.context)
        assert tried
        for action, observation in tried:
            step = env.step(action)
            assert step.observation == observation.strip()
        assert step.reward < 1
    assert any(INVALID in example.context for example in judged) == name.startswith("lats")


AGENT_ACTS = {
    "search for": ["> search[running shoes arch support breathable mesh slip resistant teal 6] =>"],
    "find among": [],
    "look whether B0Y661XDL1": [
        "> click[B0Y661XDL1] =>",
        "> click[Features] =>",
        "> click[< Prev] =>",
    ],
    "buy B0Y661XDL1": ["> click[teal] =>", "> click[6] =>", "> click[Buy Now] =>"],
}
"""What TDAG's agents do in the shop, by the beginning of their sub-tasks."""


def test_tdags_decomposer_and_generator_lead_to_the_purchase():
    made = load_method("tdag", "webshop")
    generator, executor = made.fixed["prompts"]
    (example,) = made.prompt.examples
    assert example.context == SHOWN[0].reset()
    examples = speak_examples([made.prompt, generator])
    results = re.findall(r"^result =>(.+?)<=$", example.response, re.MULTILINE | re.DOTALL)
    left = {task: list(acts) for task, acts in AGENT_ACTS.items()}

    def speak(text: str) -> str:
        if not text.startswith(executor.text):
            return examples(text)
        asked = text.rpartition("\n\nResponse:")[0].rpartition("Instruction: ")[2]
        (acts,) = (acts for task, acts in left.items() if asked.startswith(task))
        return acts.pop(0) if acts else f"{results.pop(0)}\n#END#"

    episode = say(speak, made, SHOWN[0])
    assert episode.reward == 1
    assert not any(left.values())
    assert episode.threads[0].sequence.text in example.response
    pages = {
        act.action: act.observation for thread in episode.threads.values() for act in thread.actions
    }
    titles = re.findall(
        r"^\[(B\w{9})\]\n(.+)\n(.+)$",
        pages["search[running shoes arch support breathable mesh slip resistant teal 6]"],
        re.MULTILINE,
    )
    wanted = ("Arch Support", "Breathable Mesh", "Slip Resistant")
    assert not any(all(word in title for word in wanted) for _, title, _ in titles)
    assert {name for name, _, price in titles if "to" not in price and float(price[1:]) < 110} == {
        "B0Y661XDL1",
        "B08JB2T0V9",
    }
    assert "arch support" in pages["click[Features]"].lower()


@pytest.mark.parametrize(
    "method", ["adapt", "plan-and-execute", "reflexion", "try again", "tdag", "lats"]
)
def test_methods_load_their_prompts_for_the_shop(method):
    assert load_method(method, "webshop").name == method


@pytest.mark.parametrize("name", ["adapt", "plan-and-execute"])
def test_what_a_match_has_found_is_told_to_the_executors_behind_it(name):
    """ADaPT paper, appendix A: the product's id goes into future calls."""
    made = load_method(name, "webshop")
    steps = "Step 1: SimpleMatch[mesh]\nStep 2: Wait[prod_id]\nStep 3: Buy[prod_id, mesh]\n"
    plan = f"{steps}Execution order: (Step 1 AND Step 2 AND Step 3)\n#END#"
    said = [
        *(["Task failed!\n#END#"] if name == "adapt" else []),
        plan,
        "> think[B0Y661XDL1 matches.] =>",
        *("> think[B0BBBBBBBB does not match.] =>", "Task completed!\n#END#"),
        "Task completed!\n#END#",
        *("> think[B0AAAAAAAA matches.] =>", "Task failed!\n#END#"),  # of a failure nothing
        "Step 1: Buy[prod_id]\n#END#",
        "Task failed!\n#END#",
    ]
    replies = iter(said)
    episode = say(lambda _: next(replies), made, SHOWN[0])
    asked = re.findall(r"Instruction: ((?:Wait|Buy)\[.+?\])\.", str(episode_contexts(episode)))
    last = ["Buy[B0Y661XDL1]"] if name == "adapt" else []
    buys = ["Buy[B0Y661XDL1, mesh]"] * (2 if name == "adapt" else 1)  # its planner reads it, too
    assert asked == ["Wait[B0Y661XDL1]", *buys, *last]


@pytest.mark.parametrize(
    "said",
    [
        ["> think[B0Y661XDL1 matches.] =>", "> think[B0BBBBBBBB matches.] =>"],
        ["> think[B0Y661XDL1 and B0BBBBBBBB match.] =>"],
        ["> think[B0Y661XDL1, B0BBBBBBBB and B0AAAAAAAA match the criteria.] =>"],
    ],
)
def test_of_several_products_that_match_the_first_is_bought(said):
    """ADaPT paper, appendix G: "the first suitable product"; a later match takes its place."""
    plan = "\n".join(["Step 1: SimpleMatch[mesh]", "Step 2: DetailMatch[prod_id]"])
    plan += "\nStep 3: Buy[prod_id]\nExecution order: (Step 1 AND Step 2 AND Step 3)\n#END#"
    done = "Task completed!\n#END#"
    replies = iter([plan, *said, done, "> think[B0CCCCCCCC matches.] =>", done, done])
    episode = say(lambda _: next(replies), load_method("plan-and-execute", "webshop"), SHOWN[0])
    asked = re.findall(r"(DetailMatch|Buy)\[(B\w+)\]\.", str(episode_contexts(episode)))
    assert ("DetailMatch", "B0Y661XDL1") in asked
    assert ("Buy", "B0CCCCCCCC") in asked
    assert {product for _, product in asked} == {"B0Y661XDL1", "B0CCCCCCCC"}


def episode_contexts(episode: Episode) -> list[str]:
    return [thread.context.text for thread in episode.threads.values()]


def test_adapts_planner_reads_the_page_that_the_last_success_has_left():
    """ADaPT paper, appendix A: the visible page, and what failed, go to the planner (`look`)."""
    searched = "> search[running shoes arch support breathable mesh slip resistant] =>"
    steps = ("Search[shoes]", "SimpleMatch[arch]", "SimpleMatch[mesh]")
    order = "Execution order: (Step 1 AND (Step 2 OR Step 3))"
    plan = "\n".join([*(f"Step {n}: {step}" for n, step in enumerate(steps, 1)), order])
    said = iter(
        [
            "Task failed!\n#END#",  # the whole task
            f"{plan}\n#END#",
            *(searched, "Task completed!\n#END#"),  # Step 1
            "Task failed!\n#END#",  # Step 2
            "Step 1: Search[arch]\n#END#",
            "Task failed!\n#END#",
            *("> click[B0Y661XDL1] =>", "Task failed!\n#END#"),  # Step 3
            "Step 1: Buy[B0Y661XDL1, mesh]\n#END#",
            *("> click[B0Y661XDL1] =>", "> click[Buy Now] =>"),
        ]
    )
    made = load_method("adapt", "webshop")
    episode = say(lambda _: next(said), made, SHOWN[0])
    planner = made.fixed["program"].keywords["planner"].sha256
    first, _, third = (t.context.text for t in episode.threads.values() if t.prompt == planner)
    assert "Prompt:\nWebShop\nInstruction:" in first
    assert "\nFailed so far: nothing\n" in first
    assert "Prompt:\n[Back to Search]\nPage 1" in third  # not the product that failed
    # What executors failed at is known to the planner (appendix A), without a reason.
    assert "\nFailed so far: SimpleMatch[arch], Search[arch], SimpleMatch[mesh]\n" in third
    assert "Instruction: SimpleMatch[mesh]." in third
    assert 0 < episode.reward < 1


@pytest.mark.parametrize("name", ["adapt/webshop-planner", "plan_and_execute/webshop"])
def test_each_match_of_a_plan_has_all_that_is_wanted(name):
    """ADaPT paper, appendix G: no query of a second plan comes from nowhere."""
    prompt = WEBSHOP.load_prompt(name)
    for example in prompt.examples:
        asked = re.findall(r"^Step \d+: (\w+)\[(.+)\]$", example.response, re.MULTILINE)
        known = set(re.findall(r"\w+", example.context))
        for module, what in asked:
            words = set(re.findall(r"\w+", what)) - {"in", "with", "below", "dollars", "prod_id"}
            assert words <= known, (module, words - known)
            assert module == "Search" or {"teal", "6", "arch", "mesh", "110"} <= words
    for module in ("Search", "SimpleMatch", "DetailMatch", "Buy"):  # released code
        assert f"- {module}[" in prompt.closing

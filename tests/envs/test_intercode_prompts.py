"""InterCode's few-shot prompts: every line of every example is true in the real engine."""

from __future__ import annotations

import re

import pytest

from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env
from thread_kit.envs.intercode_bash.benchmark import BASH
from thread_kit.envs.intercode_bash.env import InterCodeBash
from thread_kit.envs.intercode_sql.benchmark import SQL
from thread_kit.envs.intercode_sql.env import InterCodeSql
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.plans import parse_plan
from thread_kit.paths import resource
from thread_kit.prompt_check import check_prompt, speak_examples
from thread_kit.session.session import Session

PLAYED = [
    ("sql", "react", (0, 2, 4)),
    ("sql", "react, refined", (0, 2, 4)),
    ("sql", "try again, visible reward", (0, 2)),
    ("sql", "plan-and-solve", (0, 2)),
    ("sql", "thread", (2, 5)),
    ("sql", "thread, no variables", (2, 5)),
    ("sql", "thread, whole sequence", (2, 5)),
    ("bash", "react", (0, 1, 3)),
    ("bash", "try again, visible reward", (0, 3)),
    ("bash", "plan-and-solve", (0, 3)),
    ("bash", "thread", (0, 3)),
    ("bash", "thread, no variables", (0, 3)),
    ("bash", "thread, whole sequence", (0, 3)),
]
MAKE = {"sql": InterCodeSql, "bash": InterCodeBash}
RECORDS = {"sql": SQL, "bash": BASH}
NUMBERS = {"sql": 6, "bash": 4}

pytestmark = pytest.mark.jail


class Asked(Env):
    """A task in which something else is asked."""

    name = "asked"

    def __init__(self, env: Env, context: str) -> None:
        self.env, self.context, self.task = env, context, {}

    def reset(self):
        self.env.reset()
        return self.context

    def step(self, action):
        return self.env.step(action)

    def again(self):
        return Asked(self.env.again(), self.context)

    def oracle(self):
        return None

    def close(self):
        self.env.close()


@pytest.mark.parametrize("name", ["thread", "thread, no variables", "thread, whole sequence"])
@pytest.mark.parametrize("benchmark", RECORDS)
def test_the_prompt_of_thread_is_proved(benchmark, name):
    method = load_method(name, benchmark)
    env = MAKE[benchmark]("train", 0, turns=1000)
    env.reset()
    assert check_prompt(method.prompt, env, **method.fixed) == []
    env.close()


@pytest.mark.parametrize("benchmark", RECORDS)
def test_without_variables_no_name_is_bound_or_used(benchmark):
    prompt = load_method("thread, no variables", benchmark).prompt
    assert not re.search(r"^\w+ = |\{\w+\}", prompt.text, re.MULTILINE)


@pytest.mark.parametrize(("benchmark", "name", "numbers"), PLAYED)
def test_each_example_is_an_episode_that_earns_the_reward(benchmark, name, numbers):
    method = load_method(name, benchmark)
    mains = [e for e in method.prompt.examples if not e.context.endswith("=>")]
    assert len(mains) == len(numbers)
    for number, example in zip(numbers, mains, strict=True):
        env = MAKE[benchmark]("train", number)
        engine = ScriptedEngine(speak_examples([method.prompt]), context=10**9)
        episode = method(engine, env, seed=0, path=None).run(progress=False)
        env.close()
        assert episode.reward == 1
        assert example.response.startswith(episode.threads[0].sequence.text.rstrip())


@pytest.mark.parametrize("benchmark", RECORDS)
def test_what_executors_show_is_what_happens(benchmark):
    prompt = load_method("adapt", benchmark).prompt
    for example in prompt.examples:
        env = Asked(MAKE[benchmark]("train", 0), example.context)
        engine = ScriptedEngine(speak_examples([prompt]), context=10**9)
        program = load_method("react", benchmark).fixed["program"]
        options = {"prompt": prompt, "program": program, "scope": "none"}
        episode = Session(engine, env, **options).run(progress=False)
        env.close()
        assert episode.threads[0].sequence.text == example.response


@pytest.mark.parametrize("benchmark", RECORDS)
def test_no_executor_is_shown_giving_up(benchmark):
    """A small model copies it, as it did on ALFWorld; that one may is said by an instruction."""
    prompt = load_method("adapt", benchmark).prompt
    assert all("Task completed!" in example.response for example in prompt.examples)
    assert prompt.text.count("Task failed!") == 1


@pytest.mark.parametrize("name", ["react", "react, refined"])
def test_each_action_of_react_has_a_thought(name):
    prompt = load_method(name, "sql").prompt
    assert not re.search(r"<=\n> ", prompt.text)


@pytest.mark.parametrize("benchmark", RECORDS)
def test_plans_to_carry_out_have_steps_as_in_intercode(benchmark):
    for example in load_method("plan-and-solve", benchmark).prompt.examples:
        assert len(re.findall(r"^Step \d+: ", example.response.split("I carry")[0], re.M)) >= 3


@pytest.mark.parametrize("benchmark", RECORDS)
def test_plans_are_plans_with_logic_that_names_their_steps(benchmark):
    for example in RECORDS[benchmark].load_prompt(f"adapt/{benchmark}-planner").examples:
        plan = parse_plan(example.response)
        assert list(plan.steps) == list(range(1, len(plan.steps) + 1))
        assert isinstance(plan.logic, tuple)
        assert set(re.findall(r"Step (\d+)", example.response.partition("order:")[2])) == {
            str(number) for number in plan.steps
        }


@pytest.mark.parametrize("benchmark", RECORDS)
def test_trials_that_are_looked_back_on_have_happened(benchmark):
    for example in RECORDS[benchmark].load_prompt(f"reflexion/{benchmark}").examples:
        env = MAKE[benchmark]("train", 0)
        env.reset()
        steps = re.findall(r"^> (.+?) =>(.*?)<=$", example.context, re.MULTILINE | re.DOTALL)
        assert steps
        for action, observation in steps:
            assert env.step(action).observation.strip() == observation.strip()
        env.close()


@pytest.mark.parametrize("benchmark", RECORDS)
def test_no_example_is_about_a_test_question(benchmark):
    """No method's: neither the question nor its gold command is in a prompt of the kit."""
    files = sorted(resource("prompts").glob(f"*/{benchmark}*.txt"))
    assert len(files) >= 9
    texts = {str(file): " ".join(file.read_text("utf-8").split()).casefold() for file in files}
    for task in RECORDS[benchmark].tasks("test"):
        for line in (task.question, task.gold):
            words = " ".join(line.split()).casefold().rstrip(".?;")
            assert [name for name, text in texts.items() if words in text] == []


def test_methods_that_need_a_reward_say_so_where_there_is_none():
    import thread_kit as tk

    method = load_method("try again, visible reward", "sql")
    with pytest.raises(ValueError, match="not of textcraft"):
        method(ScriptedEngine([]), tk.TextCraft("dev", 1), seed=0, path=None)


@pytest.mark.parametrize("form", ["", "-whole-sequence"])
@pytest.mark.parametrize("benchmark", RECORDS)
def test_a_task_is_quoted_so_that_apostrophes_do_no_harm(benchmark, form):
    text = RECORDS[benchmark].load_prompt(f"{benchmark}{form}").text
    tasks = re.findall(r"^(?:task|question) = (.*)$", text, re.MULTILINE)
    assert tasks
    assert all(re.fullmatch(r"'''[^']+'''", task) for task in tasks)

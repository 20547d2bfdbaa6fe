"""The methods on questions about data, in the jail: their logic, their examples, their suites."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import pytest
from helpers.question_prompts import TRIALS, make_questions, make_rules, play_decomp
from helpers.samples import take_sample

from thread_kit.__main__ import main
from thread_kit.dialect import AGENT, QA, QA_ASYNC
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.benchmark import LISTED, spread_evenly
from thread_kit.envs.datacommons.benchmark import DATACOMMONS
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.icu.env import IcuQA
from thread_kit.envs.icu.stays import load_stays, write_synthetic_stays
from thread_kit.envs.registry import BENCHMARKS, find_benchmark
from thread_kit.experiments.method import PerTaskMethod
from thread_kit.experiments.method_registry import load_method
from thread_kit.experiments.results_file import read_results
from thread_kit.experiments.suite import Suite
from thread_kit.methods.nlep import nlep
from thread_kit.methods.react import react
from thread_kit.methods.reflexion import HEADING
from thread_kit.prompt_check import speak_examples
from thread_kit.prompts import PromptError
from thread_kit.requests import Status
from thread_kit.session.session import Session
from thread_kit.trace.events import Acted, Observed, Restarted

METHODS = ("thread", "decomp", *DATACOMMONS.methods)
GOLD = "reflexion, gold answer"
QA_ABLATIONS = ("thread, no variables", "thread, whole sequence", "thread, separate prompt")
THREADS = ("thread", "thread, async", "thread, lines")
BOTH = ("datacommons", "icu")

pytestmark = [pytest.mark.jail, pytest.mark.statistics]


@pytest.fixture(scope="module")
def examples():
    """The questions of the prompts' examples."""
    return {name: make_questions(name) for name in BOTH}


@pytest.fixture
def question():
    """From 1982 to 1986, was the rate of robberies increasing faster in Arizona or ...?"""
    return DataCommonsQA("train", 15)


def play(name, benchmark, speak, env):
    method = load_method(name, benchmark)
    return method(ScriptedEngine(speak), env.again(), seed=0, path=None).run(progress=False)


# Programs


def test_a_program_is_run_when_it_is_whole_and_sees_nothing_of_what_it_does(question):
    replies = ["x = 6  # so x =>", " 7\n# > print(x) =>", "\nprint('Final Answer:', x)\n#END#"]
    episode = Session(ScriptedEngine(replies), question.again(), dialect=QA, program=nlep).run(
        progress=False
    )
    assert [one.line for one in episode.threads[0].executed] == [
        "x = 6  # so x => 7",
        "print('Final Answer:', x)",
    ]
    assert not [event for event in episode.events if isinstance(event, Observed)]
    (handed,) = [event for event in episode.events if isinstance(event, Acted)]
    assert handed.action == "Final Answer: 6"


@pytest.mark.parametrize(
    ("program", "executed", "reward"),
    [
        ("```python\nx = 1\nprint('Final Answer: Arizona')\n```", 2, 1),
        ("# No print.\nx = [\n  1,\n]\nx\nprint('Final Answer: Arizona')", 2, 1),
        ("print('Final Answer: Arizona')\nx = 1 / 0", 2, None),
        ("x = 1 / 0\nprint('Final Answer: Arizona')", 1, None),
        ("print('Final Answer: Arizona')\nThen look.", 0, None),
        ("I know this one.\nFinal Answer: Arizona", 0, None),
        ("x = 1 / 0\nprint('no')\nFinal Answer: Arizona", 0, None),
    ],
)
def test_a_program_ends_at_its_first_error_and_does_not_start_if_it_is_no_python(
    question, program, executed, reward
):
    engine = ScriptedEngine([f"{program}\n#END#"])
    episode = Session(engine, question.again(), dialect=QA, program=nlep).run(progress=False)
    assert len(episode.threads[0].executed) == executed
    assert episode.reward == reward


def test_nlep_react_sees_what_a_line_prints_and_its_code_is_run_once(question):
    replies = ["x = 6\nx += 1\n# > print('a\\nb', x) =>", "\nx += 1\nFinal Answer: Arizona\n#END#"]
    episode = Session(ScriptedEngine(replies), question.again(), dialect=QA, program=react).run(
        progress=False
    )
    assert "=>\n# a\n# b 7\n# <=\nx += 1" in episode.threads[0].sequence.text
    assert episode.threads[0].variables["x"] == 8
    assert episode.reward == 1


@pytest.mark.parametrize(
    ("replies", "trials"),
    [
        (["Final Answer: Arizona\n#END#"], 1),
        (["Final Answer: New Jersey\n#END#", "Look.#END#", "Final Answer: Arizona\n#END#"], 2),
        (["No idea.\n#END#", "Look.#END#", "Final Answer: Arizona\n#END#"], 2),
        (["No.\n#END#", "Look.#END#", "print('Final Answer: Arizona')\n#END#"], 2),
        (["No.\n#END#", "Look.#END#", "No.\n#END#", "Look up.#END#", "No.\n#END#"], 3),
    ],
)
def test_reflexion_tries_again_as_long_as_the_answer_is_not_the_gold_answer(
    question, replies, trials
):
    episode = play(GOLD, "datacommons", replies, question)
    restarted = [event for event in episode.events if isinstance(event, Restarted)]
    assert len(restarted) == trials - 1
    reading = sum(HEADING in one.context.text for one in episode.threads.values())
    assert reading == max(2 * trials - 3, 0)  # actors, and who looks back; not the first of either
    answered = [event for event in episode.events if isinstance(event, Acted)]
    assert bool(answered) is ("Answer" in replies[-1])
    assert episode.reward == {1: 1.0, 2: 1.0, 3: None}[trials]


def test_an_answer_that_stands_in_a_lesson_is_no_actors(question):
    trial = "print('Final Answer: Nevada')\n#END#"
    lesson = "The other one is right:\nFinal Answer: Arizona\n#END#"
    broken = "x = 1 / 0\n#END#"
    episode = play(GOLD, "datacommons", [trial, lesson, broken, lesson, broken], question)
    assert not episode.reward


def test_reflexion_that_is_told_right_from_wrong_says_so_in_its_name():
    with pytest.raises(ValueError, match=r"judged by the gold answer; .* 'reflexion, gold answer'"):
        load_method("reflexion", "icu")
    assert load_method(GOLD, "icu").name == GOLD


def test_observations_of_questions_keep_their_words_so_that_is_no_ablation():
    with pytest.raises(ValueError, match="'thread, as observed' is 'thread'"):
        load_method("thread, as observed", "icu")


def test_a_handler_returns_what_it_prints_and_its_errors(question):
    replies = [
        "[get_variable] x =>",
        "print(1 / 0)\n#END#",
        "\n[get_variable] y =>",
        "print(7)\nso 7\n#END#",
        "#END#",
    ]
    episode = play("decomp", "datacommons", replies, question)
    assert episode.threads[0].sequence.text == (
        "[get_variable] x =>ZeroDivisionError: division by zero<=\n[get_variable] y =>7<=#END#"
    )


# Examples


@pytest.mark.usefixtures("one_jail")
@pytest.mark.parametrize("benchmark", BOTH)
def test_the_examples_of_all_handlers_answer_the_questions_together(examples, benchmark):
    method = load_method("decomp", benchmark)
    prompts = [method.prompt, *method.fixed["prompts"]]
    shown = {example.context: example.response for p in prompts for example in p.examples}
    played = {}
    sample = take_sample(examples[benchmark], 3)
    for env in sample:
        episode = play_decomp(env)
        assert episode.reward == 1
        played |= {QA.asked(t.context.text): t.sequence.text for t in episode.threads.values()}
    seen = shown if len(sample) == len(examples[benchmark]) else shown.keys() & played.keys()
    assert len(seen) > len(sample)
    assert [context for context in seen if shown[context] != played.get(context)] == []


RELEASED = {
    "datacommons": {"calc_min", "calc_slope", "calc_corr", "calc_expected_value"},
    "icu": {"calc_max", "calc_avg", "calc_timepoint_decr"},
}
"""Computations of the prompts that THREAD's authors released (docs/fidelity/questions.md)."""


@pytest.mark.parametrize("benchmark", BOTH)
def test_the_handlers_of_decomp_are_the_released_ones(benchmark):
    method = load_method("decomp", benchmark)
    handlers = dict(zip(BENCHMARKS[benchmark].handlers, method.fixed["prompts"], strict=True))
    assert RELEASED[benchmark] | {"create_table", "get_variable"} <= set(handlers)
    assert all(re.match(r"create_table|get_variable|calc_", name) for name in handlers)
    for example in method.prompt.examples:
        called = re.findall(r"^\[(\w+)\]", example.response, re.MULTILINE)
        assert called[0] == "create_table"
        assert all(name.startswith("calc_") for name in called[1:])
    for example in handlers["create_table"].examples:
        assert set(re.findall(r"^\[(\w+)\]", example.response, re.MULTILINE)) == {"get_variable"}
    for name, prompt in handlers.items():
        assert 1 <= len(prompt.examples) <= 3
        assert all(example.context.startswith(f"Question: {name} ") for example in prompt.examples)


def speak_or_play(prompts, env, **form):
    """The examples; where none shows a thread, the rules."""
    examples, rules = speak_examples(prompts), make_rules(env, **form)

    def speak(text):
        try:
            return examples(text)
        except PromptError:
            return rules(text)

    return speak


FORMS = {
    "thread, async": {"dialect": QA_ASYNC},
    "thread, lines": {"lines": True},
    "thread, no variables": {"variables": False},
}


@pytest.mark.usefixtures("one_jail")
@pytest.mark.parametrize("name", ["nlep", "nlep+react", *THREADS, *QA_ABLATIONS])
@pytest.mark.parametrize("benchmark", BOTH)
def test_a_methods_own_examples_answer_their_questions(examples, benchmark, name):
    method = load_method(name, benchmark)
    prompts = [method.fixed.get("main_prompt", method.prompt), method.prompt]
    for env in examples[benchmark][::7]:
        speak = speak_or_play(prompts, env, **FORMS.get(name, {}))
        assert play(name, benchmark, speak, env).reward == 1


@pytest.mark.parametrize("benchmark", BOTH)
def test_without_variables_no_thread_has_what_another_bound(examples, benchmark):
    method = load_method("thread, no variables", benchmark)
    assert method.fixed == {"scope": "own"}
    (env, *_) = examples[benchmark]
    speak = speak_or_play([method.prompt], env, variables=False)
    main, table, values, *_ = play(method.name, benchmark, speak, env).threads.values()
    assert main.variables == {}
    assert set(table.variables) == {"table"}
    assert "rows" in values.variables
    assert "table" not in values.variables


@pytest.mark.parametrize("benchmark", BOTH)
def test_the_trials_to_learn_from_went_like_this_and_failed(examples, benchmark):
    (reflect,) = load_method(GOLD, benchmark).fixed["prompts"]
    questions = {env.again().reset(): env for env in examples[benchmark]}
    assert len(reflect.examples) == len(TRIALS[benchmark])
    rewards = set()
    for example in reflect.examples:
        asked, _, text = example.context.partition("\n")
        env = questions[asked]
        head = QA.context(asked)
        engine = ScriptedEngine(lambda seen, text=text, head=head: text[len(seen) - len(head) :])
        episode = Session(engine, env.again(), dialect=QA, program=react).run(progress=False)
        assert episode.threads[0].sequence.text == text
        assert episode.status is Status.ENDED
        rewards.add(episode.reward)
    assert rewards == {0.0, None}  # one was wrong, one had no answer


def test_the_end_mark_of_a_dialect_is_no_part_of_an_answer(examples):
    env = next(env for env in examples["icu"] if env.question.answer == "9.8")
    dialect = replace(QA, end="[END]")
    engine = ScriptedEngine(["Final Answer: 9.8[END]"])
    assert Session(engine, env.again(), dialect=dialect).run(progress=False).reward == 1


# Names


@pytest.mark.parametrize("benchmark", BOTH)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_speaks_the_benchmarks_dialect_and_can_be_pickled(name, benchmark):
    method = load_method(name, benchmark)
    assert pickle.loads(pickle.dumps(method)).prompt == method.prompt
    assert method.prompt.dialect == (QA_ASYNC if name == "thread, async" else QA)


def test_methods_for_questions_are_not_played_elsewhere_and_others_not_here():
    with pytest.raises(ValueError, match=r"no method 'nlep' on textcraft"):
        load_method("nlep", "textcraft")
    with pytest.raises(ValueError, match="solved by acting, not icu"):
        load_method("thread+reflexion", "icu")
    assert find_benchmark("alfworld-heat").dialect == find_benchmark("elsewhere").dialect == AGENT


# Benchmarks and suites


@pytest.mark.parametrize("benchmark", BOTH)
def test_each_split_lists_its_questions_and_a_choice_has_all_kinds(benchmark):
    one = BENCHMARKS[benchmark]
    assert [len(one.tasks(split)) for split in one.splits] == [LISTED, LISTED]
    chosen = [one.arguments(task) for task in spread_evenly(one.tasks("test"), 40)]
    kinds = [one.environment(**task).question.kind for task in chosen]
    assert len(set(map(str, chosen))) == 40
    assert len(set(kinds)) == len(
        {one.environment(**{**chosen[0], "number": n}).question.kind for n in range(30)}
    )


def test_a_task_names_its_stays_and_others_are_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("THREAD_KIT_ICU", raising=False)
    env = BENCHMARKS["icu"].environment(split="train", number=3)
    assert env.task == {"stays": "made up (60 stays)", "split": "train", "number": 3}
    assert IcuQA(**env.task).question == env.again().question == env.question
    write_synthetic_stays(tmp_path, patients=10)
    monkeypatch.setenv("THREAD_KIT_ICU", str(tmp_path))
    assert load_stays().name == "mimic3-benchmarks (10 stays)"
    with pytest.raises(ValueError, match=r"about the stays 'made up \(60 stays\)', and here are"):
        IcuQA(**env.task)


def test_the_splits_have_no_patient_and_no_variable_in_common():
    asked = {
        split: [one for n in range(48) for one in IcuQA(number=n, split=split).question.needs]
        for split in ("train", "test")
    }
    for part in (0, 1):
        train, test = ({one[part] for one in some} for some in asked.values())
        assert train & test <= {"survived", "expired"}
    with pytest.raises(ValueError, match="unknown split 'dev'; choose one of train, test"):
        IcuQA(number=0, split="dev")


@pytest.mark.usefixtures("one_jail")
@pytest.mark.parametrize("benchmark", BOTH)
def test_a_suite_of_questions_is_played_once(tmp_path, benchmark):
    one = BENCHMARKS[benchmark]
    speak = "print('Final Answer: higher')\n#END#"
    played = []

    def engine(text):
        played.append(text)
        return speak

    suite = Suite(
        tmp_path / "r.jsonl",
        methods=[
            PerTaskMethod(name, lambda task, name=name: load_method(name, task)) for name in METHODS
        ],
        models={"script": ScriptedEngine(engine)},
        environment=one.environment,
        tasks=[one.arguments(task) for task in spread_evenly(one.tasks("train"), 2)],
    )
    suite.run(progress=False)
    more = 4  # Reflexion hears twice that it is wrong: two more trials, and two lessons
    assert len(played) == 2 * (len(METHODS) + more)
    suite.run(progress=False)
    assert len(played) == 2 * (len(METHODS) + more)
    rows = read_results(tmp_path / "r.jsonl")
    assert {row["environment"] for row in rows} == {benchmark}
    assert {(row["status"], row["error"], row["solvable"]) for row in rows} == {("ended", "", True)}


def test_the_command_line_says_what_is_missing_in_a_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("THREAD_KIT_ICU", str(tmp_path / "nowhere"))
    assert main(["run", "--env", "icu"]) == 2
    assert "challenge-2012" in capsys.readouterr().err
    assert main(["run", "--env", "datacommons", "--task", "x"]) == 2
    assert "no task 'x'" in capsys.readouterr().err

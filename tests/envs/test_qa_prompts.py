"""The prompts of both QA benchmarks, proved in the real environment: jail, data, grading."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers.question_prompts import THREADS, make_questions, make_rules, write_program_prompt
from helpers.samples import take_sample

from thread_kit.dialect import QA, QA_ASYNC
from thread_kit.envs.qa.kinds import read_question
from thread_kit.exchange import phi_full_sequence
from thread_kit.paths import resource
from thread_kit.prompt_check import check_prompt
from thread_kit.prompts import Prompt, load_prompt, parse_prompt

pytestmark = [
    pytest.mark.jail,
    pytest.mark.statistics,
    pytest.mark.usefixtures("one_jail"),
]

BOTH = ("datacommons", "icu")


@pytest.fixture(scope="module")
def questions():
    """The questions of the examples, by their text."""
    return {name: {env.reset(): env for env in make_questions(name)} for name in BOTH}


def load(path: str) -> Prompt:
    return load_prompt(path, QA_ASYNC if path.endswith("-async") else QA)


def take_part(prompt: Prompt, start: int, step: int) -> Prompt:
    """Every so manieth main example, each with the children that stand below it."""
    groups: list[list] = []
    for example in prompt.examples:
        is_child = example.context.rstrip().endswith(prompt.dialect.listen)
        if is_child:
            groups[-1].append(example)
        else:
            groups.append([example])
    examples = tuple(example for group in groups[start::step] for example in group)
    return replace(prompt, examples=examples)


PARTS = [(f"thread/{name}", start, 4) for name in BOTH for start in range(4)]
PARTS += [
    (f"thread/{name}{form}", start, 8)
    for name in BOTH
    for start, form in enumerate(THREADS)
    if form
]
PARTS += [
    (f"{method}/{name}", start, 3)
    for name in BOTH
    for method in ("nlep", "nlep-react")
    for start in take_sample(range(3), 3)
]


@pytest.mark.parametrize(("path", "start", "step"), PARTS)
def test_what_a_prompt_shows_is_what_happens_and_its_answers_are_right(
    questions, path, start, step
):
    """THREAD's own prompt whole, in four parts; of its variants, a part each.

    Of NLEP's, which the rules write by running them (below), a part each, too.
    """
    prompt = take_part(load(path), start, step)
    benchmark, _, form = path.partition("/")[2].partition("-")
    envs = questions[benchmark]
    (first, *_) = envs.values()
    options = THREADS[f"-{form}" if form else ""]
    rules = {name: options[name] for name in ("lines", "variables", "dialect") if name in options}
    session = {name: options[name] for name in ("phi", "scope") if name in options}
    first = first.again()
    first.reset()
    speak = make_rules(first, **rules)
    assert check_prompt(prompt, first, speak=speak, **session) == []
    asked = [example for example in prompt.examples if example.context in envs]
    assert len(asked) >= 2
    if not path.startswith("nlep"):  # there the answer is printed, and not in the text
        for example in asked:
            env = envs[example.context].again()
            assert env.step(env.answer(example.response)).reward == 1.0


@pytest.mark.parametrize("benchmark", BOTH)
@pytest.mark.parametrize("looks", [False, True])
def test_the_programs_are_what_the_rules_write(questions, benchmark, looks):
    """And so NLEP+ReAct's end as the released ones do: in code that compares and prints."""
    path = f"{'nlep-react' if looks else 'nlep'}/{benchmark}"
    written = write_program_prompt(list(questions[benchmark].values()), looks)
    assert (resource("prompts") / f"{path}.txt").read_text("utf-8") == written


@pytest.mark.parametrize("benchmark", BOTH)
def test_all_methods_show_the_same_questions_one_of_each_kind(questions, benchmark):
    kinds = {make_rules(env).kind.name for env in questions[benchmark].values()}
    assert len(kinds) == len(questions[benchmark]) == {"datacommons": 21, "icu": 16}[benchmark]
    paths = [f"thread/{benchmark}{form}" for form in THREADS]
    paths += [f"{method}/{benchmark}" for method in ("nlep", "nlep-react", "decomp")]
    for path in paths:
        shown = [one.context for one in load(path).examples if "ion: " in one.context]
        shown = [context for context in shown if not context.endswith("=>")]
        assert shown == list(questions[benchmark]), path


@pytest.mark.parametrize("benchmark", BOTH)
@pytest.mark.parametrize("method", ["thread", "nlep", "nlep-react", "decomp"])
def test_all_methods_conclude_in_a_sentence_before_they_answer(questions, benchmark, method):
    for example in load(f"{method}/{benchmark}").examples:
        if example.context not in questions[benchmark]:
            continue
        env = questions[benchmark][example.context]
        kind, fields = read_question(env.question.text, [make_rules(env).kind])
        answer = "{answer}" if method.startswith("nlep") else env.question.answer
        line = example.response.split("\n")[-3]
        assert kind.conclusion.format(answer=answer, **fields) in line


@pytest.mark.parametrize("benchmark", BOTH)
def test_all_threads_but_main_ones_bind_the_names_of_what_they_are_about_first(benchmark):
    for example in load(f"thread/{benchmark}").examples:
        if example.context.endswith("=>"):
            assert re.match(r"\w+ = ", example.response)
            assert "\nvariable = " in example.response


def test_second_children_bind_both_and_say_what_they_are_to_find():
    """As in the prompts that THREAD's authors released, of the line that the first one answered."""
    for benchmark, one in (("datacommons", "place"), ("icu", "patient")):
        seconds = [
            example
            for example in load(f"thread/{benchmark}").examples
            if re.fullmatch(r"By the data in .* is =>\S+<= and .* is =>", example.context)
        ]
        assert len(seconds) >= 3
        for example in seconds:
            first, second = re.findall(rf"^{one}_[12] = '(.+)'$", example.response, re.MULTILINE)
            assert f" {first} is =>" in example.context
            assert example.context.endswith(f" {second} is =>")
            assert f"[{one}_2]" in example.response
            measure = re.search(r"data in \S+ the (.+?) of ", example.context)[1]
            says = f"# I need the {measure} of {{variable}} in {{place_2}}.\n"
            assert (says in example.response) == (one == "place")
    _, _, look_up = load("thread/datacommons").text.partition("\nSeries 2, the values of the ")
    assert "# I have to look up {variable} from {first} to {last} in {place}: the IDs" in look_up


@pytest.mark.parametrize("benchmark", BOTH)
def test_without_variables_all_that_passes_between_threads_is_text(benchmark):
    prompt = load(f"thread/{benchmark}-no-variables")
    assert not re.search(r"\{\w+\}", prompt.text.replace("columns={'value'", ""))
    for example in prompt.examples:
        assert not re.match(r"\w+ = '", example.response)
    tables = [e for e in prompt.examples if e.context.startswith("Here is a table")]
    assert tables
    assert all(", is =>/scratch/" in example.response for example in tables)


@pytest.mark.parametrize("benchmark", BOTH)
def test_with_the_whole_sequence_a_context_has_all_lines_of_its_parent(benchmark):
    contexts = [e.context for e in load(f"thread/{benchmark}-whole-sequence").examples]
    measures = [c for c in contexts if c.rpartition("\n")[2].startswith("By the data in")]
    assert measures
    assert all(context.startswith("Here is a table") for context in measures)
    assert THREADS["-whole-sequence"]["phi"] is phi_full_sequence


def test_a_prompt_that_shows_another_value_is_found_out(questions):
    prompt = take_part(load("nlep-react/icu"), 0, 99)
    text = prompt.text.replace("=>[101.0, 97.0]", "=>[101.0, 97.5]")
    (first, *_) = questions["icu"].values()
    (problem,) = check_prompt(parse_prompt(text, "wrong", QA), first.again())
    assert "what comes back is '[101.0, 97.0]<='" in problem

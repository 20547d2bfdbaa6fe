"""Each method has its entry in docs/fidelity, and each few-shot prompt says what it has seen."""

from __future__ import annotations

import re

from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.method_registry import LEFT_OUT, list_methods
from thread_kit.paths import resource


def rows(page: str) -> list[list[str]]:
    """The cells of a page's tables."""
    lines = resource(f"docs/{page}").read_text(encoding="utf-8").split("\n")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]


def test_every_method_has_a_page():
    listed = {
        name: row[2] for row in rows("fidelity.md") for name in re.findall(r"`([^`]+)`", row[0])
    }
    methods = {name for name in list_methods() if LEFT_OUT not in name}
    methods |= {"thread, no variables"}  # no state is left out there
    assert set(listed) == methods
    for name, link in listed.items():
        page = re.search(r"\((fidelity/.+\.md)\)", link)[1]
        assert resource(f"docs/{page}").is_file(), name


def test_the_tests_that_hold_what_was_mended_are_there():
    page = resource("docs/fidelity/mended.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 30
    for file, name in named:
        assert f"def {name}(" in resource(file).read_text(encoding="utf-8"), f"{file}::{name}"


def test_every_prompt_says_what_it_has_seen():
    seen = {
        (folder, benchmark)
        for row in rows("fidelity/prompts.md")
        if len(row) == 4
        for folder in row[0].split(", ")
        for benchmark in row[1].split(", ")
    }
    shipped = set()
    for file in resource("prompts").rglob("*.txt"):
        benchmark = file.stem.partition("-")[0]
        if benchmark in BENCHMARKS:
            shipped.add((file.parent.name, benchmark))
    assert seen - {("prompts", "benchmark"), ("---", "---")} == shipped | {("rap", "webshop")}


MENDED = (
    r"> go to (.+) =>Nothing happens\.<=\n> examine \1 =>",
    r"> (put .+) on (.+) =>Nothing happens\.<=\n> \1 in/on \2 =>You put ",
)
"""A refused action and the one behind it, as in the prompts of THREAD's authors."""


def test_who_is_shown_a_refused_action_in_a_household():
    """As in the released prompts: THREAD is, ReAct and ADaPT are not (docs/fidelity/prompts.md)."""
    prompts = resource("prompts")
    shown = set(prompts.glob("thread/alfworld-*.txt")) - {prompts / "thread/alfworld-main.txt"}
    assert len(shown) == 25
    for file in shown:
        text = file.read_text(encoding="utf-8")
        refused = text.count("=>Nothing happens.<=")
        assert refused == sum(len(re.findall(way, text)) for way in MENDED) >= 1, file
    plans = set(prompts.glob("adaplanner/alfworld-*.txt")) - {
        prompts / "adaplanner/alfworld-ask.txt"
    }
    assert len(plans) == 6
    for file in plans:
        assert "=>Nothing happens.<=" in file.read_text(encoding="utf-8"), file
    for pattern in ("react/alfworld-*", "adapt/alfworld-*", "decomp/alfworld-find*"):
        for file in prompts.glob(f"{pattern}.txt"):
            assert "Nothing happens." not in file.read_text(encoding="utf-8"), file

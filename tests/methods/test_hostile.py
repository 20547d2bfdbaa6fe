"""What a model writes in a method's own language neither stalls the host nor fills it."""

from __future__ import annotations

import pytest
from helpers.episodes import of_kind
from helpers.programs import Lock

from thread_kit.code_lines import LINE_CHARACTERS
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.exchange import INSTANTIATED_CHARACTERS
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.decomp import CALL
from thread_kit.methods.plans import parse_plan
from thread_kit.methods.tdag import REMAINING
from thread_kit.trace.events import Acted, Spawned

MUCH = 200_000  # characters; who looks at each of them for each other one does not come back
BLANKS = [" " * MUCH, "\n" * MUCH, "\t\n" * (MUCH // 2), "- * " * (MUCH // 4)]


@pytest.mark.parametrize("blanks", BLANKS, ids=["spaces", "lines", "both", "marks"])
def test_no_amount_of_blanks_stalls_what_reads_a_plan(blanks):
    line = blanks.replace("\n", " ")
    plan = parse_plan(f"{blanks}\nStep 1: a{line}b\nExecution order: Step 1{line}.{blanks}")
    assert plan.steps == {1: f"a{line}b"}
    assert parse_plan(blanks) is None
    assert REMAINING.findall(f"{blanks}\n1. a{line}b")[-1] == f"a{line}b"
    assert CALL.fullmatch(f"[get] a{line}b")[2] == f"a{line}b"
    assert not CALL.fullmatch(f"[get] a{line}\nb")


def test_an_order_that_is_longer_than_a_line_of_code_is_none():
    order = "(" + "Step 1 AND " * LINE_CHARACTERS + "Step 1)"
    assert parse_plan(f"Step 1: a\nExecution order: {order}").logic == ("AND", (1,))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["act", "ask"])
def test_what_a_plan_asks_for_is_no_longer_than_what_a_text_may_grow_to(kind):
    plan = f"# [Step 1] do\nfor n in range(60):\n    {kind}('x' * 90_000)\n#END#"
    method = load_method("adaplanner", "textcraft")
    session = method(ScriptedEngine(lambda seen: plan), Lock(tries=99), seed=0, path=None, calls=9)
    episode = session.run(progress=False)
    texts = [event.action for event in of_kind(episode, Acted)]
    texts += [event.context.text for event in of_kind(episode, Spawned)]
    # A revision reads the last three actions.
    assert max(map(len, texts)) < 3 * INSTANTIATED_CHARACTERS + 2_000
    assert sum(map(len, episode.to_lines())) < 50_000_000

"""Figure 7 of THREAD paper: a child fails, its parent asks in other words."""

from __future__ import annotations

import pytest

from thread_kit.analysis.recovery import Rephrasing, find_recoveries, find_rephrasings
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.env import Env, Step
from thread_kit.session.session import Session

SAYS = {
    "go to cabinet 1": "The cabinet 1 is closed.",
    "go to shelf 1": "On the shelf 1, you see nothing.",
    "open cabinet 1": "You open the cabinet 1. In it, you see a plate 1.",
    "take plate 1 from cabinet 1": "You pick up the plate 1 from the cabinet 1.",
}


class Cabinet(Env):
    """A plate in a closed cabinet; taking it wins."""

    name = "alfworld"

    def __init__(self):
        self.task = {"game": "pick-1"}

    def reset(self):
        return "You see a cabinet 1.\nYour task is to: take a plate."

    def step(self, action):
        observation = SAYS.get(action, "Nothing happens.")
        won = "plate 1 from" in observation
        return Step(observation, float(won), won, False, {})

    def again(self):
        return Cabinet()

    def oracle(self):
        return None


LOOK = ["> go to cabinet 1 =>", "print('The cabinet 1 is closed.')\n#END#"]
TAKE = ["> open cabinet 1 =>", "> take plate 1 from cabinet 1 =>", "print('I have it.')\n#END#"]
CHECK = "First, I need to check the cabinet 1 for a plate. =>"
OPEN = "So, I need to open the cabinet 1 and take a plate. =>"


def play(*words, path=None):
    return Session(ScriptedEngine(words), Cabinet(), path=path).run(progress=False)


def test_a_parent_that_asks_again_in_other_words_is_found():
    episode = play(CHECK, *LOOK, OPEN, *TAKE, "#END#")
    assert episode.reward == 1
    assert find_rephrasings(episode) == [Rephrasing(parent=0, failed=1, second=2)]


@pytest.mark.parametrize(
    "words",
    [
        # the same words once more
        (CHECK, *LOOK, CHECK, *TAKE),
        # another place
        (
            "First, I need to check the shelf 1 for a plate. =>",
            *("> go to shelf 1 =>", "print('There is no plate.')\n#END#"),
            *(OPEN, *TAKE),
        ),
        # the first has done what it was asked to
        (
            "First, I need to open the cabinet 1. =>",
            *("> open cabinet 1 =>", "print('It is not closed any more.')\n#END#"),
            *(OPEN, *TAKE[1:]),
        ),
        # the first does not say that it failed
        (CHECK, "> go to cabinet 1 =>", "print('I was there.')\n#END#", OPEN, *TAKE),
        # the second has done nothing, either
        (CHECK, *LOOK, OPEN, *LOOK),
    ],
    ids=["same words", "another place", "no failure", "unsaid", "in vain"],
)
def test_what_only_looks_like_it_is_not(words):
    assert find_rephrasings(play(*words, "#END#")) == []


def row(method, solved, trace, **more):
    task = {"split": "generated", "game": "pick-1"}
    return {"method": method, "model": "m", "task": task, "seed": 0, "solved": solved} | {
        "trace": trace,
        **more,
    }


@pytest.mark.parametrize("where", [".", "runs-traces"])
def test_a_story_is_a_game_that_adapt_lost_and_thread_won_by_asking_again(where, tmp_path):
    won = play(CHECK, *LOOK, OPEN, *TAKE, "#END#", path=tmp_path / where / "won.jsonl")
    lost = play("#END#", path=tmp_path / where / "lost.jsonl")
    rows = [
        row("adapt", False, "runs-traces/lost.jsonl"),
        row("thread", True, "runs-traces/won.jsonl"),
    ]
    (recovery,) = find_recoveries(rows, tmp_path)
    assert recovery.task["game"] == "pick-1"
    assert recovery.rephrasing == Rephrasing(0, 1, 2)
    assert (recovery.adapt.events, recovery.thread.events) == (lost.events, won.events)


@pytest.mark.parametrize(
    "change",
    [
        {"solved": True},
        {"model": "other"},
        {"task": {"split": "generated", "game": "pick-2"}},
        {"seed": 1},
        {"trace": None},
        {"trace": "runs-traces/gone.jsonl"},
        {"method": "react"},
    ],
    ids=str,
)
def test_other_episodes_make_no_story(change, tmp_path):
    play(CHECK, *LOOK, OPEN, *TAKE, "#END#", path=tmp_path / "won.jsonl")
    play("#END#", path=tmp_path / "lost.jsonl")
    rows = [row("adapt", False, "lost.jsonl") | change, row("thread", True, "won.jsonl")]
    assert list(find_recoveries(rows, tmp_path)) == []

"""LATS: where UCT leads, what a node costs, what is done at the end."""

from __future__ import annotations

from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import Lock, play
from hypothesis import given
from hypothesis import strategies as st

from thread_kit.envs.env import Env, Step
from thread_kit.methods.lats import Node, _mark, lats, select_leaf
from thread_kit.methods.reflexion import HEADING
from thread_kit.prompts import Example, Prompt
from thread_kit.requests import Finished, Status
from thread_kit.sequence import Sequence
from thread_kit.trace.events import Acted, GeneratedSpan, Restarted, Returned

VALUE = Prompt("value", (Example("value", "#END#"),))
REFLECT = Prompt("reflect", (Example("reflect", "#END#"),))


class Doors(Env):
    """Two steps in a house with two doors each; only behind `a`, then `b`, is the whole reward."""

    name = "doors"

    def __init__(self) -> None:
        self.task = {}
        self.way = ""

    def reset(self) -> str:
        self.way = ""
        return "Two doors.\nTask: find the treasure."

    def step(self, action: str) -> Step:
        self.way += action
        reward = {"ab": 1.0, "ba": 0.5}.get(self.way, 0.0)
        return Step(f"You are at {self.way}.", reward, len(self.way) == 2, False, {})

    def again(self) -> Doors:
        return type(self)()

    def oracle(self) -> list[str]:
        return ["a", "b"]


def search(replies, env=None, **options):
    program = partial(lats, value=VALUE, reflect=REFLECT, **options)
    return play(program, replies, env=env or Doors(), prompts=[VALUE, REFLECT])


def by_role(actor, marks, lessons):
    """A script for all three roles. actor, marks, lessons: their replies, in order."""
    queues = {"value": list(marks), "reflect": list(lessons)}

    def speak(text):
        for name, queue in queues.items():
            if f"Prompt:\n{name}" in text:
                return queue.pop(0)
        return actor.pop(0)

    return speak


def test_the_samples_of_a_node_are_taken_from_where_it_stands_and_each_action_counts_once():
    speak = by_role(
        ["> a =>", "> b =>", "> a =>", "> b =>", "> b =>", "> b =>"], ["8#END#", "3#END#"], []
    )
    episode = search(speak, samples=3, iterations=1)
    assert episode.reward == 1
    # Two values for three samples of the root; behind `a` all is over, so nothing is valued.
    asked = [t for t in episode.threads.values() if t.prompt == VALUE.sha256]
    assert len(asked) == 2
    behind = [
        t.sequence.text for t in episode.threads.values() if "You are at ab" in t.sequence.text
    ]
    assert all(text.startswith("> a =>You are at a.<=\n> b =>") for text in behind)


def test_what_went_wrong_is_read_by_all_that_follow_and_the_best_is_done_at_the_end():
    actor = ["> b =>", "> a =>", "> a =>", "> a =>", "> a =>", "> a =>"]
    speak = by_role(actor, ["9#END#", "1#END#"], ["The other door.#END#", "Never.#END#"])
    episode = search(speak, samples=2, iterations=2)
    contexts = [t.context.text for t in episode.threads.values()]
    assert any("- The other door." in context for context in contexts)
    assert episode.reward == 0.5  # the way over `b`, `a` is done again


def test_a_lesson_that_was_cut_counts_as_far_as_it_goes():
    actor = ["> b =>", "> a =>", "> a =>", "> a =>", "> a =>", "> a =>"]
    speak = by_role(actor, ["9#END#", "1#END#"], ["The other door. " * 9, "Never.#END#"])
    program = partial(lats, value=VALUE, reflect=REFLECT, samples=2, iterations=2)
    episode = play(program, speak, env=Doors(), prompts=[VALUE, REFLECT], new_tokens=60)
    assert not actor  # it went on
    told = [t.context.text for t in episode.threads.values() if HEADING in t.context.text]
    assert told
    assert all("- The other door. The other door." in text for text in told)


def test_marks_and_lessons_may_tell_of_actions():
    """A listen mark ends neither, and the number of an action is no mark."""
    actor = ["> b =>", "> a =>", "> a =>", "> a =>", "> a =>", "> a =>"]
    marks = ["It took > 9 b =>", " so far. Mark: 3#END#", "4#END#"]
    lessons = ["Next time do > a =>", " and look.#END#"]
    program = partial(lats, value=VALUE, reflect=REFLECT, samples=2, iterations=2)
    speak = by_role(actor, marks, lessons)
    episode = play(program, speak, env=Doors(), prompts=[VALUE, REFLECT])
    texts = [t.context.text for t in episode.threads.values()]
    assert any("- Next time do > a => and look." in text for text in texts)
    returned = [one.span.text for one in of_kind(episode, Returned)]
    assert any("Mark: 3" in text for text in returned)


def test_where_every_way_is_over_the_search_ends():
    speak = by_role(["> b =>", "> a =>"], ["5#END#"], ["No.#END#"])
    episode = search(speak, samples=1, iterations=30)
    assert len(of_kind(episode, GeneratedSpan)) == 4
    assert episode.reward == 0.5


def test_a_sample_without_an_action_is_a_dead_end():
    speak = by_role(["I do not know.#END#", "#END#"], [], ["Act!#END#"])
    episode = search(speak, env=Lock(), samples=1, iterations=5)
    assert not episode.reward
    assert episode.threads[0].status.is_end


def test_a_dead_end_is_preferred_to_nothing_that_goes_on():
    """Two of three samples are no action, and the third has a bad mark: it is the one to go on."""
    actor = [*["No.#END#", "#END#"] * 2, "> a =>", "> b =>", "> b =>", "> b =>"]
    episode = search(by_role(actor, ["1#END#"], []), samples=3, iterations=1)
    assert episode.reward == 1


def test_behind_its_end_mark_a_sample_is_asked_once_more():
    episode = search(by_role(["No.\n#END#", " a =>", "> b =>"], ["9#END#"], []), samples=1)
    assert episode.reward == 1
    texts = [thread.sequence.text for thread in episode.threads.values()]
    assert "No.\n#END#\n> a =>You are at a.<=\n" in texts


def test_a_thought_in_the_place_of_an_action_is_a_node_that_changes_nothing():
    actor = ["> think: a first =>", "> a =>", "> b =>"]
    episode = search(by_role(actor, ["9#END#"] * 2, []), samples=1)
    assert episode.reward == 1
    assert [event.action for event in of_kind(episode, Acted)] == ["a", "b"]
    texts = [thread.sequence.text for thread in episode.threads.values()]
    assert "> think: a first =>OK.<=\n> a =>You are at a.<=\n" in texts


class Halves(Doors):
    """Each step earns something, and none is the last."""

    def step(self, action: str) -> Step:
        self.way += action
        return Step(f"You are at {self.way}.", {"a": 0.6}.get(action, 0.1), False, False, {})


@pytest.mark.parametrize(
    "actor",
    [
        ["> a =>", "> think: nearly =>"],  # which changes nothing
        ["> a =>", "> b =>"],  # which is worse
        ["> a =>", "No.#END#", "#END#"],
    ],
)
def test_the_best_state_on_the_way_is_the_one_that_stays(actor):
    speak = by_role([*actor], ["9#END#"] * 2, [])
    episode = search(speak, env=Halves(), samples=1, iterations=1, max_depth=2)
    assert episode.reward == 0.6


def test_a_thought_leaves_what_was_earned():
    speak = by_role(["> a =>", "> think: nearly =>"] * 2, ["9#END#"] * 4, ["No.#END#"])
    episode = search(speak, env=Halves(), samples=1, iterations=2, max_depth=2)
    (told,) = (t.context.text for t in episode.threads.values() if t.prompt == REFLECT.sha256)
    assert "=>OK.<=\nReward: 0.6\n" in told


class Open(Doors):
    """The whole reward behind the first door, where one can go on."""

    def step(self, action: str) -> Step:
        self.way += action
        return Step(f"You are at {self.way}.", 1.0 if self.way == "a" else 0.1, False, False, {})


def test_the_search_ends_where_all_is_earned():
    episode = search(by_role(["> a =>", "> b =>"], ["9#END#"] * 2, []), env=Open(), samples=2)
    assert (episode.status, episode.reward) == (Status.ENDED, 1)
    assert len(of_kind(episode, GeneratedSpan)) == 4


class OneWay(Doors):
    can_undo = False


def test_where_nothing_can_be_undone_it_says_so_instead_of_searching():
    episode = search(by_role(["> a =>", "> b =>"], [], []), env=OneWay(), samples=2)
    assert episode.status is Status.FAILED
    assert "LATS goes back to earlier states, and this environment cannot" in episode.detail
    assert [event.action for event in of_kind(episode, Acted)] == ["a"]


def test_what_only_begins_like_a_thought_is_an_action():
    """One rule for all methods, ReAct's and ADaPT's: "think: ..." is one."""
    episode = search(
        by_role(["> think of a =>", "> a =>", "> b =>"], ["9#END#"] * 2, []), samples=1
    )
    assert [event.action for event in of_kind(episode, Acted)] == ["think of a", "a", "b"]


def test_who_looks_back_is_told_the_reward():
    speak = by_role(["> b =>", "> a =>"] * 2, ["5#END#"] * 2, ["No.#END#"])
    episode = search(speak, samples=1, iterations=2)
    (told,) = (t.context.text for t in episode.threads.values() if t.prompt == REFLECT.sha256)
    assert "You are at ba.<=\nReward: 0.5\n" in told


@pytest.mark.parametrize("said", ["> a #END#", "> a", "> a, and the door to c =>"])
def test_an_action_is_done_where_its_reply_ends_and_not_where_it_is_cut(said):
    """As in the code of ReAct and its kin, where no mark closes one."""
    speak = by_role([said, "> b =>"], ["9#END#"], ["Close it.#END#"])
    program = partial(lats, value=VALUE, reflect=REFLECT, samples=1, iterations=1)
    episode = play(program, speak, env=Doors(), prompts=[VALUE, REFLECT], new_tokens=9)
    done = [acted.action for acted in of_kind(episode, Acted)]
    assert done == ([] if "c" in said else ["a", "b"])


def test_a_trajectory_is_valued_in_the_light_of_the_lessons():
    speak = by_role(["> wait =>", "> push =>"] * 3, ["5#END#"] * 6, ["Open it.#END#"] * 2)
    episode = search(speak, env=Lock(), samples=2, iterations=2, max_depth=2)
    contexts = [t.context.text for t in episode.threads.values() if t.prompt == VALUE.sha256]
    assert ["- Open it." in context for context in contexts] == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        *(("8", 0.8), ("The mark is 8/10.", 0.8), ("8 out of 10", 0.8), ("7.5", 0.75), ("10", 1.0)),
        ("The mark is 9. " + "It looks at what was asked for. " * 5, 0.9),
        ("The mark is 8, though 2 of 3 attributes are not known.", 0.8),
    ],
)
def test_a_mark_is_read_from_what_people_write(reply, mark):
    replies = by_role(["> a =>", "> b =>"], [f"{reply}#END#"], ["Hm.#END#"])
    episode = play(_value_of, replies, env=Doors(), prompts=[VALUE])
    assert episode.threads[0].sequence.text.endswith(f"V = {mark}")


def _value_of(thread):
    Y, mark = yield from _mark(thread, Sequence(), thread.context, VALUE)
    return Finished(Y + thread.instruction(f"V = {mark}"), Status.ENDED, {})


def test_a_trajectory_ends_at_the_depth_limit():
    speak = by_role(["> wait =>"] * 3, ["5#END#"] * 3, ["Open it.#END#"])
    episode = search(speak, env=Lock(), samples=1, iterations=1, max_depth=3)
    assert len([t for t in episode.threads.values() if t.prompt == VALUE.sha256]) == 3


@pytest.mark.parametrize("reply", ["#END#", "no mark#END#", "99#END#", "-#END#"])
def test_a_value_that_is_no_mark_counts_nothing(reply):
    speak = by_role(["> a =>", "> b =>"], [reply], [])
    assert search(speak, samples=1, iterations=1).reward == 1
    valued = play(_value_of, by_role([], [reply], []), env=Doors(), prompts=[VALUE])
    assert valued.threads[0].sequence.text.endswith("V = 0.0")


def test_the_environment_is_brought_to_where_a_node_left_it():
    actor = ["> b =>", "> a =>", "> a =>", "> a =>", "> b =>", "> b =>"]
    speak = by_role(actor, ["9#END#", "1#END#"], ["Hm.#END#"])
    episode = search(speak, samples=2, iterations=2)
    assert episode.reward == 1
    assert ("b",) in [event.actions for event in of_kind(episode, Restarted)]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_a_value_is_the_mean_of_the_rewards_behind_it(rewards):
    root = Node(Sequence())
    child = Node(Sequence(), parent=root)
    for reward in rewards:
        child.back_up(reward)
    for node in (root, child):
        assert node.visits == len(rewards)
        assert node.value == pytest.approx(sum(rewards) / len(rewards))


def test_uct_tries_each_child_then_weighs_value_against_visits():
    root = Node(Sequence())
    root.children = [Node(Sequence(), (str(i),), root) for i in range(2)]
    good, bad = root.children
    good.value, bad.value = 0.9, 0.2
    assert select_leaf(root, 1.0) is good
    good.back_up(0.5)
    assert select_leaf(root, 1.0) is bad
    bad.back_up(0.0)
    assert select_leaf(root, 0.0) is good
    for _ in range(20):
        good.back_up(0.5)
    assert select_leaf(root, 1.0) is bad  # 0 + sqrt(ln 22) > 0.5 + sqrt(ln 22 / 21)


def test_where_the_first_actions_end_the_task_nothing_is_searched():
    episode = search(["never asked"], start=("b", "a"))
    assert (str(episode.status), episode.reward) == ("ended", 0.5)
    assert list(episode.threads) == [0]
    assert not of_kind(episode, GeneratedSpan)


def test_a_search_that_its_trials_end_is_cut():
    speak = by_role(["> wait =>"] * 3, ["5#END#"] * 3, [])  # nobody would read a lesson
    episode = search(speak, env=Lock(), samples=1, iterations=1, max_depth=3)
    assert episode.status is Status.OUT_OF_CALLS

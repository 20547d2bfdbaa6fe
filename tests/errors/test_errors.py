"""Errors: what the rules find_first_error, what reviewers say, and how far they agree."""

from __future__ import annotations

import json
import math
from functools import partial

import pytest
from helpers.programs import NO, Lock, play, world
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.cli.main import main
from thread_kit.dialect import QA
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.datacommons.env import DataCommonsQA
from thread_kit.envs.datacommons.statistics import OpenStatistics
from thread_kit.envs.env import Step
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.errors.error_types import (
    AGENT_TYPES,
    DESCRIPTIONS,
    QUESTION_TYPES,
    ErrorType,
)
from thread_kit.errors.figures import action_runs, count_failures, failure_figure, misreading_figure
from thread_kit.errors.first_error import find_errors, find_first_error, measure_action_runs
from thread_kit.errors.review import (
    RULES,
    Review,
    agreement,
    confusion,
    read_reviews,
    review_by_rules,
    reviews_to_frame,
    write_review,
)
from thread_kit.errors.review_widget import Reviewer, label_event
from thread_kit.errors.rules import AlfWorldRules, ErrorRules, QuestionRules
from thread_kit.experiments.results import Results
from thread_kit.methods.react import react
from thread_kit.paths import resource
from thread_kit.requests import Status
from thread_kit.sequence import Provenance, Span
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode, TraceError
from thread_kit.trace.events import Acted, ExecutedLine, Instructed, Restarted
from thread_kit.views.html import episode_html

GET_LOGS = ["> get 2 oak logs =>", "> craft 4 oak planks using 1 oak logs =>"]


def crafting(*actions: str, goal: str = "note block", last: str = NO, **options) -> Episode:
    """An episode of ReAct that does these actions."""
    replies = [f"> {action} =>" for action in actions] + [last]
    arguments = {"program": react, "scope": "none", **options}
    return Session(ScriptedEngine(replies), world(goal), **arguments).run(progress=False)


@pytest.mark.parametrize(
    ("actions", "expected", "at"),
    [
        (["fetch 2 oak logs"], ErrorType.INVALID_ACTION, 0),
        (["craft 1 note block using 1 redstone"], ErrorType.INVALID_ACTION, 0),
        (["craft note block"], ErrorType.INVALID_ACTION, 0),
        (["get 1 redstone", "craft 1 bucket using 3 iron ingot"], ErrorType.INADEQUATE_PLAN, 1),
        (
            ["get 6 warped planks", "craft 1 light gray bed using 3 light gray wool, 3 planks"],
            ErrorType.INVALID_ACTION,
            1,
        ),
        (
            ["get 8 oak planks", "craft 1 note block using 8 oak planks, 1 redstone"],
            ErrorType.MISREAD_OBSERVATION,
            1,
        ),
        # It was crafted since, but too little of it: that is the plan's fault.
        (
            [
                "get 8 oak planks",
                "get 1 oak logs",
                "craft 4 oak planks using 1 oak logs",
                "get 1 redstone",
                "craft 1 note block using 8 oak planks, 1 redstone",
            ],
            ErrorType.INADEQUATE_PLAN,
            4,
        ),
        (["craft 1 bucket using iron ingot"], ErrorType.INVALID_ACTION, 0),
        # The game takes these as it takes their usual spelling, once there is enough.
        (["craft bucket using 3 iron ingot"], ErrorType.INADEQUATE_PLAN, 0),
        (["craft 1 note block using 8 oak planks,1 redstone"], ErrorType.INADEQUATE_PLAN, 0),
        (["craft 1 note block using 8 oak_planks ,1 redstone"], ErrorType.INADEQUATE_PLAN, 0),
        (["craft 1 bucket using 3 iron ingot, 7 bone"], ErrorType.INVALID_ACTION, 0),
        # Trying to get what cannot be got is how one finds out, and no error.
        (["get 8 planks", "inventory"], ErrorType.INADEQUATE_PLAN, None),
    ],
)
def test_the_first_wrong_action_gives_the_type(actions, expected, at):
    episode = crafting(*actions)
    error = find_first_error(episode)
    assert error.type is expected
    acted = [number for number, e in enumerate(episode.events) if type(e).__name__ == "Acted"]
    assert error.event == (len(episode.events) - 1 if at is None else acted[at])
    assert error.why


def test_what_is_solved_has_no_error():
    episode = crafting(
        "get 3 bone",
        *["craft 3 bone meal using 1 bone"] * 3,
        "craft 1 bone block using 9 bone meal",
        goal="bone block",
    )
    assert find_first_error(episode) is None


def test_an_error_that_comes_first_counts_and_not_a_later_one():
    episode = crafting("get 1 iron ingot", "craft 1 bucket using 3 iron ingot", "dance")
    assert [error.type for error in find_errors(episode)] == [
        ErrorType.INADEQUATE_PLAN,
        ErrorType.INVALID_ACTION,
    ]
    assert find_first_error(episode).type is ErrorType.INADEQUATE_PLAN


def test_a_line_that_fails_is_a_runtime_error():
    engine = ScriptedEngine(["x = unknown + 1\n#END#"])
    error = find_first_error(Session(engine, world()).run(progress=False))
    assert error.type is ErrorType.RUNTIME_ERROR
    assert "NameError" in error.why


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"calls": 2}, ErrorType.OUT_OF_BUDGET),
        ({"program": partial(react, iterations=2)}, ErrorType.OUT_OF_BUDGET),
        ({"new_tokens": 3}, ErrorType.OUT_OF_BUDGET),
    ],
)
def test_what_is_cut_is_out_of_budget(options, expected):
    assert find_first_error(crafting(*["inventory"] * 5, **options)).type is expected


def test_a_child_whose_budget_is_over_is_no_error_of_the_episode():
    """Its parent has an answer to that (docs/fidelity/budgets.md, what a budget cut)."""
    said = ["I ask. =>", "deeper =>", "> inventory =>", "#END#", "#END#", "#END#"]
    episode = Session(ScriptedEngine(said), world(), depth=1).run(progress=False)
    assert any(thread.status is Status.OUT_OF_DEPTH for thread in episode.threads.values())
    assert find_first_error(episode).type is not ErrorType.OUT_OF_BUDGET


def test_a_thread_that_reads_too_much_is_out_of_context():
    engine = ScriptedEngine(["> inventory =>"] * 50, context=600)
    session = Session(engine, world(), program=react, scope="none")
    assert find_first_error(session.run(progress=False)).type is ErrorType.OUT_OF_CONTEXT


def test_what_nobody_has_judged_is_no_wrong_answer(tmp_path, capsys):
    engine = ScriptedEngine(["print('42')\n#END#"])
    path = tmp_path / "e.jsonl"
    episode = Session(engine, context="How many? =>", path=path).run(progress=False)
    assert (episode.reward, find_first_error(episode)) == (None, None)
    assert review_by_rules({"e": episode}) == []
    assert main(["show", str(path), "--why"]) == 0
    assert "nobody has judged it" in capsys.readouterr().out
    session = Session(ScriptedEngine(["deeper =>"] * 3), context="How many? =>", calls=2)
    assert find_first_error(session.run(progress=False)).type is ErrorType.OUT_OF_BUDGET


ROBBERIES = """\
s = {}
for one in ['geoId/04', 'geoId/34']:
    data = [o for o in observations(one, 'Rate_Robbery') if 1982 <= int(o['date']) <= 1986]
    s[one] = stats.linregress([int(o['date']) for o in data], [o['value'] for o in data]).slope
"""


@pytest.mark.jail
@pytest.mark.statistics
@pytest.mark.parametrize(
    ("text", "expected", "why"),
    [
        ("# > print(find_places('the nation')) =>", ErrorType.WRONG_INFORMATION, "LookupError"),
        ("Final Answer: New Jersey\n#END#", ErrorType.WRONG_INFORMATION, "never looked up: geoId"),
        (
            "d = [observations(one, 'Rate_Murder') for one in ['geoId/04', 'geoId/34']]\n"
            "Final Answer: New Jersey\n#END#",
            ErrorType.WRONG_INFORMATION,
            "never looked up: geoId/04, Rate_Robbery",
        ),
        (
            ROBBERIES.replace(".slope", ".rvalue") + "print(s)\nFinal Answer: New Jersey\n#END#",
            ErrorType.WRONG_ANALYSIS,
            "never computed: 3.53, -9.18",
        ),
        (
            ROBBERIES + "print({k: round(v, 1) for k, v in s.items()})\nFinal Answer: Ohio\n#END#",
            ErrorType.MISREAD_RESULTS,
            "'Ohio', from 3.53, -9.18",
        ),
        ("x = 1 + 'a'\nFinal Answer: New Jersey\n#END#", ErrorType.RUNTIME_ERROR, "TypeError"),
        ("I do not know.\n#END#", ErrorType.WRONG_ANALYSIS, "it ended without an answer"),
    ],
)
def test_a_wrong_answer_is_one_of_the_papers_types(text, expected, why):
    engine = ScriptedEngine([text] if text.endswith("#END#") else [text, "\n#END#"])
    env = DataCommonsQA("train", 15)
    error = find_first_error(Session(engine, env, dialect=QA, program=react).run(progress=False))
    assert error.type is expected
    assert why in error.why


def test_of_a_question_that_nobody_took_apart_no_rule_says_that_its_numbers_were_misread(tmp_path):
    file = tmp_path / "questions.txt"
    file.write_text("question\tdc_answer\nDid it rise?\tincreasing\n")
    env = DataCommonsQA("test", 0, questions=file, source=OpenStatistics())
    engine = ScriptedEngine(["Final Answer: decreasing\n#END#"])
    error = find_first_error(Session(engine, env, dialect=QA, program=react).run(progress=False))
    assert error.type is ErrorType.OTHER


def test_facts_that_no_environment_writes_are_one_error_with_their_event(tmp_path):
    """Whoever wrote the trace."""
    path = tmp_path / "t.jsonl"
    crafting("get 9 lapis lazuli", "craft 1 note block using 8 lapis lazuli", path=path)
    lines = path.read_text("utf-8").replace('"textcraft"', '"datacommons"').splitlines()
    lines = [
        json.dumps({**json.loads(line), "info": {"figures": [1]}}) if '"acted"' in line else line
        for line in lines
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(TraceError, match=r"event \d+ is not what datacommons tells: KeyError"):
        find_first_error(Episode.load(path))


def test_an_episode_that_goes_on_has_no_first_error_yet():
    session = Session(ScriptedEngine([]), world())
    next(session)
    with pytest.raises(ValueError, match="not over"):
        find_first_error(session.episode)
    session.close()


class House(Lock):
    name = "alfworld"

    def step(self, action: str) -> Step:
        observation = (
            "On the desk 1, you see a mug 1." if action == "go to desk 1" else "Nothing happens."
        )
        return Step(observation, 0.0, False, False, {})


class Limited(Lock):
    """Over after two actions."""

    taken = 0

    def step(self, action: str) -> Step:
        self.taken += 1
        return super().step(action)._replace(truncated=self.taken == 2)


def test_the_most_actions_allowed_are_no_inadequate_plan():
    """THREAD paper, Table 10: "the maximum number of actions allowed" is Other."""
    episode = play(react, ["> look =>", "> wait =>", NO], env=Limited(), prompts=[])
    error = find_first_error(episode)
    assert error.type is ErrorType.OUT_OF_BUDGET
    assert (error.event, episode.events[error.event].action) == (episode.last_action[0], "wait")
    won = play(react, ["> open =>", "> open =>", NO], env=Limited(tries=2), prompts=[])
    assert won.reward == 1
    assert list(find_errors(won)) == []


def test_an_action_that_is_refused_is_invalid_although_it_is_the_last_one():
    class ShortHouse(House):
        def step(self, action: str) -> Step:
            return super().step(action)._replace(truncated=True)

    episode = play(react, ["> clean the mug =>", NO], env=ShortHouse(), prompts=[])
    assert find_first_error(episode).type is ErrorType.INVALID_ACTION


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["go to desk 1", "take pen 1 from desk 1"], ErrorType.MISREAD_OBSERVATION),
        (["go to desk 1", "take mug 1 from desk 1"], ErrorType.INVALID_ACTION),
        (["clean the mug"], ErrorType.INVALID_ACTION),
    ],
)
def test_in_a_household_what_was_not_seen_is_misread_and_the_rest_is_invalid(actions, expected):
    replies = [f"> {action} =>" for action in actions] + [NO]
    assert find_first_error(play(react, replies, env=House(), prompts=[])).type is expected


@pytest.mark.parametrize(
    ("printed", "figure", "was_printed"),
    [
        ("3.53", 3.5312, True),
        ("3.5", 3.5312, True),
        ("4", 3.5312, False),  # a whole number was counted, and not rounded
        ("1.5e-05", 0.04, False),
        ("1.5e-05", 1.46e-5, True),
        ("2.5e+02", 250, True),
        ("2.5e+02", 2.5, False),
        ("2e2", 203, True),
        ("1e100", 5e9, False),
        ("1.5e-123", 3, False),
        ("1e99999", 5, False),
    ],
)
def test_a_number_counts_as_printed_however_it_is_rounded_or_spelled(printed, figure, was_printed):
    rules = QuestionRules("Which?")
    rules.check_event(ExecutedLine(0, "print(x)", printed, None, {}))
    info = {"figures": [figure], "needs": [], "asked": [], "answer": "Ohio"}
    error, _ = rules.check_event(Acted(0, "Ohio", "", 0.0, True, False, info))
    assert error is (ErrorType.MISREAD_RESULTS if was_printed else ErrorType.WRONG_ANALYSIS)


def test_of_the_nearest_action_what_was_done_counts():
    rules = AlfWorldRules("Your task is to: put an apple in fridge.")
    said = "Take apple 12 from the countertop."
    info = {"done": TAKE[0]}
    acted = [Acted(0, *SEEN, 0.0, False, False, {}), Acted(0, said, TAKE[1], 0, False, False, info)]
    found = [rules.check_event(one) for one in [*acted, Acted(0, *ON, 0.0, False, False, {})]]
    assert found == [None, None, None]


def household(*acted: tuple[str, str], again: int = -1):
    """What the rules say last of actions and observations; before which of them it began anew."""
    rules, found = AlfWorldRules("Your task is to: put an apple in fridge."), None
    for number, (action, observation) in enumerate(acted):
        if number == again:
            rules.check_event(Restarted(0, ""))
        found = rules.check_event(Acted(0, action, observation, 0.0, False, False, {}))
    return found and found[0]


SEEN = ("go to countertop 1", "On the countertop 1, you see a apple 12, and a knife 1.")
LEFT = ("go to fridge 1", "The fridge 1 is closed.")


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ("knife 1 from countertop 1", ErrorType.INVALID_ACTION),  # seen, but walked away from
        ("apple 1 from countertop 1", ErrorType.MISREAD_OBSERVATION),  # it is another one
        ("apple from countertop 1", ErrorType.INVALID_ACTION),  # not its whole name
        ("apple 1 from shelf 1", ErrorType.INVALID_ACTION),  # nobody has looked there
    ],
)
def test_what_was_seen_at_its_place_is_not_misread_where_one_has_left(taken, expected):
    refused = (f"take {taken}", "Nothing happens.")
    assert household(SEEN, LEFT, refused) is expected
    assert household(SEEN, LEFT, refused, again=2) is ErrorType.INVALID_ACTION


ON = ("go to shelf 1", "On the shelf 1, you see nothing.")
TAKE = ("take apple 12 from countertop 1", "You pick up the apple 12 from the countertop 1.")
PUT = ("put apple 12 in/on shelf 2", "You put the apple 12 in/on the shelf 2.")
BACK = ("go to shelf 2", "On the shelf 2, you see a apple 12.")


@pytest.mark.parametrize(
    ("acted", "expected"),
    [
        ([SEEN, ON], ErrorType.MISREAD_OBSERVATION),  # THREAD paper, Table 10: the plate
        ([SEEN, ("examine countertop 1", "It is there."), ON], ErrorType.MISREAD_OBSERVATION),
        ([SEEN, ("open drawer 1", "You open it.")], ErrorType.MISREAD_OBSERVATION),
        ([SEEN, TAKE, ON], None),
        ([SEEN, TAKE, SEEN, ON], None),  # another one, and the hand is full
        ([SEEN, TAKE, PUT, BACK, ON], None),  # it was put there
        ([SEEN, ON, LEFT], None),  # once for each time that it was seen
        ([("go to shelf 3", "On the shelf 3, you see a pineapple 1."), ON], None),
    ],
)
def test_who_sees_what_is_looked_for_and_looks_elsewhere_misreads(acted, expected):
    assert household(*acted) is expected


CLOSED = ("close microwave 1", "You close the microwave 1.")
OPENED = ("open microwave 1", "You open the microwave 1. In it, you see a apple 1.")
OTHER = ("go to fridge 1", "The fridge 1 is open. In it, you see a apple 2.")
PUT_IN_FRIDGE = ("put apple 12 in/on fridge 1", "You put the apple 12 in/on the fridge 1.")


def test_what_was_seen_with_a_full_hand_or_is_opened_again_is_not_passed_by():
    assert household(SEEN, TAKE, OTHER, PUT_IN_FRIDGE, ON) is None
    assert household(OPENED, CLOSED, OPENED) is None
    assert household(OPENED, CLOSED, ON) is ErrorType.MISREAD_OBSERVATION


@pytest.mark.parametrize("restored", [True, False])
def test_where_the_household_is_brought_back_nothing_was_seen_in_vain(restored):
    rules = AlfWorldRules("Your task is to: put an apple in fridge.")
    act = lambda one: rules.check_event(Acted(0, *one, 0.0, False, False, {}))  # noqa: E731
    act(SEEN)
    rules.check_event(Restarted(0, "", (), restored=restored))
    assert act(ON) is None
    act(SEEN)
    act(TAKE)
    rules.check_event(Restarted(0, "", (SEEN[0],), restored=restored))
    act(SEEN)  # the hand is empty again
    assert act(ON)[0] is ErrorType.MISREAD_OBSERVATION
    rules.check_event(Restarted(0, "", (SEEN[0], TAKE[0]), restored=True))
    act(OTHER)
    assert act(ON) is None


def test_what_did_nothing_is_not_done_again_and_one_stands_where_one_was():
    rules = AlfWorldRules("Your task is to: put an apple in fridge.")
    act = lambda one: rules.check_event(Acted(0, *one, 0.0, False, False, {}))  # noqa: E731
    refused = ("take apple 12 from countertop 1", "Nothing happens.")
    act(SEEN)
    act(refused)
    rules.check_event(Restarted(0, "", (SEEN[0], refused[0]), restored=True))
    assert act((SEEN[0], "Nothing happens.")) is None  # one stands there
    act(LEFT)
    act(SEEN)  # with an empty hand
    assert act(ON)[0] is ErrorType.MISREAD_OBSERVATION


def test_of_two_things_one_where_both_belong_stays_there():
    rules = AlfWorldRules("Your task is to: find two cd and put them in safe.")
    in_safe = ("open safe 1", "You open the safe 1. In it, you see a cd 1.")
    on_desk = ("go to desk 1", "On the desk 1, you see a cd 2.")
    acted = (in_safe, on_desk, ON)
    found = [rules.check_event(Acted(0, *one, 0.0, False, False, {})) for one in acted]
    assert [error and error[1] for error in found] == [
        None,
        None,
        "cd 2 was seen, and is passed by",
    ]


def test_to_go_where_one_stands_is_held_responsible_for_nothing():
    assert household(SEEN, (SEEN[0], "Nothing happens.")) is None
    assert household(("go to countertop 2", "Nothing happens.")) is ErrorType.INVALID_ACTION


def test_what_was_put_somewhere_is_seen_there():
    put = ("put mug 1 in/on countertop 1", "You put the mug 1 in/on the countertop 1.")
    refused = ("take mug 1 from countertop 1", "Nothing happens.")
    assert household(SEEN, refused) is ErrorType.MISREAD_OBSERVATION
    assert household(SEEN, put, LEFT, refused) is ErrorType.INVALID_ACTION


def test_rows_of_actions_are_a_threads_own_and_end_where_a_child_returns():
    replies = [
        "> get 1 redstone =>",
        "> get 8 oak planks =>",
        "I need help. =>",
        "> inventory =>",
        "print('No.')\n#END#",
        "> craft 1 note block using 8 oak planks, 1 redstone =>",
        "#END#",
    ]
    episode = Session(ScriptedEngine(replies), world()).run(progress=False)
    assert measure_action_runs(episode) == [(1, False), (2, False), (1, False), (1, True)]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["get 1 bone", "get 9 bone meal", "dance", "inventory"]), max_size=8)
)
def test_every_failed_episode_gets_a_type_and_an_event_of_its_own(actions):
    episode = crafting(*actions, goal="bone block")
    error = find_first_error(episode)
    assert error.type in DESCRIPTIONS
    assert 0 <= error.event < len(episode.events)


# Reviews


def reviews(*types: tuple[str, str]) -> list[Review]:
    """Pairs of what anna and ben say of one episode after the other."""
    return [
        Review(f"e{n}", who, ErrorType(type_), 0)
        for n, pair in enumerate(types)
        for who, type_ in zip(("anna", "ben"), pair, strict=True)
    ]


PLAN, ACTION = "inadequate plan", "invalid action"


def test_kappa_is_what_cohen_says():
    """By hand: 20 and 15 of 50 agree, 0.7; by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5; so 0.4."""
    pairs = [(PLAN, PLAN)] * 20 + [(PLAN, ACTION)] * 5 + [(ACTION, PLAN)] * 10
    result = agreement(reviews(*pairs, *[(ACTION, ACTION)] * 15), "anna", "ben")
    assert (result.n, result.same) == (50, 0.7)
    assert result.kappa == pytest.approx(0.4)
    assert result.low < 0.4 < result.high <= 1


def test_kappa_of_one_type_alone_is_not_defined():
    result = agreement(reviews((PLAN, PLAN), (PLAN, PLAN)), "anna", "ben")
    assert result.same == 1
    assert math.isnan(result.kappa)


def test_only_what_both_have_reviewed_is_compared():
    verdicts = [*reviews((PLAN, ACTION)), Review("alone", "anna", ErrorType.OTHER, 1)]
    assert confusion(verdicts, "anna", "ben").loc[PLAN, ACTION] == 1
    assert agreement(verdicts, "anna", "ben").n == 1
    with pytest.raises(ValueError, match="both 'anna' and 'carl'"):
        agreement(verdicts, "anna", "carl")


def test_reviews_are_on_disk_and_the_last_word_counts(tmp_path):
    path = tmp_path / "r.jsonl"
    assert read_reviews(path) == []
    first = Review("e", "anna", ErrorType.OTHER, 3)
    second = Review("e", "anna", ErrorType.INVALID_ACTION, 2, "no such recipe")
    for review in (first, Review("e", "ben", ErrorType.OTHER, 3), second):
        write_review(path, review)
    assert read_reviews(path) == [second, Review("e", "ben", ErrorType.OTHER, 3)]
    assert read_reviews(tmp_path / "none.jsonl", path) == read_reviews(path)
    path.write_text('{"episode": "e"}\n')
    with pytest.raises(ValueError, match="line 1: no review"):
        read_reviews(path)


EPISODES = {
    "solved": crafting(
        "get 3 bone",
        *["craft 3 bone meal using 1 bone"] * 3,
        "craft 1 bone block using 9 bone meal",
        goal="bone block",
    ),
    "invalid": crafting("dance"),
    "given up": crafting("inventory"),
}


def test_the_rules_review_what_failed():
    by_episode = {review.episode: review for review in review_by_rules(EPISODES)}
    assert by_episode.keys() == {"invalid", "given up"}
    assert by_episode["invalid"].type is ErrorType.INVALID_ACTION
    assert {review.reviewer for review in by_episode.values()} == {RULES}


def test_an_episode_that_is_not_over_has_not_failed(tmp_path):
    cut = Episode(EPISODES["invalid"].header)
    for event in EPISODES["invalid"].events[:-1]:
        cut.add(event)
    assert cut.status.is_live
    (review,) = review_by_rules({"cut": cut, "given up": EPISODES["given up"]})
    assert review.episode == "given up"
    with pytest.raises(ValueError, match="no episode failed"):
        Reviewer("anna", {"cut": cut}, path=tmp_path / "r.jsonl")


# The widget


def test_a_reviewer_sees_the_failed_episodes_one_after_the_other(tmp_path):
    path = tmp_path / "r.jsonl"
    reviewer = Reviewer("anna", EPISODES, path=path)
    assert repr(reviewer) == "Reviewer('anna', 0 of 2 reviewed)"
    assert [key for _, key in reviewer.choice.options] == ["invalid", "given up"]
    assert "rules say" not in str([child.children for child in reviewer.children[-1:]])
    lines = {number: text for text, number in reviewer.event.options}
    wrong = next(number for number, text in lines.items() if "dance => Could not execute" in text)
    reviewer.event.value = wrong
    reviewer.type.value = ErrorType.INVALID_ACTION
    reviewer.note.value = "it dances"
    reviewer.save.click()
    assert reviewer.choice.value == "given up"
    assert reviewer.children[1].value == episode_html(EPISODES["given up"])
    assert reviewer.note.value == ""
    with pytest.raises(ValueError, match="choose the first error"):
        reviewer.record()
    assert len(read_reviews(path)) == 1
    reviewer.event.value = reviewer.event.options[-1][1]
    reviewer.type.value = ErrorType.INADEQUATE_PLAN
    reviewer.record()
    assert repr(reviewer) == "Reviewer('anna', 2 of 2 reviewed)"
    first = Review("invalid", "anna", ErrorType.INVALID_ACTION, wrong, "it dances")
    assert read_reviews(path)[0] == first
    again = Reviewer("anna", EPISODES, path=path)
    again.choice.value = "invalid"
    assert again.note.value == "it dances"
    assert again.event.value == wrong
    assert repr(Reviewer("ben", EPISODES, path=path)) == "Reviewer('ben', 0 of 2 reviewed)"


def test_a_verdict_is_kept_where_there_is_no_folder_yet_and_a_failure_to_keep_it_is_shown(tmp_path):
    reviewer = Reviewer("anna", EPISODES, path=tmp_path / "runs" / "r.jsonl")
    reviewer.event.index = 0
    reviewer.type.value = ErrorType.INVALID_ACTION
    reviewer.save.click()
    assert len(read_reviews(reviewer.path)) == 1
    (tmp_path / "file").touch()
    reviewer.path = tmp_path / "file" / "r.jsonl"
    reviewer.event.index = 0
    with pytest.raises(ValueError, match="choose the type of the error"):
        reviewer.record()  # that of the episode before is none of this one's
    reviewer.type.value = ErrorType.INVALID_ACTION
    reviewer.save.click()
    shown = reviewer.children[-1].children[1].value
    assert 'role="alert"' in shown
    assert "r.jsonl" in shown or "file" in shown


@pytest.mark.parametrize("event", [10_000, -1])
def test_a_review_of_an_event_that_is_not_there_ends_no_reviewing(tmp_path, event):
    path = tmp_path / "r.jsonl"
    write_review(path, Review("invalid", "anna", ErrorType.INVALID_ACTION, event, "odd"))
    reviewer = Reviewer("anna", EPISODES, path=path)
    reviewer.choice.value = "invalid"
    assert reviewer.note.value == "odd"
    assert reviewer.event.value is None  # for the person to choose


def test_a_reviewer_may_see_what_the_rules_propose(tmp_path):
    reviewer = Reviewer("anna", EPISODES, path=tmp_path / "r.jsonl", proposals=True)
    assert reviewer.type.value is ErrorType.INVALID_ACTION
    assert "the rules say: invalid action" in reviewer.children[-1].children[1].value


def test_a_reviewer_needs_a_name_and_something_to_review(tmp_path):
    with pytest.raises(ValueError, match="name"):
        Reviewer(" ", EPISODES, path=tmp_path / "r.jsonl")
    with pytest.raises(ValueError, match="no episode failed"):
        Reviewer("anna", {"solved": EPISODES["solved"]}, path=tmp_path / "r.jsonl")


def test_every_proposal_is_a_line_that_can_be_chosen():
    for episode in EPISODES.values():
        if error := find_first_error(episode):
            assert label_event(episode.events[error.event])
    told = Instructed(0, Span(Provenance.INSTRUCTION, " =>No action.<=\n", (1,)))
    assert label_event(told) == "thread 0 is told: =>No action.<="


# What is committed


def test_the_committed_reviews_name_events_of_committed_failures():
    folder = resource("data/errors")
    traces = {path.stem: Episode.load(path) for path in folder.glob("thread-*.jsonl")}
    read = read_reviews(folder / "reviews.jsonl")
    assert {review.episode for review in read} == traces.keys()
    assert len(traces) == 9
    for review in read:
        episode = traces[review.episode]
        assert episode.reward != 1
        assert label_event(episode.events[review.event])
    # The reader names the cause; what a rule sees comes later.
    for rule in review_by_rules(traces):
        (own,) = [review for review in read if review.episode == rule.episode]
        assert own.event <= rule.event


def test_no_stored_review_calls_used_up_actions_an_inadequate_plan():
    for path in resource("data/results").glob("*-errors.jsonl"):
        suite = path.with_name(path.name.replace("-errors", ""))
        rows = Results.load(suite).rows if suite.exists() else []
        out = {row["trace"] for row in rows if row["out_of_actions"]}
        notes = {one.note for one in read_reviews(path) if one.episode in out}
        assert ErrorRules.unsolved[1] not in notes, path.name


def test_each_type_of_the_papers_tables_has_an_example():
    """THREAD paper, Tables 10 and 12: what the description says, and what an episode did."""
    for kind in (*AGENT_TYPES, *QUESTION_TYPES):
        description, _, example = DESCRIPTIONS[kind].partition(": ")
        assert description
        assert example, kind


# Figures


def test_figure_4_counts_the_failures_of_each_method_by_type():
    methods = {"solved": "adapt", "invalid": "react", "given up": "react"}
    table = count_failures(reviews_to_frame(review_by_rules(EPISODES)), methods)
    assert table.loc["react"].to_dict() == {"inadequate plan": 1, "invalid action": 1}
    assert table.loc["adapt"].sum() == 0
    figure = failure_figure(table, RULES)
    assert {bar.name: list(bar.y) for bar in figure.data} == {
        "inadequate plan": [0, 1],
        "invalid action": [0, 1],
    }
    assert len({(bar.marker.color, bar.marker.pattern.shape) for bar in figure.data}) == 2
    with pytest.raises(ValueError, match="reviewed twice"):
        count_failures(reviews_to_frame(reviews((PLAN, ACTION))), {"e0": "react"})


def test_figure_5_counts_actions_and_misreadings_by_their_place_in_a_row():
    misread = crafting("get 8 oak planks", "craft 1 note block using 8 oak planks, 1 redstone")
    table = action_runs({"react": [misread, EPISODES["invalid"]]})
    assert table.to_dict("list") == {
        "method": ["react", "react"],
        "in a row": [1, 2],
        "actions": [2, 1],
        "misread": [0, 1],
    }
    assert misreading_figure(table[:0]).layout.annotations[0].text == "no actions"
    figure = misreading_figure(table)
    assert [(line.name, list(line.y)) for line in figure.data] == [
        ("react, all", [2, 1]),
        ("react, misread", [1]),
    ]
    assert figure.layout.yaxis.type == "log"


def test_the_oracle_makes_no_error_that_a_rule_would_find():
    for number in (0, 13, 40):
        env = TextCraft("dev", number)
        replies = [f"> {action} =>" for action in env.oracle()] + [NO]
        session = Session(ScriptedEngine(replies), env, program=react, scope="none")
        episode = session.run(progress=False)
        assert list(find_errors(episode)) == []
        assert episode.reward == 1

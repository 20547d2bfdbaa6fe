"""Algorithm 2 on hand-made replies: what a thread asks for, in which order, and how it ends."""

import pytest
from helpers.threads import child, finish, generated, nothing, start, tokenize
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import AGENT, QA, Dialect, Stop
from thread_kit.exchange import (
    abstract_own_values,
    abstract_values,
    as_observed,
    phi_full_sequence,
)
from thread_kit.requests import (
    Act,
    Define,
    Execute,
    Executed,
    Generate,
    Spawn,
    Status,
)
from thread_kit.sequence import Provenance

thorough = settings(deadline=None, max_examples=200)
PROSE = Dialect(after_close="")  # lines go on behind what came back, but no code stands there

GOES_ON = (Stop.LISTEN, Stop.SPAWN)
CALLED_OFF = [stop for stop in Stop if stop not in (*GOES_ON, Stop.END, Stop.END_OF_STREAM)]


# The order of requests


def test_a_call_then_its_lines_then_a_child_then_what_the_child_named_then_a_call():
    one = start()
    assert one.send(generated("obj = 'mug'\nFirst, I need to find the {obj}. =>")) == Execute(
        ("obj = 'mug'",)
    )
    assert one.send(nothing(obj="mug")) == Spawn("I need to find the mug. =>")
    back = child("You have found {obj_ID}.", obj_ID="mug 1", other="stays below")
    assert one.send(back) == Define({"obj_ID": "mug 1"})
    request = one.send(None)
    assert isinstance(request, Generate)
    returned = request.sequence.spans[1]
    assert (returned.provenance, returned.text) == (
        Provenance.RETURNED,
        "You have found {obj_ID}.<=\n",
    )
    assert one.send(generated("#END#", Stop.END)) == Execute(())
    over = finish(one, nothing())
    assert over.status is Status.ENDED
    assert over.sequence.text == (
        "obj = 'mug'\nFirst, I need to find the {obj}. =>You have found {obj_ID}.<=\n#END#"
    )


def test_an_action_is_executed_and_its_observation_enters_the_sequence_abstracted():
    one = start()
    one.send(generated("item = 'oak log'\n> get 1 {item} =>"))
    assert one.send(nothing(item="oak log")) == Act("get 1 oak log")
    request = one.send("Got 1 oak log\n")
    observed = request.sequence.spans[1]
    assert (observed.provenance, observed.text) == (Provenance.OBSERVED, "Got 1 {item}<=\n")
    assert observed.tokens == tokenize(observed.text)


def test_the_observation_abstraction_can_be_another_function():
    one = start(abstract=as_observed)
    one.send(generated("item = 'oak log'\n> get 1 {item} =>"))
    one.send(nothing(item="oak log"))
    assert one.send("Got 1 oak log").sequence.spans[1].text == "Got 1 oak log<=\n"


def test_phi_can_be_another_function():
    one = start(phi=phi_full_sequence)
    one.send(generated("obj = 'mug'\nFirst, find the {obj}. =>"))
    assert one.send(nothing(obj="mug")) == Spawn("obj = 'mug'\nFirst, find the mug. =>")


def test_in_the_dialect_of_questions_a_line_goes_on_after_what_came_back():
    one = start(QA)
    one.send(generated("The mean is =>"))
    one.send(nothing())
    one.send(child("7"))
    assert one.send(None).sequence.text == "The mean is =>7<="
    one.send(generated(" and the sum is =>"))
    assert one.send(nothing()) == Spawn("The mean is =>7<= and the sum is =>")


def test_a_thread_can_end_with_its_first_call():
    one = start()
    assert one.send(generated("print('Done.')\n#END#", Stop.END)) == Execute(("print('Done.')",))
    over = finish(one, Executed({}, "Done."))
    assert (over.status, over.printed) == (Status.ENDED, "Done.")


def test_the_same_replies_lead_to_the_same_requests():
    def requests():
        one = start()
        yield one.send(generated("a = 1\nFind {a}. =>"))
        yield one.send(nothing(a=1))
        yield one.send(child("{b}", b=2))
        yield one.send(None)
        yield one.send(generated("> go =>"))
        yield one.send(nothing(a=1, b=2))

    assert list(requests()) == list(requests())


# Lines


def test_each_line_is_executed_once():
    one = start()
    assert one.send(generated("a = 1\nb = 2\nFind x. =>")) == Execute(("a = 1", "b = 2"))
    one.send(nothing())
    one.send(child("x"))
    one.send(None)
    assert one.send(generated("c = 3\nFind y. =>")) == Execute(("c = 3",))
    one.send(nothing())
    one.send(child("y"))
    one.send(None)
    last = one.send(generated("print(c)\n#END#", Stop.END))
    assert last == Execute(("print(c)",))


def test_a_line_is_executed_as_often_as_it_was_written():
    one = start()
    assert one.send(generated("n = n + 1\nn = n + 1\nGo. =>")) == Execute(("n = n + 1",) * 2)


def test_a_line_that_two_calls_wrote_is_executed_when_it_is_complete():
    # The first call listens in mid-line; what comes back is part of that line, so it is not code.
    one = start(QA)
    assert one.send(generated("a = 1\nx =>")) == Execute(("a = 1",))
    one.send(nothing())
    one.send(child("5"))
    one.send(None)
    assert one.send(generated("\nb = 2\nGo. =>")) == Execute(("b = 2",))


def test_what_came_back_is_never_executed_even_where_it_looks_like_code():
    one = start()
    one.send(generated("Find it. =>"))
    one.send(nothing())
    one.send(child("found\nstolen = 1\nprint('stolen')\n"))
    one.send(None)
    assert one.send(generated("a = 1\n> look =>")) == Execute(("a = 1",))
    assert isinstance(one.send(nothing()), Act)
    one.send("you see\nstolen = 2\nprint('stolen')")
    assert one.send(generated("#END#", Stop.END)) == Execute(())
    text = finish(one, nothing()).sequence.text
    assert "\nstolen = 1\n" in text  # it did stand on lines of its own
    assert "\nstolen = 2\n" in text


def test_actions_are_no_code():
    one = start()
    assert one.send(generated("a = 1\n> get {a} =>")) == Execute(("a = 1",))
    one.send(nothing())
    one.send("Got it")
    assert one.send(generated("> 1\n#END#", Stop.END)) == Execute(())


def test_a_line_that_the_end_mark_ends_is_executed_without_the_mark():
    one = start()
    assert one.send(generated("print('x')#END#", Stop.END)) == Execute(("print('x')",))


def test_a_last_line_is_executed_where_the_stream_ends_and_not_where_it_is_cut():
    for stop in (Stop.END, Stop.END_OF_STREAM):
        assert start().send(generated("a = 1\nprint('x')", stop)) == Execute(
            ("a = 1", "print('x')")
        )
    for stop in CALLED_OFF:
        assert start().send(generated("a = 1\nprint('x')", stop)) == Execute(("a = 1",))


pieces = st.lists(
    st.sampled_from(["a = 1", "print(2)", "\n", "\n", " ", "> act", "Find b.", "#", "<=", ""]),
    max_size=6,
).map("".join)


@thorough
@given(st.lists(st.tuples(pieces, pieces), max_size=5), pieces, st.sampled_from([AGENT, PROSE]))
def test_the_lines_executed_are_the_threads_own_each_once_in_order(rounds, last, dialect):
    one = start(dialect)
    executed = []
    for text, back in rounds:
        executed += one.send(generated(text + "=>")).lines
        request = one.send(nothing())
        if isinstance(request, Spawn):
            one.send(child(back))
            one.send(None)
        else:
            one.send(back)
    executed += one.send(generated(last + "#END#", Stop.END)).lines
    Y = finish(one, nothing()).sequence

    lines: list[list[tuple[str, Provenance]]] = [[]]
    for span in Y:
        for character in span.text:
            lines[-1].append((character, span.provenance))
            if character == "\n":
                lines.append([])
    own = [
        "".join(character for character, _ in line).removesuffix("\n").removesuffix("#END#")
        for line in lines
        if all(provenance is Provenance.GENERATED for _, provenance in line)
    ]
    assert executed == [line for line in own if line.strip() and not dialect.is_action(line)]


# Prints


def test_the_last_print_wins():
    one = start()
    one.send(generated("print('a')\nGo. =>"))
    one.send(Executed({}, "a"))
    one.send(child())
    one.send(None)
    one.send(generated("print('b')\n#END#", Stop.END))
    assert finish(one, Executed({}, "b")).printed == "b"


def test_a_call_without_a_print_leaves_the_last_one_standing():
    one = start()
    one.send(generated("print('a')\nGo. =>"))
    one.send(Executed({}, "a"))
    one.send(child())
    one.send(None)
    one.send(generated("#END#", Stop.END))
    assert finish(one, Executed({}, None)).printed == "a"


def test_an_empty_print_is_a_print():
    one = start()
    one.send(generated("print('a')\nGo. =>"))
    one.send(Executed({}, "a"))
    one.send(child())
    one.send(None)
    one.send(generated("print('')\n#END#", Stop.END))
    assert finish(one, Executed({}, "")).printed == ""


# Ends


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (Stop.END, Status.ENDED),
        (Stop.END_OF_STREAM, Status.END_OF_STREAM),
        (Stop.LENGTH, Status.TRUNCATED),
        (Stop.CONTEXT, Status.OUT_OF_CONTEXT),
        (Stop.CANCELLED, Status.STOPPED),
    ],
)
def test_every_reason_to_stop_has_its_own_status(stop, status):
    one = start()
    one.send(generated("Some text", stop))
    assert finish(one, nothing()).status is status


@pytest.mark.parametrize("stop", [*CALLED_OFF, Stop.END_OF_STREAM])
@pytest.mark.parametrize("text", ["I need to find it", "> get 1 log", "First, find =>", "> go =>"])
def test_a_cut_in_the_middle_of_a_line_is_never_a_spawn_or_an_action(stop, text):
    # Even with a listen mark in it: why the call stopped decides, never how its text looks.
    one = start()
    assert isinstance(one.send(generated(text, stop)), Execute)
    assert finish(one, nothing()).status is not Status.LISTENING


def test_an_end_mark_needs_no_line_of_its_own():
    one = start(Dialect(end="END"))
    assert one.send(generated("print('a')\nEND", Stop.END)) == Execute(("print('a')",))
    assert finish(one, nothing()).status is Status.ENDED


def test_a_truncated_child_returns_an_explanation_and_never_an_empty_text():
    one = start()
    one.send(generated("Find it. =>"))
    one.send(nothing())
    assert one.send(child("half an answer", Status.TRUNCATED, x=1)) == Define({})
    returned = one.send(None).sequence.spans[1].text
    assert returned == "Error: the thread did not finish (truncated).<=\n"


def test_live_statuses_and_ends_are_told_apart():
    assert {status for status in Status if status.is_live} == {
        Status.GENERATING,
        Status.LISTENING,
        Status.WAITING,
        Status.ACTING,
    }
    assert {status for status in Status if status.is_end} == {Status.ENDED, Status.END_OF_STREAM}


def test_an_observation_is_shown_by_names_of_the_threads_own_text_only():
    """THREAD paper, G.5: a name that only a thread above has written is nobody's here."""
    for abstract, shown in (
        (abstract_own_values, "Crafted 1 oak sign with {item}<=\n"),
        (abstract_values, "Crafted 1 {target} with {item}<=\n"),
    ):
        one = start(abstract=abstract)
        one.send(generated("item = 'stick'\n> craft 1 oak sign using {item} =>"))
        one.send(nothing(target="oak sign", item="stick"))
        request = one.send("Crafted 1 oak sign with stick")
        assert request.sequence.spans[1].text == shown

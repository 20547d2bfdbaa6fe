"""The dialect of code: blocks, code behind what came back, actions that are code, two listens."""

from __future__ import annotations

import pytest
from helpers.episodes import of_kind
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit import code_lines
from thread_kit.code_lines import LINE_CHARACTERS, blocks, find_read, parsed, uses
from thread_kit.dialect import QA, QA_ASYNC, as_comment
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.exchange import exchange_of, phi_own_line, phi_whole_line, xi_code
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sandbox.namespace import PythonNamespace
from thread_kit.sequence import Provenance, Sequence, Span
from thread_kit.session.session import Session
from thread_kit.trace.events import Acted, ExecutedLine, Observed

START = "#START#\n"


def run(*replies, dialect=QA, **options):
    with Session(
        ScriptedEngine(replies), context="Which is larger?", dialect=dialect, **options
    ) as one:
        return one.run(progress=False)


def executed(episode, thread=0):
    return [one.line for one in episode.threads[thread].executed]


# Blocks


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["x = 1", "y = 2"], ["x = 1", "y = 2"]),
        (["for i in x:", "    print(i)", "y = 2"], ["for i in x:\n    print(i)\n", "y = 2"]),
        (["x = [", "  1,", "]", "y = 2"], ["x = [\n  1,\n]\n", "y = 2"]),
        (["x = f(1,", "2)", "y = 2"], ["x = f(1,\n2)\n", "y = 2"]),
        (["if a:", "  b()", "else:", "  c()"], ["if a:\n  b()\nelse:\n  c()\n"]),
        (
            ["try:", "  b()", "except ValueError:", "  c()", "d()"],
            ["try:\n  b()\nexcept ValueError:\n  c()\n", "d()"],
        ),
        (["for i in x: print(i)", "y = 2"], ["for i in x: print(i)\n", "y = 2"]),
        (["  def f():", "      return 1", "  y = 2"], ["  def f():\n      return 1\n", "  y = 2"]),
        (["The slope is:", "  x = 1"], ["The slope is:", "  x = 1"]),
        (["I look at (all of", "x = 1"], ["I look at (all of", "x = 1"]),
        (["x = [1,", "and so on", "y = 2"], ["x = [1,", "and so on", "y = 2"]),
        (["x = '''a", "b'''"], ["x = '''a\nb'''\n"]),
        (["Done", "yes or no"], ["Done", "yes or no"]),
    ],
)
def test_the_lines_of_a_statement_go_together(lines, expected):
    assert blocks(lines) == expected


pieces = st.sampled_from(["x = 1", "for i in x:", "  f(i)", "x = [", "]", "else:", "Prose.", "'''"])


@settings(deadline=None, max_examples=200)
@given(st.lists(pieces, max_size=7))
def test_blocks_lose_no_line_and_keep_the_order(lines):
    assert "\n".join(block.removesuffix("\n") for block in blocks(lines)) == "\n".join(lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["for i in x:", "  f(i)", "  Now prose."], ["for i in x:\n  f(i)\n", "  Now prose."]),
        (["def f():", "  return [", "1,", "]", "y"], ["def f():\n  return [\n1,\n]\n", "y"]),
        (["def f():", "  '''a", "b'''", "f()"], ["def f():\n  '''a\nb'''\n", "f()"]),
        (["@a", "def f():", "  g()", "f()"], ["@a\ndef f():\n  g()\n", "f()"]),
        (["if a:", "# why", "  b()", "# so", "c()"], ["if a:\n# why\n  b()\n", "# so", "c()"]),
        (["x = 'a(' + \\", "  'b'", "y = 2"], ["x = 'a(' + \\\n  'b'\n", "y = 2"]),
        (["x = f(\"'''\", '(')", "y = 2"], ["x = f(\"'''\", '(')", "y = 2"]),
        (["print('(' # )", ")"], ["print('(' # )\n)\n"]),
        (["if a:", "  if b:", "    c()", "  oh no"], ["if a:\n  if b:\n    c()\n", "  oh no"]),
    ],
)
def test_a_statement_ends_where_nothing_is_open(lines, expected):
    assert blocks(lines) == expected


@pytest.mark.parametrize("line", ["[1,", "x = [", "f(", "if x:", "x = \\", "'''a", "{'a': [", "@a"])
def test_lines_that_never_end_are_parsed_a_few_times_each_and_once_in_an_episode(monkeypatch, line):
    parsings = []

    def count(source, **options):
        parsings.append(len(source))
        return parsed(source, **options)

    monkeypatch.setattr(code_lines, "parsed", count)
    lines = [f"{' ' * (n % 90)}{line}  # {n}" for n in range(250)]
    blocks(lines)
    assert 0 < len(parsings) <= 11 * len(lines)
    before = len(parsings)
    blocks(lines)
    assert len(parsings) == before


def test_a_block_uses_what_stands_in_any_of_its_lines():
    (block,) = blocks(["for i in [1]:", "    print(t1 + i)"])
    assert uses(block, ["t1", "t2"]) == ["t1"]
    assert uses("Look at t1:", ["t1"]) == []


def test_blocks_run_once_and_in_order():
    text = "total = 0\nfor n in [1, 2, 3]:\n    if n != 2:\n        total += n\nSo, look. =>"
    episode = run(text, "print('ok')\n#END#", "\nx = [\n  total,\n]\nprint(x)\n#END#")
    assert [line.count("\n") for line in executed(episode)] == [0, 3, 3, 0]
    assert episode.threads[0].variables == {"total": 4, "n": 3, "x": [4]}


@pytest.mark.jail
@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("x = [1, 2]\ndel x[0]\nprint(x)", "[2]"),
        ("assert 1 == 2, 'no'\nprint('yes')", "AssertionError"),
        ("raise ValueError('no')\nprint('yes')", "ValueError"),
        (
            "n = 2\nmatch n:\n case 2:\n  x = 'two'\n case _:\n  x = '?'\nprint(x)",
            "two",
        ),
    ],
)
def test_of_a_program_every_statement_runs(code, printed):
    assert all(parsed(block, block=True) for block in blocks(code.split("\n")))
    namespace = PythonNamespace(BubblewrapSandbox(), blocks=True)
    ran = [namespace.run(block) for block in blocks(code.split("\n"))]
    said = [f"{one.printed or ''}{one.error or ''}" for one in ran]
    assert any(printed in text for text in said)
    assert not parsed("raise hopes")
    assert not parsed("assert dominance")


def test_a_block_does_not_reach_over_what_came_back():
    episode = run("if False:\n    x = 1\nLook. =>", "print('ok')\n#END#", "\n    y = 2\n#END#")
    assert executed(episode) == ["if False:\n    x = 1\n", "    y = 2"]
    assert episode.threads[0].variables == {"y": 2}


def test_code_behind_what_came_back_in_the_same_line_runs():
    episode = run("The mean is =>", "print(5)\n#END#", "x = 1\ny = x + 1\n#END#")
    assert executed(episode) == ["x = 1", "y = x + 1"]


def test_what_came_back_does_not_run():
    episode = run("Look. =>", "print('x = 1\\ny = 2\\n')\n#END#", "\nz = 3\n#END#")
    assert executed(episode) == ["z = 3"]


texts = st.lists(st.sampled_from(["x = 1", "if x:", "  y()", "\n", "# > z()", "a."]), max_size=8)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.booleans(), texts.map("\n".join)), max_size=6))
def test_own_runs_only_grow_at_their_end(some):
    kinds = {True: Provenance.GENERATED, False: Provenance.RETURNED}
    Y = Sequence()
    runs = Y.own_runs()
    for own, text in some:
        Y += Span(kinds[own], text, ())
        longer = Y.own_runs()
        assert longer[: len(runs) - 1] == runs[:-1]
        assert longer[len(runs) - 1][: len(runs[-1])] == runs[-1]
        runs = longer


# Actions


def test_an_action_is_a_line_of_code_that_the_thread_observes():
    episode = run("x = [1, 2]\n# > print(x, '{x}') =>", "\nprint(x[0])\n#END#")
    (seen,) = [event for event in episode.events if isinstance(event, Observed)]
    assert seen.span.text == "[1, 2] {x}<="
    assert not [event for event in episode.events if isinstance(event, Acted)]
    assert executed(episode) == ["x = [1, 2]", "print(x, '{x}')", "print(x[0])"]


def test_what_an_action_prints_is_not_the_threads_answer():
    episode = run("Ask. =>", "print('a')\n# > print('b') =>", "\n#END#", "#END#")
    assert episode.threads[0].sequence.spans[1].text == "a<="


@pytest.mark.parametrize(
    ("action", "seen"),
    [
        ("print(nothing)", "NameError: name 'nothing' is not defined"),
        ("x = 1", "Nothing was printed."),
        (
            "look at the table",
            "Not a line of code that prints; an action is one, such as print(x).",
        ),
        ("print('a'); print(1 / 0)", "\n# a\n# ZeroDivisionError: division by zero\n# "),
    ],
)
def test_an_action_that_goes_wrong_is_feedback(action, seen):
    episode = run(f"# > {action} =>", "\n#END#")
    (event,) = [event for event in episode.events if isinstance(event, Observed)]
    assert event.span.text == f"{seen}<="


def test_an_observation_of_several_lines_stays_a_comment():
    assert as_comment("one", {"x": "one"}) == "one"
    assert as_comment("a b\n1 2", {}) == "\n# a b\n# 1 2\n# "


def test_an_action_waits_for_the_children_that_it_names():
    sequence = Sequence((Span(Provenance.GENERATED, "# > print(t1 + t2) =>", ()),))
    assert xi_code(sequence, {"t1": 1}, QA_ASYNC) == "print(t1 + t2) # {t2}"
    episode = run(
        "A is ~>", "\n# > print(t1, 'x') =>", "print(7)\n#END#", "\n#END#", dialect=QA_ASYNC
    )
    (seen,) = [event for event in episode.events if isinstance(event, Observed)]
    assert seen.span.text == "7 x<="


# Several children in one line


def test_the_line_goes_on_behind_what_came_back_and_listens_again():
    episode = run(
        "In 2018, the slope in A is =>",
        "print(0.5)\n#END#",
        " and in B is =>",
        "print(1.5)\n#END#",
        ".\nprint('B')\n#END#",
    )
    assert episode.threads[0].sequence.text.startswith(
        "In 2018, the slope in A is =>0.5<= and in B is =>1.5<=.\n"
    )
    assert episode.threads[1].title == "In 2018, the slope in A is"
    assert episode.threads[2].title == "In 2018, the slope in A is =>0.5<= and in B is"


def test_the_mark_may_stand_on_a_line_of_its_own_below_what_is_asked():
    """THREAD paper, G.1, first lines: the child's context is the line above."""
    episode = run("Here is a table, for A:\n\n=>", "print(0.5)\n#END#", "\n#END#")
    assert QA.asked(episode.threads[1].context.text) == "Here is a table, for A: =>"


@pytest.mark.parametrize(
    ("dialect", "second", "at_once"),
    [
        (QA, "Slope in A =>0.5<= and in B =>", 1),
        (QA_ASYNC, "Slope in A ... and in B =>", 3),
    ],
)
def test_a_child_reads_what_its_elder_returned_unless_nobody_waits(dialect, second, at_once):
    mark = dialect.spawn or dialect.listen
    replies = {
        "Which is larger?": [f"Slope in A {mark}", f" and in B {mark}", ".\n#END#"],
        "Slope in A =>": ["print(0.5)\n#END#"],
        second: ["print(1.5)\n#END#"],
    }

    def speak(seen: str) -> str:
        context = dialect.asked(seen[seen.rindex("Prompt:") :].partition("#START#\n")[0] + START)
        return replies[context].pop(0)

    engine = ScriptedEngine(speak)
    running = []
    with Session(engine, context="Which is larger?", dialect=dialect) as session:
        for _ in session:
            running.append(len(engine._running))
    children = session.episode.threads[1], session.episode.threads[2]
    asked = [QA.asked(child.context.text) for child in children]
    assert asked == ["Slope in A =>", second]
    assert not any(replies.values())
    assert max(running) == at_once


def test_an_async_child_asks_the_same_waited_for_or_not():
    """Joined or not, it is the line as the thread itself wrote it."""
    spans = [Span(Provenance.GENERATED, "A ~>", ()), Span(Provenance.REFERENCE, "{t1}<=", ())]
    joined = [Span(Provenance.GENERATED, "A =>", ()), Span(Provenance.RETURNED, "5<=", ())]
    more = Span(Provenance.GENERATED, " and B ~>", ())
    for some in (spans, joined):
        assert phi_own_line(Sequence((*some, more)), {}, QA_ASYNC) == "A ... and B =>"


def test_phi_keeps_the_line_whole_and_instantiates_it():
    spans = [(Provenance.GENERATED, "x\nFor {a}, A is =>"), (Provenance.RETURNED, "{a}\n5<=")]
    spans += [(Provenance.GENERATED, ", B is =>")]
    sequence = Sequence(tuple(Span(kind, text, ()) for kind, text in spans))
    assert phi_own_line(sequence, {"a": "1, 2"}, QA_ASYNC) == "For 1, 2, A is ..., B is =>"
    assert exchange_of(QA)["phi"] is phi_whole_line
    assert exchange_of(QA_ASYNC)["phi"] is phi_own_line
    assert phi_whole_line(sequence, {"a": "1, 2"}, QA) == "5<=, B is =>"


def test_only_code_is_recorded_as_executed():
    episode = run("Hello\nx = 1\n#END#")
    events = [event for event in episode.events if isinstance(event, ExecutedLine)]
    assert [event.line for event in events] == ["x = 1"]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a, b = 1, 2\nx = (\n    b\n    > a\n)\nprint(x)", "True"),
        ("x = 1 \\\n    > 0\nprint(x)", "True"),
        ('s = """a\n\nb"""\nprint(len(s))', "4"),
        ('s = """\n> said\nb"""\nprint(len(s))', "9"),
        ("for i in [1, 2]:\r\n    y = i\r\n\r\nprint(y)\r\n", "2"),
        ("for i in [1, 2]:\n\n    y = i\n\nprint(y)", "2"),
    ],
)
def test_a_statement_of_several_lines_is_whole_whatever_they_look_like(text, printed):
    """A line that begins with > is no action, and a blank one not nothing, within a statement."""
    engine = ScriptedEngine([f"{text}\n#END#"])
    episode = Session(engine, context="q", dialect=QA).run(progress=False)
    lines = of_kind(episode, ExecutedLine)
    assert [line.printed for line in lines if line.printed] == [printed]
    assert not any(line.error for line in lines)


LONG = "\n".join(f"    a{n} = {n}  # {'x' * 60}" for n in range(60))


@pytest.mark.parametrize(
    "code",
    [
        '"""\nLeft out:\ntotal = 99\n"""',
        "async def later():\n    total = 99",
        f"if False:\n{LONG}\n    total = 99",
        f"def unused():\n{LONG}\n\n    total = 99",
        f'text = """\n{LONG}\ntotal = 99\n"""',
        f"if False:\n{LONG}\n# Left out:\n    total = 99",
        f'def unused():\n{LONG}\n    text = """\ntotal = 99\n"""\n    total = 99',
        "if False:\n    total = 99\n    text = '" + "a" * LINE_CHARACTERS + "'",
    ],
)
def test_no_line_of_a_statement_stands_alone(code):
    """Also of one that does nothing, or is longer than may be parsed, and so is not run."""
    lines = ["total = 1", *code.split("\n"), "print(total)"]
    assert [block.removesuffix("\n") for block in blocks(lines)] == ["total = 1", code, lines[-1]]


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("print(x)", ["x"]),
        ("print(f'{x:.1f}', y)", ["x", "y"]),
        ("print('{x}')", []),
        ("print([x for x in y])", ["y"]),
        ("print(max(y, key=lambda x: -x))", ["y"]),
        ("x = 5; print(x)", []),
        ("try:\n    y()\nexcept ValueError as x:\n    print(x)", ["y"]),
        ("The x of it is y.", []),
    ],
)
def test_what_a_line_reads_is_what_it_has_not_bound_itself(line, read):
    assert find_read(line, ["x", "y"]) == read

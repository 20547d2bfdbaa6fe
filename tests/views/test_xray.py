"""What phi and psi took, as they themselves show it."""

from __future__ import annotations

from typing import Any

import pytest

import thread_kit as tk
from thread_kit.exchange import phi_full_sequence, psi_full_sequence
from thread_kit.paths import resource
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Returned, Spawned
from thread_kit.views.xray import Xray

GATE = resource("data/episodes/acacia-fence-gate.jsonl")


def seen_by(episode: Episode, functions: dict[str, Any] | None = None) -> dict[Any, Any]:
    """What is said of each edge, by "phi" or "psi" and the child; with the marks as texts."""
    xray, so_far, edges = Xray(functions or {}), Episode(episode.header), {}
    for event in episode.events:
        so_far.add(event)
        said = xray.add(so_far, event)
        match event:
            case Spawned(parent=int(thread)):
                edges["phi", event.thread] = as_texts(said, so_far, thread)
            case Returned(child=thread):
                edges["psi", event.child] = as_texts(said, so_far, thread)
    return edges


def as_texts(said: dict[str, Any] | None, episode: Episode, thread: int) -> Any:
    if said is None:
        return None
    spans = episode.threads[thread].sequence.spans
    marks = [
        (kind, name, spans[piece - 1].text[start:stop])
        for piece, start, stop, kind, name in said["marks"]
    ]
    return {**said, "marks": marks}


def test_phi_took_the_last_line_and_not_what_reads_like_it():
    edges = seen_by(Episode.load(GATE))
    assert edges["phi", 3]["marks"] == [
        ("taken", "", "I need to get "),
        ("value", "count1", "{count1}"),
        ("taken", "", " "),
        ("value", "item1", "{item1}"),
        ("taken", "", ". =>"),
        ("assigned", "count1", "count1 = use1 * runs"),
        ("assigned", "item1", "item1 = part1.split(' ', 1)[1]"),
    ]
    assert edges["phi", 3]["passed"] == [
        ["I need to get ", "taken", ""],
        ["4", "value", "count1"],
        [" ", "taken", ""],
        ["stick", "value", "item1"],
        [". =>", "taken", ""],
    ]


def test_psi_took_what_the_last_print_printed_and_its_names_were_assigned_above():
    edge = seen_by(Episode.load(GATE))["psi", 3]
    assert edge["marks"] == [
        ("taken", "", "I have {"),
        ("value", "count", "count"),
        ("taken", "", "} {"),
        ("value", "item", "item"),
        ("taken", "", "}."),
        ("assigned", "count", "count = int(need.split()[0])"),
        ("assigned", "item", "item = min([x for x in items if item in x], key=len)"),
    ]


def test_each_edge_of_the_saved_episodes_is_told_and_adds_up_to_what_passed():
    for path in [GATE, *sorted(resource("data/errors").glob("thread-*.jsonl"))]:
        episode = Episode.load(path)
        for (kind, child), edge in seen_by(episode).items():
            assert edge is not None, (path.name, kind, child)
            text = "".join(part[0] for part in edge["passed"])
            if kind == "phi":
                assert text == episode.dialect.asked(episode.threads[child].context.text)


def play(replies: list[str], **options: Any) -> Episode:
    session = tk.Session(tk.ScriptedEngine(replies), context="go", **options)
    return session.run(progress=False)


def test_a_value_that_stands_elsewhere_too_is_marked_where_it_was_taken():
    replies = ["tea\nx = 'tea'\nFirst, tea or {x}? =>", "print('tea')\n#END#", "#END#"]
    edge = seen_by(play(replies))["phi", 1]
    assert edge["marks"] == [
        ("taken", "", "tea or "),
        ("value", "x", "{x}"),
        ("taken", "", "? =>"),
        ("assigned", "x", "x = 'tea'"),
    ]


def test_what_came_from_above_has_no_line_here():
    replies = ["x = 1\nFirst, {x}. =>", "Then, {x}. =>", "print('{x}')\n#END#", "#END#", "#END#"]
    edges = seen_by(play(replies))
    assert edges["phi", 2]["above"] == ["x"]
    assert ("assigned", "x", "x = 1") not in edges["phi", 2]["marks"]
    assert edges["psi", 2]["above"] == ["x"]


def two_lines(sequence, variables, dialect):
    """The last two lines, in reverse."""
    last, before = sequence.text.split("\n")[-1], sequence.text.split("\n")[-2]
    return f"{last} {before}"


def shout(sequence, variables, dialect):
    return "TEA" if "tea" in sequence.text else "WATER"


@pytest.mark.parametrize(
    ("phi", "taken"),
    [
        (two_lines, ["I want tea. =>", "hot"]),
        (phi_full_sequence, ["cold\nhot\nI want tea.", " =>"]),
        (shout, None),
    ],
)
def test_a_function_of_ones_own_shows_what_it_took_unless_it_looks_at_the_words(phi, taken):
    episode = play(["cold\nhot\nI want tea. =>", "print('1')\n#END#", "#END#"], phi=phi)
    edge = seen_by(episode, {"phi": phi})["phi", 1]
    texts = edge and [text for kind, _, text in edge["marks"] if kind == "taken"]
    if taken is None:
        assert edge is None
    else:
        assert "".join(texts).replace(" =>", "") == "".join(taken).replace(" =>", "")


def test_what_a_print_computed_is_marked_as_its_line_and_a_whole_sequence_as_it_stands():
    replies = ["a =>", "print(6 * 7)\n#END#", "b =>", "x\nprint('1')\n#END#", "#END#"]
    assert seen_by(play(replies))["psi", 1]["marks"] == [("taken", "", "print(6 * 7)")]
    whole = seen_by(play(replies, psi=psi_full_sequence))["psi", 2]
    assert whole["marks"] == [("taken", "", "x\nprint('1')\n#END#")]


def test_nothing_is_claimed_of_what_a_person_put_there():
    episode = play(["a =>", "print('1')\n#END#", "#END#"])
    at = next(n for n, event in enumerate(episode.events) if isinstance(event, Spawned) and n > 1)
    engine = tk.ScriptedEngine(["print('1')\n#END#", "#END#"])
    from thread_kit.session.session import fork

    changed = fork(episode, at, engine=engine, context="something else =>").run(progress=False)
    assert seen_by(changed)["phi", 1] is None

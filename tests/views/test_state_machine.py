"""StateFlow's machine as a picture: its states, transitions, the current one, those left out."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from helpers.episodes import span
from helpers.frames import fold, strip_details, view_as_json
from helpers.state_ways import WAY, WAYS, WORDS, named

import thread_kit as tk
from thread_kit.envs.alfworld.machine import MACHINES
from thread_kit.envs.intercode_bash.machine import MACHINE as BASH
from thread_kit.envs.intercode_sql.machine import MACHINE as SQL
from thread_kit.envs.textcraft.machine import MACHINE as TEXTCRAFT
from thread_kit.experiments.episode_facts import list_states
from thread_kit.experiments.method_registry import load_method
from thread_kit.methods.state_outputs import Agent, execute
from thread_kit.methods.state_transitions import go_to
from thread_kit.methods.stateflow import Machine, State
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Acted, Instructed, Spawned
from thread_kit.views.machine_picture import draw_svg
from thread_kit.views.machine_table import OVER, read_table
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.player.widget import MODULE
from thread_kit.views.state_machine import draw_machine, watch_machine

HOSTILE = "<img src=x onerror=\"document.title='hit'\">"


def make_session(method: str = "stateflow", words: list[str] | None = None):
    engine = tk.ScriptedEngine(words or WORDS)
    return load_method(method, "sql")(engine, tk.InterCodeSql("dev", 0), seed=0, path=None)


@pytest.fixture(scope="module")
def episode() -> Episode:
    return make_session().run(progress=False)


def find_marks(svg: str, mark: str) -> list[str]:
    """The states with a mark, or the edges as "from to"."""
    found = []
    for group in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        if mark in group.get("class", "").split():
            source, target = group.get("data-from"), group.get("data-to")
            found.append(group.get("data-state") or f"{source} {target}")
    return found


# The table


def test_the_table_of_sql_has_the_papers_states_and_transitions():
    table = read_table(SQL)
    assert list(table.states) == ["Init", "Observe", "Solve", "Error", "Verify"]
    assert (table.start, table.final, table.left_out) == ("Init", ("End",), {})
    # StateFlow paper, section 4.1 and Figure 1
    edges = {(t.source, t.target) for t in table.transitions if t.when != OVER}
    errors = {(state, "Error") for state in ("Observe", "Solve", "Verify", "Error")}
    checks = {(state, "Verify") for state in ("Solve", "Verify", "Error")}
    solves = {(state, "Solve") for state in ("Observe", "Solve", "Verify", "Error")}
    assert edges == {("Init", "Observe")} | errors | checks | solves
    assert table.find_transition("Solve", "Verify") == r"done “(?i)^select\b”"
    assert table.find_transition("Verify", "Init") == ""


@pytest.mark.parametrize("machine", [SQL, BASH, TEXTCRAFT, *MACHINES.values()])
def test_the_table_is_the_one_that_is_executed(machine):
    table = read_table(machine)
    assert list(table.states) == list(machine.states)
    known = {*machine.states, *machine.final}
    assert {t.target for t in table.transitions} <= known
    assert all(any(t.source == name for t in table.transitions) for name in machine.states)
    for name, state in machine.states.items():
        over = any(t.source == name and t.when == OVER for t in table.transitions)
        assert over == any(type(output).__name__ == "Execute" for output in state.outputs)


def test_a_state_that_is_left_out_leads_where_its_stand_in_does():
    table = read_table(SQL.without("Verify", "Observe"), whole=SQL)
    assert list(table.states) == list(SQL.states)
    assert table.left_out == {"Verify": "Solve", "Observe": "Solve"}
    assert table.find_transition("Init", "Solve") == "always"
    assert not {t.source for t in table.transitions} & set(table.left_out)
    assert not {t.target for t in table.transitions} & set(table.left_out)
    assert "Verify   left out: Solve takes its place" in str(table)


def test_one_state_left_out_can_lead_to_another_one():
    table = read_table(SQL.without("Error", "Verify"))
    assert table.left_out == {"Error": "Solve", "Verify": "Solve"}
    assert list(table.states)[-2:] == ["Error", "Verify"]


def test_a_saved_episode_has_its_machine(episode, tmp_path):
    episode.save(tmp_path / "episode.jsonl")
    assert read_table(Episode.load(tmp_path / "episode.jsonl")) == read_table(SQL)


def test_an_episode_of_another_method_has_none():
    other = tk.Session(tk.ScriptedEngine(["#END#"]), context="go").run(progress=False)
    with pytest.raises(ValueError, match="its method is no StateFlow"):
        draw_machine(other)


def test_where_a_function_of_ones_own_leads_nobody_knows():
    def by_dice(history):
        yield from ()
        return "End"

    table = read_table(Machine({"Init": State((Agent(), execute), by_dice)}))
    assert [(t.target, t.when) for t in table.transitions] == [("End", OVER)]


# The way of an episode


def test_the_current_state_by_event(episode):
    table, events = read_table(episode), episode.events
    way = table.list_states(events)
    assert [state for _, state in way] == WAY
    assert way[-2][1] == list_states(episode)[-1]
    for number, state in way[1:-1]:
        assert isinstance(events[number], Instructed)
        assert events[number].span.text.strip() == f"[{state}]"
    # What is done between two of them is done in the first.
    actions = {number: e.action for number, e in enumerate(events) if isinstance(e, Acted)}
    by_state = {
        action: [state for at, state in way if at <= number][-1]
        for number, action in actions.items()
    }
    assert by_state == {
        "SHOW TABLES": "Init",
        "DESC bok": "Observe",
        "DESC book": "Error",
        "SELECT count(*) FROM book": "Solve",
        "submit": "Verify",
    }


@WAYS
def test_a_start_with_an_agent_is_one_state(states, way):
    table = read_table(MACHINES["alfworld-heat"])
    events = [Spawned(0, None, 0, span(Provenance.CONTEXT, "go"), ""), *named(*states)]
    assert [state for _, state in table.list_states(events)] == way


def test_before_the_first_event_there_is_no_state():
    assert read_table(SQL).list_states([]) == []


def test_a_machine_that_a_budget_ended_stays_in_its_state():
    session = load_method("stateflow", "sql")(
        tk.ScriptedEngine(WORDS), tk.InterCodeSql("dev", 0), seed=0, path=None, calls=2
    )
    way = draw_machine(session.run(progress=False)).way
    assert way == ("Init", "Observe", "Error", "Solve")


def test_the_states_of_sf_chat_and_of_an_ablation():
    chat = make_session("sf_chat", [f"{words.partition('=>')[0]}=>" for words in WORDS])
    assert list(draw_machine(chat.run(progress=False)).way) == WAY
    short = [WORDS[1], WORDS[2], WORDS[3]]
    ablation = make_session("stateflow, no_verify", short).run(progress=False)
    assert draw_machine(ablation).way == ("Init", "Observe", "Solve", "Solve", "End")


def test_a_name_that_is_no_state_is_none():
    words = ["think: [Nowhere] [Verify]\n> DESC book =>", *WORDS[2:]]
    way = draw_machine(make_session(words=words).run(progress=False)).way
    assert way == ("Init", "Observe", "Solve", "Verify", "End")


# The picture


def test_the_picture_marks_where_an_episode_is_and_was(episode):
    picture = draw_machine(episode)
    svg = picture._repr_svg_()
    assert find_marks(svg, "tk-now") == ["Verify End", "End"]
    assert set(find_marks(svg, "tk-was")) == {
        *WAY,
        *(f"{a} {b}" for a, b in pairwise(WAY)),
    }
    assert not find_marks(draw_svg(read_table(SQL)), "tk-was")
    assert repr(picture).endswith("Init -> Observe -> Error -> Solve -> Verify -> End")


def test_the_picture_shows_what_is_left_out_and_how_often_a_state_was_entered():
    svg = draw_svg(read_table(SQL.without("Verify"), SQL), ["Init", "Observe", "Solve", "Solve"])
    assert find_marks(svg, "tk-out") == ["Verify"]
    assert "×2" in svg
    assert find_marks(svg, "tk-now") == ["Solve Solve", "Solve"]


def test_the_count_of_a_state_stands_in_its_box_where_no_arrow_goes():
    svg = ET.fromstring(draw_svg(read_table(SQL), ["Init", "Observe", *["Solve"] * 8]))
    counts = []
    for group in svg.findall(".//{*}g"):
        if group.get("data-state"):
            rect, name, times = (part for part in group if not part.tag.endswith("title"))
            left, top, width, height = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
            right, below = float(times.get("x")), float(times.get("y"))
            assert left < right - 30
            assert right < left + width
            assert float(name.get("y")) + 11 < below < top + height
            counts.append(times.text)
    assert counts.count("×8") == 1
    assert "text-anchor: end; }" in "".join(svg.itertext())  # it ends there


NAMES = "FirstError Search SyntaxError RuntimeError Explore_environment Verify_the_answer End"
LONG = Machine(
    {name: State((), go_to(after)) for name, after in pairwise(NAMES.split())}, start="FirstError"
)


@pytest.mark.parametrize("machine", [SQL, BASH, TEXTCRAFT, *MACHINES.values(), LONG])
def test_no_two_states_are_drawn_over_one_another(machine):
    boxes = [
        tuple(float(rect.get(name)) for name in ("x", "y", "width", "height"))
        for rect in ET.fromstring(draw_svg(read_table(machine))).iter()
        if rect.tag.endswith("rect")
    ]
    assert len(boxes) == len(machine.states) + len(machine.final)
    for number, (x, y, width, height) in enumerate(boxes):
        assert x >= 0
        for x2, y2, width2, height2 in boxes[:number]:
            assert x >= x2 + width2 or x2 >= x + width or y >= y2 + height2 or y2 >= y + height


def test_names_in_the_picture_are_text():
    svg = draw_svg(read_table(Machine({HOSTILE: State((), go_to("End"))}, start=HOSTILE)))
    assert "<img" not in svg
    assert find_marks(svg, "tk-state") == [HOSTILE, "End"]


# In the player


def test_what_a_program_writes_is_in_the_frames(episode):
    """The frames of a method whose program writes into its thread fold into the episode's view."""
    session = make_session()
    recorder = FrameRecorder(session.episode)
    state = json.loads(json.dumps(recorder.about["start"]))
    for event in session:
        for frame in json.loads(json.dumps(recorder.add(event))):
            fold(state, frame)
        if not event.passing:
            assert strip_details(state) == view_as_json(session.episode)


def test_a_player_with_a_machine_is_a_player(episode):
    player = watch_machine(make_session(), paused=True)
    player.step("thread")
    player.resume()
    played = player.wait()
    assert played.reward == 1
    assert repr(player).splitlines()[0] == " -> ".join(WAY)
    assert "data:image/svg+xml;base64," in player.static
    assert str(player._esm).startswith(MODULE)
    assert json.loads(player.machine)["states"] == list(SQL.states)


@pytest.mark.parametrize(
    "machine",
    [{}, {"states": 5}, {"states": {}, "rerouted": {}, "start": "x", "final": ["End"]},
     {"states": {"Init": {"outputs": 5}}, "rerouted": {}, "start": "Init", "final": ["End"]},
     {"states": {"Init": {"outputs": [], "next": {"patterns": 5}}}, "rerouted": [],
      "start": "Init", "final": ["End"]},
     {"states": {"Init": {"outputs": [], "next": {}}}, "rerouted": {}, "start": [], "final": []}],
    ids=lambda machine: json.dumps(machine)[:60],
)  # fmt: skip
def test_a_machine_of_a_trace_that_is_none_is_an_error(episode, machine):
    header = {**episode.header, "program": {"name": "stateflow", "machine": machine}}
    changed = Episode(header)
    with pytest.raises(ValueError, match="the trace's state machine is none"):
        read_table(changed)


def test_the_names_of_a_machine_act_on_no_terminal(episode):
    text = json.dumps(episode.header).replace("Observe", "\\u001b[2J")
    table = read_table(Episode(json.loads(text)))
    assert "␛[2J" in str(table)
    assert "\x1b" not in str(table)

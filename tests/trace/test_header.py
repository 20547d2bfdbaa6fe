"""The header: made from plain parts, strict JSON, and checked before anything relies on it."""

import json
from functools import partial

import pytest

import thread_kit as tk
from thread_kit import exchange
from thread_kit.dialect import AGENT, ASYNC, COMMANDS, PAGES, QA, QA_ASYNC, Dialect, Stop
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.sequence import Provenance, Span
from thread_kit.trace.episode import Episode, TraceError
from thread_kit.trace.events import (
    Acted,
    Closed,
    GeneratedSpan,
    Spawned,
    TokenProbs,
    from_json,
    to_json,
)
from thread_kit.trace.header import make_header, read_header
from thread_kit.trace.jsonl import to_line

EPISODES = [
    path
    for folder in ("episodes", "errors")
    for path in sorted(tk.resource(f"data/{folder}").glob("*.jsonl"))
    if path.name != "reviews.jsonl"
]


def header(**parts) -> dict:
    given = {
        "model": {"name": "m"},
        "environment": None,
        "task": None,
        "prompts": [],
        "dialect": ASYNC,
        "exchange": {"phi": exchange.phi_last_line},
        "scope": "exported",
        "limits": {"calls": 3, "seconds": None},
        "sampling": {"temperature": 0.0, "seed": 0},
    }
    return make_header(**{**given, **parts})


def test_a_header_is_that_of_a_session():
    prompt = tk.load_prompt("textcraft")
    session = tk.Session(ScriptedEngine(["#END#"]), context="Goal: tea.", prompt=prompt)
    written = json.loads(next(session.episode.to_lines()))
    functions = {name: getattr(exchange, said) for name, said in written["exchange"].items()}
    tokens = written["prompts"][prompt.sha256]["tokens"]
    assert tokens
    made = header(
        model=written["model"],
        prompts=[(prompt, tokens)],
        dialect=prompt.dialect,
        exchange=functions,
        scope="exported",
        limits=written["limits"],
        sampling=written["sampling"],
    )
    assert made == written
    assert list(made) == list(written)


def test_a_header_reads_back_as_it_is_and_is_strict_json():
    made = header(
        task={"x": float("nan"), "y": {1}},
        program={"planner": len},
        fork={"event": 3, "of": "0"},
        logprobs=True,
    )
    assert read_header(json.loads(to_line(made), parse_constant=None)) == made
    assert made["task"] == {"x": "nan", "y": "{1}"}
    assert made["program"] == {"planner": "len"}
    assert made["dialect"]["spawn"] == "~>"
    assert "code" not in made["dialect"]


WRONG = {
    "prompts": [[], {"q": None}, {"q": {}}, {"q": {"name": "q", "text": 5, "tokens": []}},
                {"q": {"text": "", "tokens": []}}, {"q": {"name": 5, "text": "", "tokens": []}},
                {"q": {"name": "q", "text": "", "tokens": ["x"]}},
                {"q": {"name": "q", "text": "", "tokens": [-1]}}],
    "exchange": ["phi", {"phi": 3}, {"phi": ["phi_last_line"]}, None],
    "dialect": [3, {"listen": 3}, {"listen": ""}, {"actions": ">"}, {"x": "y"}, {"code": "yes"},
                {"after_close": 5}, {"spawn": []}],
    "limits": [[], {"calls": "many"}, {"seconds": float("inf")}, {"calls": 10**400}],
    "sampling": [None, {"temperature": float("inf")}, {"temperature": float("nan")}],
    "model": ["m", None],
    "environment": [["textcraft"]],
    "scope": [3],
    "versions": [{"python": 3}],
    "program": [5, [], {"name": 5}, {"actor": {"name": None}}, {"actor": []}],
    "fork": [{}, {"event": "x"}, 3],
    "logprobs": ["yes"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, wrong in WRONG.items() for value in wrong]
)
def test_a_field_that_no_session_writes_is_a_trace_error(name, value):
    lines = [json.dumps({**header(), name: value})]
    with pytest.raises(TraceError, match="line 1: this is no trace"):
        Episode.from_lines(lines)


def test_the_name_that_logprobs_had_before_is_read():
    call = GeneratedSpan(
        0,
        Span(Provenance.GENERATED, "ab", (1, 2)),
        *(Stop.END, 0, 2, 0.5, (1, 1)),
        (TokenProbs(0.5, {"=>": 0.25}, (("a", 0.5),)), TokenProbs(1, {}, ())),
    )
    data = json.loads(to_line(to_json(call)))
    assert from_json(data) == call
    data["lens"] = data.pop("logprobs")
    assert from_json(data) == call
    assert Episode.from_lines([json.dumps({**header(), "lens": True})]).header["logprobs"] is True


CALL = {
    "event": "generatedspan",
    "thread": 0,
    "span": ["generated", "ab", [1, 2]],
    "stop": "end",
    "reused": 0,
    "evaluated": 2,
    "seconds": 0.5,
}
CLOSED = {"event": "closed", "status": "ended", "reward": 1, "detail": "", "seconds": 2}
PROB = [0.5, {"=>": 0.5}, [["a", 0.5]]]
UNFIT = [
    {**CALL, "lengths": [1]},
    {**CALL, "lengths": [1, 2]},
    {**CALL, "lengths": [3, -1]},
    {**CALL, "logprobs": [PROB]},
    {**CALL, "logprobs": [PROB, ["0.5", {}, []]]},
    {**CALL, "logprobs": [PROB, [10**400, {}, []]]},
    {**CALL, "logprobs": [PROB, [0.5, {"=>": float("nan")}, []]]},
    {**CALL, "seconds": 10**400},
    {**CALL, "evaluated": 10**400},
    {**CALL, "span": ["generated", "ab", [10**400, 2]]},
    {**CLOSED, "seconds": 10**400},
    {**CLOSED, "seconds": float("inf")},
    {**CLOSED, "reward": 10**400},
    {**CLOSED, "reward": float("nan")},
]


@pytest.mark.parametrize("data", UNFIT)
def test_numbers_that_nobody_can_compute_with_and_lengths_that_do_not_fit_are_refused(data):
    context = Spawned(0, None, 0, Span(Provenance.CONTEXT, "c", (1,)), "q")
    lines = [json.dumps(header()), to_line(to_json(context)), json.dumps(data)]
    with pytest.raises(TraceError, match="line 3"):
        Episode.from_lines(lines)


@pytest.mark.parametrize(("thread", "parent"), [(1, None), (0, 0), (1, 7)])
def test_a_tree_that_has_no_root_or_two_is_refused(thread, parent):
    with pytest.raises(ValueError, match="thread"):
        Episode().add(Spawned(thread, parent, 0, Span(Provenance.CONTEXT, "c", (1,)), "q"))


def test_a_nan_of_an_environment_is_written_as_strict_json(tmp_path):
    episode = Episode(header())
    episode.add(Spawned(0, None, 0, Span(Provenance.CONTEXT, "c", (1,)), "q"))
    episode.add(Acted(0, "look", "a cup", 0.0, False, False, {"score": float("nan")}))
    lines = episode.save(tmp_path / "e.jsonl").read_text().splitlines()
    assert json.loads(lines[2], parse_constant=pytest.fail)["info"] == {"score": "nan"}


@pytest.mark.parametrize("path", EPISODES, ids=[path.stem[:30] for path in EPISODES])
def test_a_committed_trace_is_saved_as_it_was_to_the_letter(path, tmp_path):
    saved = Episode.load(path).save(tmp_path / "again.jsonl")
    was, now = (file.read_text().splitlines() for file in (path, saved))
    assert list(map(json.loads, now)) == list(map(json.loads, was))
    assert now == was


def test_a_closed_reward_that_is_whole_stays_so():
    assert to_line(to_json(from_json(CLOSED))) == to_line(CLOSED)  # 1 == 1.0, as numbers
    assert isinstance(from_json(CLOSED), Closed)


@pytest.mark.parametrize("actor", [None, 3, "react"])
def test_a_program_with_any_parameters_is_read_again(tmp_path, actor):
    def program(thread, *, actor, name):
        yield from ()

    path = tmp_path / "e.jsonl"
    own = partial(program, actor=actor, name=7)
    tk.Session(ScriptedEngine([]), context="go", program=own, path=path).run(progress=False)
    assert Episode.load(path).header["program"] == {"name": "program", "actor": actor}


@pytest.mark.parametrize("given", [{"seed": 2**64}, {"calls": 10**20}, {"tokens": 2**63}])
def test_numbers_that_no_trace_can_hold_are_refused(given):
    with pytest.raises(ValueError, match="is no number that a trace can hold"):
        tk.Session(ScriptedEngine([]), context="go", **given)


@pytest.mark.parametrize("dialect", [AGENT, COMMANDS, PAGES, QA, ASYNC, QA_ASYNC])
def test_the_marks_of_every_dialect_are_read_back(dialect):
    session = tk.Session(ScriptedEngine(["#END#"]), context="go", dialect=dialect)
    header = session.episode.header
    session.close()
    assert read_header(json.loads(json.dumps(header)))["dialect"] == header["dialect"]
    assert Dialect.of(header["dialect"]) == dialect

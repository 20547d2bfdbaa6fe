"""Suites: what is played, what is on disk, and what is left when a process is killed."""

from __future__ import annotations

import io
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import ClassVar

import pytest
from helpers import suites
from helpers.suites import SHOWN, THREAD, Yard, speak, suite, tasks
from hypothesis import given, settings
from hypothesis import strategies as st
from tqdm import tqdm

from thread_kit import exchange
from thread_kit.__main__ import main
from thread_kit.analysis.statistics import success
from thread_kit.dialect import AGENT
from thread_kit.engines.engine import EngineError
from thread_kit.engines.models import EMBEDDED, find_adapter, load_model
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.benchmark import spread_evenly
from thread_kit.envs.env import Env, Step
from thread_kit.envs.registry import find_benchmark
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.exchange import as_observed, phi_full_sequence, psi_print
from thread_kit.experiments.job import solvable
from thread_kit.experiments.method import PerTaskMethod, SessionMethod
from thread_kit.experiments.method_registry import load_method
from thread_kit.experiments.own_code import hash_own_code, is_other_code
from thread_kit.experiments.results import Results
from thread_kit.experiments.results_file import (
    EpisodeKey,
    ResultsFile,
    ResultsFileError,
    read_results,
)
from thread_kit.methods.react import react
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

pytestmark = pytest.mark.slow

VOLATILE = ("seconds", "at_once", "trace", "reused", "evaluated")
"""What two runs may differ in: what is in the cache already depends on what ran before."""


def lasting(rows: list[dict]) -> list[dict]:
    kept = [{name: row[name] for name in row if name not in VOLATILE} for row in rows]
    return sorted(kept, key=EpisodeKey.of)


def keys(path: Path) -> list[EpisodeKey]:
    return [EpisodeKey.of(row) for row in read_results(path)]


# What is played, and what is played again


def test_a_suite_plays_every_method_on_every_task_with_every_model_and_seed(tmp_path):
    two = {"a": suites.oracle, "b": ScriptedEngine(speak)}
    with pytest.warns(UserWarning, match="at temperature 0 the runs of several seeds"):
        one = suite(tmp_path / "r.jsonl", models=two, seeds=[3, 5])
    assert len(one) == 24
    results = one.run(progress=False)
    played = {(row["method"], row["model"], row["task"]["number"], row["seed"]) for row in results}
    names = [THREAD.name, SHOWN.name]
    assert played == {
        (m, k, t, s) for m in names for k in "ab" for t in (40, 47, 55) for s in (3, 5)
    }
    assert all(row["solved"] and row["solvable"] and not row["error"] for row in results)
    lines = (tmp_path / "r.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == results.rows


def test_each_task_is_played_by_all_methods_before_the_next_one(tmp_path):
    results = suite(tmp_path / "r.jsonl").run(progress=False)
    played = [(row["task"]["number"], row["method"]) for row in results]
    assert played == [(task, name) for task in (40, 47, 55) for name in (THREAD.name, SHOWN.name)]


@pytest.mark.parametrize("at_once", [2, 6])
def test_episodes_side_by_side_come_to_what_they_come_to_alone(tmp_path, at_once):
    alone = suite(tmp_path / "1.jsonl").run(progress=False)
    running = []

    class Watched(ScriptedEngine):
        def step(self):
            running.append(len(self._running))
            return super().step()

    models = {"oracle": Watched(speak)}
    together = suite(tmp_path / "2.jsonl", models=models).run(at_once=at_once, progress=False)
    assert max(running) == at_once
    assert lasting(together.rows) == lasting(alone.rows)


@pytest.mark.parametrize(("fails", "status"), [(False, "out of calls"), (True, "failed")])
def test_what_a_task_holds_is_given_back_however_its_episode_ends(tmp_path, fails, status):
    held = []

    class Holding(TextCraft):
        def reset(self):
            held.append(self)
            return super().reset()

        def close(self):
            if self in held:
                held.remove(self)

    class Failing(ScriptedEngine):
        def step(self):
            if fails:
                raise OSError("the engine is gone")
            return super().step()

    rows = suite(
        tmp_path / "rows.jsonl",
        environment=Holding,
        models={"oracle": Failing(speak)},
        options={"calls": 1},
    ).run(at_once=2, progress=False)
    assert [row["status"] for row in rows] == [status] * 6
    assert held == []


def test_what_is_in_the_file_is_not_played_again(tmp_path):
    path = tmp_path / "r.jsonl"
    first = suite(path, tasks=tasks(40)).run(progress=False)
    engine = ScriptedEngine(speak)
    again = suite(path, tasks=tasks(40), models={"oracle": engine}).run(progress=False)
    assert again.rows == first.rows
    assert engine.seen == []
    more = suite(path, tasks=tasks(47, 40), models={"oracle": engine}).run(progress=False)
    assert len(more) == 4
    assert more.rows[:2] == first.rows
    assert not any("Goal: craft " + TextCraft("dev", 40).goal in text for text in engine.seen)


@pytest.mark.parametrize(
    "changed",
    [
        {"methods": [SessionMethod("thread", SHOWN.prompt)]},
        {"methods": [SessionMethod("thread", fixed={"scope": "shared"})]},
        {"methods": [SessionMethod("thread", fixed={**THREAD.fixed, "program": react})]},
        {"options": {"calls": 50}},
        {"options": {"temperature": 0.5}},
        {"options": {"phi": phi_full_sequence}},
        {"options": {"abstract": as_observed}},
        {"options": {"dialect": replace(AGENT, after_close=" ")}},
        {"seeds": [1]},
        {"models": {"oracle": ScriptedEngine(speak, name="another")}},
        {"models": {"other": suites.oracle}},
    ],
    ids=[
        *("prompt", "scope", "program", "calls", "temperature", "phi", "abstract", "dialect"),
        *("seed", "engine", "model"),
    ],
)
def test_what_makes_another_episode_is_played_and_kept_apart(tmp_path, changed):
    path = tmp_path / "r.jsonl"
    given = {"methods": [THREAD], "tasks": tasks(40)}
    first = suite(path, **given).run(progress=False)
    other = suite(path, **{**given, **changed}).run(progress=False)
    assert len(first) == len(other) == 1
    assert EpisodeKey.of(first.rows[0]) != EpisodeKey.of(other.rows[0])
    assert read_results(path) == first.rows + other.rows
    assert suite(path, **given).run(progress=False).rows == first.rows


def test_where_and_how_fast_a_model_runs_makes_no_other_episode(tmp_path):
    path = tmp_path / "r.jsonl"
    for room in (100_000, 50_000):
        engine = ScriptedEngine(speak, context=room)
        suite(path, models={"oracle": engine}).run(progress=False)
    assert len(read_results(path)) == 6


def test_an_engine_stays_open_where_it_was_given_and_not_loaded(tmp_path):
    class Closing(ScriptedEngine):
        closed = 0

        def close(self):
            self.closed += 1

    mine, made = Closing(speak), []
    models = {"mine": mine, "its own": lambda: made.append(Closing(speak)) or made[-1]}
    suite(tmp_path / "r.jsonl", models=models).run(progress=False)
    assert (mine.closed, [one.closed for one in made]) == (0, [1])


def test_traces_lie_beside_the_file(tmp_path):
    results = suite(tmp_path / "r.jsonl", traces=True).run(at_once=2, progress=False)
    for row in results:
        episode = Episode.load(tmp_path / row["trace"])
        assert episode.header["task"] == row["task"]
        assert (episode.reward, episode.usage.calls) == (row["reward"], row["calls"])
    assert len(list((tmp_path / "r-traces").iterdir())) == 6


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"methods": []}, "without a method"),
        ({"methods": [THREAD, THREAD]}, "method 'thread' is there twice"),
        ({"tasks": tasks(1, 2, 1)}, "is there twice"),
        ({"seeds": [4, 4]}, "seed 4 is there twice"),
        ({"methods": ["thread"]}, "'thread' is no method; load one"),
        ({"models": ["smollm2-135m"]}, "has no names; give"),
        ({"models": {"a": "smollm2-135m"}}, "the model 'a' is no engine"),
        ({"environment": "textcraft"}, "makes none; give its class"),
        ({"tasks": [47]}, "the task 47 is not what makes"),
        ({"options": {"temprature": 0.7}}, "no option 'temprature'; did you mean 'temperature'"),
        ({"options": {"seed": 1}}, "no option 'seed'"),
        ({"options": {"seed": 1}}, r"no option 'seed'; give the suite seeds=\(3,\)"),
        ({"options": {"prompt": 1}}, r"no option 'prompt'; give the suite methods=\[tk.Session"),
        ({"options": {"path": "x"}}, "no option 'path'; give the suite traces=True"),
        ({"options": {"seeds": 1}}, r"no option 'seeds'; give it beside the options: Suite\("),
        ({"seeds": 3}, r"seeds=3 is no list; give \(0, 1, 2\) or range\(3\)"),
        ({"tasks": 5}, r"tasks=5 is no list; give \[\{'number': 0\}\]"),
        ({"tasks": {"number": 1}}, "is no list; give"),
        ({"methods": THREAD}, r"methods=SessionMethod.* is no list; give \[tk.load_method"),
    ],
)
def test_a_suite_that_makes_no_sense_is_refused(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        suite(tmp_path / "r.jsonl", **changed)


def test_a_method_fixes_what_a_session_has_by_functions_with_names():
    with pytest.raises(ValueError, match="fixes 'phy', and a session has no such parameter"):
        SessionMethod("mine", fixed={"phy": psi_print})
    for psi in (lambda child: "", partial(lambda child: "")):
        with pytest.raises(ValueError, match="psi of 'mine' is a lambda"):
            SessionMethod("mine", fixed={"psi": psi})
    with pytest.raises(ValueError, match="fixes 'seed'"):
        SessionMethod("mine", fixed={"seed": 1})


def test_the_bar_counts_episodes_and_says_what_is_solved(tmp_path, capsys):
    suite(tmp_path / "r.jsonl").run()
    error = capsys.readouterr().err
    assert "6 solved: 100%" in error
    assert "6/6" in error


# What goes wrong


class Moody(Env):
    """One of its tasks breaks."""

    name = "moody"

    def __init__(self, kind: str) -> None:
        self.task = {"kind": kind}
        if kind == "no start":
            raise OSError("the game is not installed")

    def reset(self) -> str:
        return "Do it."

    def step(self, action: str) -> Step:
        if self.task["kind"] == "breaks":
            raise OSError("the game is gone")
        return Step("Done.", float(self.task["kind"] == "works"), True, False, {})

    def again(self) -> Env:
        return Moody(self.task["kind"])

    def oracle(self) -> list[str] | None:
        return ["do"] if self.task["kind"] in ("works", "fails") else None


KINDS = [{"kind": kind} for kind in ("works", "breaks", "no start", "unknown", "fails")]


def act_once(text: str) -> str:
    return "#END#" if "Done." in text else "> do =>"


def moody(path: Path, replies=act_once, **changed):
    engine = ScriptedEngine(replies)
    given = {"environment": Moody, "tasks": KINDS, "models": {"scripted": engine}}
    return suite(path, **{**given, "methods": [THREAD], **changed})


def mistaken(*_):
    raise KeyError("a mistake of whoever wrote it")


class Tenths(Moody):
    """Ten tenths are no whole to a machine."""

    def step(self, action: str) -> Step:
        return Step("Done.", sum([0.1] * 10), True, False, {})


@pytest.mark.parametrize("name", ["psi", "xi", "abstract"])
def test_exceptions_of_a_methods_own_functions_are_counted_where_the_episode_goes_on(
    tmp_path, name
):
    broken = SessionMethod("broken", prompt=THREAD.prompt, fixed={name: mistaken})
    given = {"methods": [broken, THREAD], "models": {"oracle": suites.oracle}}
    results = suite(tmp_path / "r.jsonl", **given).run(progress=False)
    failures = {row["method"]: row["failures"] for row in results}
    assert failures["broken"] > 0 == failures[THREAD.name]
    assert not any(row["error"] for row in results if row["method"] == THREAD.name)
    assert "exceptions of methods' own code in them" in repr(results)
    table = success(results.frame).set_index("method")
    assert table.loc["broken", "failures"] > 0 == table.loc[THREAD.name, "failures"]


def break_at_once(thread):
    raise KeyError("a mistake of whoever wrote it")
    yield


def test_what_ends_an_episode_is_its_error_and_no_failure(tmp_path):
    broken = SessionMethod("broken", fixed={"program": break_at_once})
    results = moody(tmp_path / "r.jsonl", methods=[broken], tasks=KINDS[:1]).run(progress=False)
    assert [(row["failures"], row["error"][:8]) for row in results] == [(0, "KeyError")]


@pytest.mark.filterwarnings("error")
def test_seeds_of_a_method_that_samples_by_itself_are_no_repeats(tmp_path):
    hot = SessionMethod("hot", fixed={"temperature": 0.7})
    moody(tmp_path / "r.jsonl", methods=[hot], seeds=[0, 1])


def make_phi(body: str):
    space: dict = {"exchange": exchange}
    exec(f"def phi_mine(s, v, d):\n    return exchange.phi_last_line(s, v, d){body}", space)
    return space["phi_mine"]


def test_rows_of_other_code_of_ones_own_are_told_and_stay(tmp_path):
    def play(phi, **options):
        method = SessionMethod("mine", prompt=THREAD.prompt, fixed={"phi": phi})
        given = {"methods": [method], "models": {"oracle": suites.oracle}, "tasks": tasks(40)}
        return suite(tmp_path / "r.jsonl", **given).run(progress=False, **options).rows

    first = play(make_phi(""))
    assert first[0]["code"]
    assert play(make_phi("  # the same")) == first  # no warning: the tests make errors of them
    with pytest.warns(UserWarning, match="1 of the episodes of 'mine' were played with other code"):
        assert play(make_phi(".strip()")) == first


class Program:
    def run(self, thread):
        return react(thread)


class OwnMethod(SessionMethod):
    def __call__(self, engine, env, **options):
        return super().__call__(engine, env, **options)


def test_what_is_ones_own_is_found_in_all_that_a_suite_is_made_of():
    def fixed(**parts):
        return SessionMethod("x", fixed=parts)

    for own in (
        *(Yard, Moody, partial(Moody, kind="x"), Program().run, OwnMethod("x"), make_phi("")),
        *(fixed(phi=make_phi("")), fixed(program=partial(react, start=make_phi)), Own()),
        PerTaskMethod("x", make=make_phi("")),
    ):
        assert hash_own_code(own), own
    for kits in (THREAD, TextCraft, partial(TextCraft, root=Path("x")), fixed(program=react)):
        assert hash_own_code(kits) == "", kits
    one, other = make_phi(""), make_phi(".strip()")
    assert hash_own_code(fixed(phi=one, psi=other)) == hash_own_code(fixed(psi=other, phi=one))
    assert is_other_code(hash_own_code(one), hash_own_code(other))
    assert not is_other_code(hash_own_code(one), "2.7:0123")


def _make_parts(number, step):
    def phi(s, v, d, *, n=number):
        return n

    class Base:
        def step(self):
            return step

    class Mine(Base):
        N = number

    return phi, Mine


def test_what_a_function_has_from_around_it_is_code():
    def make(number):
        return lambda: number

    assert hash_own_code(make(3)) == hash_own_code(make(3)) != hash_own_code(make(9))

    def make_early():
        early = lambda: late  # noqa: E731
        code = hash_own_code(early)
        late = 1
        return code, hash_own_code(early), late

    early, now, _ = make_early()
    assert early != now


@pytest.mark.parametrize("part", [0, 1])
def test_defaults_constants_and_own_base_classes_are_code(part):
    same, again, other = (_make_parts(number, "x")[part] for number in (3, 3, 9))
    assert hash_own_code(same) == hash_own_code(again) != hash_own_code(other)


def test_what_differs_from_run_to_run_is_no_code():
    parts = {"NAMES": {"b", "a"}, "MIXED": {1: "x", "a": "y", None: object()}, "OTHER": object()}
    assert hash_own_code(type("Mine", (), {**parts, "plays": 3})) == ""


def test_classes_that_hold_one_another_are_described_once():
    class Base(Yard):
        known: ClassVar[dict[str, type]] = {}

        def __init_subclass__(cls):
            Base.known[cls.__name__] = cls

    class Mine(Base):
        def step(self, action):
            return super().step(action)

    assert hash_own_code(Mine) == hash_own_code(Mine) != hash_own_code(Yard)


def test_a_base_class_of_ones_own_is_code():
    class Other(Yard):
        def step(self, action):
            return super().step(action)

    class One(Yard):
        pass

    assert hash_own_code(type("One", (Other,), {})) != hash_own_code(type("One", (One,), {}))


def test_a_whole_reward_is_whole_however_it_was_added_up(tmp_path):
    given = {"environment": Tenths, "tasks": KINDS[:1]}
    row = moody(tmp_path / "r.jsonl", **given).run(progress=False).rows[0]
    assert (row["solved"], row["reward"], row["solvable"]) == (True, 1, True)


@pytest.mark.parametrize("at_once", [1, 5])
def test_an_episode_that_breaks_down_is_a_row_and_not_the_end(tmp_path, at_once):
    results = moody(tmp_path / "r.jsonl").run(at_once=at_once, progress=False)
    found = {row["task"]["kind"]: row for row in results}
    assert found["breaks"]["error"] == "OSError: the game is gone"
    assert found["breaks"]["status"] == "failed"
    assert found["no start"]["error"] == "OSError: the game is not installed"
    assert found["no start"]["status"] == "not started"
    assert {kind: row["solved"] for kind, row in found.items()} == {
        "works": True,
        "breaks": False,
        "no start": False,
        "unknown": False,
        "fails": False,
    }
    assert "2 broke down, the first with OSError" in repr(results)
    table = success(results.frame)
    assert (table["n"][0], table["solved"][0], table["errors"][0]) == (5, 1, 2)


def test_what_broke_down_is_played_again_only_when_asked(tmp_path):
    path = tmp_path / "r.jsonl"
    first = moody(path).run(progress=False)
    assert moody(path).run(progress=False).rows == first.rows
    again = moody(path).run(retry=True, progress=False)
    assert len(again) == len(read_results(path)) == 5
    assert again.rows[:3] == [row for row in first if not row["error"]]


def test_only_what_broke_down_of_this_suite_is_played_again(tmp_path):
    path = tmp_path / "r.jsonl"
    others = moody(path, seeds=[1], tasks=KINDS[:3]).run(progress=False).rows
    moody(path, tasks=KINDS[:3]).run(progress=False)
    moody(path, tasks=KINDS[:3]).run(retry=True, progress=False)
    assert [row for row in read_results(path) if row["seed"] == 1] == others
    moody(path, tasks=KINDS[:1]).run(retry=True, progress=False)
    assert len(read_results(path)) == 6


def test_what_was_solved_before_it_broke_down_is_played_again_too(tmp_path):
    """Its counts and its trace end where it broke down."""
    path = tmp_path / "r.jsonl"
    given = {"methods": [THREAD], "tasks": tasks(40)}
    (whole,) = suite(path, **given).run(progress=False).rows
    path.write_text(path.read_text("utf-8").replace('"error": ""', '"error": "disk full"'), "utf-8")
    assert suite(path, **given).run(progress=False).rows[0]["error"] == "disk full"
    (row,) = suite(path, **given).run(retry=True, progress=False)
    assert (row["solved"], row["error"], row["calls"]) == (True, "", whole["calls"])


def test_what_is_known_without_an_error_is_not_played_again(tmp_path):
    whole = suite(tmp_path / "1.jsonl", methods=[THREAD]).run(progress=False).rows
    torn = [{**row, "error": "disk full"} for row in whole]
    for number, known in enumerate((torn + whole, whole + torn)):
        silent = ScriptedEngine([])
        given = {"methods": [THREAD], "models": {"oracle": silent}}
        for part in range(2):
            one = suite(tmp_path / f"known-{number}.jsonl", known=known, **given)
            assert one.run(retry=True, progress=False).rows == whole, part
        assert not silent.seen


@pytest.mark.parametrize("retry", [False, True])
def test_what_is_known_without_an_error_takes_the_place_of_what_broke_down_here(tmp_path, retry):
    whole = suite(tmp_path / "1.jsonl", methods=[THREAD]).run(progress=False).rows
    path = tmp_path / "2.jsonl"
    path.write_text("".join(json.dumps({**row, "error": "disk full"}) + "\n" for row in whole))
    silent = ScriptedEngine([])
    one = suite(path, methods=[THREAD], models={"oracle": silent}, known=whole)
    assert one.run(retry=retry, progress=False).rows == whole
    assert read_results(path) == whole
    assert not silent.seen


def test_what_fails_behind_the_start_is_no_other_budgets_row(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    given = {"methods": [THREAD], "tasks": tasks(40)}
    (small,) = suite(path, **given, options={"calls": 3}).run(progress=False)
    monkeypatch.setattr("thread_kit.experiments.job.solvable", fail)
    (row,) = suite(path, **given, options={"calls": 200}).run(progress=False)
    assert (row["limits"]["calls"], row["error"]) == (200, "OSError: gone")
    assert read_results(path) == [small, row]
    (row,) = suite(path, **given, options={"calls": 201}).run(extend=True, progress=False)
    assert row["error"] == "OSError: gone"
    assert small in read_results(path)  # from which the next try goes on


@pytest.mark.parametrize(
    ("measures", "error"),
    [
        ({"points": 2**70}, "TypeError: points is"),
        ({"solved": "yes"}, "ValueError: a measure is called 'solved', as a column is; rename it"),
    ],
)
def test_measures_that_no_row_can_hold_are_their_episodes_error(tmp_path, measures, error):
    class Measuring(TextCraft):
        @property
        def measures(self):
            return measures

    given = {"methods": [THREAD], "tasks": tasks(40), "environment": Measuring}
    (row,) = suite(tmp_path / "r.jsonl", **given).run(progress=False)
    assert row["solved"]
    assert row["error"].startswith(error)
    assert read_results(tmp_path / "r.jsonl") == [row]


def test_what_of_a_sampled_run_could_not_be_started_is_no_greedy_episode(tmp_path):
    def missing(**task):
        raise OSError("no such game")

    options = {"environment": missing, "options": {"temperature": 0.7}}
    (row,) = suite(tmp_path / "r.jsonl", methods=[THREAD], tasks=tasks(40), **options).run(
        progress=False
    )
    assert (row["status"], row["temperature"]) == ("not started", 0.7)


def test_the_turns_of_a_task_are_its_own(tmp_path):
    task = {"split": "train", "number": 0, "turns": 3}
    benchmark = find_benchmark("sql")
    method = load_method("react", "sql")
    engine = ScriptedEngine(lambda text: "> SELECT 1 =>")
    given = {"environment": benchmark.environment, "tasks": [task], "models": {"m": engine}}
    (row,) = suite(tmp_path / "r.jsonl", methods=[method], **given).run(progress=False)
    assert (row["actions"], row["budget"]["actions"]) == (3, "chosen")


def test_what_broke_down_stays_until_it_is_played_again(tmp_path):
    path = tmp_path / "r.jsonl"
    first = moody(path).run(progress=False)

    def refuse():
        raise OSError("no model here")

    with pytest.raises(OSError, match="no model here"):
        moody(path, models={"scripted": refuse}).run(retry=True, progress=False)
    assert read_results(path) == first.rows


def test_rows_of_one_benchmark_are_not_taken_for_anothers(tmp_path):
    """Taught methods read no examples, and tasks of several benchmarks are named alike."""

    class Other(Moody):
        name = "other"

    path = tmp_path / "r.jsonl"
    (row,) = moody(path, tasks=KINDS[:1]).run(progress=False).rows
    (other,) = moody(path, tasks=KINDS[:1], environment=Other).run(progress=False).rows
    assert (row["environment"], other["environment"]) == ("moody", "other")
    assert read_results(path) == [row, other]
    assert moody(path, tasks=KINDS[:1], environment=Other).run(progress=False).rows == [other]


@dataclass
class Greeting:
    """A phi with something of its own, whose `repr` is an address."""

    words: list[str]
    __repr__ = object.__repr__

    def __call__(self, thread):
        return " ".join(self.words)


def test_own_functions_are_the_same_ones_in_every_process(tmp_path):
    """An address in the settings had every process play all anew."""
    path = tmp_path / "r.jsonl"
    for _ in range(2):
        given = {"phi": partial(exchange.phi_last_line), "psi": Greeting(["no"])}
        moody(path, tasks=KINDS[:1], options=given).run(progress=False)
    assert len(read_results(path)) == 1
    session = Session(ScriptedEngine([]), context="go", program=partial(Greeting([])))
    assert " at 0x" not in json.dumps(session.episode.header)


def test_a_seed_that_no_file_can_hold_is_refused(tmp_path):
    with pytest.raises(ValueError, match="seed=18446744073709551616 is no number that a trace"):
        moody(tmp_path / "r.jsonl", seeds=[0, 2**64])


@pytest.mark.filterwarnings("ignore:1 of the episodes of .thread. were played with other code")
def test_a_finished_episode_stays_where_it_cannot_be_started_again(tmp_path, monkeypatch):
    path = tmp_path / "r.jsonl"
    first = moody(path, tasks=KINDS[:1]).run(progress=False)
    monkeypatch.setattr(Moody, "__init__", fail)
    with pytest.warns(match="stays as it was: OSError: gone"):
        again = moody(path, tasks=KINDS[:1]).run(progress=False)
    assert again.rows == first.rows
    assert read_results(path) == first.rows


def test_an_episode_that_starts_at_last_takes_the_place_of_the_row_that_said_why_not(
    tmp_path, monkeypatch
):
    path = tmp_path / "r.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(Moody, "__init__", fail)
        (row,) = moody(path, tasks=KINDS[:1]).run(progress=False)
    assert row["status"] == "not started"
    (row,) = moody(path, tasks=KINDS[:1]).run(retry=True, progress=False)
    assert row["solved"]
    assert read_results(path) == [row]
    with ResultsFile(path) as file:  # as an earlier version may have left it
        file.append({**row, "settings": "", "prompt": "", "solved": False, "error": "OSError"})
    assert moody(path, tasks=KINDS[:1]).run(progress=False).rows == [row]
    assert read_results(path) == [row]


def fail(self, kind):
    raise OSError("gone")


def test_a_model_that_cannot_be_loaded_is_the_end_and_no_row(tmp_path):
    with pytest.raises(OSError, match="the model's file is gone"):
        suite(tmp_path / "r.jsonl", models={"gone": suites.unloadable}).run(progress=False)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_keeps_what_is_finished_and_closes_the_rest(tmp_path):
    path, said = tmp_path / "r.jsonl", count()

    def interrupted(text):
        if next(said) == 7:  # two calls an episode
            raise KeyboardInterrupt
        return act_once(text)

    kinds = [{"kind": "works"}, *({"kind": f"fails {n}"} for n in range(4))]
    with pytest.raises(KeyboardInterrupt):
        moody(path, interrupted, tasks=kinds, traces=True).run(progress=False)
    assert len(read_results(path)) == 3
    *_, last = sorted((tmp_path / "r-traces").iterdir(), key=lambda one: one.stat().st_mtime_ns)
    assert str(Episode.load(last).status) == "stopped"
    assert len(moody(path, tasks=kinds, traces=True).run(progress=False)) == 5
    assert len(list((tmp_path / "r-traces").iterdir())) == 5


# Killed


def killed(path: Path, steps: int, at_once: int = 1, traces: int = 1) -> bool:
    """Whether a suite's process was killed after so many steps of its engine, or ended before."""
    command = [sys.executable, suites.__file__, path, at_once, steps, traces]
    done = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode != 0


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("traces", [0, 1])
def test_a_killed_suite_goes_on_and_counts_nothing_twice(tmp_path, at_once, traces):
    """With traces each round is killed after as many steps, fewer than the longest episode has;
    without them, where an episode begins anew, it gets more steps each time."""
    path, before = tmp_path / "r.jsonl", []
    for kills in count():
        steps = (400 if at_once == 1 else 200) if traces else (kills + 1) * 700 // at_once
        is_over = not killed(path, steps, at_once, traces)
        rows = read_results(path)
        assert rows[: len(before)] == before
        assert len({EpisodeKey.of(row) for row in rows}) == len(rows)
        before = rows
        if is_over:
            break
        assert kills < 100
    assert kills >= 2
    assert lasting(before) == lasting(suite(tmp_path / "whole.jsonl").run(progress=False).rows)
    if traces:
        assert max(row["generated"] for row in before) > 200
        assert 1 <= sum(row["seconds"] is None for row in before) <= kills * at_once
        names = {Path(row["trace"]).name for row in before}
        assert {file.name for file in (tmp_path / "r-traces").iterdir()} == names
        assert all(Episode.load(tmp_path / row["trace"]).reward == 1 for row in before)


def killed_once(path: Path, steps: int = 250) -> Path:
    """The trace of the episode that was in flight when the suite's process was killed."""
    assert killed(path, steps)
    done = {row["trace"] for row in read_results(path)}
    (trace,) = (one for one in (path.parent / "r-traces").iterdir() if one.name not in str(done))
    assert len(Episode.load(trace).events) > 10
    return trace


def whole_rows(folder: Path) -> list[dict]:
    return lasting(suite(folder / "whole.jsonl").run(progress=False).rows)


def test_a_kill_while_the_past_is_repeated_loses_none_of_it(tmp_path):
    path = tmp_path / "r.jsonl"
    trace = killed_once(path)
    done = Episode.load(trace).events
    lines = trace.read_text().splitlines(keepends=True)
    trace.rename(trace.with_suffix(".before"))
    trace.write_text("".join(lines[:5]))  # the repeat came so far
    played = suite(path, traces=True).run(progress=False)
    assert lasting(played.rows) == whole_rows(tmp_path)
    assert Episode.load(trace).events[: len(done)] == done


@dataclass(frozen=True)
class Own:
    """A method that hands on what it knows of a suite's options, and not the past."""

    name: str = "own"

    def __call__(self, engine, env, *, seed, path, **options):
        return Session(engine, env, program=react, seed=seed, path=path, scope="none")


def test_an_interrupted_episode_of_a_method_that_hands_no_past_on_begins_anew(tmp_path):
    path, said = tmp_path / "r.jsonl", count()

    def interrupted(text):
        if next(said) == 2:
            raise KeyboardInterrupt
        return "> go =>"

    given = {"methods": [Own()], "environment": Yard, "tasks": [{}], "traces": True}
    with pytest.raises(KeyboardInterrupt):
        suite(path, models={"m": ScriptedEngine(interrupted)}, **given).run(progress=False)
    again = suite(path, models={"m": ScriptedEngine(["#END#"])}, **given).run(progress=False)
    (row,) = again.rows
    assert (row["calls"], row["error"]) == (1, "")
    assert row["seconds"] is not None
    assert [file.suffix for file in (tmp_path / "r-traces").iterdir()] == [".jsonl"]


@pytest.mark.parametrize("cut", ["nothing", "no trace", "half a line"])
def test_a_trace_that_nobody_can_read_is_begun_anew(tmp_path, cut):
    path = tmp_path / "r.jsonl"
    trace = killed_once(path)
    whole = trace.read_bytes()
    cuts = {"nothing": b"", "no trace": b"{}\n", "half a line": whole[: len(whole) - 20]}
    trace.write_bytes(cuts[cut])
    played = suite(path, traces=True).run(progress=False)
    assert lasting(played.rows) == whole_rows(tmp_path)
    assert (None in [row["seconds"] for row in played.rows]) is (cut == "half a line")


class Renamed(TextCraft):
    """Another wording than when the episode was interrupted."""

    def reset(self) -> str:
        return super().reset().replace("Crafting commands", "All crafting commands")


def test_a_past_that_does_not_happen_again_is_given_up(tmp_path):
    path = tmp_path / "r.jsonl"
    killed_once(path)
    played = suite(path, traces=True, environment=Renamed).run(progress=False)
    assert len(played) == 6
    assert not any(row["error"] for row in played.rows)
    assert None not in [row["seconds"] for row in played.rows]
    contexts = [
        Episode.load(tmp_path / row["trace"]).threads[0].context.text for row in played.rows
    ]
    assert all("All crafting" in one for one in contexts)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "r.jsonl"
    suite(path).run(progress=False)
    return path.read_bytes()


@given(cut=st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_a_file_cut_anywhere_is_read_and_goes_on_on_a_new_line(whole, tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "r.jsonl"
    path.write_bytes(whole[: int(cut * len(whole))])
    rows = [json.loads(line) for line in whole.splitlines()]
    # A last line that lacks nothing but its line break is there.
    ends = [n for n, byte in enumerate(whole) if byte == ord("\n")]
    left = sum(end <= path.stat().st_size for end in ends)
    assert read_results(path) == rows[:left]
    with ResultsFile(path) as ledger:
        assert ledger.rows == rows[:left]
        for row in rows[left:]:
            ledger.append(row)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"no JSON\n", b"{}\n", b"[1]\n", b"7\n", b"\xff\n", b"\n", b"\x00\x00\n"]
)
def test_a_file_that_is_no_ledger_is_refused_and_left_as_it_is(whole, tmp_path, line):
    path = tmp_path / "r.jsonl"
    path.write_bytes(whole + line + whole)
    with pytest.raises(ResultsFileError, match=r"r\.jsonl, line 7"):
        suite(path).run(progress=False)
    assert path.read_bytes() == whole + line + whole
    path.write_bytes(whole)
    assert len(suite(path).run(progress=False)) == 6  # the lock was given back


# One writer at a time

HOLD = """
import sys
from thread_kit.experiments.results_file import ResultsFile
with ResultsFile(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_two_suites_on_one_file_are_refused_until_the_first_has_ended(tmp_path):
    path = tmp_path / "r.jsonl"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(ResultsFileError, match=r"another suite is writing to .*r\.jsonl"):
            suite(path).run(progress=False)
        other.kill()
    assert len(suite(path).run(progress=False)) == 6


def test_a_second_suite_in_this_process_is_refused_too(tmp_path):
    with ResultsFile(tmp_path / "r.jsonl"), pytest.raises(ResultsFileError, match="another suite"):
        ResultsFile(tmp_path / "r.jsonl")


# Executors


@contextmanager
def dask():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 2, "processes": True, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


def spawned(workers: int = 2) -> Executor:
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


@pytest.mark.parametrize(
    "workers", [partial(ThreadPoolExecutor, 3), spawned, dask], ids=["threads", "processes", "dask"]
)
def test_an_executor_plays_the_same_and_goes_on_from_the_same_file(tmp_path, workers):
    path = tmp_path / "r.jsonl"
    first = suite(path, tasks=tasks(40)).run(progress=False)
    with workers() as executor:
        results = suite(path, traces=True).run(executor=executor, progress=False)
    assert results.rows[:2] == first.rows
    assert lasting(results.rows) == lasting(suite(tmp_path / "1.jsonl").run(progress=False).rows)
    assert len(keys(path)) == len(results) == 6
    for row in results.rows[2:]:
        assert Episode.load(tmp_path / row["trace"]).reward == 1


def test_a_worker_that_is_killed_ends_the_suite_and_loses_what_was_in_flight(tmp_path):
    path = tmp_path / "r.jsonl"
    models = {"oracle": partial(suites.deadly, 1000)}
    with pytest.raises(BrokenProcessPool), spawned(1) as executor:
        suite(path, models=models).run(executor=executor, progress=False)
    assert 0 < len(read_results(path)) < 6
    assert len(suite(path).run(progress=False)) == len(keys(path)) == 6


def test_a_worker_that_cannot_load_the_model_is_the_end_and_no_row(tmp_path):
    models = {"oracle": suites.unloadable}
    with (
        ThreadPoolExecutor(2) as executor,
        pytest.raises(OSError, match="the model's file is gone"),
    ):
        suite(tmp_path / "r.jsonl", models=models).run(executor=executor, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_threads_of_one_process_share_one_engine_and_it_is_closed(tmp_path):
    with ThreadPoolExecutor(3) as executor:
        suite(tmp_path / "r.jsonl", models={"a": once, "b": once_more}).run(
            executor=executor, progress=False
        )
    assert [engine.closed for engine in LOADED] == [1, 1]


LOADED: list[ScriptedEngine] = []


class Counted(ScriptedEngine):
    closed = 0

    def close(self) -> None:
        self.closed += 1


def once() -> ScriptedEngine:
    LOADED.append(Counted(speak))
    return LOADED[-1]


def once_more() -> ScriptedEngine:
    return once()


@pytest.mark.parametrize(
    ("changed", "at_once", "message"),
    [
        ({"models": {"oracle": ScriptedEngine([])}}, 1, "'oracle' is an engine"),
        ({"models": {"oracle": lambda: None}}, 1, "top of a module"),
        ({}, 2, "at_once is 2"),
    ],
    ids=["engine", "lambda", "at_once"],
)
def test_what_cannot_go_to_another_process_is_refused(tmp_path, changed, at_once, message):
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match=message):
        suite(tmp_path / "r.jsonl", **changed).run(executor=executor, at_once=at_once)


# Progress


class Clock:
    """A hundred seconds go by whenever an environment is made."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def environment(self, **task) -> TextCraft:
        self.now += 100
        return TextCraft(**task)


def test_the_time_left_comes_from_what_was_played_in_this_run(tmp_path, monkeypatch):
    path, clock = tmp_path / "r.jsonl", Clock()
    last = {}

    class Bar(tqdm):
        def __init__(self, **options):
            super().__init__(**options, file=io.StringIO())

        def close(self):
            if not self.disable:  # tqdm closes once more when it is forgotten
                last.update(self.format_dict)
            super().close()

    monkeypatch.setattr("thread_kit.experiments.suite.tqdm", Bar)
    monkeypatch.setattr("tqdm.std.time", clock)
    for numbers in ((40, 47), (40, 47, 55)):
        suite(path, tasks=tasks(*numbers), environment=clock.environment).run()
    assert (last["initial"], last["n"], last["total"]) == (4, 6, 6)
    # Two episodes, and one environment more for the question whether the task can be solved.
    assert last["elapsed"] == 300
    assert last["rate"] is None, "no moving average: tqdm divides what was played by the time"


# Results, solvability


def test_results_are_a_frame_and_a_dataset(tmp_path):
    path = tmp_path / "r.jsonl"
    suite(path).run(progress=False)
    with path.open("a") as file:
        file.write('{"method": "thr')  # a suite that is running
    results = Results.load(path)
    frame = results.frame
    assert len(frame) == len(results) == 6
    assert list(frame["number"]) == [row["task"]["number"] for row in results]
    assert set(frame["split"]) == {"dev"}
    assert json.loads(frame["limits"][0])["calls"] == 200
    dataset = results.to_dataset()
    assert dataset.num_rows == 6
    assert dataset["calls"] == list(frame["calls"])
    assert dataset[0]["task"] == frame["task"][0]
    assert "<table" in results._repr_html_()


def test_a_row_says_what_its_trace_says(tmp_path):
    (row,) = suite(tmp_path / "r.jsonl", methods=[THREAD], tasks=tasks(18), traces=True).run(
        progress=False
    )
    episode = Episode.load(tmp_path / row["trace"])
    assert row["depth"] == episode.depth > 1
    assert 0 < row["mean_depth"] < row["depth"]
    assert row["threads"] == len(episode.threads)
    assert row["actions"] == sum(len(one.actions) for one in episode.threads.values())
    used = episode.usage
    assert (row["evaluated"], row["generated"], row["reused"], row["prompt_tokens"]) == (
        used.evaluated,
        used.generated,
        used.reused,
        used.prompt,
    )
    assert row["engine"] == episode.header["model"]
    assert row["limits"] == episode.header["limits"]


@pytest.mark.parametrize(
    ("kind", "verdict"), [("works", True), ("fails", False), ("unknown", None)]
)
def test_the_oracles_actions_are_played_and_not_believed(kind, verdict):
    assert solvable(Moody, {"kind": kind}) is verdict


def test_the_oracles_verdict_stands_beside_each_episode(tmp_path):
    kinds = [{"kind": kind} for kind in ("works", "fails", "unknown")]
    results = moody(tmp_path / "r.jsonl", tasks=kinds).run(progress=False)
    assert [row["solvable"] for row in results] == [True, False, None]
    assert success(results.frame)["solvable"][0] == 1


# The embedded model, the command line


@pytest.mark.model
def test_the_embedded_model_side_by_side(tmp_path):
    models = {EMBEDDED: partial(load_model, cpu_threads=1)}
    one = suite(
        tmp_path / "r.jsonl",
        models=models,
        methods=[THREAD],
        tasks=tasks(40, 47),
        options={"calls": 20, "new_tokens": 100},
    )
    results = one.run(at_once=2, progress=False)
    assert [row["solved"] for row in results] == [True] * 2
    assert results.rows[0]["engine"]["adapter"]["file"] == "thread-135m.gguf"
    assert one.run(progress=False).rows == results.rows
    before = {row["settings"] for row in results}
    renamed = shutil.copy(find_adapter("thread-135m"), tmp_path / "renamed.gguf")
    one.models = {EMBEDDED: partial(load_model, adapter=renamed, cpu_threads=1)}
    assert one.run(progress=False).rows == results.rows
    other = find_adapter("react-textcraft-135m")
    one.models = {EMBEDDED: partial(load_model, adapter=other, cpu_threads=1)}
    one.tasks = tasks(47)
    assert not {row["settings"] for row in one.run(progress=False)} & before


@pytest.mark.model
def test_the_command_line_runs_a_suite_and_goes_on(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    budget = ["--calls", "4", "--new-tokens", "40"]
    command = ["suite", "--split", "dev", "--tasks", "2", "--at-once", "2", *budget]
    assert main([*command, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "Results(2 episodes, " in said
    assert "The oracle solves 2 of these 2 tasks." in said
    assert "published" in said
    assert "reproduction" not in said
    before = out.read_bytes()
    assert main([*command, "--out", str(out)]) == 0
    assert out.read_bytes() == before
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "900"], "1 to 200"),
        (["--models", "gpt-9"], "known: smollm2-135m"),
        (["--models", "helpers.suites:oracle", "gpt-9"], "known: smollm2-135m"),
        (["--models", "smollm2-135m", "smollm2-135m"], "two of the models are called smollm2-135m"),
        (
            ["--server", "http://localhost:1", "--quantize", "Q8_0"],
            "--quantize is for a model that",
        ),
    ],
)
def test_the_command_line_says_what_is_wrong(tmp_path, capsys, arguments, message):
    assert main(["suite", *arguments, "--out", str(tmp_path / "r.jsonl")]) == 2
    assert message in capsys.readouterr().err


def test_the_command_line_says_which_file_is_in_use(tmp_path, capsys):
    with ResultsFile(tmp_path / "r.jsonl"):
        assert main(["suite", "--tasks", "1", "--out", str(tmp_path / "r.jsonl")]) == 2
    assert "another suite is writing to" in capsys.readouterr().err


@given(st.integers(1, 200), st.integers(1, 200))
def test_a_part_of_the_tasks_is_spread_evenly_and_in_order(n, of):
    if n > of:
        with pytest.raises(ValueError, match=f"1 to {of}"):
            spread_evenly(list(range(of)), n)
        return
    chosen = spread_evenly(list(range(of)), n)
    assert len(set(chosen)) == n
    assert chosen[0] == 0
    gaps = {b - a for a, b in pairwise(chosen)}
    assert max(gaps, default=1) - min(gaps, default=1) <= 1


def test_errors_of_the_engine_are_errors_of_the_episode(tmp_path):
    class Failing(ScriptedEngine):
        def step(self):
            raise EngineError("no memory left")

    failing = Failing(speak)
    results = suite(tmp_path / "r.jsonl", models={"failing": failing}).run(progress=False)
    assert {row["error"] for row in results} == {"EngineError: no memory left"}


def test_functions_of_ones_own_are_part_of_the_settings(tmp_path):
    def phi_of_mine(sequence, variables, dialect):
        return f"I do it. {dialect.listen}"

    def settings_of(**fixed):
        method = SessionMethod("mine", fixed=fixed)
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        return suite(path, methods=[method]).run(progress=False).rows[0]["settings"]

    assert settings_of() == settings_of(phi=None)
    assert settings_of(phi=phi_of_mine) != settings_of()


def test_a_task_under_two_settings_is_said_where_a_table_cannot_show_it(tmp_path):
    results = suite(tmp_path / "r.jsonl").run(progress=False)
    twice = Results([*results.rows, {**results.rows[0], "settings": "others"}])
    assert "occur twice" in twice._repr_html_()

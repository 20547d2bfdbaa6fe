"""The command line, run as people run it."""

import subprocess
import sys
from argparse import Namespace

import pytest

from thread_kit.__main__ import main
from thread_kit.analysis.published import by_type
from thread_kit.cli.suite import build_methods
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import Task
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments.results import Results
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

LOOK = Task("generated", "look-102", "look")


@pytest.fixture
def trace(tmp_path):
    """A solved task, saved."""
    engine = ScriptedEngine(
        [
            "To craft it, I need to get 9 emerald. =>",
            "> get 9 emerald =>",
            "\nprint('Got it.')\n#END#",
            "> craft 1 emerald block using 9 emerald =>",
            "#END#",
        ]
    )
    path = tmp_path / "episode.jsonl"
    Session(engine, TextCraft("dev", 47), path=path).run(progress=False)
    return path


def test_show_prints_the_tree_and_a_line_for_scripts(trace, capsys):
    assert main(["show", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "I need to get 9 emerald." in out
    assert out.splitlines()[-1].startswith("status=ended reward=1 threads=2 calls=5 prompt_tokens=")


def test_show_obeys_no_escape_sequence_of_a_model(tmp_path, capsys):
    engine = ScriptedEngine(["\x1b[2J\x1b]0;owned\x07 red\n#END#"])
    path = Session(engine, context="go").run(progress=False).save(tmp_path / "t.jsonl")
    assert main(["show", str(path), "--thread", "0"]) == 0
    shown = capsys.readouterr().out
    assert " red\n" in shown
    assert "\x1b" not in shown


def test_show_prints_all_that_one_thread_saw(trace, capsys):
    assert main(["show", str(trace), "--thread", "1"]) == 0
    assert "Prompt:\nI need to get 9 emerald. =>\n\nResponse:\n#START#\n> get" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere.jsonl"], "nowhere.jsonl"),
        (["run", "--task", "200"], "choose 0 to 199"),
        (["run", "--task", "mug"], "no task 'mug'; tasks have numbers here"),
        (["run", "--split", "valid_unseen"], "of textcraft; choose one of test, dev, train"),
        (["run", "--env", "alfworld"], "alfworld-download"),
        (["run", "--env", "alfworld", "--split", "test"], "choose one of valid_unseen, "),
        (["run", "--env", "alfworld", "--split", "generated", "--task", "fry-1"], "'fry-1'"),
        (["run", "--nearest"], "--nearest is for --env alfworld"),
        (["suite", "--nearest", "--out", "r.jsonl"], "textcraft has no such rule"),
        (["run", "--model", "gpt-9"], "known: smollm2-135m"),
        (["run", "--prompt", "no-such-prompt"], "no-such-prompt"),
    ],
)
def test_what_cannot_work_is_one_line_and_exit_status_2(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("thread_kit: ")
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_thread_that_is_not_there_is_named(trace, capsys):
    assert main(["show", str(trace), "--thread", "7"]) == 2
    assert "there is no thread 7; this episode has 0 to 1" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(trace):
    command = f"{sys.executable} -m thread_kit show {trace} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.model
def test_the_demo_solves_its_task_on_the_embedded_model(tmp_path, capsys):
    out = tmp_path / "demo.jsonl"
    task = ["--split", "dev", "--task", "47", "--prompt", "textcraft-small"]
    assert main(["run", *task, "--calls", "20", "--out", str(out)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("status=ended reward=1 threads=")
    assert main(["show", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last


@pytest.mark.model
@pytest.mark.alfworld
def test_alfworld_is_played_with_the_examples_of_the_games_type(tmp_path, capsys, alfworld_games):
    """Without an adapter the model has to be shown this game."""
    out = tmp_path / "episode.jsonl"
    game = ["--env", "alfworld", "--split", "generated", "--task", "look-102", "--adapter", "none"]
    assert main(["run", *game, "--calls", "1", "--new-tokens", "2", "--out", str(out)]) == 0
    assert "adapter" not in capsys.readouterr().out.splitlines()[0]
    header = Episode.load(out).header
    assert header["task"]["game"] == "look-102"
    assert [one["name"] for one in header["prompts"].values()] == ["alfworld-look"]


@pytest.mark.alfworld
def test_results_with_and_without_the_nearest_action_do_not_mix(
    tmp_path, capsys, alfworld_games, monkeypatch
):
    said = ["> go to the sofa =>", "Task failed!\n#END#"]
    monkeypatch.setattr(
        "thread_kit.cli.arguments.load_model", lambda *_, **options: ScriptedEngine(said)
    )
    out = tmp_path / "r.jsonl"
    monkeypatch.setattr("thread_kit.cli.suite.spread_evenly", lambda tasks, n: [LOOK])
    asked = ["suite", "--env", "alfworld", "--split", "generated", "--methods", "react"]
    asked += ["--adapter", "none", "--traces", "--out", str(out)]
    assert main(asked) == 0
    assert main([*asked, "--nearest"]) == 0
    rows = Results.load(out).rows
    assert [row["task"].get("nearest", False) for row in rows] == [False, True]
    plain, nearest = (Episode.load(tmp_path / row["trace"]).seen(0) for row in rows)
    assert plain.endswith("> go to the sofa =>Nothing happens.<=\nTask failed!\n#END#")
    assert "> go to the sofa =>On the sofa 1, you see " in nearest
    sources = list(by_type(Results.load(out).frame)["source"][:3])
    assert sources == ["this file", "this file, nearest actions", "THREAD v2, Table 1"]
    assert sources[1] in capsys.readouterr().out


@pytest.mark.model
def test_models_lists_the_embedded_model_and_where_it_is(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert "smollm2-135m" in out
    assert "SmolLM2-135M-Instruct.Q4_1.gguf" in out


def test_trials_are_those_of_the_methods_that_try_again():
    options = Namespace(methods=["react"], trials=2, adapter=None)
    with pytest.raises(ValueError, match="--trials is for Reflexion and Try Again"):
        build_methods(options, None, None, "textcraft")
    options.methods = ["react", "stateflow+reflexion", "try again"]
    methods = [m.make("textcraft") for m in build_methods(options, None, None, "textcraft")]
    trials = [method.fixed["program"].keywords.get("trials") for method in methods]
    assert trials == [None, 2, 2]


def test_a_suite_has_another_model_for_the_planner(tmp_path, capsys, monkeypatch):
    said = {
        "executor": ["Task failed!\n#END#", "> get 9 emerald =>", "Task completed!\n#END#"],
        "planner": ["Step 1: fetch 9 emerald\n#END#"],
    }
    load = {name: ScriptedEngine(replies, name=name) for name, replies in said.items()}
    monkeypatch.setattr("thread_kit.cli.arguments.load_model", lambda name, **_: load[name])
    out = tmp_path / "r.jsonl"
    asked = ["suite", "--split", "dev", "--tasks", "1", "--methods", "adapt-d2", "--out", str(out)]
    assert main([*asked, "--models", "executor", "--planner-model", "planner"]) == 0
    (row,) = Results.load(out).rows
    assert row["model"] == "executor, planner planner"
    assert row["engine"]["name"] == "executor"
    assert row["others"]["adapt/textcraft-planner"]["name"] == "planner"
    assert (row["k_max"], row["claimed"], row["solved"]) == (2, True, False)
    assert "executor, planner planner" in capsys.readouterr().out


def test_a_page_is_written_beside_its_trace_or_where_one_says(trace, capsys, tmp_path):
    assert main(["page", str(trace)]) == 0
    page = trace.with_suffix(".html")
    assert capsys.readouterr().out.strip() == str(page)
    assert "9 emerald" in page.read_text("utf-8")
    assert main(["page", str(trace), "--out", str(tmp_path / "other.html")]) == 0
    assert "9 emerald" in (tmp_path / "other.html").read_text("utf-8")


def test_the_version_is_that_of_the_package(capsys):
    from importlib.metadata import version

    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip() == f"thread-kit {version('thread-kit')}"


@pytest.mark.parametrize("command", ["run", "suite"])
def test_help_says_what_an_option_is_when_it_is_not_given(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "KV cache size (default: 8192)" in text
    assert "0 is greedy (default: 0.0)" in text
    assert "None)" not in text
    assert "False)" not in text


def test_an_error_of_suite_is_not_hidden_below_a_list_of_methods(capsys):
    with pytest.raises(SystemExit):
        main(["suite", "--tasks", "many", "--out", "x.jsonl"])
    assert len(capsys.readouterr().err.splitlines()) < 15

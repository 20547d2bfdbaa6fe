"""The command line, run as people run it."""

import argparse
import errno
import gzip
import os
import subprocess
import sys

import pytest
from helpers.fake_server import Fake, llama, refuses, streams, written
from helpers.weights import few_layers

from thread_kit.__main__ import main
from thread_kit.analysis.published import by_type
from thread_kit.analysis.stored_rows import TAUGHT
from thread_kit.cli.arguments import add_loading, load_engine
from thread_kit.cli.methods import build_methods
from thread_kit.cli.notebooks import list_notebooks
from thread_kit.cli.suite import name_served
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.alfworld.env import Task
from thread_kit.envs.registry import BENCHMARKS, find_benchmark
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.experiments import method_builders
from thread_kit.experiments.method_builders import has_planner, load_planners
from thread_kit.experiments.method_registry import (
    find_method,
    list_methods,
    load_method,
    method_slug,
)
from thread_kit.experiments.results import Results
from thread_kit.paths import resource
from thread_kit.prompts import load_prompt
from thread_kit.session.progress import Progress
from thread_kit.session.session import Session
from thread_kit.trace import lock
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


def test_show_says_why_an_episode_failed(capsys):
    assert main(["show", "crossbow", "--why"]) == 0
    assert "event 146, thread 1: there are not enough" in capsys.readouterr().out


def test_show_obeys_no_escape_sequence_of_a_model(tmp_path, capsys):
    engine = ScriptedEngine(["\x1b[2J\x1b]0;owned\x07 red\n#END#"])
    path = Session(engine, context="go").run(progress=False).save(tmp_path / "t.jsonl")
    assert main(["show", str(path), "--thread", "0"]) == 0
    shown = capsys.readouterr().out
    assert " red\n" in shown
    assert "\x1b" not in shown


def test_nothing_that_is_printed_acts_on_the_terminal(write_module, capsys):
    write_module(
        "escaping",
        "import thread_kit as tk\n"
        "class Engine(tk.ScriptedEngine):\n"
        "    def __repr__(self): return '\\x1b[2Jengine'\n"
        "def make(): return Engine(lambda seen: '> \\x1b]0;owned\\x07 =>')\n"
        "def broken(): raise ValueError('\\x1b[2Jbroken')\n",
    )
    run = ["run", "--task", "47", "--split", "dev", "--calls", "2", "--model"]
    assert main([*run, "escaping:make"]) == 0
    assert main([*run, "escaping:broken"]) == 2
    shown = capsys.readouterr()
    assert "␛[2Jengine" in shown.out
    assert "␛[2Jbroken" in shown.err
    assert not {"\x1b", "\x07"} & {*shown.out, *shown.err.splitlines()[-1]}


def test_show_prints_all_that_one_thread_saw(trace, capsys):
    assert main(["show", str(trace), "--thread", "1"]) == 0
    assert "Prompt:\nI need to get 9 emerald. =>\n\nResponse:\n#START#\n> get" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere.jsonl"], "nowhere.jsonl"),
        (["page", "emerald"], "no episode of the gallery is called so"),
        (["run", "--method", "react"], "by itself with --adapter react-textcraft-135m"),
        (["run", "--method", "lats"], "give --adapter none for few-shot prompts"),
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


def test_no_adapter_of_another_benchmark_is_named():
    with pytest.raises(ValueError, match=r"give --adapter none for few-shot prompts$"):
        build_methods(["react"], find_benchmark("icu"), "icu", adapter="thread-135m")


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
    task = ["--split", "dev", "--task", "47"]
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
    game = ["--env", "alfworld", "--split", "generated", "--task", "look-102"]
    game += ["--model", str(few_layers()), "--adapter", "none"]
    assert main(["run", *game, "--calls", "1", "--new-tokens", "2", "--out", str(out)]) == 0
    assert "adapter" not in capsys.readouterr().out.splitlines()[0]
    header = Episode.load(out).header
    assert header["task"]["game"] == "look-102"
    assert [one["name"] for one in header["prompts"].values()] == ["alfworld-look"]


@pytest.mark.alfworld
def test_results_with_and_without_the_nearest_action_do_not_mix(
    tmp_path, capsys, alfworld_process, monkeypatch
):
    said = ["> go to the sofa =>", "Task failed!\n#END#"]
    monkeypatch.setattr(
        "thread_kit.cli.arguments.load_model", lambda *_, **options: ScriptedEngine(said)
    )
    out = tmp_path / "r.jsonl"
    monkeypatch.setattr("thread_kit.cli.suite.spread_evenly", lambda tasks, n: [LOOK])
    asked = ["suite", "--env", "alfworld", "--split", "generated", "--methods", "react-by-type"]
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
    assert "adapters of smollm2-135m: react-textcraft-135m, thread-135m" in out


def test_a_prompt_of_ones_own_is_not_left_out_of_threads_ablations_without_a_word():
    names = ["thread", "thread-whole-sequence"]
    with pytest.raises(ValueError, match="thread, whole sequence would not"):
        build_methods(names, TEXTCRAFT, "textcraft", prompt=load_prompt("textcraft"))


def test_a_prompt_that_nobody_would_read_beside_an_adapter_is_said():
    given = {"prompt": load_prompt("textcraft"), "adapter": "thread-135m", "is_chosen": True}
    with pytest.raises(ValueError, match="thread, no variables would not"):
        build_methods(["thread", "thread-no-variables"], TEXTCRAFT, "textcraft", **given)
    with pytest.raises(ValueError, match="--prompt is THREAD's own; react have theirs"):
        build_methods(["react"], TEXTCRAFT, "textcraft", **given)
    (method,) = build_methods(["thread"], TEXTCRAFT, "textcraft", **given)
    assert method.prompt == given["prompt"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--model", "own:make", "--context", "99"], "--context is for a model that the kit loads"),
        (["--server", "http://localhost:1", "--draft", "4"], "--draft is for a model that is load"),
    ],
)
def test_run_says_which_options_its_model_would_not_hear(capsys, given, words):
    assert main(["run", *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_the_attention_is_chosen_on_the_command_line(monkeypatch):
    told = {}
    load = "thread_kit.cli.arguments.load_model"
    monkeypatch.setattr(load, lambda name, **options: told.update(options))
    for given, chosen in (([], None), (["on"], True), (["off"], False)):
        parser = argparse.ArgumentParser()
        add_loading(parser)
        options = parser.parse_args([*(["--flash-attention"] if given else []), *given])
        load_engine("smollm2-135m", None, options)
        assert told["flash_attention"] is chosen


def test_a_suite_has_the_limits_of_its_command(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "thread_kit.cli.arguments.load_model", lambda *_, **options: ScriptedEngine(["#END#"])
    )
    out = tmp_path / "r.jsonl"
    asked = ["suite", "--split", "dev", "--tasks", "1", "--adapter", "none", "--out", str(out)]
    assert main([*asked, "--depth", "2", "--seconds", "9.5"]) == 0
    (row,) = Results.load(out).rows
    assert (row["limits"]["depth"], row["limits"]["seconds"]) == (2, 9.5)


def test_no_tasks_are_for_what_is_played(capsys):
    assert main(["reproduce", "--tasks", "0"]) == 2
    assert "--tasks is for what is played" in capsys.readouterr().err


def test_trials_are_those_of_the_methods_that_try_again():
    with pytest.raises(ValueError, match="--trials is for Reflexion and Try Again"):
        build_methods(["react"], TEXTCRAFT, "textcraft", trials=2)
    names = ["react", "stateflow+reflexion", "try again"]
    made = build_methods(names, TEXTCRAFT, "textcraft", trials=2)
    methods = [method.make("textcraft") for method in made]
    trials = [method.fixed["program"].keywords.get("trials") for method in methods]
    assert trials == [None, 2, 2]


def test_methods_have_names_without_commas_and_spaces_and_the_old_ones_hold():
    slugs = [method_slug(name) for name in list_methods()]
    assert len(set(slugs)) == len(slugs)
    assert not [slug for slug in slugs if "," in slug or " " in slug]
    for name, slug in zip(list_methods(), slugs, strict=True):
        assert find_method(name) == find_method(slug) == name
    spellings = ["thread-no-variables", "thread, no variables"]
    made = [build_methods([name], TEXTCRAFT, "textcraft")[0] for name in spellings]
    assert [method.name for method in made] == ["thread, no variables"] * 2
    assert load_method("try-again", "textcraft").name == "try again"


def test_a_misspelt_method_is_one_line_with_what_may_have_been_meant(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    assert main(["suite", "--methods", "thread-no-variable", "--out", str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("thread_kit: there is no method 'thread-no-variable'; did you mean ")
    assert "thread-no-variables" in line
    assert not out.exists()


def test_help_lists_methods_by_names_that_need_no_quotes(capsys):
    with pytest.raises(SystemExit):
        main(["suite", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "thread-no-variables" in text
    assert "thread, no variables" not in text


OWN = """\
import thread_kit as tk
from thread_kit.experiments.method import SessionMethod
from thread_kit.methods.react import react

replies = ["> get 9 emerald =>", "> craft 1 emerald block using 9 emerald =>", "Task completed!"]

def make_model():
    return tk.ScriptedEngine(replies * 9)

def program(thread):
    return (yield from react(thread, iterations=5))

method = SessionMethod("mine", fixed={"program": react})
text = "no method"
"""


@pytest.fixture
def own_module(write_module):
    return write_module("own_methods", OWN)


@pytest.mark.parametrize("name", ["program", "method"])
def test_a_method_of_ones_own_is_run_by_module_and_name(own_module, tmp_path, capsys, name):
    model = ["--model", f"{own_module}:make_model", "--split", "dev", "--task", "47"]
    assert main(["run", *model, "--method", f"{own_module}:{name}", "--out", "t.jsonl"]) == 0
    assert "reward=1 threads=1 calls=2" in capsys.readouterr().out
    assert "program" in Episode.load("t.jsonl").header


@pytest.mark.filterwarnings("ignore:1 of 2 episodes broke down")
def test_a_suite_plays_a_method_of_ones_own_beside_the_kits(own_module, tmp_path):
    methods = ["react", f"{own_module}:program"]
    models = ["--models", f"{own_module}:make_model", "--split", "dev", "--tasks", "1"]
    assert main(["suite", "--methods", *methods, *models, "--out", "r.jsonl"]) == 0
    rows = Results.load("r.jsonl").rows
    assert [(row["method"], row["error"], row["calls"] > 1) for row in rows] == [
        ("react", "", True),
        ("program", "", True),
    ]


@pytest.mark.model
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--methods", "react", "adapt"], "does not teach the model 'react' as well"),
        (["--adapter", "thread-135m"], "--adapter thread-135m is for a model that is loaded here"),
    ],
)
def test_what_one_model_cannot_play_is_said_before_another_one_has(
    own_module, tmp_path, capsys, options, said
):
    models = ["--models", f"{own_module}:make_model", "smollm2-135m", "--split", "dev"]
    out = tmp_path / "r.jsonl"
    assert main(["suite", *models, "--tasks", "1", *options, "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert not printed.out
    assert not out.exists()


def test_what_is_no_method_of_ones_own_is_said_in_one_line(own_module, capsys):
    assert main(["run", "--method", f"{own_module}:text"]) == 2
    assert "own_methods:text is 'no method'; give a method" in capsys.readouterr().err


BENCHES = """\
import thread_kit as tk
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.textcraft.env import TextCraft
from thread_kit.envs.env import Env

class Silent(Env):
    name = "textcraft"
    task = {}
    def reset(self): return None
    def step(self, action): return None
    def again(self): return Silent()
    def oracle(self): return None

def needs(argument): return None
def model(): return tk.ScriptedEngine([])
def program(thread): yield None
empty = Benchmark("own-empty", TextCraft, lambda split: [], splits=("test",))
splitless = Benchmark("own-splitless", TextCraft, lambda split: [], splits=())
silent = Benchmark("own-silent", lambda **_: Silent(), lambda split: [{}], splits=("test",))
"""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("suite --env own_benches:empty", "has no tasks"),
        ("suite --env own_benches:empty --tasks 4", "has no tasks"),
        ("suite --env own_benches:splitless", "has no splits"),
        (
            "run --env own_benches:silent --method own_benches:program --model own_benches:model",
            "reset of the environment gave None",
        ),
        ("run --model own_benches:needs", "missing 1 required positional argument"),
    ],
)
def test_what_ones_own_module_lacks_is_said_in_one_line(
    write_module, capsys, monkeypatch, command, words
):
    for name in ("own-empty", "own-splitless", "own-silent"):
        monkeypatch.setitem(BENCHMARKS, name, None)  # so that it goes again
        del BENCHMARKS[name]
    write_module("own_benches", BENCHES)
    assert main(command.split()) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "Traceback" not in error


def test_one_episode_is_played_by_another_method(tmp_path, capsys, monkeypatch):
    said = ["> get 9 emerald =>", "> craft 1 emerald block using 9 emerald =>"]
    monkeypatch.setattr(
        "thread_kit.cli.arguments.load_model", lambda *_, **options: ScriptedEngine(said)
    )
    out = tmp_path / "t.jsonl"
    task = ["--split", "dev", "--task", "47", "--adapter", "none", "--out", str(out)]
    assert main(["run", "--method", "react", *task]) == 0
    assert "status=ended reward=1 threads=1" in capsys.readouterr().out
    assert "react" in str(Episode.load(out).header["program"])


def test_show_says_that_a_trace_breaks_off(trace, tmp_path, capsys):
    lines = trace.read_text("utf-8").splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(lines[:-3]), encoding="utf-8")
    assert main(["show", str(cut)]) == 0
    assert "incomplete: the trace breaks off here" in capsys.readouterr().out
    assert main(["show", str(trace)]) == 0
    assert "incomplete" not in capsys.readouterr().out


def test_a_suite_that_cannot_load_its_model_leaves_no_empty_file(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    assert main(["suite", "--models", "gpt-9", "--out", str(out)]) == 2
    assert "known: smollm2-135m" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    out.touch()  # what a person made stays
    assert main(["suite", "--models", "gpt-9", "--out", str(out)]) == 2
    assert out.exists()


def test_progress_says_what_is_known_and_no_share_of_a_budget(capsys):
    engine = ScriptedEngine(["First, I need tea. =>", "print('tea')\n#END#", "#END#"])
    session = Session(engine, context="go")
    with Progress() as bar:
        for event in session:
            bar.show(event)
    assert str(bar) == f"calls 3, tokens {session.episode.usage.generated}, threads 2"
    assert "%" not in capsys.readouterr().err


def test_notebooks_are_found_wherever_the_project_lies(tmp_path):
    for name in ("runs/kit/a.ipynb", "runs/kit/runs/b.ipynb", "runs/kit/x/c.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert [path.name for path in list_notebooks(tmp_path / "runs/kit")] == ["a.ipynb", "c.ipynb"]


def test_the_notebooks_are_copied_and_none_is_overwritten(tmp_path, capsys):
    folder = tmp_path / "mine"
    assert main(["notebooks", str(folder)]) == 0
    copied = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert "01_first_episode.ipynb" in copied
    assert {path[-6:] for path in copied} == {".ipynb"}
    assert f"{len(copied)} notebooks copied to {folder}" in capsys.readouterr().out
    (folder / "01_first_episode.ipynb").write_text("mine", encoding="utf-8")
    assert main(["notebooks", str(folder)]) == 0
    assert (folder / "01_first_episode.ipynb").read_text("utf-8") == "mine"
    assert "0 notebooks copied" in capsys.readouterr().out
    assert main(["notebooks", str(resource("notebooks"))]) == 2


def test_a_suite_without_a_file_of_its_own_writes_into_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    load = "thread_kit.cli.arguments.load_model"
    monkeypatch.setattr(load, lambda name, **_: ScriptedEngine(["#END#"] * 400, name=name))
    methods = ["stateflow", "sf_chat", "react", "thread", "adapt"]
    assert main(["suite", "--env", "sql", "--methods", *methods, "--tasks", "2"]) == 0
    rows = Results.load("runs/suite-sql.jsonl").rows
    assert [(row["method"], row["error"]) for row in rows] == [(name, "") for name in methods] * 2


def test_a_suite_that_may_not_write_says_nothing_of_room(tmp_path, monkeypatch, capsys):
    load = "thread_kit.cli.arguments.load_model"
    monkeypatch.setattr(load, lambda name, **_: ScriptedEngine(["#END#"] * 400, name=name))

    def refuse(*line: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(lock, "write_line", refuse)
    out = tmp_path / "r.jsonl"
    assert main(["suite", "--split", "dev", "--tasks", "1", "--out", str(out)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"Permission denied: '{out}'")


def test_a_suite_on_a_full_disk_says_which_file_and_that_it_goes_on(tmp_path, monkeypatch, capsys):
    load = "thread_kit.cli.arguments.load_model"
    monkeypatch.setattr(load, lambda name, **_: ScriptedEngine(["#END#"] * 400, name=name))
    out, write, left = tmp_path / "r.jsonl", lock.write_line, [1]

    def fill(*line: object) -> None:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left.pop()
        write(*line)

    suite = ["suite", "--split", "dev", "--tasks", "3", "--out", str(out)]
    with monkeypatch.context() as full:
        full.setattr(lock, "write_line", fill)
        assert main(suite) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"No space left on device: '{out}'; once there is room" in said
    assert "the same command goes on where it stopped" in said
    assert len(Results.load(out).rows) == 1
    assert main(suite) == 0
    assert len(Results.load(out).rows) == 3


def test_a_suite_says_which_model_was_taught_and_what_else_its_file_has(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    load = "thread_kit.cli.arguments.load_model"
    monkeypatch.setattr(load, lambda name, **_: ScriptedEngine(["#END#"] * 400, name=name))
    suite = ["suite", "--split", "dev", "--tasks", "2"]
    assert main([*suite, "--methods", "react", "--adapter", "none"]) == 0
    assert "rows more" not in capsys.readouterr().out
    assert main([*suite, "--methods", "thread"]) == 0
    assert "has 2 rows more, which are not of this command" in capsys.readouterr().out
    models = [row["model"] for row in Results.load("runs/suite-textcraft.jsonl").rows]
    assert models == ["smollm2-135m"] * 2 + [TAUGHT] * 2


def test_a_benchmark_with_plan_and_execute_alone_has_a_planner_too(monkeypatch):
    whole = method_builders.load_waiting_prompt

    def load(benchmark, name):
        if name.startswith("adapt/"):
            raise FileNotFoundError(name)
        return whole(benchmark, name)

    monkeypatch.setattr(method_builders, "load_waiting_prompt", load)
    (planner,) = load_planners(TEXTCRAFT)
    assert planner.name == "plan_and_execute/textcraft"
    assert has_planner(load_method("plan-and-execute", "textcraft"), TEXTCRAFT)
    assert not has_planner(load_method("react", "textcraft"), TEXTCRAFT)


@pytest.mark.parametrize("name", ["sql", "bash"])
def test_a_benchmark_without_plan_and_execute_has_a_planner_still(name):
    (planner,) = load_planners(find_benchmark(name))
    assert planner.name == f"adapt/{name}-planner"


def test_a_suite_has_another_model_for_the_planner(tmp_path, capsys, monkeypatch):
    said = {
        "executor": ["Task failed!\n#END#", "> get 9 emerald =>", "Task completed!\n#END#"],
        "planner": ["Step 1: fetch 9 emerald\n#END#"],
    }
    load = {name: ScriptedEngine(replies, name=name) for name, replies in said.items()}
    monkeypatch.setattr("thread_kit.cli.arguments.load_model", lambda name, **_: load[name])
    monkeypatch.setattr("thread_kit.cli.arguments.find_weights", load.__getitem__)
    out = tmp_path / "r.jsonl"
    asked = ["suite", "--split", "dev", "--tasks", "1", "--methods", "adapt-d2", "--out", str(out)]
    assert main([*asked, "--models", "executor", "--planner-model", "planner"]) == 0
    (row,) = Results.load(out).rows
    assert row["model"] == "executor, planner planner"
    assert row["engine"]["name"] == "executor"
    assert row["others"]["adapt/textcraft-planner"]["name"] == "planner"
    assert (row["k_max"], row["claimed"], row["solved"]) == (2, True, False)
    assert "executor, planner planner" in capsys.readouterr().out


def test_a_method_without_a_planner_is_not_said_to_have_another_model_for_it(
    tmp_path, capsys, monkeypatch
):
    def load(name, **options):
        return ScriptedEngine(["#END#"] * 9, name=name)

    monkeypatch.setattr("thread_kit.cli.arguments.load_model", load)
    monkeypatch.setattr("thread_kit.cli.arguments.find_weights", str)
    out = tmp_path / "r.jsonl"
    asked = ["suite", "--split", "dev", "--tasks", "1", "--models", "executor", "--out", str(out)]
    assert main([*asked, "--methods", "adapt-d2", "react", "--planner-model", "planner"]) == 0
    rows = Results.load(out).rows
    assert {row["method"]: row["model"] for row in rows} == {
        "adapt-d2": "executor, planner planner",
        "react": "executor",
    }
    assert main([*asked, "--methods", "react"]) == 0
    assert Results.load(out).rows == rows, "it is the same episode as without one"


def test_another_model_for_the_planner_is_refused_where_no_method_has_one():
    options = {"planner_model": "smollm2-135m"}
    for names in (["thread"], ["react", "thread"]):
        with pytest.raises(ValueError, match="--planner-model smollm2-135m is for adapt"):
            build_methods(names, TEXTCRAFT, "textcraft", **options)
    for names in (["react", "adapt"], ["react", "thread_kit.methods.react:react"]):
        assert len(build_methods(names, TEXTCRAFT, "textcraft", **options)) == 2


def test_an_episode_has_another_model_for_the_planner(capsys, monkeypatch):
    said = {"executor": "Task failed!\n#END#", "planner": "Step 1: fetch 9 emerald\n#END#"}
    load = {name: ScriptedEngine([reply] * 9, name=name) for name, reply in said.items()}
    monkeypatch.setattr("thread_kit.cli.arguments.load_model", lambda name, **_: load[name])
    asked = ["run", "--split", "dev", "--method", "adapt-d2", "--model", "executor"]
    assert main([*asked, "--planner-model", "planner"]) == 0
    assert "fetch 9 emerald" in capsys.readouterr().out
    assert len(load["planner"].seen) == 1


def test_a_page_is_written_beside_its_trace_or_where_one_says(trace, capsys, tmp_path):
    assert main(["page", str(trace)]) == 0
    page = trace.with_suffix(".html")
    assert capsys.readouterr().out.strip() == str(page)
    assert "9 emerald" in page.read_text("utf-8")
    assert main(["page", str(trace), "--out", str(tmp_path / "other.html")]) == 0
    assert "9 emerald" in (tmp_path / "other.html").read_text("utf-8")
    before = trace.read_bytes()
    assert main(["page", str(trace), "--out", str(trace)]) == 2
    assert "is the trace itself" in capsys.readouterr().err
    assert trace.read_bytes() == before
    for _ in range(2):  # the first time there is no page yet
        assert main(["page", "acacia-fence-gate", "--out", str(tmp_path / "gallery.html")]) == 0
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    assert main(["page", str(packed)]) == 0
    assert (tmp_path / "packed.html").exists()
    capsys.readouterr()
    assert main(["page", str(trace), "--out", str(tmp_path / "tree.svg")]) == 2
    assert "is the name of a picture" in capsys.readouterr().err
    assert not (tmp_path / "tree.svg").exists()


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
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("thread_kit: argument --tasks: invalid int value: 'many'; see ")


@pytest.mark.parametrize("command", ["run --model", "suite --tasks 1 --models"])
@pytest.mark.parametrize("model", ["llama3:8b", "smollm2-135m"])
def test_a_server_is_asked_for_its_own_name_of_a_model_with_examples(tmp_path, command, model):
    server = Fake(model)
    server.replies.append(streams(written("print('Nothing.')\n#END#")))
    words = f"{command} {model} --server {server.url} --split dev --out {tmp_path / 'out.jsonl'}"
    try:
        assert main(words.split()) == 0
    finally:
        server.close()
    (asked,) = server.asked
    assert asked["model"] == model
    assert asked["prompt"].startswith(load_prompt("textcraft").text)


def test_a_server_with_one_model_need_not_be_told_which(tmp_path, capsys):
    server = Fake("its-own")
    server.replies.append(streams(written("print('Nothing.')\n#END#")))
    words = f"run --server {server.url} --split dev --out {tmp_path / 'out.jsonl'}"
    try:
        assert main(words.split()) == 0
        server.pages["/v1/models"]["data"].append({"id": "another"})
        assert main(words.split()) == 2
    finally:
        server.close()
    assert [asked["model"] for asked in server.asked] == ["its-own"]
    assert "has its-own, another; name the model" in capsys.readouterr().err


def test_rows_have_the_name_that_a_server_has_for_its_model(tmp_path):
    server, by_file, out = Fake("its-own"), llama(), tmp_path / "r.jsonl"
    server.replies.append(streams(written("print('Nothing.')\n#END#")))
    words = f"suite --server {server.url} --split dev --tasks 1 --out {out}"
    try:
        assert main(words.split()) == 0
        options = dict.fromkeys(("context", "executor", "planner_model"))
        options = argparse.Namespace(server=by_file.url, **options)
        assert name_served([""], options) == {"": "tiny"}
    finally:
        server.close()
        by_file.close()
    assert [row["model"] for row in Results.load(out)] == ["its-own"]
    assert [asked["model"] for asked in server.asked] == ["its-own"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fake("its-own"), "has its-own and no model 'smollm2-135m'; give the name"),
        (llama, "has one model, tiny.gguf, whatever it is called; name it once"),
    ],
)
def test_one_model_of_a_server_is_not_played_as_two(tmp_path, capsys, make, words):
    server = make()
    command = f"suite --server {server.url} --split dev --tasks 1 --out {tmp_path}/r.jsonl"
    try:
        assert main([*command.split(), "--models", "its-own", "smollm2-135m"]) == 2
    finally:
        server.close()
    assert words in capsys.readouterr().err
    assert not server.asked


def test_what_a_thread_can_see_on_a_server_that_does_not_say_can_be_said(tmp_path, capsys):
    server = Fake("a-model")
    server.replies.append(streams(written("print('Nothing.')\n#END#")))
    words = f"run --model a-model --server {server.url} --split dev --out {tmp_path / 'out.jsonl'}"
    try:
        assert main([*words.split(), "--context", "9000"]) == 0
        assert Episode.load(tmp_path / "out.jsonl").header["model"]["context"] == 9000
        many = f"suite --env datacommons --split train --tasks 1 --out {tmp_path}/r.jsonl"
        assert main([*many.split(), "--models", "a-model", "--server", server.url]) == 2
    finally:
        server.close()
    assert "sees at most 4096; the server does not say how much" in capsys.readouterr().err


def test_where_all_broke_down_the_command_fails_and_says_how_to_go_on(tmp_path, capsys):
    server = Fake("a-model")
    server.replies += [refuses(401)] * 9
    words = f"suite --models a-model --server {server.url} --split dev --tasks 2 --out"
    try:
        assert main([*words.split(), str(tmp_path / "r.jsonl")]) == 2
    finally:
        server.close()
    said = capsys.readouterr()
    assert "all 2 of 2 episodes broke down; once what broke is mended, --retry plays" in said.err
    assert "errors" in said.out, "the table is printed all the same"


def test_no_adapter_goes_to_a_server(capsys):
    command = "run --model a-model --server http://127.0.0.1:9 --adapter thread-135m"
    assert main(command.split()) == 2
    assert "not for a-model on a server" in capsys.readouterr().err

"""The benchmarks' records: those of the kit, and one of one's own beside them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.programs import Lock

import thread_kit as tk
from thread_kit.__main__ import main
from thread_kit.dialect import AGENT, ASYNC, QA
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.envs.benchmark import Benchmark, choose_number
from thread_kit.envs.env import Env
from thread_kit.envs.registry import BENCHMARKS, OWN, find_benchmark, register_benchmark
from thread_kit.envs.textcraft.benchmark import TEXTCRAFT
from thread_kit.errors.error_types import ErrorType
from thread_kit.errors.first_error import find_first_error
from thread_kit.errors.review_widget import label_event
from thread_kit.errors.rules import ErrorRules
from thread_kit.experiments.method_registry import BUILDERS, VARIANTS, load_method
from thread_kit.experiments.results import Results
from thread_kit.paths import resource
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode

ENVS = Path(tk.__file__).parent / "envs"
MAIN = "Prompt:\nTask: open it.\n\nResponse:\n#START#\n"
THREAD = MAIN + "> open =>It opens.<=\nprint('Done.')\n#END#\n"
REACT = MAIN + "> open =>It opens.<=\nTask completed!\n#END#\n"


class DoorRules(ErrorRules):
    """Turning is wrong."""

    def check_action(self, acted):
        if acted.action == "turn":
            return ErrorType.INVALID_ACTION, "doors do not turn"
        return None


class Door(Lock):
    """Opens at the first try; number 1 at the second."""

    def __init__(self, split="test", number=0, stuck=False, at_night=False):
        super().__init__(number + 1 + 9 * stuck)
        self.task = {"split": split, "number": number} | ({"stuck": True} if stuck else {})

    def again(self):
        return Door(**self.task)

    def oracle(self):
        return ["open"] * self.left


def list_locks(split):
    return [{"split": split, "number": number} for number in range(2)]


LOCK = Benchmark(
    "lock",
    Door,
    list_locks,
    rules={"stuck": "it opens later", "at_night": "100% dark"},
    prompts={"thread/lock": THREAD, "react/lock": REACT},
    max_depth=2,
    error_rules=DoorRules,
)


@pytest.fixture
def _registry():
    """The registry is afterwards as it was before."""
    before = BENCHMARKS.copy()
    yield
    BENCHMARKS.clear()
    BENCHMARKS.update(before)


@pytest.fixture
def registered(_registry):
    return register_benchmark(LOCK)


# Those of the kit


def test_every_folder_with_an_environment_to_play_has_a_record_in_the_registry():
    """qa is what two of them share."""
    folders = {path.parent.name for path in ENVS.glob("*/env.py")} - {"qa"}
    assert folders == {path.parent.name for path in ENVS.glob("*/benchmark.py")}
    folders = {folder.removeprefix("intercode_") for folder in folders}
    assert folders == {benchmark.name for benchmark in OWN} == set(BENCHMARKS)


@pytest.mark.parametrize("benchmark", OWN, ids=lambda benchmark: benchmark.name)
def test_what_a_record_names_is_there(benchmark):
    assert set(benchmark.methods) <= set(VARIANTS)
    assert not set(benchmark.methods) & set(BUILDERS)
    for handler in benchmark.handlers:
        assert resource(f"prompts/decomp/{benchmark.name}-{handler}.txt")
    for role in benchmark.executors:
        assert resource(f"prompts/adapt/{benchmark.name}-{role}.txt")


def test_the_command_line_and_the_records_start_without_pandas_and_scipy():
    code = (
        "import sys, thread_kit.cli.main, thread_kit.envs.registry; "
        "print({'pandas', 'scipy', 'alfworld', 'textworld'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_trace_says_which_of_its_environments_packages_were_installed():
    header = Session(ScriptedEngine([]), tk.TextCraft("dev", 47)).episode.header
    assert header["versions"]["textcraft"] == "0.0.3"
    assert "alfworld" not in header["versions"]
    assert "textcraft" not in Session(ScriptedEngine([]), Lock()).episode.header["versions"]


# By name


def test_a_benchmark_is_found_by_its_name_and_by_that_of_its_examples(registered):
    assert find_benchmark("lock") is find_benchmark("lock-old-rusty") is registered
    assert find_benchmark("alfworld-heat").name == "alfworld"
    hyphened = register_benchmark(replace(LOCK, name="lock-and-key"))
    assert find_benchmark("lock-and-key-gold") is hyphened
    assert find_benchmark("lock-smith") is registered


def test_one_that_nobody_registered_has_the_defaults_and_no_tasks():
    unknown = find_benchmark("chess-blitz")
    assert (unknown.name, unknown.dialect, unknown.published) == ("chess", AGENT, None)
    with pytest.raises(ValueError, match=r"nobody has registered this.*register_benchmark"):
        unknown.tasks("test")
    with pytest.raises(ValueError, match="nobody has registered this"):
        unknown.environment(split="test", number=0)


def test_a_name_of_the_kit_is_taken_and_ones_own_is_replaced(registered):
    with pytest.raises(ValueError, match="the kit has a benchmark 'textcraft'"):
        register_benchmark(replace(LOCK, name="textcraft"))
    assert register_benchmark(TEXTCRAFT) is TEXTCRAFT
    again = register_benchmark(replace(LOCK, max_depth=5))
    assert find_benchmark("lock") is again


@pytest.mark.parametrize("text", ["mug", "", "-1", "²", "٣", "1.0", "1 "])
def test_what_is_no_number_chooses_no_task(text):
    with pytest.raises(ValueError, match=r"no task '.*'; tasks have numbers here"):
        choose_number(text)


# Prompts


def test_prompts_are_texts_by_name_or_files_in_a_folder_of_ones_own(tmp_path):
    (tmp_path / "thread").mkdir()
    (tmp_path / "thread" / "lock.txt").write_text(THREAD)
    for prompts in (LOCK.prompts, tmp_path, str(tmp_path)):
        prompt = replace(LOCK, prompts=prompts).load_prompt("lock")
        assert (prompt.name, len(prompt.examples), prompt.dialect) == ("lock", 1, AGENT)
        assert replace(LOCK, prompts=prompts).load_prompt(
            str(tmp_path / "thread" / "lock.txt"), QA
        ) == replace(prompt, dialect=QA)


def test_a_prompt_that_is_missing_is_named_with_what_is_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no prompt 'adapt/lock-planner'; it has"):
        load_method("adapt", LOCK)
    with pytest.raises(FileNotFoundError, match="there is no prompt 'react/lock'; known: none"):
        load_method("react", replace(LOCK, prompts=tmp_path))


def test_where_threads_need_not_wait_other_methods_still_do():
    lock = replace(LOCK, dialect=ASYNC)
    assert load_method("thread", lock).prompt.dialect == ASYNC
    assert load_method("react", lock).prompt.dialect == AGENT


# Methods, suites, errors


@pytest.mark.parametrize("name", ["thread", "react", "try again", "thread, depth 2"])
def test_methods_by_name_play_ones_own_task_and_travel_to_other_processes(name, registered):
    method = load_method(name, "lock")
    for same in (pickle.loads(pickle.dumps(method)), load_method(name, LOCK)):
        assert (same.name, same.prompt) == (method.name, method.prompt)
        assert label_event(same.fixed.get("program")) == label_event(method.fixed.get("program"))
    engine = ScriptedEngine(["> open =>", "Task completed!\n#END#"])
    assert method(engine, Door(), seed=0, path=None).run(progress=False).reward == 1


def test_a_method_that_the_record_does_not_name_is_not_played(registered):
    with pytest.raises(ValueError, match="no method 'nlep' on lock; known: thread"):
        load_method("nlep", "lock")
    with pytest.raises(ValueError, match="state machine for 'lock'; known: textcraft"):
        load_method("stateflow", "lock")
    machines = {"lock": TEXTCRAFT.machines["textcraft"]}
    with pytest.raises(FileNotFoundError, match="no prompt 'stateflow/lock'"):
        load_method("stateflow", replace(LOCK, machines=machines))


def test_errors_are_proposed_by_the_records_rules(registered):
    engine = ScriptedEngine(["> turn =>", "#END#"])
    episode = Session(engine, Door()).run(progress=False)
    finding = find_first_error(episode)
    assert (finding.type, finding.why) == (ErrorType.INVALID_ACTION, "doors do not turn")


# The command line

MODULE = """
from envs_of_mine import LOCK, THREAD
from thread_kit.engines.scripted import ScriptedEngine

def make_engine():
    return ScriptedEngine(lambda text: "#END#" if text.endswith("It opens.<=\\n") else "> open =>")

record, nothing = LOCK, None
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, _registry):
    """A folder of a person's own, with a module in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    for name in ("envs_of_mine", "my_lock"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "envs_of_mine", sys.modules[__name__])
    (tmp_path / "my_lock.py").write_text(MODULE)
    return tmp_path


def test_run_plays_ones_own_task_by_its_own_rules(folder, capsys):
    own = ["run", "--env", "my_lock:record", "--model", "my_lock:make_engine"]
    assert (
        main([*own, "--task", "1", "--stuck", "--at-night", "--calls", "3", "--out", "one.jsonl"])
        == 0
    )
    assert "status=out_of_calls reward=0" in capsys.readouterr().out.splitlines()[-1]
    header = Episode.load("one.jsonl").header
    assert header["task"] == {"split": "test", "number": 1, "stuck": True}
    assert [prompt["name"] for prompt in header["prompts"].values()] == ["lock"]
    assert main([*own, "--task", "0"]) == 0
    assert "status=ended reward=1" in capsys.readouterr().out.splitlines()[-1]


def test_a_suite_plays_them_and_prints_its_tables_without_published_numbers(folder, capsys):
    own = ["suite", "--env=my_lock:record", "--models", "my_lock:make_engine"]
    assert main([*own, "--methods", "thread", "react", "--tasks", "2", "--out", "r.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "Solved, and cut" in out
    assert "published" not in out
    rows = Results.load("r.jsonl").rows
    assert [row["environment"] for row in rows] == ["lock"] * 4
    assert not any(row["error"] for row in rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "chess"], "there is no benchmark 'chess'; known: textcraft, alfworld, "),
        (["--env", "nowhere:LOCK"], "there is no module 'nowhere' in "),
        (["--env", "my_lock:key"], "module 'my_lock' has no attribute 'key'"),
        (["--env", "my_lock:nothing"], "my_lock:nothing is no Benchmark but None"),
        (["--env", "broken:record"], "No module named 'not_there'"),
        (["--env", "my lock:record"], "my lock:record"),
        (["--env", "my_lock:record", "--split", "dev"], "'dev' of lock; choose one of test"),
        (["--env", "my_lock:record", "--nearest"], "--nearest is for --env alfworld; lock has no"),
        (["--env", "my_lock:record", "--task", "x"], "no task 'x'; tasks have numbers here"),
        (["--env", "my_lock:record", "--prompt", "key"], "'lock' has no prompt 'thread/key'"),
        (["--model", "my_lock:nothing"], "my_lock:nothing makes no engine"),
        (["--model", "my_lock:THREAD"], "my_lock:THREAD makes no engine"),
        (["--model", "my_lock:dict"], "no attribute 'dict'"),
        (["--model", "my_lock:make_engine", "--adapter", "a.gguf"], "--adapter a.gguf is for"),
    ],
)
def test_what_of_ones_own_cannot_work_is_one_line(folder, arguments, message, capsys):
    (folder / "broken.py").write_text("import not_there\n")
    assert main(["run", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("thread_kit: ")
    assert message in error
    assert len(error.splitlines()) == 1


def test_the_help_has_ones_own_splits_and_rules(folder, capsys):
    with pytest.raises(SystemExit):
        main(["run", "--env", "my_lock:record", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "lock: test" in out
    assert "--stuck lock: it opens later --at-night lock: 100% dark" in out


def test_a_task_by_its_number_of_a_benchmark_without_splits_and_numbers():
    """`run --task 1` plays what `suite` lists."""

    def box(color: str) -> Env:
        raise NotImplementedError

    listed = [{"color": "red"}, {"color": "blue"}]
    benchmark = Benchmark("box", box, lambda split: listed)
    assert benchmark.find_arguments("test", "1") == {"color": "blue"}
    with pytest.raises(ValueError, match="no task 2 in split 'test'; choose 0 to 1"):
        benchmark.find_arguments("test", "2")
    assert find_benchmark("textcraft").find_arguments("dev", "7") == {"split": "dev", "number": 7}

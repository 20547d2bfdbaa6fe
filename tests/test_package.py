"""The package's front door: what it offers, and what it does not load until asked."""

import subprocess
import sys

import pytest

import thread_kit


@pytest.mark.parametrize("name", thread_kit.__all__)
def test_every_offered_name_is_there(name):
    assert getattr(thread_kit, name) is not None


def test_a_saved_episode_opens_without_llama_cpp_or_a_browser_library(tmp_path):
    code = (
        "import sys, thread_kit as tk; e = tk.Episode(); e.save(sys.argv[1]); "
        "str(tk.Episode.load(sys.argv[1])); e._repr_html_(); "
        "print({'llama_cpp', 'plotly', 'anywidget', 'datasets'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "empty.jsonl")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


PLAYED = """
import sys, thread_kit as tk
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.suite import Suite

Suite(
    sys.argv[1],
    methods=[SessionMethod("thread")],
    models={"silent": lambda: tk.ScriptedEngine(["#END#"])},
    environment=tk.TextCraft,
    tasks=[{"split": "dev", "number": 40}],
).run(progress=False)
print(sorted({"pandas", "scipy", "statsmodels"} & set(sys.modules)))
"""


def test_episodes_are_played_without_what_makes_tables(tmp_path):
    command = [sys.executable, "-c", PLAYED, str(tmp_path / "r.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert (tmp_path / "r.jsonl").stat().st_size


FIRST_LOOK = """
import sys, thread_kit as tk
print(len([name for name in sys.modules if name.startswith("thread_kit")]))
tk.watch(tk.open_episode("acacia-fence-gate")).snapshot_json()
heavy = {"llama_cpp", "plotly", "pandas", "numpy", "scipy", "matplotlib", "datasets", "httpx"}
print(sorted(heavy & set(sys.modules)))
"""


def test_the_first_tree_waits_for_no_model_and_no_library_of_figures():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_LOOK], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["1", "[]"]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = thread_kit.nothing_like_this

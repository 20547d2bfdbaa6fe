"""The panel without code: what it plays is what its code plays, and its errors are sentences."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re

import ipywidgets as widgets
import pytest
from helpers.jupyter import PATIENCE
from helpers.suites import speak
from ipywidgets.widgets.widget import _instances as instances

import thread_kit
from thread_kit.engines.models import ModelError
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.experiments import explore as module
from thread_kit.experiments.explore import Explorer, explore, find_free
from thread_kit.experiments.explore_controls import FILE
from thread_kit.experiments.explore_form import ADAPTER, EXAMPLES
from thread_kit.experiments.explore_traces import list_traces
from thread_kit.paths import resource
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan
from thread_kit.trace.shipped import list_episodes
from thread_kit.views.player.widget import Player

LONG = PATIENCE * 1000
"""Milliseconds."""

FENCE = str(resource("data/episodes/acacia-fence-gate.jsonl"))


@pytest.fixture
def panel(tmp_path, monkeypatch) -> Explorer:
    """On a task of two actions, with a scripted model."""
    monkeypatch.setattr(module, "load_model", lambda *_, **options: ScriptedEngine(speak))
    return choose_emerald(explore(tmp_path / "runs"))


def choose_emerald(panel: Explorer) -> Explorer:
    panel.form.split.value = "dev"
    panel.form.number.value = "47"
    return panel


def read_code(panel: Explorer) -> str:
    return html.unescape(re.sub("<[^>]*>", "", panel.form.code.value))


def read_note(panel: Explorer) -> str:
    return html.unescape(re.sub("<[^>]*>", "", panel.note.value))


def run_code(code: str) -> Episode:
    names: dict = {}
    exec(code, names)
    return names["session"].run(progress=False)


def values(choice) -> list:
    return [value for _, value in choice.options]


# What is chosen


def test_it_begins_with_a_task_that_the_embedded_model_was_taught():
    panel = explore()
    assert repr(panel) == "Explorer(textcraft test 110, thread, smollm2-135m)"
    assert "Goal: craft" in panel.form.task_text.value
    assert panel.form.prompt.value == ADAPTER
    assert not panel.note.value
    assert not panel.stage.children


def test_the_budgets_are_those_of_the_methods_paper():
    form = explore().form
    form.benchmark.value = "sql"
    assert (form.split.value, form.budgets["actions"].value) == ("test", "10")
    assert form.budgets["actions"].tooltip == "StateFlow, section 4.1"
    form.benchmark.value = "textcraft"
    assert [form.budgets[unit].value for unit in ("calls", "new_tokens")] == ["200", "1000"]
    form.method.value = "adapt"
    assert form.budgets["calls"].value == ""
    assert form.prompt.value == EXAMPLES


def test_a_field_of_actions_that_is_empty_is_no_limit():
    form = explore().form
    form.benchmark.value = "sql"
    assert form.read().make_env().max_actions == 10
    form.budgets["actions"].value = ""
    assert form.read().make_env().max_actions is None
    assert "task.max_actions = None" in form.read().write_code("mine.jsonl")
    form.benchmark.value = "textcraft"
    assert "max_actions" not in form.read().write_code("mine.jsonl")


def test_what_a_method_fixes_cannot_be_chosen():
    form = explore().form
    assert not form.phi.disabled
    form.method.value = "thread, whole sequence"
    assert form.phi.disabled
    form.method.value = "thread, depth 2"
    assert form.budgets["depth"].disabled
    assert form.budgets["depth"].value == "2"
    form.method.value = "react"
    assert form.phi.disabled


@pytest.mark.slow
def test_the_taught_control_can_be_chosen_where_it_was_taught():
    form = explore().form
    form.method.value = "react"
    assert ADAPTER in values(form.prompt)
    form.benchmark.value = "alfworld"
    form.method.value = "react"
    assert ADAPTER not in values(form.prompt)


def test_only_methods_that_a_benchmark_has_can_be_chosen():
    form = explore().form
    assert "nlep" not in values(form.method)
    form.benchmark.value = "icu"
    assert "nlep" in values(form.method)
    assert "lats" not in values(form.method)


def test_another_task_keeps_the_prompt_and_another_benchmark_does_not():
    form = explore().form
    form.prompt.value = "textcraft-small"
    form.number.value = "3"
    assert form.prompt.value == "textcraft-small"
    form.benchmark.value = "webshop"
    form.benchmark.value = "textcraft"
    assert form.prompt.value == ADAPTER


@pytest.mark.slow
def test_the_rules_of_a_benchmark_can_be_chosen_and_belong_to_the_task(alfworld_games):
    form = explore().form
    assert not form.rules.children
    form.benchmark.value = "alfworld"
    (nearest,) = form.rules.children
    assert nearest.description.startswith("nearest: take what is no action for the admissible one")
    assert "nearest" not in form.read().task
    nearest.value = True
    assert form.read().task["nearest"] is True
    assert "nearest=True" in form.read().write_code("runs/mine.jsonl")
    with contextlib.closing(form.read().make_env()) as env:
        assert env.nearest
    form.benchmark.value = "webshop"
    assert [rule.name for rule in form.rules.children] == ["by_people", "attributes"]


def test_another_model_plans_where_the_method_has_a_planner(panel, tmp_path, monkeypatch):
    form = panel.form
    assert form.planner.disabled  # THREAD has none
    for method in ("plan-and-execute", "adapt"):
        form.method.value = method
        assert not form.planner.disabled
    form.planner.value = "qwen2.5-coder-1.5b"
    form.method.value = "react"
    assert form.read().planner is None
    form.method.value = "adapt"
    form.budgets["calls"].value = "9"
    panel.run_button.click()
    (played,) = panel.wait()
    models = {p["name"]: "model" in p for p in played.header["prompts"].values()}
    assert models == {"adapt/textcraft-planner": True, "react/textcraft": False}
    monkeypatch.setattr(thread_kit, "load_model", module.load_model, raising=False)
    monkeypatch.chdir(tmp_path)
    coded = run_code(read_code(panel))
    assert (str(coded), coded.header) == (str(played), played.header)


# Played, as by its code


@pytest.mark.parametrize(
    ("method", "prompt", "phi"),
    [
        ("thread", ADAPTER, ""),
        ("thread", "textcraft-small", "phi_full_sequence"),
        ("thread", EXAMPLES, ""),
        ("react", EXAMPLES, ""),
        ("thread, no variables", EXAMPLES, ""),
    ],
)
def test_the_code_plays_what_the_panel_plays(panel, tmp_path, monkeypatch, method, prompt, phi):
    panel.form.method.value, panel.form.prompt.value = method, prompt
    panel.form.phi.value = phi
    panel.form.budgets["calls"].value = "9"
    panel.run_button.click()
    (played,) = panel.wait()
    assert not panel.note.value
    monkeypatch.setattr(thread_kit, "load_model", module.load_model, raising=False)
    monkeypatch.chdir(tmp_path)
    coded = run_code(read_code(panel))
    assert str(coded) == str(played)
    assert coded.header == played.header
    assert played.header["limits"]["calls"] == 9
    if phi:
        assert played.header["exchange"]["phi"] == phi


@pytest.mark.model
def test_the_embedded_model_solves_a_task_and_so_does_the_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    panel = choose_emerald(explore())
    panel.run_button.click()
    (played,) = panel.wait()
    assert played.reward == 1
    (trace,) = (tmp_path / "runs" / "explore").glob("thread-textcraft-dev-47-*.jsonl")
    assert str(Episode.load(trace)) == str(played)
    assert str(run_code(read_code(panel))) == str(played)


def test_code_of_a_budget_of_actions_and_of_an_environment_without_a_public_name():
    form = explore().form
    form.benchmark.value = "webshop"
    code = form.read().write_code("runs/mine.jsonl")
    assert "task = BENCHMARKS['webshop'].environment(" in code
    compile(code, "code", "exec")
    form.benchmark.value = "sql"
    assert "task.max_actions = 10\n" in form.read().write_code("runs/mine.jsonl")


# Opened, beside each other, forked, saved


def test_two_episodes_stand_beside_each_other_and_are_saved(panel, tmp_path):
    panel.run_button.click()
    panel.wait()
    panel.saved.value = FENCE
    panel.open_button.click()
    assert [column.children[0].value for column in panel.stage.children] == [
        "<b>acacia-fence-gate</b>"
    ]
    panel.right.value = values(panel.left)[0]
    assert len(panel.stage.children) == 2
    for kind, button in panel.save_buttons.items():
        button.click()
        assert read_note(panel).startswith(f"the {kind} is in /")
    folder = tmp_path / "runs"
    assert "acacia" in (folder / "acacia-fence-gate.html").read_text("utf-8")
    assert "<svg" in (folder / "acacia-fence-gate.svg").read_text("utf-8")
    assert str(Episode.load(folder / "acacia-fence-gate.jsonl")) == str(Episode.load(FENCE))
    assert str(folder / "acacia-fence-gate.jsonl") in values(panel.saved)


def test_episodes_of_one_name_are_told_apart_and_none_is_saved_over_another(panel, tmp_path):
    for day in ("monday", "tuesday", "friday"):
        session = Session(ScriptedEngine([f"print('{day}')\n#END#"]), context=day)
        (tmp_path / day).mkdir()
        session.run(progress=False).save(tmp_path / day / "ep.jsonl")
    for day in ("monday", "tuesday", "friday", "monday", "tuesday"):
        panel.saved.value, panel.saved_file.value = FILE, str(tmp_path / day / "ep.jsonl")
        panel.open_button.click()
        name, _ = panel.left.value
        assert day in panel._shown[name].episode.threads[0].context.text
        panel.save_buttons["trace"].click()
    saved = sorted((tmp_path / "runs").glob("*ep*.jsonl"))
    assert len({Episode.load(path).threads[0].context.text for path in saved}) == len(saved) == 3
    other = Session(ScriptedEngine(["#END#"]), context="wednesday").run(progress=False)
    assert find_free(saved[0], Episode.load(saved[0])) == saved[0]
    assert find_free(saved[0], other).name == f"{saved[0].stem}-2.jsonl"
    (tmp_path / "notes.jsonl").write_text("mine")
    assert find_free(tmp_path / "notes.jsonl", other).name == "notes-2.jsonl"


def test_a_trace_that_was_written_while_it_ran_is_not_written_again(panel, tmp_path):
    panel.run_button.click()
    panel.wait()
    (trace,) = (tmp_path / "runs").glob("*.jsonl")
    before = trace.read_bytes()
    panel.save_buttons["trace"].click()
    assert read_note(panel) == f"the trace is in {trace}"
    assert trace.read_bytes() == before
    assert str(trace) in values(panel.saved)


def test_a_fork_can_stand_beside_any_episode(panel):
    panel.saved.value = FENCE
    panel.open_button.click()
    (player,) = panel._shown.values()
    player.fork(1, calls=2)  # with the model that is chosen
    player.wait(of=1)
    (fork,) = player.forks
    assert fork.header["model"]["engine"] == "scripted"
    panel.right.value = values(panel.left)[1]
    assert [column.children[0].value for column in panel.stage.children] == [
        "<b>acacia-fence-gate</b>",
        "<b>acacia-fence-gate, fork 1</b>",
    ]


def test_what_is_shown_no_longer_is_not_kept_in_the_kernel(panel):
    panel.saved.value = FENCE
    panel.open_button.click()
    (player,) = panel._shown.values()
    player.fork(1, calls=2)
    player.wait(of=1)
    alone, fork = values(panel.left)[:2]
    panel.right.value = fork
    kinds = Player, widgets.HTML, widgets.VBox, widgets.Layout

    def kept():
        return [sum(isinstance(one, kind) for one in instances.values()) for kind in kinds]

    before = kept()
    for _ in range(3):
        panel.left.value, panel.right.value = fork, alone
        panel.left.value, panel.right.value = alone, fork
    assert kept() == before
    assert player.model_id in instances


def test_a_model_that_cannot_be_loaded_for_a_fork_is_not_loading_for_ever(panel, monkeypatch):
    def fail(*model, **options):
        raise ModelError("no such model here")

    monkeypatch.setattr("thread_kit.experiments.explore.load_model", fail)
    with pytest.raises(ModelError):
        panel.load_chosen()
    assert "loading" not in panel.note.value


def test_whole_numbers_are_read_as_they_stand(panel):
    seed = 1234567890123456789
    panel.form.seed.value = str(seed)
    assert panel.form.read().options["seed"] == seed


@pytest.mark.parametrize(
    "name",
    [
        *("prismarine-plan", "prismarine-tdag", "acacia-fence-gate-taught-react"),
        *("blue-ice-lats", "blue-ice-reflexion", "books-never-lent"),
    ],
)
def test_a_saved_episode_of_another_method_can_be_forked(panel, monkeypatch, name):
    monkeypatch.setattr(module, "load_model", lambda *_, **options: ScriptedEngine(give_up))
    (shipped,) = (episode for episode in list_episodes() if episode.name == name)
    panel.saved.value = str(resource("data/episodes") / shipped.file)
    panel.open_button.click()
    (player,) = panel._shown.values()
    saved = player.episode
    _, at, *_ = (n for n, e in enumerate(saved.events) if isinstance(e, GeneratedSpan))
    player.fork(at, token=0, calls=saved.usage.calls + 2)
    player.wait(of=1)
    (fork,) = player.forks
    assert fork.header["program"] == saved.header["program"]
    assert written(fork, at) == written(saved, at)
    assert len(written(fork)) > len(written(fork, at)) > 0


def test_where_a_saved_episode_cannot_be_forked_the_player_says_why(panel, monkeypatch, tmp_path):
    episode = Episode.load(resource("data/episodes/acacia-fence-gate-react.jsonl.gz"))
    monkeypatch.setitem(episode.header["program"], "iterations", 7)
    panel.saved.value, panel.saved_file.value = FILE, str(episode.save(tmp_path / "mine.jsonl"))
    panel.open_button.click()
    (player,) = panel._shown.values()
    ask_fork(player)
    assert player._tracks[0].now["notice"] == (
        "the episode was played by react, with prompts or settings that no method has now, so "
        "nothing can go on from it; choose the method, and press Run"
    )
    monkeypatch.setitem(episode.header["task"], "number", 19)
    panel.saved_file.value = str(episode.save(tmp_path / "other.jsonl"))
    panel.open_button.click()
    player = list(panel._shown.values())[-1]
    ask_fork(player)
    assert player._tracks[0].now["notice"] == (
        "its task asks for something else here than it did when it was played"
    )
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    panel.saved.value = next(v for v in values(panel.saved) if "data/episodes/adapt-qwen" in v)
    panel.open_button.click()
    player = list(panel._shown.values())[-1]
    ask_fork(player)
    said = player._tracks[0].now["notice"]
    assert said.startswith("its task cannot be made here, so no fork: no ALFWorld games in")
    assert not player.forks


def give_up(seen: str) -> str:
    return "#END#"


def written(episode: Episode, end: int | None = None) -> list[str]:
    """What the model wrote, call by call, before an event."""
    return [event.span.text for event in episode.events[:end] if isinstance(event, GeneratedSpan)]


def ask_fork(player) -> None:
    """As the page does."""
    player._on_message(player, {"do": "fork", "track": 0, "at": 1, "changes": {}}, [])


def test_an_episode_that_has_gone_on_is_shown_as_it_is_now(panel, tmp_path):
    episode = Session(ScriptedEngine(["go on =>", "#END#", "#END#"]), context="go").run(
        progress=False
    )
    path = episode.save(tmp_path / "running.jsonl")
    lines = path.read_text("utf-8").splitlines(keepends=True)
    counts = []
    for written in (lines[:4], lines, lines):
        path.write_text("".join(written), "utf-8")
        panel.saved.value, panel.saved_file.value = FILE, str(path)
        panel.open_button.click()
        (player,) = panel._shown.values()
        counts.append((len(player.episode.events), id(player)))
    assert [count for count, _ in counts] == [3, len(episode.events), len(episode.events)]
    assert counts[1] == counts[2]


def test_the_episodes_of_the_gallery_can_be_opened_by_their_titles(panel):
    shown = dict(panel.saved.options)
    for shipped in list_episodes():
        title = f"{shipped.title} ({shipped.benchmark}, {shipped.method})"
        assert shown[title].endswith(shipped.file)
    panel.saved.value = shown["Six threads, from start to end (textcraft, thread)"]
    panel.open_button.click()
    assert list(panel._shown) == ["mojang-banner"]


def test_only_traces_are_listed(tmp_path):
    (tmp_path / "results.jsonl").write_text(json.dumps({"method": "thread"}), encoding="utf-8")
    (tmp_path / "torn.jsonl").write_text('{"thread_kit": ', encoding="utf-8")
    (tmp_path / "list.jsonl").write_text("[1]", encoding="utf-8")
    Episode({"environment": "textcraft", "task": {"number": 3}}).save(tmp_path / "mine.jsonl")
    traces = list_traces([tmp_path, tmp_path / "nowhere"])
    assert traces == [("textcraft 3, mine", tmp_path / "mine.jsonl")]


def test_what_lies_in_a_folder_neither_stalls_the_list_nor_acts_in_it(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "lost.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.jsonl").mkdir()
    header = {"thread_kit": 1, "environment": "\x1b[2J", "task": ["\ud800"], "model": {"name": 5}}
    path = tmp_path / os.fsdecode(b"\xff\x1b.jsonl")
    path.write_text(json.dumps(header), encoding="utf-8")
    assert list_traces([tmp_path]) == [("␛[2J ['\\ud800'], 5, \ufffd␛", path)]


# What goes wrong


def test_another_task_leaves_the_budgets_that_a_person_has_set(panel):
    form = panel.form
    form.budgets["calls"].value, form.budgets["seconds"].value = "9", "60"
    form.number.value = "3"
    assert [form.budgets[unit].value for unit in ("calls", "seconds")] == ["9", "60"]
    form.method.value = "react"
    assert form.budgets["calls"].value != "9"


def test_a_seed_that_is_no_whole_number_is_one_sentence(panel):
    panel.form.seed.value = "1.7"
    panel.run_button.click()
    assert read_note(panel) == "seed=1.7 is no whole number; give one"


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("temperature", "abc", "no number; give one, or leave the field empty for 0"),
        ("seed", "abc", "no number; give one, or leave the field empty for 0"),
        ("new_tokens", "abc", "no number; give one"),
        ("depth", "abc", "no number; give one, or leave the field empty for no limit"),
        ("calls", "-3", "calls=-3 leaves nothing to do; give a positive number"),
        ("calls", "2.5", "calls=2.5 is no whole number; give one"),
        ("depth", "1.5", "depth=1.5 is no whole number; give one"),
        ("temperature", "-1", "temperature=-1 is negative; give 0 or more"),
    ],
)
def test_what_is_wrong_in_a_field_is_said_as_soon_as_it_is_typed(panel, field, value, sentence):
    form = panel.form
    typed = form.budgets.get(field) or getattr(form, field)
    typed.value = value
    assert read_note(panel).endswith(sentence)
    typed.value = "1"
    assert not read_note(panel)


@pytest.mark.parametrize(
    ("typed", "number"),
    [("1e1", "10"), ("2.7", "3"), ("-5", "0"), ("", "0"), (" 4 ", "4"), ("1e9", "last")],
)
def test_the_field_shows_the_number_of_the_task_that_is_chosen(panel, typed, number):
    form = panel.form
    form.number.value = typed
    number = str(len(form._tasks) - 1) if number == "last" else number
    assert form.number.value == number
    assert form.read().task["number"] == int(number)
    assert not read_note(panel)


def test_a_task_that_is_no_number_is_one_sentence_and_shows_no_other_task(panel):
    panel.form.number.value = "abc"
    said = "task is 'abc', which is no number; give one, or leave the field empty for 0"
    assert read_note(panel) == said
    assert not panel.form.task_text.value
    assert repr(panel).startswith("Explorer(textcraft no task, ")
    panel.run_button.click()
    assert read_note(panel) == said


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("many", "calls is 'many', which is no number; give one, or leave the field empty"),
        ("nan", "calls is 'nan', which is no number"),
        ("-3", "calls=-3 leaves nothing to do; give a positive number"),
    ],
)
def test_a_budget_that_cannot_be_is_one_sentence(panel, value, sentence):
    panel.form.budgets["calls"].value = value
    panel.run_button.click()
    panel.wait()
    assert read_note(panel).startswith(sentence)
    assert 'role="alert"' in panel.note.value
    assert not panel.stage.children
    assert not panel.run_button.disabled


def test_a_model_and_a_trace_that_are_not_there_are_one_sentence(tmp_path):
    panel = choose_emerald(explore(tmp_path))
    panel.form.model.value = FILE
    panel.run_button.click()
    assert read_note(panel) == "model is a file that has no name yet; write its path"
    panel.form.model_file.value = "nowhere.gguf"
    panel.run_button.click()
    panel.wait()
    assert "'nowhere.gguf' is neither a file nor a model that thread-kit knows" in read_note(panel)
    panel.saved.value = FILE
    panel.saved_file.value = "nowhere.jsonl"
    panel.open_button.click()
    assert "nowhere.jsonl" in read_note(panel)
    panel.save_buttons["page"].click()
    assert read_note(panel) == "nothing is shown yet: press Run, or Open a saved episode"


@pytest.mark.slow
def test_data_that_is_not_there_is_one_sentence_with_the_remedy(panel, monkeypatch, tmp_path):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    panel.form.benchmark.value = "alfworld"
    panel.form.split.value = "valid_seen"
    assert "Get them with `alfworld-download`" in read_note(panel)
    assert read_code(panel) == ""
    panel.run_button.click()
    assert "Get them with `alfworld-download`" in read_note(panel)


def test_where_no_kernel_runs_a_sentence_stands_in_its_place(monkeypatch):
    shown = []
    monkeypatch.setattr(module, "display", lambda data, **options: shown.append(data))
    explore()._ipython_display_()
    assert "application/vnd.jupyter.widget-view+json" in shown[0]
    assert "needs a running kernel" in shown[1]["text/html"]

"""Two models in one episode: the planner is another one than the executor."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from helpers.episodes import of_kind
from helpers.programs import EXECUTOR, NO, PLANNER, YES, Lock

from thread_kit.dialect import Stop
from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import EngineError, GenerateRequest
from thread_kit.engines.models import load_model
from thread_kit.engines.replay import ReplayEngine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.methods.adapt import adapt
from thread_kit.requests import Status
from thread_kit.session.session import Session, fork
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan

PLAN = "Step 1: push\nStep 2: open\nExecution order: Step 1 OR Step 2\n#END#"
PROGRAM = partial(adapt, planner=PLANNER, max_depth=2)
GIVEN = {"program": PROGRAM, "prompt": EXECUTOR, "prompts": [PLANNER], "scope": "none"}


class Wide(ScriptedEngine):
    """Has another vocabulary: its tokens are numbers that no other scripted engine knows."""

    BASE = 5_000_000

    def tokenize(self, text: str, *, first: bool = False) -> tuple[int, ...]:
        return tuple(self.BASE + token for token in super().tokenize(text))

    def submit(self, thread, request: GenerateRequest) -> None:
        assert min(request.tokens) >= self.BASE  # nothing of the other's vocabulary
        super().submit(thread, replace(request, tokens=[t - self.BASE for t in request.tokens]))

    def _spell(self, token: int) -> bytes:
        return chr(token - self.BASE).encode()


def team(replies: list[str], *plans: str) -> EngineByPrompt:
    executor = ScriptedEngine(replies, name="executor")
    return EngineByPrompt(executor, {PLANNER: Wide(plans or (PLAN,), name="planner")})


class Failing(ScriptedEngine):
    def advance(self, *threads):
        raise EngineError("no network")


def test_what_one_model_said_is_not_lost_where_another_one_fails():
    one, other = ScriptedEngine(["ab#END#"]), Failing(["x"])
    engine = EngineByPrompt(one, {PLANNER: other})
    engine.assign("b", PLANNER.sha256)
    for thread in ("a", "b"):
        engine.begin(thread, [1], stops={"#END#": Stop.END}, max_tokens=9)
    assert engine.advance("a", "b")
    with pytest.raises(EngineError, match="no network"):
        engine.advance("a", "b")


def test_a_model_that_fails_ends_no_thread_of_another_model():
    engine = EngineByPrompt(ScriptedEngine(["a#END#", "b#END#"]), {PLANNER: Failing(["x"])})
    engine.assign("second", PLANNER.sha256)
    for thread in ("first", "second", "of another session"):
        engine.begin(thread, [1], stops={"#END#": Stop.END}, max_tokens=9)
    assert engine.advance("first", "second")
    assert engine.advance("of another session")
    with pytest.raises(EngineError, match="no network"):
        engine.advance("first", "second")


REPLIES = [NO, "> push =>", NO, "> open =>"]


def played(path=None, engine=None) -> Session:
    session = Session(engine or team(list(REPLIES)), Lock(), path=path, **GIVEN)
    session.run(progress=False)
    return session


def first_call(episode: Episode, thread: int) -> int:
    calls = ((n, e) for n, e in enumerate(episode.events) if isinstance(e, GeneratedSpan))
    return next(n for n, call in calls if call.thread == thread)


def test_the_planner_is_asked_in_its_own_vocabulary_and_the_header_tells_both():
    session = played()
    episode = session.episode
    assert episode.reward == 1
    prompts = episode.header["prompts"]
    assert episode.header["model"]["name"] == "executor"
    assert prompts[PLANNER.sha256]["model"]["name"] == "planner"
    assert "model" not in prompts[EXECUTOR.sha256]
    for thread in episode.threads.values():
        spelled = [*thread.context.tokens, *thread.sequence.tokens]
        planned = thread.prompt == PLANNER.sha256
        assert all((token >= Wide.BASE) is planned for token in spelled)
    assert episode.threads[1].sequence.text == PLAN


def test_without_such_a_prompt_an_episode_is_that_of_its_one_engine():
    executor = ScriptedEngine(["> open =>"], name="executor")
    engine = EngineByPrompt(executor, {})
    assert played(engine=engine).episode.reward == 1
    assert len(executor.seen) == 1


def test_an_episode_of_two_models_opens_and_is_repeated_without_either(tmp_path):
    episode = played(tmp_path / "a.jsonl").episode
    saved = Episode.load(tmp_path / "a.jsonl")
    assert saved.events == episode.events
    session = Session(ReplayEngine(saved), Lock(), **GIVEN)
    again = session.run(progress=False)
    assert again.header["prompts"] == saved.header["prompts"]
    assert again.events[:-1] == saved.events[:-1]


@pytest.mark.parametrize("role", ["executor", "planner"])
def test_a_fork_goes_on_with_the_model_of_each_thread(role):
    session = played()
    episode = session.episode
    thread = 1 if role == "planner" else 3
    at = next(
        n
        for n, e in enumerate(episode.events)
        if isinstance(e, GeneratedSpan) and e.thread == thread
    )
    plans = ("Step 1: pull\n#END#",)
    replies = ["> pull =>", YES] if role == "planner" else ["> kick =>", NO]
    engine = team(replies, *plans)
    other = fork(episode, at, engine=engine, env=Lock(), recorded={"program": PROGRAM})
    forked = other.run(progress=False)
    assert forked.events[:at] == episode.events[:at]
    last = forked.threads[max(forked.threads)]
    assert ("pull" if role == "planner" else "kick") in last.sequence.text
    tokens = [e.span.tokens for e in of_kind(forked, GeneratedSpan) if e.thread == 1]
    assert min(tokens[0]) >= Wide.BASE


def test_a_fork_with_one_engine_spells_both_anew():
    episode = played().episode
    at = next(
        n for n, e in enumerate(episode.events) if isinstance(e, GeneratedSpan) and e.thread == 3
    )
    given = {"engine": ScriptedEngine([NO]), "env": Lock(), "recorded": {"program": PROGRAM}}
    forked = fork(episode, at, **given).run(progress=False)
    assert all(token < Wide.BASE for t in forked.threads.values() for token in t.sequence.tokens)


def test_closing_closes_both():
    engine = team([])
    engine.close()
    assert not engine.engine.is_open
    assert not engine._engines[1].is_open


@pytest.mark.filterwarnings("ignore:the model is taught by")
@pytest.mark.model
def test_two_real_models_play_one_episode():
    """The embedded model under two adapters: one writes the executors' texts, one the plan."""
    load = partial(load_model, "smollm2-135m", context=4096, cpu_threads=1)
    with EngineByPrompt(
        load(adapter="react-textcraft-135m"), {PLANNER: load(adapter="thread-135m")}
    ) as engine:
        options = {**GIVEN, "calls": 4, "new_tokens": 12}
        episode = Session(engine, Lock(), **options).run(progress=False)
    prompts = episode.header["prompts"]
    first, second = (
        facts["adapter"]["file"]
        for facts in (episode.header["model"], prompts[PLANNER.sha256]["model"])
    )
    assert (first, second) == ("react-textcraft-135m.gguf", "thread-135m.gguf")
    assert episode.usage.calls >= 1
    again = Session(ReplayEngine(episode), Lock(), **options).run(progress=False)
    assert again.events[:-1] == episode.events[:-1]


def test_threads_whose_cells_are_kept_and_children_that_lie_too_deep_are_forgotten():
    engine = team(list(REPLIES))
    session = Session(engine, Lock(), **GIVEN)
    session.keep_cells = True
    assert session.run(progress=False).status is Status.ENDED
    assert engine._threads == {}
    engine = team(list(REPLIES))
    episode = Session(engine, Lock(), depth=0, **GIVEN).run(progress=False)
    assert Status.OUT_OF_DEPTH in {thread.status for thread in episode.threads.values()}
    assert engine._threads == {}

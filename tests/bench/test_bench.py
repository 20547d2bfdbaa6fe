"""What the benchmark counts is what it says, and every contender does the same work."""

from __future__ import annotations

import json
from importlib.util import find_spec
from itertools import cycle

import pandas as pd
import pytest
from helpers.weights import few_layers

from thread_kit.bench import __main__ as bench
from thread_kit.bench import episodes, rates, server, tables
from thread_kit.bench.__main__ import main
from thread_kit.bench.contenders import (
    create_completion,
    kv_true,
    nothing_cached,
    prompt_cached,
    run_in_process,
)
from thread_kit.bench.drafting import drafting
from thread_kit.bench.episodes import Together, players
from thread_kit.bench.exactness import drift
from thread_kit.bench.figures import (
    contenders_figure,
    drafts_figure,
    growth_figure,
    rates_figure,
)
from thread_kit.bench.growth import (
    CONTEXT,
    PROMPT,
    RETURNED,
    SCHEMES,
    TREES,
    WRITTEN,
    bookkeeping,
    distinct_tokens,
    evaluated_kv_true,
    growth,
    tree,
)
from thread_kit.bench.rates import rate
from thread_kit.bench.server import llama_server
from thread_kit.bench.workload import Forced, Weights, Workload, workload
from thread_kit.dialect import Stop
from thread_kit.engines.models import load_model
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.paths import resource
from thread_kit.sequence import Provenance, Span
from thread_kit.session.session import Session
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan, Spawned

# Trees and counts


@pytest.mark.parametrize("shape", TREES)
@pytest.mark.parametrize("threads", [1, 2, 5, 21, 40])
def test_a_tree_has_its_threads_and_the_calls_that_they_need(shape, threads):
    children = TREES[shape](threads)
    assert len(children) == threads
    assert sum(children) == threads - 1
    work = tree(shape, threads)
    assert len(work.calls) == 2 * threads - 1
    assert sorted(step for step in work.steps if isinstance(step, int)) == list(range(threads))
    depth = {"chain": threads, "star": min(threads, 2)}.get(shape, work.threads)
    assert work.threads == depth


@pytest.mark.parametrize("shape", TREES)
def test_what_a_thread_sees_grows_by_what_it_wrote_and_what_came_back(shape):
    last: dict[int, Forced] = {}
    for call in tree(shape, 12).calls:
        assert len(call.written) == WRITTEN
        if before := last.get(call.thread):
            known = before.seen + before.written
            assert call.seen[: len(known)] == known
            assert len(call.seen) == len(known) + RETURNED
        else:
            assert len(call.seen) == PROMPT + CONTEXT
        last[call.thread] = call


@pytest.mark.parametrize("shape", TREES)
def test_threads_that_keep_their_cells_evaluate_every_token_once(shape):
    for threads in (1, 7, 64):
        work = tree(shape, threads)
        assert evaluated_kv_true(work) == distinct_tokens(work)


def test_with_too_few_sequences_the_coldest_are_evaluated_again():
    work = tree("chain", 20)
    assert evaluated_kv_true(work, sequences=8) > distinct_tokens(work)


def test_growth_orders_the_schemes_as_their_caches_do():
    rows = growth((1, 16))
    assert {(row.shape, row.scheme) for row in rows} == {(t, s) for t in TREES for s in SCHEMES}
    for shape in TREES:
        at_16 = {r.scheme: r.evaluated for r in rows if r.shape == shape and r.threads == 16}
        assert at_16["KV-true"] < at_16["one sequence"] <= at_16["prompt cached"]
        assert at_16["prompt cached"] < at_16["nothing cached"]
        alone = {row.evaluated for row in rows if row.shape == shape and row.threads == 1}
        assert alone == {PROMPT + CONTEXT + WRITTEN - 1}


@pytest.mark.parametrize("shape", TREES)
def test_bookkeeping_plays_an_episode_of_that_tree(shape, monkeypatch):
    played = []

    class Kept(Session):
        def run(self, **options):
            played.append(super().run(**options))
            return played[-1]

    monkeypatch.setattr("thread_kit.bench.growth.Session", Kept)
    assert bookkeeping(shape, 6) > 0
    (episode,) = played
    assert [len(thread.spawned) for thread in episode.threads.values()] == TREES[shape](6)


# Recorded episodes


@pytest.fixture(scope="module")
def episode() -> Episode:
    return Episode.load(resource("data/episodes/acacia-fence-gate.jsonl"))


def test_a_workload_is_the_episode_call_by_call(episode):
    work = workload(episode, ScriptedEngine([]), "fence gate")
    spell = ScriptedEngine([]).tokenize
    assert len(work.calls) == episode.usage.calls
    assert work.prompt == spell(episode.prompt(0).text)
    first = {}
    for call in work.calls:
        assert call.seen[: len(work.prompt)] == work.prompt
        first.setdefault(call.thread, call)
    for number, one in episode.threads.items():
        assert first[number].seen == work.prompt + spell(one.context.text)
    ends = {call.thread: call.seen + call.written for call in work.calls}
    assert ends[0] == spell(episode.seen(0))


def test_instructions_are_a_part_of_what_the_calls_see():
    """SF_Chat's agents' stand in the history."""
    episode = Episode.load(resource("data/episodes/books-never-lent.jsonl.gz"))
    spell = ScriptedEngine([]).tokenize
    last = workload(episode, ScriptedEngine([]), "books").calls[-1]
    whole = spell(episode.seen(0))
    assert whole[: len(last.seen)] == last.seen
    assert "I look at what there is." in "".join(map(chr, last.seen))


def test_the_first_calls_of_a_workload_are_its_beginning():
    work = tree("bushy", 8)
    first = work.first(5)
    assert first.calls == work.calls[:5]
    assert first.steps == work.steps[: len(first.steps)]
    assert isinstance(first.steps[-1], Forced)
    assert work.first(1000).steps == work.steps


def test_an_episode_without_calls_is_no_workload():
    with pytest.raises(ValueError, match="with calls"):
        workload(Episode({}), ScriptedEngine([]), "nothing")


@pytest.fixture(scope="module")
def weights() -> Weights:
    return Weights(few_layers(), None, context=1024, cpu_threads=1)


@pytest.fixture(scope="module")
def work():
    """Five threads, 20 tokens of prompt: small enough for every contender."""
    with load_model(adapter=None, context=256) as engine:
        spell = engine.tokenize
        prompt, task = spell("One and one is two. " * 3, first=True), spell("Count to four: ")
        child = spell(" three")
        steps = (
            Forced(0, prompt + task, spell("one, two,")),
            Forced(1, prompt + child, spell(" and four")),
            1,
            Forced(0, prompt + task + spell("one, two,") + child, spell(", four.")),
            0,
        )
        return Workload("counting", prompt, steps, 2)


@pytest.mark.model
def test_every_contender_evaluates_what_its_cache_does_not_hold(weights, work):
    every = sum(len(call.seen) + len(call.written) - 1 for call in work.calls)
    assert run_in_process(kv_true, weights, work).evaluated == distinct_tokens(work)
    assert run_in_process(nothing_cached, weights, work).evaluated == every
    kept = len(work.prompt) * (len(work.calls) - 1)
    assert run_in_process(prompt_cached, weights, work).evaluated == every - kept
    one = run_in_process(create_completion, weights, work)
    assert one.evaluated == SCHEMES["one sequence"](work)
    assert one.as_recorded < len(work.calls), "the texts are not this model's own"
    assert one.peak > 10**8, "the model's file is mapped"


@pytest.mark.model
def test_the_server_has_a_slot_for_each_thread_and_keeps_what_it_read(weights, work):
    pytest.importorskip("xllamacpp")
    played = run_in_process(llama_server, weights, work)
    every = sum(len(call.seen) + len(call.written) - 1 for call in work.calls)
    assert distinct_tokens(work) <= played.evaluated < every
    assert played.seconds > 0


@pytest.mark.model
def test_episodes_at_once_are_played_whole_by_every_contender(weights, work):
    works = [work, work]
    calls, generated = 2 * len(work.calls), 2 * work.generated
    for play in players(has_server=find_spec("xllamacpp") is not None):
        played = play(weights, works)
        assert (played.at_once, played.calls, played.generated) == (2, calls, generated)
        assert 0 <= played.as_recorded <= calls
        assert played.seconds > 0
        match played.contender:
            case "KV-true":  # both write in the same passes, all through
                assert played.passes == work.generated
            case "nothing cached":
                assert played.passes == work.generated
            case "create_completion":  # one after the other
                assert played.passes == generated
            case "KV-true, drafts":
                assert played.passes <= work.generated
            case "create_completion, prompt lookup":
                assert played.passes <= generated
            case "llama-server":
                assert played.passes == generated
            case "llama-server, ngram-mod":
                assert played.passes <= generated
        if "server" not in played.contender:
            assert 0 <= played.outside < 1


@pytest.mark.model
def test_where_nothing_is_kept_calls_side_by_side_share_nothing_either(weights, work):
    calls = list(enumerate(call for call in work.calls if isinstance(call, Forced)))
    with weights.load(episodes._ForgetfulEngine) as engine:
        for ended in engine.play(*calls):
            call = calls[ended.thread][1]
            assert ended.reused == 0
            assert ended.evaluated == len(call.seen) + len(call.written) - 1


@pytest.mark.model
def test_drift_is_measured_at_every_token_and_nothing_differs_from_itself(weights, work):
    kept, batched, drafted = drift(weights, work)
    assert kept.places == drafted.places == work.generated
    assert batched.places == len(work.calls[0].written)
    for one in (kept, batched, drafted):
        assert 0 <= one.equal <= 1
        assert 0 <= one.median <= one.largest < 5
        assert one.gap <= 2 * one.largest
    first = Workload("one call", work.prompt, (work.calls[0], 0), 1)
    assert drift(weights, first)[0].largest == 0, "the same batches give the same logits"


@pytest.mark.model
def test_calls_of_a_batch_share_their_few_shot_prompt(weights):
    """Eight times as it stands it would not fit."""
    with load_model(weights.path, adapter=None, context=256) as engine:
        prompt = engine.tokenize("One and one is two. " * 40, first=True)
        steps = tuple(
            Forced(n, prompt + engine.tokenize(f"{n}: "), engine.tokenize("three"))
            for n in range(8)
        )
    assert 8 * len(prompt) > weights.context > len(prompt)
    batched = drift(weights, Workload("few-shot", prompt, steps, 8))[1]
    assert batched.places == len(steps[0].written)


def test_rates_have_the_room_that_eight_episodes_take(monkeypatch, weights):
    given = []
    monkeypatch.setattr(bench, "rate", lambda weights, n: given.append(weights.context) or None)
    monkeypatch.setattr(bench, "_rows", list)
    bench._rates(weights, [], None)
    assert set(given) == {8192}


@pytest.mark.model
def test_drafts_are_counted_on_the_same_tokens(weights, work):
    none, some = drafting(weights, work, (0, 4))
    assert none.generated == some.generated == work.generated
    assert (none.passes, none.drafted, none.accepted) == (work.generated, 0, 0)
    assert some.passes == work.generated - some.accepted
    assert 0 <= some.accepted <= some.drafted
    table = tables.drafts({"drafts": [none._asdict(), some._asdict()]})
    assert list(table["draft"]) == ["0", "4"]
    assert table["passes a token"].iloc[0] == 1
    assert table["rate, times"].iloc[0] == 1


@pytest.mark.model
def test_kinds_of_weights_are_compared_on_the_same_tokens(weights, work):
    first = Workload("one call", work.prompt, (work.calls[0], 0), 1)
    rows = [row._asdict() for row in drafting(weights, first, (0, 2), (None, "Q8_0"))]
    assert [row["generated"] for row in rows] == [first.generated] * 4
    table = tables.kinds({"kinds": rows})
    assert list(table["kind"]) == ["as the file is", "as the file is", "Q8_0", "Q8_0"]
    assert list(table["draft"]) == ["0", "2", "0", "2"]
    assert table["rate, times"].iloc[0] == 1


@pytest.mark.model
@pytest.mark.parametrize("at_once", [1, 3])
def test_sessions_and_the_bare_loop_write_in_turns(weights, at_once):
    measured = rate(weights, at_once, turns=2, tokens=3)
    assert measured.at_once == at_once
    assert 0 < measured.low <= measured.share <= measured.high
    assert 0 <= measured.outside < 1


@pytest.mark.model
def test_kept_cells_stay_where_they_are_while_a_session_writes(weights, monkeypatch):
    """The share is of the seconds beside them and of those alone, taken in turns."""
    made, kept, seconds = [], [], cycle([4.0, 2.0])

    class Recorded(rates.EndlessEngine):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            made.append(self)

    def measure(work, *arguments):
        work(*arguments)
        over = [[s for s in engine._cache._sequences.values() if s.is_over] for engine in made]
        kept.append([sum(len(sequence.tokens) for sequence in some) for some in over])
        return next(seconds)

    monkeypatch.setattr(rates, "EndlessEngine", Recorded)
    monkeypatch.setattr(rates, "_measure_seconds", measure)
    assert rates.rate_beside_cells(weights, 200, turns=2, tokens=3) == 0.5
    assert kept == [[200, 0]] * 4


# Results


def test_rates_of_episodes_are_multiples_of_kv_trues_with_as_many_at_once():
    rows = [
        Together("KV-true", 1, 100, 100, 4, 4, 10.0, 0.02),
        Together("server", 1, 100, 50, 3, 4, 5.0, None),
        Together("KV-true", 2, 200, 100, 8, 8, 10.0, 0.02),
        Together("server", 2, 200, 100, 6, 8, 20.0, None),
    ]
    table = tables.episodes({"episodes": [row._asdict() for row in rows]})
    assert list(table["tokens/s"]) == [10, 20, 20, 10]
    assert list(table["rate, times"]) == [1, 2, 1, 0.5]
    assert list(table["passes a token"]) == [1, 0.5, 0.5, 0.5]
    assert table["waits"].isna().sum() == 2
    assert table["as recorded"].iloc[-1] == "6 of 8"


@pytest.fixture(scope="module", params=["embedded"])
def result(request):
    return json.loads(resource(f"data/bench/{request.param}.json").read_text(encoding="utf-8"))


def test_the_committed_results_meet_what_the_kit_claims(result):
    table = tables.contenders(result).set_index("contender")
    assert table.loc["KV-true", "tokens, times"] == 1
    assert table["tokens, times"].min() == 1
    assert table["time, times"].min() == 1, "KV-true is the fastest"
    shares = tables.rates(result).set_index("at once")["share of bare loop"]
    assert shares.min() >= 0.90


def test_the_figure_of_drafts_adds_up_to_what_was_generated():
    spans = [
        Span(Provenance.GENERATED, "abcd", (1, 2, 3, 4)),
        Span(Provenance.GENERATED, "e", (5,)),
    ]
    context = Span(Provenance.CONTEXT, "c", (6,))
    episode = Episode({})
    for event in (
        Spawned(0, None, 0, context, ""),
        GeneratedSpan(0, spans[0], Stop.LISTEN, 1, 4, 0.1, passes=2, drafted=5, accepted=3),
        GeneratedSpan(0, spans[1], Stop.END, 1, 1, 0.1),
    ):
        episode.add(event)
    came_true, rest = drafts_figure(episode).data
    assert (list(came_true.y), list(rest.y)) == ([3, 0], [1, 1])


def test_figures_show_the_tables(result):
    bars = contenders_figure(result)
    table = tables.contenders(result)
    assert list(bars.data[0].y) == list(table["contender"])[::-1]
    assert list(bars.data[0].x) == list(table["evaluated"])[::-1]
    (drawn,) = rates_figure(result).data
    assert list(drawn.x) == [1, 2, 4, 8]
    assert list(drawn.y) == list(tables.rates(result)["share of bare loop"])
    lines = growth_figure()
    counted = tables.growth().groupby(["shape", "scheme"], sort=False)["evaluated"]
    assert [list(line.y) for line in lines.data] == [list(part) for _, part in counted]
    assert len(lines.data) == len(TREES) * len(SCHEMES)
    assert sum(bool(trace.showlegend) for trace in lines.data) == len(SCHEMES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.jsonl"], "no.jsonl"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--task", "1000"], "1000"),
        (["--rounds", "0"], "--rounds 0"),
        (["--at-once", "2", "0"], "--at-once 0"),
        (["--quantize", "Q9"], "Q9"),
        (["--parts", "bookkeeping"], "name both"),
        (["--server", "no/llama-server"], "--server no/llama-server: there is no program"),
    ],
)
@pytest.mark.model
def test_what_cannot_be_measured_is_one_clear_error(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.model
def test_parts_are_measured_in_their_order_and_a_stop_is_no_traceback(monkeypatch, capsys):
    measured = []
    for name in ("contenders", "bookkeeping"):
        part = lambda *_, name=name: measured.append(name) or {}  # noqa: E731
        monkeypatch.setitem(bench.PARTS, name, part)
        monkeypatch.setitem(bench.SHOWN, name, lambda result: pd.DataFrame())
    asked = ["--calls", "1", "--at-once", "1", "--cpu-threads", "1"]
    assert main([*asked, "--parts", "bookkeeping", "contenders"]) == 0
    assert measured == ["contenders", "bookkeeping"]

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setitem(bench.PARTS, "contenders", stop)
    assert main([*asked, "--parts", "contenders"]) == 130
    assert capsys.readouterr().err.startswith("thread_kit.bench: stopped")


def test_a_server_of_ones_own_drafts_at_the_setting_that_was_best(monkeypatch, tmp_path):
    commands = []
    monkeypatch.setattr(server, "_silence", lambda: None)
    monkeypatch.setattr(server.os, "execvp", lambda binary, command: commands.append(command))
    weights = Weights(tmp_path / "m.gguf", None, 8192, 0, 1)
    for speculative in (False, True):
        server._become(weights, 4, 8080, speculative, "llama-server")
    plain, drafting = commands
    assert "ngram" not in " ".join(plain)
    more = drafting[len(plain) :]
    assert more[:2] == ["--spec-type", "ngram-mod"]
    assert more[2:4] == ["--spec-ngram-mod-n-match", "2"]

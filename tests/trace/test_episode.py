"""The trace: an episode is its events, on disk as in memory, and torn files still open."""

import gzip
import json
import os
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit.dialect import Stop
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.paths import resource
from thread_kit.requests import Status
from thread_kit.sequence import Provenance, Span
from thread_kit.session.session import Session
from thread_kit.trace import episode as module
from thread_kit.trace.costs import Usage
from thread_kit.trace.episode import Episode, TraceError, to_dataset
from thread_kit.trace.events import (
    Acted,
    Closed,
    Ended,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Prefilling,
    Prompted,
    Returned,
    Spawned,
    Token,
    from_json,
    to_json,
)
from thread_kit.trace.header import VERSION
from thread_kit.trace.jsonl import read_lines
from thread_kit.trace.shipped import open_episode
from thread_kit.trace.writer import TraceWriter

thorough = settings(deadline=None, max_examples=60)

HEADER = {
    "model": {"name": "m"},
    "task": {"split": "dev", "number": 3},
    "prompts": {"q": {"name": "q", "text": "few-shot", "tokens": [1, 2, 3]}},
}

texts = st.text(max_size=12) | st.sampled_from(["", "\n", "\u2028", "\x85", "\r\n", "é🪓", '"\\'])
numbers = st.integers(0, 50)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
facts = st.dictionaries(texts, plain, max_size=3)
seconds = st.floats(0, 1e6)


def span(provenance: Provenance, size: int, text: str = "x") -> Span:
    return Span(provenance, text, tuple(range(size)))


@st.composite
def streams(draw) -> list:
    """Events as an episode may produce them, in any order that makes sense, with any values."""
    events = [Prompted("q", draw(numbers), draw(numbers), draw(seconds))]
    events.append(Spawned(0, None, 0, span(Provenance.CONTEXT, draw(numbers), draw(texts)), "q"))
    threads, unreturned = 1, {0: []}
    for _ in range(draw(st.integers(0, 12))):
        thread = draw(st.integers(0, threads - 1))
        kind = draw(st.sampled_from(["call", "line", "act", "see", "spawn", "return", "end"]))
        text, size = draw(texts), draw(st.integers(0, 5))
        match kind:
            case "call":
                event = GeneratedSpan(
                    thread, span(Provenance.GENERATED, size, text), draw(st.sampled_from(Stop)),
                    draw(numbers), draw(numbers), draw(seconds),
                )  # fmt: skip
            case "line":
                event = ExecutedLine(
                    thread, text, draw(st.none() | texts), draw(st.none() | texts), draw(facts)
                )
            case "act":
                event = Acted(
                    thread, text, draw(texts), draw(seconds), draw(st.booleans()),
                    draw(st.booleans()), draw(facts),
                )  # fmt: skip
            case "see":
                event = Observed(thread, span(Provenance.OBSERVED, size, text))
            case "spawn":
                event = Spawned(
                    threads, thread, draw(numbers), span(Provenance.CONTEXT, size, text), "q"
                )
                unreturned[thread].append(threads)
                unreturned[threads] = []
                threads += 1
            case "return" if unreturned[thread]:
                child = unreturned[thread].pop()
                returned = span(Provenance.RETURNED, size, text)
                event = Returned(thread, child, returned, draw(facts))
            case _:
                event = Ended(thread, draw(st.sampled_from(Status)), text)
        events.append(event)
    if draw(st.booleans()):
        reward = draw(st.none() | seconds)
        events.append(Closed(draw(st.sampled_from(Status)), reward, draw(texts), draw(seconds)))
    return events


def episode_of(events, header=HEADER) -> Episode:
    episode = Episode(header)
    for event in events:
        episode.add(event)
    return episode


def call(thread: int, size: int, stop: Stop = Stop.LISTEN) -> GeneratedSpan:
    return GeneratedSpan(thread, span(Provenance.GENERATED, size), stop, 0, size, 0.5)


def spawn(thread: int, parent: int | None, prompt: str = "q") -> Spawned:
    return Spawned(thread, parent, 0, span(Provenance.CONTEXT, 4, "c"), prompt)


def returned(thread: int, child: int, size: int, **variables) -> Returned:
    return Returned(thread, child, span(Provenance.RETURNED, size), variables)


def small_episode() -> Episode:
    """A parent with two children, the first of which has a child of its own."""
    return episode_of([
        Prompted("q", 0, 3, 0.1),
        spawn(0, None),
        call(0, 5),
        spawn(1, 0),
        call(1, 7),
        spawn(2, 1),
        call(2, 11, Stop.END),
        Ended(2, Status.ENDED, ""),
        returned(1, 2, 2),
        call(1, 1, Stop.END),
        Ended(1, Status.ENDED, ""),
        returned(0, 1, 3, b=2),
        call(0, 2),
        spawn(3, 0),
        call(3, 13, Stop.END),
        Ended(3, Status.ENDED, ""),
        returned(0, 3, 1),
        call(0, 4, Stop.END),
        Ended(0, Status.ENDED, ""),
        Closed(Status.ENDED, 1.0, "", 2.5),
    ])  # fmt: skip


def same(one: Episode, other: Episode) -> bool:
    return (
        (one.header, one.events, one.status, one.reward, one.detail, one.seconds)
        == (other.header, other.events, other.status, other.reward, other.detail, other.seconds)
        and one.threads == other.threads
        and one.usage == other.usage
    )  # fmt: skip


# JSONL, there and back


@thorough
@given(streams())
def test_every_event_round_trips_through_json(events):
    for event in events:
        assert from_json(json.loads(json.dumps(to_json(event)))) == event


@thorough
@given(streams())
def test_a_saved_episode_opens_as_it_was(tmp_path_factory, events):
    episode = episode_of(events)
    path = tmp_path_factory.mktemp("trace") / "new folder" / "episode.jsonl"
    assert episode.save(path) == path
    assert same(Episode.load(path), episode)
    assert len(path.read_bytes().splitlines()) == 1 + len(events)


@thorough
@given(streams())
def test_a_trace_written_while_it_happens_is_the_trace_that_is_saved(tmp_path_factory, events):
    folder = tmp_path_factory.mktemp("trace")
    episode = episode_of(events)
    recorder = TraceWriter(folder / "live.jsonl", episode.header)
    for event in events:
        recorder.add(event)
    saved = episode.save(folder / "saved.jsonl")
    assert (folder / "live.jsonl").read_bytes() == saved.read_bytes()


def test_every_event_is_on_disk_before_the_next_one(tmp_path):
    recorder = TraceWriter(tmp_path / "live.jsonl", Episode(HEADER).header)
    episode = Episode(HEADER)
    for event in small_episode().events:
        recorder.add(event)
        episode.add(event)
        assert same(Episode.load(tmp_path / "live.jsonl"), episode)


def test_passing_events_are_neither_kept_nor_written(tmp_path):
    recorder = TraceWriter(tmp_path / "live.jsonl", Episode(HEADER).header)
    episode = episode_of([spawn(0, None)])
    for event in (Prefilling(None, 0, 9), Prefilling(0, 1, 2), Token(0, 7, "a")):
        recorder.add(event)
        episode.add(event)
    assert len(episode.events) == 1
    assert Episode.load(tmp_path / "live.jsonl").events == []


def test_saving_leaves_the_old_file_until_the_new_one_is_whole(tmp_path):
    path = small_episode().save(tmp_path / "episode.jsonl")
    before = path.read_bytes()

    class Breaks(Episode):
        def to_lines(self):
            yield "{}"
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        Breaks().save(path)
    assert path.read_bytes() == before


# Torn and corrupted files


@settings(deadline=None, max_examples=5)
@given(streams())
def test_a_last_line_torn_at_any_byte_loses_that_line_and_no_other(tmp_path_factory, events):
    path = episode_of(events).save(tmp_path_factory.mktemp("trace") / "episode.jsonl")
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        complete = end == len(whole) - 1  # nothing but the line break is missing
        assert Episode.load(path).events == (events if complete else events[:-1])


def test_a_file_torn_anywhere_opens_with_the_events_that_are_whole(tmp_path):
    episode = small_episode()
    whole = episode.save(tmp_path / "episode.jsonl").read_bytes()
    header = whole.index(b"\n")
    for end in range(header, len(whole), 17):
        path = tmp_path / "torn.jsonl"
        path.write_bytes(whole[:end])
        found = Episode.load(path).events
        assert found == episode.events[: len(found)]
        assert len(found) >= whole[:end].count(b"\n") - 1


def test_a_torn_last_line_excuses_no_other_line(tmp_path):
    lines = small_episode().save(tmp_path / "episode.jsonl").read_text().splitlines()
    path = tmp_path / "torn.jsonl"
    path.write_text("\n".join([*lines[:3], "{", *lines[4:-1], lines[-1][:-5]]))
    with pytest.raises(TraceError, match="line 4"):
        Episode.load(path)


def test_a_last_line_that_is_whole_and_wrong_is_an_error(tmp_path):
    path = small_episode().save(tmp_path / "episode.jsonl")
    with path.open("a") as file:
        file.write("{\n")
    with pytest.raises(TraceError, match="line 22"):
        Episode.load(path)


def test_a_torn_header_is_an_error(tmp_path):
    whole = small_episode().save(tmp_path / "episode.jsonl").read_bytes()
    path = tmp_path / "torn.jsonl"
    for end in range(1, whole.index(b"\n")):
        path.write_bytes(whole[:end])
        with pytest.raises(TraceError, match="line 1"):
            Episode.load(path)


CORRUPTIONS = {
    "half a line": '{"event": "ended", "thre',
    "an empty line": "",
    "no JSON": "hello",
    "a number": "5",
    "null": "null",
    "a list": "[1, 2]",
    "text": '"ended"',
    "an event without a kind": "{}",
    "a kind that nobody knows": '{"event": "dreamt", "thread": 0}',
    "a kind that is no text": '{"event": [], "thread": 0}',
    "a missing field": '{"event": "ended", "thread": 0, "status": "ended"}',
    "a field too many": '{"event": "ended", "thread": 0, "status": "ended", "detail": "", "x": 1}',
    "an unknown status": '{"event": "ended", "thread": 0, "status": "asleep", "detail": ""}',
    "a span of two": '{"event": "observed", "thread": 0, "span": ["observed", "x"]}',
    "a span that is none": '{"event": "observed", "thread": 0, "span": 3}',
    "a thread that was never spawned": (
        '{"event": "ended", "thread": 77, "status": "ended", "detail": ""}'
    ),
    "a thread that is a list": (
        '{"event": "ended", "thread": [0], "status": "ended", "detail": ""}'
    ),
    "a parent that was never spawned": (
        '{"event": "spawned", "thread": 9, "parent": 77, "at": 0, '
        '"context": ["context", "c", [1]], "prompt": "q"}'
    ),
    "changes that are none": (
        '{"event": "executedline", "thread": 0, "line": "", "printed": null, "error": null, '
        '"changed": 5}'
    ),
    "costs that are no numbers": (
        '{"event": "generatedspan", "thread": 0, "span": ["generated", "x", [1]], '
        '"stop": "end", "reused": "many", "evaluated": 1, "seconds": 0.5}'
    ),
    "brackets without end": "[" * 100_000,
}


@pytest.mark.parametrize("line", CORRUPTIONS.values(), ids=CORRUPTIONS.keys())
def test_a_corrupted_line_in_the_middle_is_named(tmp_path, line):
    path = small_episode().save(tmp_path / "episode.jsonl")
    lines = path.read_text().splitlines()
    lines[4] = line
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(TraceError, match=r"episode\.jsonl, line 5: ."):
        Episode.load(path)


@thorough
@given(st.integers(1, 19), plain)
def test_any_json_value_in_place_of_a_line_is_a_trace_error(number, value):
    lines = list(small_episode().to_lines())
    lines[number] = json.dumps(value)
    with pytest.raises(TraceError, match=f"line {number + 1}"):
        Episode.from_lines(lines)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"hello\n", "line 1"),
        (b"5\n", "no thread-kit trace"),
        (b'{"event": "closed"}\n', "no thread-kit trace"),
        (b'{"thread_kit": "1"}\n', "no thread-kit trace"),
        (b'{"thread_kit": %d}\n' % (VERSION + 1), "newer thread-kit.*update"),
        (b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_the_reason(tmp_path, content, message):
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=message) as error:
        Episode.load(path)
    assert "other.jsonl" in str(error.value)


def test_a_file_that_is_not_there_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jsonl"):
        Episode.load(tmp_path / "nowhere.jsonl")


def test_an_event_of_a_thread_that_was_never_spawned_is_refused_and_not_kept():
    episode = episode_of([spawn(0, None)])
    with pytest.raises(ValueError, match="thread 5, which was never spawned"):
        episode.add(call(5, 1))
    assert len(episode.events) == 1


# What is derived from the events


def test_supplemental_work_is_what_the_threads_below_generated():
    episode = small_episode()
    own, one, two = [0], [19], [13]  # thread 1 generated 8, thread 2 below it 11, thread 3 13
    assert episode.supplemental_work(0) == own * 5 + one * 3 + own * 2 + two * 1 + own * 4
    assert episode.supplemental_work(1) == [0] * 7 + [11] * 2 + [0]
    assert episode.supplemental_work(2) == [0] * 11


@thorough
@given(streams())
def test_supplemental_work_is_the_recursion_of_the_paper(events):
    episode = episode_of(events)

    def generated(thread: int) -> int:
        calls = [e for e in events if isinstance(e, GeneratedSpan) and e.thread == thread]
        below = [e.thread for e in events if isinstance(e, Spawned) and e.parent == thread]
        return sum(len(e.span) for e in calls) + sum(map(generated, below))

    for thread in episode.threads:
        expected: list[int] = []
        for event in events:
            if getattr(event, "thread", None) == thread:
                match event:
                    case GeneratedSpan() | Observed():
                        expected += [0] * len(event.span)
                    case Returned():
                        expected += [generated(event.child)] * len(event.span)
        assert episode.supplemental_work(thread) == expected


def test_work_and_walks_of_a_tree_deeper_than_pythons_stack():
    depth = 3000
    events = [spawn(0, None, "none")]
    for thread in range(1, depth):
        events.append(spawn(thread, thread - 1, "none"))
    events += [call(depth - 1, 5, Stop.END), returned(0, 1, 2)]
    episode = episode_of(events)
    assert episode.depth == depth - 1
    assert [one.id for one in episode.subtree()] == list(range(depth))
    assert episode.supplemental_work() == [5, 5]


@thorough
@given(streams())
def test_a_subtree_is_a_thread_and_all_below_it_each_once(events):
    episode = episode_of(events)
    for thread in episode.threads:
        found = [one.id for one in episode.subtree(thread)]
        assert found[0] == thread
        assert len(set(found)) == len(found)
        for one in episode.threads.values():
            parent = one.parent
            assert (one.id in found) == (one.id == thread or parent in found)


@thorough
@given(streams())
def test_the_cost_of_an_episode_is_the_sum_of_its_calls_and_prefills(events):
    usage = episode_of(events).usage
    calls = [e for e in events if isinstance(e, GeneratedSpan)]
    prefills = [e for e in events if isinstance(e, Prompted)]
    assert usage.calls == len(calls)
    assert usage.generated == sum(len(e.span) for e in calls)
    assert usage.evaluated == sum(e.evaluated for e in calls + prefills)
    assert usage.reused == sum(e.reused for e in calls)  # of what the calls have seen


def test_prompt_tokens_are_what_each_call_has_seen():
    usage = small_episode().usage
    # Prompt (3) and context (4) with each of the seven calls, and the sequence so far.
    assert usage.prompt == 7 * 7 + (0 + 8 + 11) + (0 + 9) + 0 + 0


def test_usages_add_up():
    one, other = Usage(1, 2, 3, 4, 5, 6.0), Usage(10, 20, 30, 40, 50, 60.0)
    assert one + other == Usage(11, 22, 33, 44, 55, 66.0)
    assert sum([one, other], Usage()) == one + other


def test_a_thread_shows_its_status_depth_children_and_variables():
    episode = small_episode()
    assert [one.depth for one in episode.threads.values()] == [0, 1, 2, 1]
    assert [one.parent for one in episode.threads.values()] == [None, 0, 1, 0]
    assert [one.spawned for one in episode.threads.values()] == [[1, 3], [2], [], []]
    assert episode.threads[0].variables == {"b": 2}
    assert episode.threads[1].variables == {}
    assert episode.threads[3].variables == {"b": 2}, "the next child inherits it"
    assert {one.status for one in episode.threads.values()} == {Status.ENDED}


def test_a_thread_is_live_until_it_ends():
    episode = episode_of([spawn(0, None), call(0, 3)])
    assert episode.threads[0].status is Status.GENERATING
    episode.add(spawn(1, 0))
    assert episode.threads[0].status is Status.LISTENING
    episode.add(Acted(1, "a", "o", 0.0, False, False, {}))
    assert episode.threads[1].status is Status.ACTING
    episode.add(Observed(1, span(Provenance.OBSERVED, 1)))
    assert episode.threads[1].status is Status.GENERATING
    episode.add(Ended(1, Status.TRUNCATED, "cut"))
    episode.add(returned(0, 1, 2))
    assert episode.threads[0].status is Status.GENERATING
    assert (episode.threads[1].status, episode.threads[1].detail) == (Status.TRUNCATED, "cut")


def test_what_a_thread_has_seen_is_prompt_context_and_sequence():
    episode = episode_of([
        Spawned(0, None, 0, Span(Provenance.CONTEXT, "|context|", (1,)), "q"),
        GeneratedSpan(0, Span(Provenance.GENERATED, "Y", (2,)), Stop.END, 0, 0, 0.0),
    ])  # fmt: skip
    assert episode.seen(0) == "few-shot|context|Y"


def test_a_title_is_what_the_thread_was_asked_to_do():
    def title(context: str) -> str:
        text = f"Prompt:\n{context}\n\nResponse:\n#START#\n"
        one = Spawned(0, None, 0, Span(Provenance.CONTEXT, text, ()), "q")
        return episode_of([one]).threads[0].title

    assert title("commands\nGoal: craft jungle fence.") == "Goal: craft jungle fence."
    assert title("I need to get 1 log. =>") == "I need to get 1 log."


def test_a_summary_is_one_line_of_facts():
    assert small_episode().summary == (
        "status=ended reward=1 threads=4 calls=7 prompt_tokens=77 evaluated=46 reused=0 "
        "generated=43 seconds=2.5"
    )


def test_episodes_become_a_dataset_with_a_row_for_each_thread():
    rows = to_dataset([small_episode(), small_episode()])
    assert len(rows) == 8
    row = rows[5]
    assert (row["episode"], row["thread"], row["parent"], row["model"]) == (1, 1, 0, "m")
    assert row["provenance"] == ["generated", "returned", "generated"]
    assert [len(tokens) for tokens in row["tokens"]] == [7, 2, 1]
    assert json.loads(row["task"]) == {"split": "dev", "number": 3}
    assert row["program"] == "thread"
    generated = rows["generated"][:4]
    assert sum(generated) == small_episode().usage.generated
    assert rows["work_below"][0] == sum(generated[1:])
    for number in range(4):
        below = [one.id for one in small_episode().subtree(number)][1:]
        assert rows["work_below"][number] == sum(generated[child] for child in below)


def test_a_dataset_tells_of_each_episode_which_program_played_it():
    reflexion, strangers = {"name": "reflexion", "actor": {"name": "react"}}, {"x": 1}
    episodes = [
        Episode({**small_episode().header, "program": program})
        for program in (None, reflexion, strangers)
    ]
    for episode in episodes:
        for event in small_episode().events:
            episode.add(event)
    assert list(dict.fromkeys(to_dataset(episodes)["program"])) == ["thread", "reflexion", "None"]


def test_what_a_stranger_wrote_becomes_a_dataset_too(tmp_path):
    """Halves of characters, and a model whose name is none."""
    small = small_episode()
    small.header["model"] = {"name": 5}
    small.save(tmp_path / "t.jsonl")
    text = (tmp_path / "t.jsonl").read_text("utf-8")
    broken = text.replace('"generated", "x"', r'"generated", "\ud800"')
    broken = broken.replace('["context", "c"', r'["context", "\ud800"')
    assert broken != text
    (tmp_path / "t.jsonl").write_text(broken, encoding="utf-8")
    rows = to_dataset(Episode.load(tmp_path / "t.jsonl"))
    assert set(rows["model"]) == {"5"}
    assert "?" in {text for texts in rows["text"] for text in texts}
    assert set(rows["context"]) == {"?"}
    with pytest.raises(TypeError, match="an episode is wanted, not None"):
        to_dataset(None)


def test_a_compressed_trace_opens_and_one_that_is_torn_says_so(tmp_path):
    plain = resource("data/episodes/acacia-fence-gate.jsonl")
    path = tmp_path / "gate.jsonl.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    assert Episode.load(path).events == Episode.load(plain).events
    for wrong in (path.read_bytes()[:-20], b"\x1f\x8b"):
        path.write_bytes(wrong)
        with pytest.raises(TraceError, match="not what gzip writes"):
            Episode.load(path)


def test_what_is_written_under_a_compressed_name_opens(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    session = Session(ScriptedEngine(["#END#"]), context="go", path=path)
    episode = session.run(progress=False)
    assert Episode.load(path).events == episode.events
    assert Episode.load(episode.save(path)).events == episode.events


def test_a_small_file_that_gzip_makes_huge_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "UNPACKED", 2**20)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(bytes(2**24)))
    tracemalloc.start()
    with pytest.raises(TraceError, match="comes to more than 1 MiB; if you trust it"):
        Episode.load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**23


def test_a_small_file_that_json_makes_huge_is_not_parsed(tmp_path, monkeypatch):
    """58 kB of `{},` took 1.6 GB."""
    monkeypatch.setattr(module, "VALUES", 1_000)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"thread_kit": 1, "x": [' + b"{}," * 1_000 + b"0]}\n"))
    with pytest.raises(TraceError, match="has more than 1,000 values; if you trust it"):
        Episode.load(path)


def test_what_is_no_file_is_not_read(tmp_path):
    """Nobody would write to a pipe, and a device has no end."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe.jsonl", tmp_path / "zero.jsonl", tmp_path):
        with pytest.raises(TraceError, match="is no file"):
            Episode.load(path)
        with pytest.raises(ValueError, match="is no file"):
            read_lines(path, dict, what="no row")


def test_events_are_found_by_their_kind():
    episode = open_episode("acacia-fence-gate")
    assert episode.find_event(Spawned) < episode.find_event(Spawned, 1) < len(episode.events)
    assert isinstance(episode.events[episode.find_event(Closed, -1)], Closed)
    with pytest.raises(ValueError, match="there are 1 events Closed; no number 1"):
        episode.find_event(Closed, 1)

"""A session asks its model for nothing twice, and what it costs depends on itself alone."""

from functools import partial

import pytest

from thread_kit.dialect import AGENT, Stop
from thread_kit.engines.completion_cache import CompletionCache, completion_key
from thread_kit.engines.engine import GenerateRequest, Sampled, SessionThread
from thread_kit.engines.models import load_model
from thread_kit.methods.common import ask
from thread_kit.program import thread_program
from thread_kit.requests import Finished, Status
from thread_kit.sequence import Sequence
from thread_kit.session.session import Session
from thread_kit.trace.costs import distinct_tokens

REQUEST = GenerateRequest((1, 2), {"=>": Stop.LISTEN}, 5, 0.0, (0,), None, (), ())
FIRST, SECOND, OTHER = SessionThread(1, 1), SessionThread(1, 2), SessionThread(2, 1)


def changed(**values) -> GenerateRequest:
    own = {name: getattr(REQUEST, name) for name in REQUEST.__slots__}
    return GenerateRequest(**(own | values))


def test_two_threads_of_a_session_that_see_the_same_share_a_key():
    assert completion_key(FIRST, REQUEST) == completion_key(SECOND, REQUEST) is not None


@pytest.mark.parametrize(
    "other",
    [{"tokens": (1, 3)}, {"stops": {"~>": Stop.LISTEN}}, {"forbid": ("~>",)}],
    ids=lambda values: next(iter(values)),
)
def test_whatever_decides_a_completion_is_in_its_key(other):
    assert completion_key(FIRST, changed(**other)) != completion_key(FIRST, REQUEST)


def test_another_session_shares_nothing():
    assert completion_key(OTHER, REQUEST) != completion_key(FIRST, REQUEST)


@pytest.mark.parametrize(
    "other", [{"temperature": 0.7}, {"logprobs": ("=>",)}], ids=["sampled", "with probabilities"]
)
def test_what_the_tokens_alone_do_not_decide_is_asked_again(other):
    assert completion_key(FIRST, changed(**other)) is None


def test_a_thread_of_nobodys_session_is_asked_again():
    assert completion_key("a thread", REQUEST) is None


KEY = completion_key(FIRST, REQUEST)


@pytest.mark.parametrize(
    ("stop", "room", "found"),
    [
        (Stop.LISTEN, 2, True),  # a caller with less room is cut where it would have been
        (Stop.LISTEN, 9, True),
        (Stop.END_OF_STREAM, 9, True),
        (Stop.LENGTH, 3, True),
        (Stop.LENGTH, 4, False),  # nobody knows what would follow
        (Stop.CANCELLED, 3, False),
        (Stop.CONTEXT, 3, False),
    ],
)
def test_only_a_completion_that_ends_where_this_one_would_is_taken_again(stop, room, found):
    cache = CompletionCache()
    cache.store(KEY, (7, 8, 9), stop)
    assert cache.find(KEY, room) == ([7, 8, 9] if found else [])


def test_the_oldest_completions_go_first():
    cache = CompletionCache(limit=2)
    keys = [completion_key(FIRST, changed(tokens=(number,))) for number in range(3)]
    for key in keys:
        cache.store(key, (1,), Stop.END)
    assert [bool(cache.find(key, 5)) for key in keys] == [False, True, True]


# With the model


@pytest.fixture(scope="module")
def engine():
    options = {"adapter": None, "quantize": None, "cpu_threads": 1, "keep_prompts": False}
    with load_model(context=1024, **options) as engine:
        yield engine


def finish(engine, *threads, **options):
    """Begin the same call for each thread; their tokens as they came, and their completions."""
    tokens = engine.tokenize(AGENT.context("Write a poem about the sea."), first=True)
    for thread in threads:
        engine.begin(thread, tokens, stops=AGENT.stops, **({"max_tokens": 12} | options))
    sampled, over = {thread: [] for thread in threads}, {}
    while len(over) < len(threads):
        for item in engine.step():
            if isinstance(item, Sampled):
                sampled[item.thread].append(item.token)
            elif hasattr(item, "stop"):
                over[item.thread] = item
    for thread in threads:
        engine.release(thread)
    return sampled, over


@pytest.mark.model
def test_a_call_that_was_answered_before_has_the_same_tokens_and_no_pass(engine):
    sampled, over = finish(engine, FIRST)
    again, second = finish(engine, SECOND)
    assert again[SECOND] == sampled[FIRST]
    assert (second[SECOND].text, second[SECOND].stop) == (over[FIRST].text, over[FIRST].stop)
    assert over[FIRST].evaluated > 0 == second[SECOND].evaluated
    assert second[SECOND].reused == over[FIRST].evaluated + over[FIRST].reused - 11  # the new ones


@pytest.mark.model
def test_it_runs_beside_one_that_is_evaluated_and_goes_on_behind_what_it_wrote(engine):
    both = SessionThread(5, 1), SessionThread(5, 2)
    finish(engine, both[0])
    tokens = engine.tokenize(AGENT.context("Write a poem about the sea."), first=True)
    _, over = finish(engine, both[1], "a thread of its own")
    assert over[both[1]].evaluated == 0 < over["a thread of its own"].evaluated
    longer = [*tokens, *over[both[1]].tokens]
    engine.begin(both[1], longer, stops=AGENT.stops, max_tokens=4)
    completion = None
    while completion is None:
        completion = next((item for item in engine.step() if hasattr(item, "stop")), None)
    assert completion.reused + completion.evaluated == len(longer) + 3  # all but the last new one


def twice(thread):
    """Spawn the same child two times."""
    Y = Sequence()
    for number in (1, 2):
        Y, _, _ = yield from ask(thread, Y, f"child {number}", "Go.", program=thread_program)
    return Finished(Y, Status.ENDED, {}, None)


@pytest.mark.model
def test_a_child_that_sees_what_its_elder_saw_costs_no_token(engine):
    limits = {"calls": 8, "new_tokens": 12, "depth": 2}
    play = partial(Session, engine, context="Twice.", program=twice, **limits)
    episode = play().run(progress=False)
    elder, younger = (episode.threads[0].spawned[n] for n in (0, 1))
    first, second = episode.threads[elder], episode.threads[younger]
    assert second.sequence.text == first.sequence.text != ""
    assert second.usage.generated == first.usage.generated
    assert second.usage.evaluated == 0 < first.usage.evaluated
    assert episode.usage.evaluated <= distinct_tokens(episode)
    # Another episode over the same engine is asked anew: nobody knows what was played before.
    other = play().run(progress=False)
    assert other.threads[elder].usage.generated == first.usage.generated
    assert other.threads[elder].usage.evaluated >= other.threads[elder].usage.generated - 1 > 0

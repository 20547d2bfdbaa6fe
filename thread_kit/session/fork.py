"""Rewind and fork: a new session that repeats an episode up to one of its events, and goes on.

    session.fork(at, token=12)                 go on from the 12th token of a call
    session.fork(at, token=12, text=" =>")     ... and write this next: here, spawn
    session.fork(at, variables={"n": 3})       with another value
    fork(Episode.load("x.jsonl"), engine=..., env=...)    go on where an episode broke off

The fork's trace begins with the events that it shares with the original, its header says where they
part (`fork`: the event, the token, and the fingerprint of what is shared), and every change is an
event (`Edited`). What the KV cache still holds of the original is not evaluated again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from thread_kit import exchange
from thread_kit.code_lines import is_variable_name
from thread_kit.dialect import Dialect, Stop, find_stop
from thread_kit.engines.engine import Engine
from thread_kit.engines.replay import OF_CALLS, CallStart, Place, spread
from thread_kit.envs.env import Env
from thread_kit.prompts import EMPTY, Prompt, PromptError, parse_prompt
from thread_kit.sequence import Provenance, Span
from thread_kit.session.checks import check_changes
from thread_kit.session.replay import Replay, Switch
from thread_kit.trace.episode import Episode, must_be_episode
from thread_kit.trace.events import (
    OF_CHILD,
    Acted,
    Edited,
    Ended,
    Event,
    ExecutedLine,
    GeneratedSpan,
    Observed,
    Resolved,
    Returned,
    Spawned,
    plain,
    to_json,
)
from thread_kit.trace.header import name_object
from thread_kit.trace.jsonl import to_line


def plan_fork(
    episode: Episode,
    at: int | None = None,
    *,
    engine: Engine,
    env: Env | None = None,
    token: int | None = None,
    text: str = "",
    forbid_spawn: bool = False,
    context: str | None = None,
    observation: str | None = None,
    returned: str | None = None,
    variables: Mapping[str, Any] | None = None,
    recorded: Mapping[str, Callable[..., Any] | None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The arguments of the session that `session.fork` makes, which says what each of these is.

    Raises ValueError for what cannot be changed there.
    """
    # 1. What is changed, where a person said so.
    must_be_episode(episode)
    check_changes(
        texts={"text": text, "context": context, "observation": observation, "returned": returned},
        places={"at": at, "token": token},
        variables=variables,
        env=env,
    )
    at, token = (None if place is None else int(place) for place in (at, token))
    starts: dict[Place, CallStart] = {}
    same_tokens = _same_tokens(episode, engine)
    open_calls: dict[Place, CallStart] = {}
    end, open_edits = len(episode.events), list[Edited]()
    if at is None or episode.status.is_broken_off:
        end, open_calls, open_edits = _broken_off(episode, engine, same_tokens)
    asked = end if at is None else at
    start = _place(episode, asked, context, observation, returned)
    edits = _edits(episode, start, asked, context, observation, returned, variables)
    if token is not None or text or forbid_spawn:
        call, begun, more = _cut(
            episode, asked, engine, token or 0, text, forbid_spawn, same_tokens
        )
        starts[call] = begun
        edits += more

    # 2. Where it goes on: how an episode broke off is no past that could be repeated.
    if at is None or start > end:
        start, starts = _place(episode, end), {**open_calls, **starts}
        edits = [*open_edits, *edits]
    origin = {"of": fingerprint(episode, start), "event": start, "token": token or 0}
    replay = Replay(episode, start, edits, starts, same_tokens, origin)
    settings = _settings(episode, replay, recorded or {}, options)
    if env is None:
        settings["context"] = _main_context(episode)
    elif plain({"task": env.task})["task"] != episode.header.get("task"):
        raise ValueError(
            f"env={env!r} is another task than the episode's ({episode.header.get('task')}); "
            "make the same one anew: env.again()"
        )
    return {"engine": engine, "replay": replay, "env": env, **settings}


def until_broken_off(episode: Episode, engine: Engine) -> Replay:
    """All of an episode's past, for a session with the same settings, which goes on behind it.

    Of an episode that came to its end, all but the end itself is repeated; and where its limit of
    actions ended it, all before the last action, which may be answered otherwise now.
    """
    is_whole = not (episode.status.is_live or episode.status.is_broken_off)
    same_tokens = _same_tokens(episode, engine)
    at, starts, edits = len(episode.events) - 1, dict[Place, CallStart](), list[Edited]()
    if not is_whole:
        at, starts, edits = _broken_off(episode, engine, same_tokens)
    if is_whole and (last := episode.last_action) and last[1].truncated:
        at = last[0]
    return Replay(episode, at, edits, starts, same_tokens)


def fingerprint(episode: Episode, at: int | None = None) -> str:
    """16 hex digits of the first `at` events: equal in an episode and in its forks."""
    lines = (to_line(to_json(event)) for event in episode.events[:at])
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


# Where


def _broken_off(
    episode: Episode, engine: Engine, same_tokens: bool
) -> tuple[int, dict[Place, CallStart], list[Edited]]:
    """The end of what happened before an episode was ended from outside, and its open calls.

    Of these also what a person had changed in them.
    """
    events, starts, edits = episode.events, dict[Place, CallStart](), list[Edited]()
    at = len(events)
    if episode.status.is_live:  # a torn trace, or a session that is paused
        return at, {}, []
    if not episode.status.is_broken_off:
        raise ValueError(
            f"the episode came to its end ({episode.status}); give the number of the event to "
            f"fork at, 0 to {at - 2}"
        )
    at -= 1
    while at and isinstance(event := events[at - 1], Ended) and event.status is episode.status:
        at -= 1
    given_up = _find_given_up(events, at)  # behind it calls may stand that came to their ends
    while (
        at
        and isinstance(call := events[at - 1], GeneratedSpan)
        and (call.stop in (Stop.CANCELLED, Stop.LENGTH) or at - 1 > given_up)
    ):
        at -= 1
        number = _before(episode, at, call.thread, GeneratedSpan)
        changed = _edits_before(episode, at, OF_CALLS)
        at -= len(changed)
        tokenize = None if same_tokens else engine.tokenizer(episode.threads[call.thread].prompt)
        start = _go_on(call, tokenize)
        forbids = any(edit.what == "forbidden" for edit in changed)
        starts[call.thread, number] = replace(start, forbids=forbids)
        edits += changed
    return at, starts, edits


def _find_given_up(events: Sequence[Event], end: int) -> int:
    """The number of the first of the last calls, before event `end`, that was given up; `end` if
    there is none.
    """
    first, at = end, end
    while at and (
        isinstance(event := events[at - 1], GeneratedSpan)
        or (isinstance(event, Edited) and event.what in OF_CALLS)
    ):
        at -= 1
        if isinstance(event, GeneratedSpan) and event.stop is Stop.CANCELLED:
            first = at
    return first


def _go_on(call: GeneratedSpan, tokenize: Callable[[str], tuple[int, ...]] | None) -> CallStart:
    """A call that was stopped, up to its last whole character; in the tokens of another engine."""
    text, tokens = call.span.text, call.span.tokens
    lengths = tuple(call.lengths or spread(len(text), len(tokens)))
    while tokens and text.endswith("\ufffd"):  # of a character that is not whole
        text = text[: len(text) - lengths[-1]]
        tokens, lengths = tokens[:-1], lengths[:-1]
    if tokenize is not None:
        tokens = tokenize(text)
        lengths = tuple(spread(len(text), len(tokens)))
    return CallStart(Span(Provenance.GENERATED, text, tokens), lengths)


def _place(
    episode: Episode,
    at: int,
    context: str | None = None,
    observation: str | None = None,
    returned: str | None = None,
) -> int:
    """The number of the first event that the change of event `at` makes different."""
    last = len(episode.events) - (0 if episode.status.is_live else 1)
    if not 0 <= at <= last:
        raise ValueError(f"at={at}: the episode has no such event to fork at; give 0 to {last}")
    event = _event(episode, at)
    if observation is not None:
        if not isinstance(event, Acted | Observed):
            raise ValueError(
                f"{_named(episode, at)}, which has no observation; choose an Acted or an Observed"
            )
        if isinstance(event, Acted):
            return at + 1
        return 1 + next(
            n
            for n in reversed(range(at))
            if getattr(before := episode.events[n], "thread", None) == event.thread
            and not (isinstance(before, Edited) and before.what == "observation")
        )
    if returned is not None:
        if not isinstance(event, Returned | Resolved):
            raise ValueError(
                f"{_named(episode, at)}, where no child returns; choose a Returned or a Resolved"
            )
        while isinstance(before := episode.events[at - 1], ExecutedLine) and (
            before.thread == event.thread and before.line == OF_CHILD
        ):
            at -= 1
    # The call begins anew, so what was changed in it goes; and what is changed once more.
    again = {"context": context, "returned": returned}
    going = (*OF_CALLS, *(what for what, text in again.items() if text is not None))
    return at - len(_edits_before(episode, at, going))


def _edits_before(episode: Episode, at: int, kinds: Collection[str]) -> list[Edited]:
    """The changes of these kinds that come right before event `at`, in their order."""
    start = at
    while start and isinstance(edit := episode.events[start - 1], Edited) and edit.what in kinds:
        start -= 1
    return [event for event in episode.events[start:at] if isinstance(event, Edited)]


def _event(episode: Episode, at: int) -> Event | None:
    return episode.events[at] if at < len(episode.events) else None


def _named(episode: Episode, at: int) -> str:
    event = _event(episode, at)
    return f"event {at} is {'the end' if event is None else f'a {type(event).__name__}'}"


def _before(
    episode: Episode, at: int, thread: int, kind: type[GeneratedSpan | Observed | Acted]
) -> int:
    """How many events of this kind a thread has before event `at`."""
    return sum(isinstance(e, kind) and e.thread == thread for e in episode.events[:at])


# What


def _cut(
    episode: Episode,
    at: int,
    engine: Engine,
    token: int,
    text: str,
    forbid_spawn: bool,
    same_tokens: bool,
) -> tuple[Place, CallStart, list[Edited]]:
    """The call that event `at` is: how it begins now, and what is changed in it."""
    # 1. The call, and a token of it.
    event = _event(episode, at)
    if not isinstance(event, GeneratedSpan):
        raise ValueError(
            f"{_named(episode, at)}; token, text and forbid_spawn change a call of the model: "
            "choose a GeneratedSpan (tk.list_events numbers them)"
        )
    span, lengths = event.span, event.lengths
    if not 0 <= token <= len(span):
        raise ValueError(f"token={token}: this call has {len(span)} tokens; give 0 to {len(span)}")
    if not lengths and 0 < token < len(span):
        raise ValueError(
            f"token={token}: this trace does not say what text each token adds; fork at the start "
            f"of the call (token=0) or behind it (token={len(span)})"
        )
    # 2. What is kept: whole characters. What is written behind it: up to a stop string.
    lengths = lengths or spread(len(span.text), len(span))
    while 0 < token < len(span) and _is_within(lengths, token):
        token -= 1
    kept = span.text[: sum(lengths[:token])]
    written = (kept + text).encode("utf-8", "replace")
    stop = find_stop(written, len(written), episode.dialect.stops)
    if stop and text:
        if stop[0] <= len(kept.encode("utf-8", "replace")):
            raise ValueError(
                f"the call stops at its {stop[1]!r}, so nothing can be written behind it; "
                "keep fewer tokens"
            )
        text = written[: stop[0]].decode("utf-8", "replace")[len(kept) :]
    # 3. Both in tokens of the engine that goes on.
    tokenize = engine.tokenizer(episode.threads[event.thread].prompt)
    tokens = span.tokens[:token] if same_tokens else tokenize(kept)
    new = tokenize(text)
    if len(tokens) != token:
        lengths = spread(len(kept), len(tokens))
    given = Span(Provenance.GENERATED, kept + text, tokens + new)
    # 4. The changes, as events.
    thread, number = event.thread, _before(episode, at, event.thread, GeneratedSpan)
    edits = [Edited(thread, "text", number, span.text[len(kept) :], text)] if text else []
    if forbid_spawn:
        edits.append(Edited(thread, "forbidden", number, "", "spawn"))
    spelled = (*lengths[: len(tokens)], *spread(len(text), len(new)))
    return (thread, number), CallStart(given, spelled, forbid_spawn), edits


def _is_within(lengths: Sequence[int], token: int) -> bool:
    """Whether a cut before this token is in the middle of a character, or of a call of whose tokens
    only the sum is known: it stands at the last of them or, where it came as one piece, the first.
    """
    return not lengths[token - 1] or not any(lengths[token:])


def _edits(
    episode: Episode,
    at: int,
    asked: int,
    context: str | None,
    observation: str | None,
    returned: str | None,
    variables: Mapping[str, Any] | None,
) -> list[Edited]:
    """The changes at the event that was asked for, but those in a call of the model.

    at: the first event that they make different.
    """
    edits = []
    event = _event(episode, asked)
    # 1. What a child sees, what an environment says, what a child returns.
    if context is not None:
        if not isinstance(event, Spawned) or event.parent is None:
            raise ValueError(
                f"{_named(episode, asked)}; context changes what a child sees: choose its Spawned"
            )
        edits.append(Edited(event.parent, "context", event.thread, "", context))
    if observation is not None:
        acting = episode.events[at - 1] if at else None
        thread = getattr(acting, "thread", 0)
        acted = at - isinstance(acting, Acted)
        number = max(_before(episode, acted, thread, kind) for kind in (Observed, Acted))
        edits.append(Edited(thread, "observation", number, "", observation))
    if returned is not None:
        taken = next(e for e in episode.events[at:] if isinstance(e, Returned | Resolved))
        was = taken.span.text if isinstance(taken, Returned) else taken.text
        edits.append(Edited(taken.thread, "returned", taken.child, was, returned))
    # 2. The variables of the thread whose event it is.
    if variables:
        thread = getattr(event, "parent", None)
        thread = getattr(event, "thread", None) if thread is None else thread
        if thread is None or thread not in episode.threads:
            raise ValueError(
                f"{_named(episode, asked)}, which is no thread's; choose a thread's event"
            )
        if episode.header.get("scope") == "none":
            raise ValueError(
                "these threads have no variables (scope 'none'); change a text instead"
            )
        for name in variables:
            if not (isinstance(name, str) and is_variable_name(name)) or name.startswith("_"):
                raise ValueError(
                    f"a variable cannot be called {name!r:.80}; give a name as Python has them, "
                    "without a _ in front"
                )
            try:
                json.dumps(variables[name], allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{name}={variables[name]!r:.80} is no value that a trace can hold ({error}); "
                    "give texts, numbers, and lists and dictionaries of them"
                ) from error
        edits.append(Edited(thread, "variables", 0, "", "", dict(variables)))
    return edits


# With what


def _same_tokens(episode: Episode, engine: Engine) -> bool:
    """Does this engine spell texts as the recorded one did?"""
    prompts = episode.header.get("prompts", {}).items()
    pairs = [(sha, p["text"], p["tokens"], True) for sha, p in prompts if p["tokens"]]
    main = episode.threads.get(0)
    if main:
        pairs.append((main.prompt, main.context.text, main.context.tokens, not pairs))
    return all(
        engine.tokenizer(sha)(text, first=first) == tuple(tokens)
        for sha, text, tokens, first in pairs
    )


def _settings(
    episode: Episode,
    replay: Replay,
    recorded: Mapping[str, Callable[..., Any] | None],
    options: dict[str, Any],
) -> dict[str, Any]:
    """The session's arguments: as the header has them, then `options`."""
    whole = ("prompt", "main_prompt", "prompts", "program", "dialect", "scope")
    fixed = [name for name in whole if name in options and replay.at]  # at its start all can
    if fixed:
        raise ValueError(
            f"{', '.join(fixed)} cannot change in the middle of an episode; begin a new Session"
        )
    header = episode.header
    stored = header.get("prompts", {}).items()
    prompts = [_prompt(sha256, facts, episode.dialect) for sha256, facts in stored]
    exchanged = {} if "program" in header else header.get("exchange", {})
    roles = _roles(header, prompts, recorded)
    if "prompt" in options and roles.get("main_prompt") is roles["prompt"]:
        del roles["main_prompt"]  # one of all threads is another one of all
    settings = {
        **roles,
        "dialect": episode.dialect,
        "scope": header.get("scope", "exported"),
        **header.get("limits", {}),
        **header.get("sampling", {}),
        **({"logprobs": True} if header.get("logprobs") else {}),
        **{name: value for name, value in options.items() if name not in exchanged},
    }
    past = header.get("fork", {}).get("exchange", {})  # what earlier forks have changed
    for name, written in exchanged.items():
        before = recorded.get(name) or _find_function(name, written, recorded)
        known = isinstance(before, Switch)  # which tells itself what it was
        places = [
            (at, _find_function(name, one, recorded))
            for at, one in (() if known else past.get(name, ()))
        ]
        function = replay.switch(before, options.get(name, before), places)
        settings[name] = function
        if isinstance(function, Switch) and replay.origin is not None:
            named = [(at, name_object(one)) for at, one in function.places]
            replay.origin.setdefault("exchange", {})[name] = named
    return settings


def _find_function(
    kind: str, written: str, recorded: Mapping[str, Callable[..., Any] | None]
) -> Callable[..., Any]:
    """The function of this name: of those that were given, or the kit's own."""
    given = recorded.get(kind)
    if given and name_object(given) == written:
        return given
    own = getattr(exchange, written, None)
    if isinstance(own, FunctionType):  # and no other thing of that module
        return own
    raise ValueError(
        f"the episode was recorded with {kind}={written}, which is not this kit's own; "
        f"give it: recorded={{{kind!r}: ...}}"
    )


def _roles(
    header: dict[str, Any],
    prompts: list[Prompt],
    recorded: Mapping[str, Callable[..., Any] | None],
) -> dict[str, Any]:
    """The program of an episode and its prompts, in the order in which the header has them."""
    first, last = (prompts[0], prompts[-1]) if prompts else (EMPTY, EMPTY)
    if "program" not in header:
        return {"prompt": last, "main_prompt": first}
    if recorded.get("program") is None:
        raise ValueError(
            f"the episode was played by the program {header['program']}; give it: "
            "recorded={'program': ...}"
        )
    return {"prompt": first, "prompts": prompts[1:], "program": recorded["program"]}


def _prompt(sha: str, stored: dict[str, Any], dialect: Dialect) -> Prompt:
    if not stored["text"]:
        return EMPTY
    try:
        prompt = parse_prompt(stored["text"], stored["name"], dialect)
    except PromptError:
        prompt = EMPTY
    if prompt.sha256 != sha:  # it was not read from a text, or is no few-shot prompt
        prompt = Prompt(stored["name"], (), dialect, stored["text"])
    if prompt.sha256 != sha:
        raise ValueError(f"the prompt {stored['name']!r} of the trace does not have its own hash")
    return prompt


def _main_context(episode: Episode) -> str:
    """What the main thread was asked to do; raises ValueError where an environment asked."""
    if episode.header.get("environment"):
        raise ValueError(
            f"the episode acts in {episode.header['environment']} "
            f"(task {episode.header.get('task')}); give that task from its start: env=..."
        )
    if 0 not in episode.threads:
        raise ValueError("the episode has no thread yet; begin a new Session")
    return episode.dialect.asked(episode.threads[0].context.text)

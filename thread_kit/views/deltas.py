"""How the live widget's state changes: small changes, folded into plain data.

The state is the view model of `model.py` as JSON, and what is passing: text that is being written,
a context that is being read. `live.js` folds the same changes in the same way, so it never needs
the whole tree twice. A change is [verb, path, value]:

    set    put the value there
    push   append the values to the list there
    write  append the text to the text there
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from thread_kit.events import Event, Prefilling, Spawned, Token
from thread_kit.trace import Episode
from thread_kit.views.model import prompt_views, thread_view
from thread_kit.views.wording import legible

State = dict[str, Any]
Change = list[Any]  # [verb, path, value]


def state_of(episode: Episode) -> State:
    """The whole state of an episode that nobody is running."""
    prompts = {name: asdict(one) for name, one in prompt_views(episode.header).items()}
    threads = {str(number): _thread(episode, number) for number in episode.threads}
    return {"prompts": prompts, "threads": threads, **_top(episode)}


def changes(state: State, episode: Episode, event: Event | None) -> list[Change]:
    """What an event, which the episode has taken in, changes in the state.

    None compares all threads, for the end: an error ends threads without any event.
    """
    match event:
        case Token(thread, _, text):
            read = state["reading"]  # which may be another thread's, and not be over yet
            passed = [["set", ["reading"], None]] if read and read["thread"] == thread else []
            return [*passed, ["write", ["threads", str(thread), "writing"], legible(text)]]
        case Prefilling(thread, done, total):
            reading = {"thread": thread, "done": done, "total": total}
            return [["set", ["reading"], reading]]
    if event is None:
        touched: set[int] = set(episode.threads)
    else:
        touched = {getattr(event, "thread", -1)} & set(episode.threads)
        if isinstance(event, Spawned) and event.parent is not None:
            touched.add(event.parent)
    found = _differences(state, _top(episode))
    for number in sorted(touched):
        old, new = state["threads"].get(str(number)), _thread(episode, number)
        path = ["threads", str(number)]
        found += [["set", path, new]] if old is None else _differences(old, new, path)
    return found


def fold(state: State, change: Change) -> None:
    """Make one change in the state."""
    verb, path, value = change
    place: Any = state
    for key in path[:-1]:
        place = place[key]
    key = path[-1]
    match verb:
        case "set":
            place[key] = value
        case "push":
            place[key] += value
        case "write":
            place[key] += value


def joined(found: list[Change]) -> list[Change]:
    """The same changes in fewer: text that follows text, and all but the last of equal settings."""
    short: list[Change] = []
    for change in found:
        verb, path, value = change
        if short and short[-1][:2] == [verb, path]:
            if verb == "write":
                short[-1] = [verb, path, short[-1][2] + value]
                continue
            if verb == "set":
                short[-1] = change
                continue
        short.append(change)
    return short


def _top(episode: Episode) -> State:
    return _plain(
        {
            "status": episode.status,
            "detail": legible(episode.detail),
            "reward": episode.reward,
            "prompting": asdict(episode.prompting),
            "reading": None,
        }
    )


def _thread(episode: Episode, number: int) -> State:
    return _plain({**asdict(thread_view(episode, number)), "writing": ""})


def _plain(data: Any) -> Any:
    """Data as JSON has it: lists instead of tuples."""
    return json.loads(json.dumps(data))


def _differences(old: State, new: State, path: list[str] | None = None) -> list[Change]:
    """Changes that make `old` equal to `new` in all that `new` has."""
    found: list[Change] = []
    for key, value in new.items():
        was, here = old[key], [*(path or []), key]
        if was == value:
            continue
        if isinstance(was, list) and isinstance(value, list) and value[: len(was)] == was:
            found.append(["push", here, value[len(was) :]])
        elif isinstance(was, dict) and isinstance(value, dict):
            found += _differences(was, value, here)
        else:
            found.append(["set", here, value])
    return found


__all__ = ["Change", "State", "changes", "fold", "joined", "state_of"]

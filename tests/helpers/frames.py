"""What frames must add up to, made the other way: from the view model of the episode as it is."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from thread_kit.trace.episode import Episode
from thread_kit.views.formatting import describe_reward
from thread_kit.views.view_model import view_episode


def fold(state: dict[str, Any], frame: dict[str, Any]) -> None:
    """One frame, as `player_recording.js` folds it."""
    if "token" in frame:
        state["threads"][str(frame["thread"])]["writing"] += frame["token"]
        return
    for verb, path, value in json.loads(json.dumps(frame["changes"])):
        place = state
        for key in path[:-1]:
            place = place[key]
        if verb == "push":
            place[path[-1]] += value
        elif verb == "put":
            place[path[-1]] = [
                list(pair) for pair in {**dict(place[path[-1]]), **dict(value)}.items()
            ]
        elif verb == "each":
            for one in place.values():
                one[path[-1]] = value
        else:
            place[path[-1]] = value


def view_as_json(episode: Episode) -> dict[str, Any]:
    """The view model as JSON, with what reading the few-shot prompts cost."""
    view = view_episode(episode)
    threads = {str(number): asdict(thread) for number, thread in view.threads.items()}
    totals, cost = view.totals, episode.prompting
    totals += f" · few-shot evaluated {cost.evaluated:,}" if cost.evaluated else ""
    totals += f" · few-shot reused {cost.reused:,}" if cost.reused else ""
    reward = describe_reward(view.reward)
    top = {"status": view.status, "detail": view.detail, "reward": reward, "totals": totals}
    return json.loads(json.dumps({**top, "threads": threads}))


def strip_details(state: dict[str, Any]) -> dict[str, Any]:
    """A state without what only frames know: which event brought a piece, and its tokens."""
    state = json.loads(json.dumps(state))
    for thread in state["threads"].values():
        thread.pop("writing")
        for piece in (thread["context"], *thread["sequence"]):
            for name in ("event", "lengths", "logprobs", "cameTrue", "asked", "exact", "taken"):
                piece.pop(name, None)
    return state

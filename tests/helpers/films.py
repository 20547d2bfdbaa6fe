"""What a film must say, made the other way: from the view model of the episode as it is."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from thread_kit.trace.episode import Episode
from thread_kit.views.view_model import view


def fold(state: dict[str, Any], frame: dict[str, Any]) -> None:
    """One frame, as `player_film.js` folds it."""
    if "token" in frame:
        state["threads"][str(frame["thread"])]["writing"] += frame["token"]
        return
    for verb, path, value in json.loads(json.dumps(frame["changes"])):
        place = state
        for key in path[:-1]:
            place = place[key]
        if verb == "push":
            place[path[-1]] += value
        else:
            place[path[-1]] = value


def state_of(episode: Episode) -> dict[str, Any]:
    """The view model as JSON."""
    seen = view(episode)
    threads = {str(number): asdict(one) for number, one in seen.threads.items()}
    top = {name: getattr(seen, name) for name in ("status", "detail", "reward")}
    state = {**top, "prompting": asdict(seen.prompting), "threads": threads}
    return json.loads(json.dumps(state))


def bare(state: dict[str, Any]) -> dict[str, Any]:
    """A state without what only a film knows: which event brought a piece, and its tokens."""
    state = json.loads(json.dumps(state))
    for one in state["threads"].values():
        one.pop("writing")
        for piece in (one["context"], *one["sequence"]):
            for name in ("event", "lengths", "logprobs", "asked", "exact"):
                piece.pop(name, None)
    return state

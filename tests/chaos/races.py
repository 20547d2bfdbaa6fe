"""Players over one engine, each in a thread of its own, commanded by others at any moment.

Of four sessions two are left alone and come to the end that they come to by themselves; the others
are held, stepped, forked and stopped. The interpreter changes threads thousands of times as often
as by default, so that what happens once in thousands of clicks happens here.
"""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from helpers.fake_server import Fake, Reply, says

import thread_kit as tk
from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import Engine
from thread_kit.engines.human import HumanEngine
from thread_kit.engines.scripted import ScriptedEngine
from thread_kit.engines.server import ServerEngine
from thread_kit.prompts import Example, Prompt
from thread_kit.requests import Status
from thread_kit.views.player.frames import FrameRecorder
from thread_kit.views.player.widget import Player

from .tally import Tally

SWITCH = 1e-6
"""Seconds after which it is another thread's turn; Python's own number is 0.005."""

PATIENCE = 120.0
"""Seconds after which a session that has not ended is taken to be forgotten."""

CHILD = Prompt("child", (Example("fetch nothing", "print('Nothing.')\n#END#"),))
COMMANDS = {
    "pause": {},
    "resume": {},
    "step": {"unit": "event"},
    "fork": {"at": 1, "changes": {}},
}


def speak(seen: str) -> str:
    """A parent asks twice and prints how often; a child answers."""
    own = seen[seen.rindex("Task ") :] if "Task " in seen else seen
    if own is seen:
        return "found = 'an axe'\nprint(f'Here is {found}.')\n#END#"
    turn = own.count("<=")
    return f"n = {turn}\nNow I fetch thing {turn}. =>" if turn < 2 else "print(n)\n#END#"


class Speaking(deque[Reply]):
    """A server's replies: to every prompt what `speak` says to it."""

    def popleft(self) -> Reply:
        return lambda handler: says(*speak(handler.body["prompt"]))(handler)


@contextlib.contextmanager
def serve() -> Iterator[Engine]:
    with contextlib.closing(Fake()) as server:
        server.replies = Speaking()
        with ServerEngine(server.url) as engine:
            yield engine


ENGINES: dict[str, Callable[[], contextlib.AbstractContextManager[Engine]]] = {
    "scripted": lambda: ScriptedEngine(speak),
    "by prompt": lambda: EngineByPrompt(ScriptedEngine(speak), {CHILD: ScriptedEngine(speak)}),
    "a person": lambda: HumanEngine(ScriptedEngine(speak)),
    "a server": serve,
}


def play(seed: int, count: int) -> Tally:
    """So many rounds of four players over one engine of each kind."""
    tally, chance = Tally(), random.Random(seed)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        for number in range(count):
            for kind, make in ENGINES.items():
                with make() as engine:
                    _play_round(tally, chance, engine, f"seed {seed}, round {number}, {kind}")
                tally.counts[kind] += 1
    finally:
        sys.setswitchinterval(usual)
    return tally


def _play_round(tally: Tally, chance: random.Random, engine: Engine, place: str) -> None:
    # 1. Four players begin; each of the last two is commanded by two threads.
    players = [_watch(engine, number) for number in range(4)]
    with _person(engine):
        for player in players:
            player.start()
        others = [
            threading.Thread(target=_command, args=(player, chance.randint(0, 2**32), tally))
            for player in players[2:]
            for _ in range(2)
        ]
        for other in others:
            other.start()
        for other in others:
            other.join()

        # 2. All end: two as by themselves, the others and their forks where they were stopped.
        for number, player in enumerate(players):
            for track in range(len(player._tracks)):
                player.wait(PATIENCE, of=track)
                _check(tally, player, track, f"{place}, player {number}, track {track}")
    for number, player in enumerate(players[:2]):
        alone = tk.Session(ScriptedEngine(speak), **_task(number)).run(progress=False)
        if _texts(player.episode) != _texts(alone):
            tally.find(f"{place}, player {number}", f"another end: {_texts(player.episode)}")


def _task(number: int) -> dict[str, object]:
    return {"context": f"Task {number}.", "prompt": CHILD, "main_prompt": tk.EMPTY}


def _watch(engine: Engine, number: int) -> Player:
    return tk.watch(tk.Session(engine, **_task(number)))


def _command(player: Player, seed: int, tally: Tally) -> None:
    """As a page does it: some commands to the original; then all is stopped."""
    chance = random.Random(seed)
    for _ in range(chance.randrange(9)):
        verb = chance.choice(list(COMMANDS))
        player._on_message(player, {"do": verb, "track": 0, **COMMANDS[verb]}, [])
        tally.counts[verb] += 1
        time.sleep(chance.random() * 1e-3)
    for track in range(len(player._tracks)):
        player._on_message(player, {"do": "stop", "track": track}, [])


@contextlib.contextmanager
def _person(engine: Engine) -> Iterator[None]:
    """Somebody who passes on every call; nobody, where the engine asks none."""
    if not isinstance(engine, HumanEngine):
        yield
        return
    over = threading.Event()

    def pass_on() -> None:
        while not over.wait(0.0001):
            for key in engine.waiting:
                with contextlib.suppress(ValueError):  # its session was stopped meanwhile
                    engine.pass_on(key)

    person = threading.Thread(target=pass_on)
    person.start()
    try:
        yield
    finally:
        over.set()
        person.join()


def _check(tally: Tally, player: Player, number: int, place: str) -> None:
    """The page has been told all of it, and nothing that is not so any more."""
    track = player._tracks[number]
    now, whole = track.now, FrameRecorder(track.episode, track.session.functions)
    if (now["phase"], now["error"], now["asks"]) != ("over", "", []):
        tally.find(place, f"the page shows {now}")
    if track.episode.status not in (Status.ENDED, Status.STOPPED):
        tally.find(place, f"{track.episode!r}: {track.episode.detail}")
    if _events(track.recorder) != _events(whole):
        tally.find(place, "the page was told of other events than those of the episode")


def _events(recorder: FrameRecorder) -> list[object]:
    events = [frame for frame in recorder.frames if "event" in frame]
    return [(event["event"], event["description"]) for event in events]


def _texts(episode: tk.Episode) -> list[str]:
    return [thread.sequence.text for thread in episode.threads.values()]

"""ALFWorld (Shridhar et al. 2021; THREAD paper, section 4.1): household tasks by text.

The engine and the rules are those of the packages `alfworld` 0.4.2 and `textworld` 1.7.0. Covered:
the official games (the papers use the 134 of "valid_unseen"), which ALFWorld's own command
`alfworld-download` puts into its data folder ($ALFWORLD_DATA, else ~/.cache/alfworld); any game
file by its path, in folders that say its type as theirs do; new games of all six types, generated
here and named so (`generator.py`); the papers' wording and the engine's own
(`envs/alfworld/wording.py`); a planner that wins every game (`planner.py`). Not covered: tasks with
movable receptacles or sliced objects, which ALFWorld leaves out, too; images.

Each episode has a process of its own (`envs/alfworld/process.py`), from its reset to its end.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from thread_kit.envs.alfworld.bleu import find_nearest
from thread_kit.envs.alfworld.generator import KINDS, generate_file
from thread_kit.envs.alfworld.planner import solve
from thread_kit.envs.alfworld.process import GameProcess
from thread_kit.envs.alfworld.wording import WORDINGS, apply_wording, read_goal, trim_arrival
from thread_kit.envs.env import Env, Step, check_split, choose_task, is_whole

GENERATED = "generated"
SPLITS = ("valid_unseen", "valid_seen", "train", GENERATED)

_PLACE = re.compile(r"\ban? (\w+ \d+)")

DATA = "json_2.1.1"  # the version of the games that the package 0.4 downloads
LISTED = 10  # generated games of each type that `tasks` lists; any other seed works, too


@dataclass(frozen=True, slots=True, repr=False)
class Task:
    """One game.

    split: one of `SPLITS`; "" for a game that is given by its path.
    name: what identifies it: the names of an official game's two folders
    ("pick_heat_then_place_in_recep-Mug-None-Cabinet-10/trial_T2019..."), or "heat-12" for a
    generated one: type and seed.
    type: "pick", "clean", "heat", "cool", "look" or "pick2", as the papers' tables name them.
    path: its file; None for a generated game, which is made when it is played.
    """

    split: str
    name: str
    type: str
    path: Path | None = None

    def __repr__(self) -> str:
        return f"Task({self.split} {self.name})".replace("( ", "(")


def tasks(split: str = "valid_unseen") -> list[Task]:
    """The games of `split` at hand, in the order of their names; generated ones by type and seed.

    Raises ValueError for another name, FileNotFoundError where no official game is at hand.
    """
    check_split(split, SPLITS)
    if split == GENERATED:
        return [Task(split, f"{kind}-{seed}", kind) for kind in KINDS for seed in range(LISTED)]
    folder = data_folder() / DATA / split
    # As ALFWorld does: what its engine cannot play, or found to have no solution, is left out.
    games = [
        _make_official_task(path, split)
        for path in sorted(folder.glob("*/*/game.tw-pddl"))
        if not any(word in path.parent.parent.name for word in ("movable", "Sliced"))
        and b'"solvable": true' in path.read_bytes()
    ]
    if not games:
        raise FileNotFoundError(
            f"no ALFWorld games in {folder}. Get them with `alfworld-download`, or set "
            f"ALFWORLD_DATA to the folder that has {DATA}/, or play generated ones: "
            f"the split {GENERATED!r}, as AlfWorld({GENERATED!r}, 'heat-0')"
        )
    return games


def data_folder() -> Path:
    """ALFWorld's own: $ALFWORLD_DATA, else ~/.cache/alfworld."""
    return Path(os.environ.get("ALFWORLD_DATA") or "~/.cache/alfworld").expanduser()


def _make_official_task(path: Path, split: str = "") -> Task:
    """The task of a game file that lies in folders with ALFWorld's names.

    Raises ValueError if it does not.
    """
    name = f"{path.parent.parent.name}/{path.parent.name}"
    kind = type_of(name)
    if kind is None:
        raise ValueError(
            f"{path}: the folders of a game file say its task type, as ALFWorld names them: "
            "pick_and_place_simple-Mug-None-Desk-308/trial_T20190908/game.tw-pddl"
        )
    return Task(split, name, kind, path)


def type_of(name: str) -> str | None:
    """The task type of a game by its name, official or generated; None if it tells none."""
    if name.partition("-")[0] in KINDS:
        return name.partition("-")[0]
    return next((kind for kind, prefix in KINDS.items() if name.startswith(prefix)), None)


@final
class AlfWorld(Env):
    """One episode of ALFWorld.

    split: one of `SPLITS`. game: its name, or its number in `tasks(split)`, which depends on the
    games at hand: identify results by name. Or the path of any game file, or what a generated one
    holds (the split is not used then). A game file is code of whoever made it: TextWorld evaluates
    Python in its grammar, with the rights of this process. Play none that you do not trust.
    max_actions: after so many actions the episode is truncated; every action counts, also one that
    does nothing. 50 is ALFWorld's own limit (THREAD, StateFlow); ADaPT gives an executor 20 and
    ReAct 60; None for no limit.
    wording: "papers", "classic" or "engine"; `WORDINGS` says what they are.
    nearest: what is no action is taken for the admissible one that it is most like (StateFlow
    paper); otherwise it does nothing.
    seconds: after so long without an answer the engine counts as stuck.
    Raises ValueError for an unknown split, game or wording or a limit below 1, FileNotFoundError
    where no game is at hand, ImportError if the engine is not installed.
    """

    name = "alfworld"
    packages = ("alfworld", "textworld", "fast-downward-textworld")

    def __init__(
        self,
        split: str = "valid_unseen",
        game: str | int | Path | Mapping[str, Any] = 0,
        *,
        max_actions: int | None = 50,
        wording: str = "papers",
        nearest: bool = False,
        seconds: float = 120.0,
    ) -> None:
        if wording not in WORDINGS:
            raise ValueError(f"unknown wording {wording!r}; choose one of {', '.join(WORDINGS)}")
        if max_actions is not None and max_actions < 1:
            raise ValueError(f"max_actions is {max_actions}; give 1 or more, or None for no limit")
        chosen, data = _choose_game(split, game)
        self.task: dict[str, Any] = {"split": chosen.split, "game": chosen.name, "wording": wording}
        if nearest:
            self.task["nearest"] = True
        self.type = chosen.type
        self.max_actions = max_actions
        self.wording = wording
        self.nearest = nearest
        self.seconds = seconds
        self._game = apply_wording(data, wording)
        self.goal = read_goal(self._game)
        self._arguments = (split, game)
        self._process: GameProcess | None = None
        self._clear()

    def _clear(self) -> None:
        self._actions = 0
        self._won = False
        self._truncated = False
        self._admissible: tuple[str, ...] = ()
        self._places: list[str] = []

    def __repr__(self) -> str:
        where = f"{self.task['split']}, " if self.task["split"] else ""
        return f"AlfWorld({where}{self.task['game']}: {self.goal})"

    @property
    def variables(self) -> dict[str, Any]:
        """`places`: what the room has, in the order of the text, so that a thread copies no list.

        Empty before reset.
        """
        return {"places": list(self._places)}

    @property
    def examples(self) -> str:
        """One prompt a task type, as in the papers: "alfworld-heat"."""
        return f"{self.name}-{self.type}"

    @property
    def admissible(self) -> tuple[str, ...]:
        """The actions that do something now, in the game's wording; () before reset and at the end.

        What else one writes is answered by "Nothing happens." The papers' agents do not see them.
        """
        return self._admissible

    @property
    def won(self) -> bool:
        """Whether the goal is reached."""
        return self._won

    def find_nearest(self, action: str) -> str:
        """The admissible action that is most like this, by BLEU (StateFlow paper, section 4.2)."""
        return find_nearest(action.strip(), self._admissible)

    def reset(self) -> str:
        """Start the game; returns the room and the task, the context of the main thread.

        Takes a second or two. Raises GameError or TimeoutError if the engine does not start.
        """
        self._clear()
        if self._process is None or not self._process.is_open:
            self._process = GameProcess(self.seconds)
        reply = self._process.ask(do="start", game=self._game)
        self._admissible = tuple(reply["admissible"])
        # Without the greeting and empty lines, as in the papers: in a prompt file an empty line
        # separates context and response.
        greeting, *paragraphs = reply["observation"].strip().split("\n\n")
        self._places = _PLACE.findall(
            reply["observation"].partition("you see ")[2].partition(".")[0]
        )
        return "\n".join(paragraphs or [greeting])

    def step(self, action: str) -> Step:
        """Execute an action: `go to desk 1`, `open drawer 2`, `take mug 1 from desk 1` ...

        reward: 1.0 for the action that wins the game, else 0.0.
        info: the actions so far, and whether the game is won; what was `done`, where that is the
        nearest action and not the one that was asked for.
        After the end an action has no effect. Starts the game if need be. Raises GameError or
        TimeoutError if the engine is gone, and for no text that a model can write.
        """
        if self._won or self._truncated:
            return self._make_step("The task is over.", 0.0)
        if self._process is None:
            self.reset()
        assert self._process is not None
        asked = action = action.strip()
        if self.nearest:
            action = self.find_nearest(action)
        reply = self._process.ask(do="step", action=action)
        self._actions += 1
        self._won = reply["won"]
        self._truncated = self._actions == self.max_actions and not self._won
        self._admissible = tuple(reply["admissible"])
        if self._won or self._truncated:
            self._process.close()  # many episodes may be kept, their processes need not be
            self._admissible = ()
        observation = trim_arrival(reply["observation"].strip(), self.wording)
        step = self._make_step(observation, float(self._won))
        return step if action == asked else step._replace(info={**step.info, "done": action})

    def oracle(self) -> list[str] | None:
        """Actions that win the game from its start, in its wording, by a planner that sees it all.

        Takes some seconds, and leaves the episode as it is. None if no plan is found, or none
        within `max_actions`.
        """
        plan = solve(self._game, self.seconds)
        if plan is None or (self.max_actions is not None and len(plan) > self.max_actions):
            return None
        return plan

    def again(self) -> AlfWorld:
        """The same game from its start, in an environment of its own, for a fork of an episode."""
        split, game = self._arguments
        return AlfWorld(
            split,
            game,
            max_actions=self.max_actions,
            wording=self.wording,
            nearest=self.nearest,
            seconds=self.seconds,
        )

    def close(self) -> None:
        """End the engine's process now; it ends by itself with the episode, or with this object."""
        if self._process:
            self._process.close()

    def _make_step(self, observation: str, reward: float) -> Step:
        info = {"actions": self._actions, "won": self._won}
        return Step(observation, reward, self._won, self._truncated, info)


def _choose_game(
    split: str, game: str | int | Path | Mapping[str, Any]
) -> tuple[Task, dict[str, Any]]:
    """A game, and what its file holds."""
    if isinstance(game, Mapping):
        made = game.get("generated")
        if not isinstance(made, Mapping) or not {"type", "seed"} <= made.keys():
            raise ValueError(
                "what a generated game holds says so ('generated': type and seed); give another "
                "game's file as a Path"
            )
        _check_game(game)
        return Task("", f"{made['type']}-{made['seed']}", made["type"]), dict(game)
    if isinstance(game, str) and game.endswith(".tw-pddl"):
        game = Path(game)
    task = _make_official_task(game) if isinstance(game, Path) else _find_game(split, game)
    return task, _read_game(task)


def _find_game(split: str, game: str | int) -> Task:
    """The game of a split by its name or number; any seed of a generated type."""
    if split == GENERATED and isinstance(game, str):
        kind, _, seed = game.rpartition("-")
        if kind in KINDS and seed.isdecimal() and str(int(seed)) == seed:
            return Task(split, game, kind)
        raise ValueError(
            f"no generated game {game!r}; its name is a type and a seed: 'heat-12'. "
            f"Types: {', '.join(KINDS)}"
        )
    choices = tasks(split)
    if is_whole(game):
        return choose_task(choices, split, int(game))
    for task in choices:
        if task.name == game:
            return task
    raise ValueError(
        f"no game {game!r} among the {len(choices)} of split {split!r}; "
        f"a name is like {choices[0].name!r}"
    )


def _read_game(task: Task) -> dict[str, Any]:
    """What the task's game file holds; raises ValueError if that is no game."""
    path = task.path or generate_file(task.type, int(task.name.rpartition("-")[2]))
    try:
        game = json.loads(path.read_text(encoding="utf-8"))
        _check_game(game)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is no game file of ALFWorld: {error}") from error
    return game


def _check_game(game: Mapping[str, Any]) -> None:
    if not {"pddl_domain", "grammar", "pddl_problem"} <= set(game):
        raise ValueError("it lacks pddl_domain, grammar or pddl_problem")

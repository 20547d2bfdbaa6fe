"""InterCode Bash (Yang et al. 2023; StateFlow paper, section 4.1): a task for a shell.

A model looks around and changes files by commands, each of which is a new shell in one file system;
`cd` is remembered. The reward is the official one (`reward.py`): what the commands have changed,
and what the last one printed, against the gold command in a root of its own. Commands run as
InterCode runs them (`Container.run`). Differences:

- Observations begin with "Output: " or "Error (exit status 1): ", so that a text tells which it is;
  of the output at most 350 characters are shown, as in InterCode's scripts. "No output" is none.
- `cd x && ls` does not become the folder of all later commands, which would then fail.
- What a command leaves running is ended with it; bytes that are no UTF-8 are shown as such.
- The system is that of this machine under bubblewrap, not Ubuntu's in a container: programs that
  are missing here are missing for the gold command, too.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePosixPath
from typing import Any, final

from thread_kit.envs.intercode.interaction import (
    TURNS,
    CommandResult,
    InterCodeEnv,
    Script,
)
from thread_kit.envs.intercode.tasks import choose_question
from thread_kit.envs.intercode_bash.container import (
    FILES,
    OUTPUT,
    PATIENCE,
    Container,
    Ran,
)
from thread_kit.envs.intercode_bash.reward import Changes, compute_reward, read_changes
from thread_kit.envs.intercode_bash.tasks import Task, read_system, tasks

STOPPED = {
    "time": "Command timed out",
    "output": f"the output is longer than {OUTPUT:,} bytes",
    "processes": "too many processes",
    "memory": "out of memory",
    "files": f"there are more than {FILES:,} files",
}


@final
class InterCodeBash(InterCodeEnv):
    """One task, for one episode.

    split, number: the task. files: those of the task, where these are not the official ones
    (`Task`); None takes those at hand. turns: as in `InterCodeEnv`.
    Raises ValueError for an unknown task, or of other files than those named; FileNotFoundError
    where the test tasks are missing, RuntimeError where bubblewrap or git are.
    """

    name = "bash"

    def __init__(
        self,
        split: str = "test",
        number: int = 0,
        *,
        files: str | None = None,
        turns: int | None = TURNS,
    ) -> None:
        self.chosen: Task = choose_question(tasks(split), split, number, files)
        self.task = self.chosen.arguments
        self._gold = run_gold(self.chosen)
        self._container: Container | None = None
        super().__init__(turns)

    def _begin(self) -> None:
        super()._begin()
        self._folder, self._last = "/", self.chosen.question  # as in InterCode, until a command

    def execute(self, command: str) -> CommandResult:
        """Execute a command in a new shell, in the folder of the last `cd`."""
        if self._container is None:
            self._container = Container(*read_system(self.chosen.system))
        folder = find_folder(command, self._folder)
        if folder is not None:
            command = f"cd {folder}"
        try:
            ran = self._container.run(command, "/" if folder else self._folder)
        except ValueError:  # as InterCode says it
            self._last = "Malformed command"
            return CommandResult(f"Error: {self._last}", True)
        except RuntimeError as error:  # the container is gone, which no command should achieve
            self._container, self._last = None, ""
            return CommandResult(f"Error: {error}"[: self.script.characters], True)
        if folder and not ran.status:
            self._folder = folder
        self._last = ran.output
        return show_output(ran, self.script)

    def grade(self) -> float:
        """See InterCodeEnv: changes and the last output against those of the gold command."""
        try:
            changes = read_changes(self._container) if self._container else {}
        except RuntimeError:  # the container is gone, and with it what it changed
            self._container, changes = None, {}
        return compute_reward(self._last, changes, *self._gold)

    @property
    def measures(self) -> dict[str, Any]:
        return super().measures | {"file_system": self.chosen.system}

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None


LONGEST = 4_096  # characters of a path, as Linux has it
SPECIAL = ";&|<>()`$\"'\n*?[]{}~\\"
"""What makes a `cd` lead where only Bash knows."""


@cache  # methods and seeds ask for each task
def run_gold(task: Task) -> tuple[str, Changes]:
    """What the gold command prints and changes, in a root of its own."""
    # A busy machine shall not take the answer away.
    container = Container(*read_system(task.system), seconds=PATIENCE)
    try:
        ran = container.run(task.gold)
        if ran.stopped:  # part of an answer would be kept as all of it
            raise RuntimeError(f"the gold command of task {task.number} was stopped: {ran.stopped}")
        return ran.output, read_changes(container)
    finally:
        container.close()


def find_folder(command: str, current: str) -> str | None:
    """The folder that a `cd` leads to; None for any other command, and where only Bash knows."""
    words = re.sub(r"\s#.*", "", command).split(maxsplit=1)
    if not words or words[0] != "cd":
        return None
    target = words[1].strip() if len(words) > 1 else "~"
    if target == "~" or target.startswith("~/"):
        target = f"/root{target[1:]}"
    if len(target) > LONGEST or any(mark in target for mark in SPECIAL):
        return None
    parts: list[str] = []
    for part in PurePosixPath(current, target).parts[1:]:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
    return "/" + "/".join(parts)


def show_output(ran: Ran, script: Script) -> CommandResult:
    """What a command gave as the model observes it."""
    output = ran.output.strip("\n")[: script.characters]
    if ran.stopped:
        return CommandResult(f"Error: {STOPPED.get(ran.stopped, ran.stopped)}", True)
    if ran.status:
        return CommandResult(f"Error (exit status {ran.status}): {output or 'no output'}", True)
    return CommandResult(f"Output: {output}" if output else "No output", False)

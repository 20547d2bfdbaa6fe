"""Jails for lessons: one for all questions of a benchmark, since to start one takes longer than
to answer a question in it."""

from __future__ import annotations

from functools import partial
from typing import Any

from thread_kit.bubblewrap import BubblewrapSandbox
from thread_kit.envs.question import QuestionEnv


class Jails:
    """Sandboxes whose functions are those of the question that is on."""

    def __init__(self) -> None:
        self._jails: dict[str, BubblewrapSandbox] = {}
        self._on: dict[str, QuestionEnv] = {}

    def of(self, env: QuestionEnv) -> BubblewrapSandbox:
        """The jail for this question, from now on. Raises what `BubblewrapSandbox` raises."""
        self._on[env.name] = env
        if env.name not in self._jails:
            functions = {name: partial(self._call, env.name, name) for name in env.functions}
            self._jails[env.name] = BubblewrapSandbox(functions)
        return self._jails[env.name]

    def close(self) -> None:
        """End the processes."""
        for jail in self._jails.values():
            jail.close()

    def _call(self, benchmark: str, name: str, *arguments: Any, **named: Any) -> Any:
        return self._on[benchmark].functions[name](*arguments, **named)


__all__ = ["Jails"]

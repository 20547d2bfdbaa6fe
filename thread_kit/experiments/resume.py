"""Resume: episodes that were killed or stopped go on from their traces.

While the past is repeated, what the trace was before lies beside it, as NAME.before. So a kill in
the midst of that loses nothing either.
"""

from __future__ import annotations

from pathlib import Path
from typing import final

from thread_kit.engines.engine import Engine
from thread_kit.session.fork import until_broken_off
from thread_kit.session.replay import Replay
from thread_kit.trace.episode import Episode, TraceError


@final
class Resumed:
    """An episode that may have begun; from now on there is room for a new trace at its `path`.

    replay: what has happened by then, for a `Session`, until it is repeated; None if nothing has,
        or nobody can read it. went_on: the new trace has, or will have, what is replayed.
    """

    def __init__(self, path: Path, engine: Engine) -> None:
        self._path, self._before = path, path.with_suffix(".before")
        if self._before.exists():
            path.unlink(missing_ok=True)  # it repeated what lies beside it, and came less far
        elif path.exists():
            path.rename(self._before)
        self.replay = self._replay(engine) if self._before.exists() else None
        self.went_on = self.replay is not None
        if not self.went_on:
            self.forget()

    def _replay(self, engine: Engine) -> Replay | None:
        try:
            replay = until_broken_off(Episode.load(self._before), engine)
        except TraceError:
            return None
        return replay if replay.at else None

    def forget_if_repeated(self) -> None:
        """The new trace holds all that the old one does, which can go then."""
        if self.replay and self.replay.is_over:
            self.replay = None
            self._before.unlink(missing_ok=True)

    def forget(self) -> None:
        """Nothing can be replayed: the episode begins anew."""
        self.replay, self.went_on = None, False
        self._before.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)

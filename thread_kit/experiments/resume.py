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
class Interrupted:
    """An episode that may have begun; from now on there is room for a new trace at its `path`.

    past: what has happened by then, for a `Session`, until it is repeated; None if nothing has, or
        nobody can read it. went_on: the new trace has, or will have, a past.
    """

    def __init__(self, path: Path, engine: Engine) -> None:
        self._path, self._before = path, path.with_suffix(".before")
        if self._before.exists():
            path.unlink(missing_ok=True)  # it repeated what lies beside it, and came less far
        elif path.exists():
            path.rename(self._before)
        self.past = self._past(engine) if self._before.exists() else None
        self.went_on = self.past is not None
        if not self.went_on:
            self.forget()

    def _past(self, engine: Engine) -> Replay | None:
        try:
            past = until_broken_off(Episode.load(self._before), engine)
        except TraceError:
            return None
        return past if past.at else None

    def forget_if_repeated(self) -> None:
        """The new trace holds all that the old one does, which can go then."""
        if self.past and self.past.is_over:
            self.past = None
            self._before.unlink(missing_ok=True)

    def forget(self) -> None:
        """Nothing can be made of the past: the episode begins anew."""
        self.past, self.went_on = None, False
        self._before.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)

"""Thread depths, by the ways in which Table 7 of THREAD paper can have counted them.

The paper prints an average and a maximum for each benchmark and says neither where it starts to
count nor over what it averages. The example that it prints for DataCommons QA (appendix G.1) goes
to depth 2 below the main thread, which is 3 levels with the main thread, and 4 if what the
interpreter shows to a thread that listens is a level, too; the average there is 4.1. So the last
comes nearest, and is no more than a guess. A suite's rows have the first (`depth`), and `repeats`
the first two; the third needs the traces.
"""

from __future__ import annotations

from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Observed


def count_depths(episode: Episode) -> dict[str, int]:
    """An episode's deepest thread.

    depth: the main thread is 0. levels: it is 1. listening_levels: and an action or a line of code
    to whose answer a thread listens is one more.
    """
    listening = {event.thread for event in episode.events if isinstance(event, Observed)}
    threads = episode.threads.values()
    depth = episode.depth
    deepest = max((thread.depth + (thread.id in listening) for thread in threads), default=0)
    return {"depth": depth, "levels": depth + 1, "listening_levels": deepest + 1}

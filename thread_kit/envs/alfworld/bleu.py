"""The admissible action that is most like a text, by BLEU (StateFlow paper).

By BLEU (Papineni et al. 2002), as in the StateFlow paper (section 4.2), whose models write actions
that no game understands, such as "put mug on desk". Smoothed by one, since actions are short.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def find_nearest(action: str, admissible: Sequence[str]) -> str:
    """The admissible action with the highest BLEU, the first of equals.

    What follows a full stop does not count, nor do capitals, as in the code that the paper follows.
    `action` itself where none has a word in common with it: the game says that nothing happens.
    """
    said = action.partition(".")[0].strip().lower()
    if said in admissible:
        return said
    words = said.split()[:MOST]
    likeness = {other: bleu(words, other.split()) for other in admissible}
    best = max(likeness, key=likeness.__getitem__, default=action)
    return best if likeness.get(best) else action


MOST = 200
"""Words of a text that are compared; no action has more than ten."""

LONGEST = 4
"""Words of the runs that two lists have in common, at most."""


def bleu(candidate: Sequence[str], reference: Sequence[str]) -> float:
    """The similarity of two lists of words, 0 to 1, by their common runs of 1 to 4 words."""
    if not candidate or not reference:
        return 0.0
    logs = 0.0
    for n in range(1, LONGEST + 1):
        ours, theirs = _count_ngrams(candidate, n), _count_ngrams(reference, n)
        common = (ours & theirs).total()
        if n == 1 and not common:
            return 0.0
        more = n > 1
        logs += math.log((common + more) / (ours.total() + more)) / LONGEST
    brevity = min(0.0, 1 - len(reference) / len(candidate))
    return math.exp(brevity + logs)


def _count_ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))

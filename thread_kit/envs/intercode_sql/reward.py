"""InterCode SQL's reward (Yang et al. 2023; StateFlow paper, A.1), as the official code has it.

Rows are compared as texts. The reward is the intersection of both multisets of rows over their
union, times Kendall's tau of the order in which the common rows come.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def compute_reward(rows: Sequence[str] | None, gold: Sequence[str]) -> float:
    """The reward of the last output against that of the gold query, 0.0 to 1.0.

    rows: None where the last command gave none (an error, a statement that is no query). Two empty
    outputs are equal. Where tau is defined, the product is rounded to two places, as in the
    official code; below 0 it is 0, as in StateFlow's.
    """
    if rows is None:
        return 0.0
    ours, theirs = Counter(rows), Counter(gold)
    union = (ours | theirs).total()
    if union == 0:
        return 1.0
    common = ours & theirs
    share = common.total() / union
    tau = _kendall_tau(_keep_common(rows, common), _keep_common(gold, common))
    return share if math.isnan(tau) else max(round(tau * share, 2), 0.0)


def _keep_common(rows: Sequence[str], common: Counter[str]) -> list[str]:
    """The rows that both outputs have, in the order of one: of equal ones the first."""
    left, kept = common.copy(), []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
            kept.append(row)
    return kept


def _kendall_tau(ours: list[str], theirs: list[str]) -> float:
    """Tau-b between the texts at equal places; nan for fewer than two, or where all are equal."""
    if len(ours) < 2:
        return math.nan
    from scipy.stats import kendalltau

    place = {row: number for number, row in enumerate(sorted(set(ours)))}
    result = kendalltau([place[row] for row in ours], [place[row] for row in theirs])
    return float(result.statistic)

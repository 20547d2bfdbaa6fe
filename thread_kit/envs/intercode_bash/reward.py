"""InterCode Bash's reward (Yang et al. 2023; StateFlow paper, A.1), as the official code has it.

    0.01 + 0.33 * (1 - erf(paths that only one of both has changed))
         + 0.33 * (share of the new files of both that are equal)
         + 0.33 * (cosine of the last outputs, TF-IDF)

Each part is rounded to two places. So a file that both have created and one output decide two
thirds of it, and a task that asks for output alone begins at two thirds.

Where the gold command's own program is not on this machine, nobody knows the right output, and no
output earns that third: such a task is never solved.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from thread_kit.envs.intercode_bash.container import Container

WORD = re.compile(r"\b\w\w+\b")
ADDED = ("A", "??", "C")
NOT_HERE = ": command not found"
HASHES = r"""
for name in "$@"; do
    if [ -d "$name" ]; then find "$name" -type f | sort | xargs -d '\n' md5sum | md5sum
    else md5sum "$name"; fi 2>&1
    printf '\0'
done
"""
"""A folder's is of those of all its files. The official code runs md5deep, which it never installs.
"""
BATCH = 100  # paths, whose sums are less than what may be printed

Changes = Mapping[tuple[str, str], str]
"""What a command has changed: by (path, kind of change) the hash, where files were added; "" where
there is none, which equals no other."""


def read_changes(container: Container) -> Changes:
    """What git sees in a container, and the md5 sums of what was added."""
    words = container.inspect("git -c core.fsmonitor=false status --short").split()
    # A path with a space falls apart here, as in the official code (which then can break down).
    changes = list(zip(words[1::2], words[0::2], strict=False))
    added = [path for path, kind in changes if kind in ADDED]
    by_path: dict[str, str] = {}
    for first in range(0, len(added), BATCH):
        some = added[first : first + BATCH]
        by_path |= zip(some, container.inspect(HASHES, *some).split("\0"), strict=False)
    return {(path, kind): by_path.get(path, "") for path, kind in changes}


def compute_reward(output: str, changes: Changes, gold_output: str, gold_changes: Changes) -> float:
    """The reward of the last output and of all changes, 0.01 to 1.0."""
    different = len(set(changes) ^ set(gold_changes))
    paths = round(0.33 * (1 - math.erf(different)), 2)
    both = [key for key in set(changes) & set(gold_changes) if key[1] in ADDED]
    equal = sum(changes[key] == gold_changes[key] != "" for key in both)
    files = round(0.33 * equal / len(both), 2) if both else 0.33
    is_known = NOT_HERE not in gold_output
    answer = round(0.33 * compute_similarity(output, gold_output), 2) if is_known else 0.0
    return round(0.01 + paths + files + answer, 2)


def compute_similarity(first: str, second: str) -> float:
    """The cosine of two texts' TF-IDF vectors (smooth idf over these two, words of two letters up).

    Where neither has such a word, 1.0 for equal texts and else 0.0.
    """
    counts: Sequence[Counter[str]] = [
        Counter(WORD.findall(text.lower())) for text in (first, second)
    ]
    if not any(counts):
        return float(first == second)
    vectors = [
        {
            word: n * (math.log(3 / (1 + sum(word in other for other in counts))) + 1)
            for word, n in count.items()
        }
        for count in counts
    ]
    lengths = [math.sqrt(sum(value**2 for value in vector.values())) for vector in vectors]
    if not all(lengths):
        return 0.0
    dot = sum(value * vectors[1].get(word, 0.0) for word, value in vectors[0].items())
    return dot / (lengths[0] * lengths[1])

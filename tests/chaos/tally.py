"""What a part counts: attempts of each kind, and what did not hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts by name, and findings: (how to bring it back, what was seen)."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[str, str]] = field(default_factory=list)

    def find(self, what: str, seen: object) -> None:
        self.findings.append((what, str(seen)[-3_000:]))

    def most(self, name: str, value: int) -> None:
        """Keep the largest of several values."""
        self.counts[name] = max(self.counts[name], value)

    def __iadd__(self, other: Tally) -> Tally:
        self.counts += other.counts
        self.findings += other.findings
        return self

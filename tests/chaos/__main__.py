"""`python -m chaos --seed 1 --episodes 2000`: every part, and a table of what was counted."""

from __future__ import annotations

import argparse
import sys
import time

from .parts import PARTS, run_part


def main() -> int:
    """Run the parts that were asked for; 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=1_000, help="hostile episodes")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    counts = {
        "episodes": options.episodes,
        "largest": 9,
        "escapes": 1_000,
        "forgeries": options.episodes,
        "traces": options.episodes,
        "kills": max(1, options.episodes // 20),
        "full disks": max(1, options.episodes // 50),
        "interrupts": max(1, options.episodes // 50),
        "races": max(1, options.episodes // 10),
    }
    findings = 0
    for name in options.parts:
        begun = time.monotonic()
        tally = run_part(name, options.seed, counts[name])
        print(f"\n{name}, seed {options.seed}: {time.monotonic() - begun:.0f} s")
        for what, number in sorted(tally.counts.items()):
            print(f"  {what:32} {number:>10,}")
        for place, seen in tally.findings:
            print(f"  FOUND {place}\n{seen}")
        sys.stdout.flush()
        findings += len(tally.findings)
    print(f"\n{findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())

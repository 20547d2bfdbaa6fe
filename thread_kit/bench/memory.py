"""How much memory a process has taken."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path


def peak_memory(process: int | str = "self") -> int:
    """The most memory that a process has had, in bytes; of another one only on Linux, else 0."""
    status = Path(f"/proc/{process}/status")
    if status.exists():  # unlike getrusage, it does not count what the parent had at the fork
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return 1024 * int(found[1]) if found else 0
    if process != "self":
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

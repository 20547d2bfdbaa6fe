"""One JSON value a line: written so that nothing waits in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def to_line(data: dict[str, Any]) -> str:
    """A line of a trace."""
    # ASCII, so that a half character or a lone surrogate in model text cannot break a file.
    return json.dumps(data, default=repr)


def write_line(path: Path, data: dict[str, Any], mode: str = "ab") -> None:
    """Write one line; it is in the file when this returns. Raises OSError (a full disk, say).

    mode: "ab" puts it behind what there is, "wb" begins the file anew.
    """
    # Opened for each line and unbuffered: nothing waits in memory, and no file is left open,
    # whatever becomes of the session.
    line = (to_line(data) + "\n").encode()
    with path.open(mode, buffering=0) as file:
        while line:
            line = line[file.write(line) :]

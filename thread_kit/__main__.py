"""`python -m thread_kit`, or `thread-kit`: see `thread_kit/cli/main.py`."""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status, 130 after Ctrl-C."""
    # To import takes seconds on a cold disk, and an interrupt there can be lost: there is nothing
    # to be put in order yet, so it ends the process at once.
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    try:
        from thread_kit.cli.main import main
    finally:
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)
    return main(arguments)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"thread_kit: stopped\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m thread_kit`: see `thread_kit/cli/main.py`."""

import sys

from thread_kit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

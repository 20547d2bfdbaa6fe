"""The kit's stored rows, read once for all tests of a process; none of them changes the frame."""

from __future__ import annotations

from functools import cache

import pandas as pd

from thread_kit.analysis.stored_rows import load_stored_rows


@cache
def stored_rows() -> pd.DataFrame:
    return load_stored_rows()

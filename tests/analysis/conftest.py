"""statsmodels collects all garbage in each correction of p values: freeze what is there first."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def _freeze_what_is_there():
    gc.collect()
    gc.freeze()

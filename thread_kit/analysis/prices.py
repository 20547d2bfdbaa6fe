"""What episodes would cost at an API's prices, in US dollars, as the StateFlow paper counts it.

The prices are data/prices.csv, or a file of the same columns of one's own: model, US dollars for a
million tokens of input and of output, the date from which they hold, the source.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from thread_kit.analysis.records import must_be_frame
from thread_kit.paths import resource


def load_prices(path: str | Path | None = None) -> pd.DataFrame:
    """The price list, one row a model; its name is the index. path: one's own; None: the kit's."""
    prices = pd.read_csv(path or resource("data/prices.csv"))
    missing = {"model", "input", "output", "date", "source"} - set(prices.columns)
    if missing:
        lacking = ", ".join(sorted(missing))
        raise ValueError(
            f"the price list {path} lacks {lacking}; its columns are those of data/prices.csv"
        )
    numbers = prices[["input", "output"]].apply(pd.to_numeric, errors="coerce")
    if (
        not (np.isfinite(numbers) & (numbers >= 0)).all(axis=None)
        or prices["model"].duplicated().any()
    ):
        raise ValueError(
            f"the price list {path}: each model stands there once, with two numbers, 0 or more"
        )
    return prices.assign(**numbers).set_index("model")


def compute_dollars(
    input_tokens: float,
    output_tokens: float,
    model: str,
    prices: pd.DataFrame | str | Path | None = None,
) -> float:
    """What tokens cost at a model's price.

    input_tokens: all that the model is sent, call by call, since an API bills each. prices: a list
    of one's own, or its path. Raises ValueError for a model without a price.
    """
    price = _find_price(model, prices)
    return float((input_tokens * price["input"] + output_tokens * price["output"]) / 1e6)


def add_dollars(
    frame: pd.DataFrame, *, priced_as: str, prices: pd.DataFrame | str | Path | None = None
) -> pd.DataFrame:
    """A suite's frame with a column `dollars`: what each episode would cost at that model's price.

    prices: as in `compute_dollars`. Raises ValueError for a model without a price, and for rows
    that do not tell their tokens.
    """
    must_be_frame(frame)
    if missing := {"prompt_tokens", "generated"} - set(frame.columns):
        raise ValueError(f"these episodes have no {' and no '.join(sorted(missing))}; play a suite")
    price = _find_price(priced_as, prices)
    dollars = frame["prompt_tokens"] * price["input"] + frame["generated"] * price["output"]
    return frame.assign(dollars=dollars / 1e6)


def _find_price(model: str, prices: pd.DataFrame | str | Path | None) -> pd.Series:
    """US dollars a million tokens, `input` and `output`."""
    listed = prices if isinstance(prices, pd.DataFrame) else load_prices(prices)
    if model not in listed.index:
        known = ", ".join(map(str, listed.index))
        raise ValueError(f"there is no price of {model!r}; known: {known}. Add it to the list")
    return listed.loc[model]

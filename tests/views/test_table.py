"""Tables as notebooks show them."""

from __future__ import annotations

import re

import pandas as pd

from thread_kit.views.table import Table

FRAME = pd.DataFrame(
    {
        "method": ["thread", "<react>"],
        "n": [40, 1200],
        "rate": [0.975, 0.1],
        "low": [0.871, 0.05],
        "calls": [33.25, 7.0],
        "p": [0.00012, None],
    }
)


def test_numbers_have_the_digits_that_say_something():
    assert repr(Table(FRAME)).split("\n") == [
        "method       n   rate    low  calls        p",
        "thread      40  97.5%  87.1%   33.2  0.00012",
        "<react>  1,200  10.0%   5.0%    7.0",
    ]


def test_low_and_high_are_shares_only_beside_a_share():
    assert "94.5" in repr(Table({"success": [94.5], "low": [90.37]}))
    assert "90.4" in repr(Table({"success": [94.5], "low": [90.37]}))
    assert "0.18" in repr(Table({"kappa": [0.1818], "low": [0.1]}))


def test_what_rounds_to_zero_has_no_sign():
    assert repr(Table({"kappa": [-4.5e-06]})).split() == ["kappa", "0.00"]
    assert repr(Table({"rate": [0.5, -1e-9]})).split() == ["rate", "50.0%", "0.0%"]
    assert repr(Table({"x": [0.0300, -0.0021]})).split() == ["x", "0.03", "-0.0021"]


def test_texts_stand_left_and_numbers_right_and_nothing_is_markup():
    html = Table(FRAME)._repr_html_()
    assert 'text-align:left">&lt;react&gt;</td>' in html
    assert re.search(r'text-align:right">1,200</td>', html)
    assert "<react>" not in html


def test_an_index_is_shown_where_it_means_something():
    assert repr(Table(FRAME.set_index("method")[["n"]])).startswith("method       n\nthread ")
    assert repr(Table([{"n": 1}])) == "n\n1"


def test_an_empty_table_is_its_heading():
    assert repr(Table(FRAME.head(0))) == "method  n  rate  low  calls  p"
    assert "<tbody></tbody>" in Table(FRAME.head(0))._repr_html_()


def test_a_share_of_all_takes_no_digit_from_the_others():
    assert "99.5" in repr(Table({"rate": [100.0, 99.5]}))
    assert "1,235" in repr(Table({"tokens": [1234.6, 1.5]}))

"""A page of the papers' items shows what rows say, and nothing that they say acts on it."""

from __future__ import annotations

import pandas as pd

from thread_kit.analysis.page_forms import to_html, to_text

HOSTILE = "</table><script>1</script><img src=x onerror=1>\x1b[2J"


def test_nothing_of_a_row_acts_on_a_page_or_a_terminal():
    line = f"[model](javascript:1) [file](docs/use.md) {HOSTILE}"
    sections = [(HOSTILE, pd.DataFrame({"model": [HOSTILE]})), ("How", (line,))]
    page = to_html(HOSTILE, sections)
    assert '<a href="docs/use.md">file</a>' in page
    assert "[model](javascript:1)" in page
    assert page.count("<script") == page.count("<img") == 0
    assert "␛" in to_text("title", sections[:1])

"""axe-core (tests/vendor) in a page.

It checks WCAG's rules that a program can check: names, roles, contrast, focus.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

VENDOR = Path(__file__).parents[1] / "vendor" / "axe-core"

FIND = """async (selector) => {
    const { violations } = await axe.run(selector, { resultTypes: ["violations"] });
    return violations
        .filter(({ impact }) => ["serious", "critical"].includes(impact))
        .flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) =>
            `${id}: ${[...any, ...all, ...none].map(({ message }) => message)[0]} ${html}`));
}"""

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


def find_faults(page: Page, selector: str = "html") -> list[str]:
    """What axe-core finds in a part of a page that is serious or critical."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate((VENDOR / "axe.min.js").read_text("utf-8"))
    return page.evaluate(FIND, selector)

"""Reads HTML as a browser would, and fails on what a view must never write."""

from __future__ import annotations

from html.parser import HTMLParser


class Checker(HTMLParser):
    """Collects what a browser would see; fails on tags that do not close."""

    VOID = frozenset({"br", "hr", "img"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []  # summaries of what is unfolded
        self._unfolded = False
        self._summary = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attributes)
        if tag == "details":
            self._unfolded = ("open", None) in attributes or ("open", "") in attributes
        if tag == "summary":
            self._summary = ""
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, tag
        assert self.stack.pop() == tag
        if tag == "summary" and self._unfolded:
            self.open.append(self._summary)

    def handle_data(self, data: str) -> None:
        self.text += data
        self._summary += data


ALLOWED = frozenset(
    {"div", "p", "b", "i", "span", "small", "bdi", "details", "summary", "blockquote", "pre"}
    | {"table", "thead", "tbody", "tr", "th", "td"}
)


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.stack == []
    assert checker.tags <= ALLOWED
    assert checker.attributes <= {"style", "open"}
    return checker

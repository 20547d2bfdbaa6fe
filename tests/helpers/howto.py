"""Runs the blocks of a page as a reader would; as a program: howto.py PAGE, in an empty folder.

A block is a fence of python or sh. In the order of the page, one with title="FILE" is added to that
file, python runs in one namespace like the cells of a notebook, and sh in bash, which ends at the
first error. A block with the word `norun` behind its language is left out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|sh)\b(?P<info>.*)\n"
    r"(?P<code>(?s:.*?))^(?P=indent)```$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A block that is to be run. line: of the page, on which its code begins, counted from 1."""

    language: str
    file: str
    code: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    for fence in FENCE.finditer(page):
        if "norun" in fence["info"].split():
            continue
        title = re.search(r'\btitle="([^"]+)"', fence["info"])
        code = re.sub(f"^{fence['indent']}", "", fence["code"], flags=re.MULTILINE)
        line = page.count("\n", 0, fence.start("code")) + 1
        yield Block(fence["language"], title[1] if title else "", code, line)


def run(path: Path) -> None:
    """Run the blocks of a page; the first error ends it and names the line of the page."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(path.read_text("utf-8")):
        if block.file:
            with Path(block.file).open("a", encoding="utf-8") as file:
                file.write(block.code)
        elif block.language == "python":
            lines = "\n" * (block.line - 1) + block.code
            exec(compile(lines, str(path), "exec"), namespace)
        else:
            shell = ["bash", "-euo", "pipefail", "-c", block.code]
            if code := subprocess.run(shell).returncode:
                sys.exit(f"{path}, line {block.line}: exit status {code}")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, "")  # the folder, as in `python` itself
    run(Path(sys.argv[1]))

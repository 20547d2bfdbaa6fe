"""The documentation: its links lead somewhere, its commands exist, and no file is left out."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^```([^\n]*)\n(.*?)^```")
ADDRESS = re.compile(r"\]\(([^)\s]+)\)")  # of a link or a picture
ARCHITECTURE = ROOT / "docs" / "architecture.md"
SUFFIXES = {".py", ".pyi", ".js", ".css"}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text("utf-8"))


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of one language, those included that are not run."""
    found = FENCE.findall(page.read_text("utf-8"))
    return [body for info, body in found if info.split()[:1] == [language]]


def anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of a page's headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# Links


def broken(page: Path) -> list[str]:
    """The links within the project that lead nowhere."""
    found = []
    for address in ADDRESS.findall(prose(page)):
        if re.match(r"[a-z]+:", address):
            continue
        path, _, anchor = unquote(address).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(address)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page):
    assert not broken(page)


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading\n[a](page.md) [b](#a-heading) [c](https://x.invalid/y) [d](gone.md)\n"
        "[![e](gone.png)](page.md#no-heading)\n```text\n[f](in-code.md)\n```\n"
    )
    assert broken(page) == ["gone.md", "gone.png", "page.md#no-heading"]


def test_every_page_can_be_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = [(page.parent / link).resolve() for link in ADDRESS.findall(prose(page))]
        waiting += [target for target in targets if target in PAGES]
    assert reached == set(PAGES)


# The README


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 80


# Commands


@pytest.mark.model
@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "howto"], ids=name)
def test_a_page_runs_as_it_is_printed(page, tmp_path):
    """The how-tos have a test of their own, which runs those without a model, too."""
    howto = pytest.importorskip("helpers.howto")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-P", howto.__file__, str(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def commands() -> list[tuple[str, list[str]]]:
    """Every command line of a page that runs this project's Python, with the page's name."""
    found = []
    for page in PAGES:
        for line in "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                del words[0]
            if words[:2] == ["python", "-m"] and words[2].startswith("thread_kit"):
                found.append((name(page), words[2:]))
    return found


@cache
def options(*command: str) -> set[str]:
    """The options that a command names in its own help."""
    module, *words = command
    with (
        warnings.catch_warnings(),
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        warnings.simplefilter("ignore", RuntimeWarning)  # the module may have been imported before
        patch.setattr(sys, "argv", [module, *words, "--help"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__")
    assert ended.value.code == 0
    return set(re.findall(r"--[a-z][a-z-]*", printed.getvalue()))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "words"), commands())
def test_a_command_has_the_options_that_are_printed(page, words):
    used = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert used <= options(*words[:2])


def test_every_make_target_that_a_page_names_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.search(r"(?m)^\.PHONY: (.*)$", makefile)[1].split())
    for page in PAGES:
        text = "\n".join([*blocks(page, "sh"), *re.findall(r"`([^`\n]+)`", prose(page))])
        lines = re.findall(r"(?m)^(?:[A-Z_]+=(?:\"[^\"]*\"|\S*) )*make\b([^#\n]*)", text)
        used = {word for line in lines for word in shlex.split(line) if "=" not in word}
        assert used <= targets, name(page)


# Every file


def listed() -> dict[str, str]:
    """What the annotated tree of docs/architecture.md lists: path -> purpose."""
    tree = next(body for body in blocks(ARCHITECTURE, "text") if body.startswith("thread_kit/"))
    found: dict[str, str] = {}
    folders: list[str] = []
    for line in tree.splitlines():
        entry, _, purpose = line.strip().partition(" ")
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [entry]
        path = "".join(folders[: depth + 1])
        assert path not in found, f"{path} is listed twice"
        found[path] = purpose.strip()
    return found


def test_the_architecture_lists_every_file_with_a_purpose_of_few_words():
    package = ROOT / "thread_kit"
    files = {
        str(path.relative_to(ROOT))
        for path in package.rglob("*")
        if path.suffix in SUFFIXES and path.name != "__init__.py"
    }
    files |= {f"{path.parent.relative_to(ROOT)}/" for path in package.rglob("__init__.py")}
    tree = listed()
    known = {path for path in tree if path.startswith("thread_kit/")}
    page = ARCHITECTURE.name
    assert not files - known, f"add a line to the tree of {page} for {sorted(files - known)}"
    assert not known - files, f"take out of the tree of {page}: {sorted(known - files)}"
    words = {path: len(says.split()) for path, says in tree.items() if not path.endswith("/")}
    assert [path for path, number in words.items() if not 1 <= number <= 8] == []


def test_the_architecture_names_every_status():
    from thread_kit.requests import Status

    text = ARCHITECTURE.read_text("utf-8")
    table = text.partition("## The statuses of a thread")[2].partition("\n## ")[0]
    cells = re.findall(r"(?m)^\| ([a-z ,]+) \|", table)
    assert {status for cell in cells for status in cell.split(", ")} - {"status"} == set(Status)

"""The class: every notebook has exercises, each with a folded solution; every word a meaning."""

from __future__ import annotations

import ast
import builtins
import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXERCISES = sorted((ROOT / "notebooks" / "exercises").glob("*.ipynb"))
GLOSSARY = ROOT / "docs" / "glossary.md"


def read_cells(path: Path) -> list[dict]:
    return json.loads(path.read_text("utf-8"))["cells"]


def source(cell: dict) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_every_exercise_has_a_folded_solution(path):
    cells = read_cells(path)
    asked = [cell for cell in cells if re.match(r"## \d", source(cell))]
    assert len(asked) >= 2
    solutions = [cell for cell in cells if "solution" in cell["metadata"].get("tags", [])]
    assert len(solutions) == len(asked)
    for cell in solutions:
        assert cell["metadata"]["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
        assert cell["outputs"]
    order = [cell in asked for cell in cells if cell in asked or cell in solutions]
    assert all(first != second for first, second in pairwise(order))


def list_names(cells: list[dict]) -> tuple[set[str], set[str]]:
    """The names that cells define anywhere, and those that they read."""
    defined, read = set(), set()
    for node in (node for cell in cells for node in ast.walk(ast.parse(source(cell)))):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.MatchAs(name=str(name)):
                defined.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.alias(name=name, asname=other):
                defined.add(other or name.partition(".")[0])
    return defined, read


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_a_solution_runs_behind_the_first_cell_alone(path):
    """Whoever has found the first answer has not run its solution."""
    first, *code = (cell for cell in read_cells(path) if cell["cell_type"] == "code")
    solutions = [cell for cell in code if "solution" in cell["metadata"].get("tags", [])]
    assert solutions == code
    given = list_names([first])[0].union(dir(builtins))
    for cell in solutions:
        defined, read = list_names([cell])
        assert read <= defined | given, source(cell)


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_the_head_says_what_to_run_and_how_a_solution_opens(path):
    head = " ".join(source(read_cells(path)[0]).split())
    assert "Run the first cell alone (a solution that is run shows its answer)" in head
    assert "a click on `•••` opens the code, and then one on the `•••` below it its output" in head


@pytest.mark.browser
def test_a_solution_opens_as_the_head_says(browser, lab):
    from helpers.jupyter import Notebook
    from playwright.sync_api import expect

    shutil.copy(EXERCISES[1], lab.folder)
    notebook = Notebook(browser, lab, EXERCISES[1].name)
    cell = notebook.page.locator(".jp-CodeCell").nth(1)
    dots = cell.locator(".jp-MoreHorizIcon").filter(visible=True)
    code, output = cell.locator(".cm-content"), cell.locator(".jp-OutputArea-output").first
    expect(code).to_be_hidden()
    expect(dots).to_have_count(1)
    dots.click()
    expect(code).to_be_visible()
    expect(output).to_be_hidden()
    dots.click()
    expect(output).to_be_visible()
    expect(dots).to_have_count(0)
    notebook.close()


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_notebook_and_exercises_link_one_another_and_the_glossary(path):
    book = path.parents[1] / path.name
    first, *_, last = map(source, read_cells(book))
    assert "(../docs/glossary.md)" in first
    assert f"(exercises/{path.name})" in last
    head = source(read_cells(path)[0])
    assert f"(../{path.name})" in head
    assert "(../../docs/glossary.md)" in head


def test_every_word_of_the_glossary_has_two_sentences_and_a_file():
    text = re.sub(r"(?m)^#.*\n", "", GLOSSARY.read_text("utf-8"))
    words = re.findall(r"(?ms)^\*\*.*?(?=\n\n|\Z)", text)
    assert len(words) >= 45
    for word in words:
        assert re.search(r"\]\(\.\./thread_kit/[\w/]+\.py\)", word), word
        named = re.sub(r"`[^`]*`", "x", word.partition("** ")[2])
        said = re.sub(r"\((?:THREAD|ADaPT|StateFlow|\[).*$", "", named, flags=re.DOTALL)
        assert len(re.findall(r"[.?](?=\s|$)", said)) == 2, said

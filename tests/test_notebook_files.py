"""Notebooks as they are stored: what a reader sees who has no kernel and no JavaScript."""

from __future__ import annotations

import json
import re

import pytest
from helpers.notebooks import NOTEBOOKS, PLOTLY, SVG, WIDGET, read_outputs

REMEDY = "run: python notebooks/freeze.py"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_figure_has_a_picture_beside_it(notebook):
    outputs = read_outputs(notebook)
    without = [n for n, forms in enumerate(outputs) if PLOTLY in forms and SVG not in forms]
    assert not without, f"{notebook.name}: no picture in outputs {without}; {REMEDY}"
    pictures = [forms[SVG] for forms in outputs if SVG in forms]
    assert all(picture.startswith("<svg") for picture in pictures)
    assert sum(map(len, pictures)) < 150_000
    assert not re.findall(r"<script|<foreignObject|href=\"http", "".join(pictures))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_player_is_stored_as_what_it_shows_and_not_as_its_beginning(notebook):
    for forms in read_outputs(notebook):
        shown = forms.get("text/plain", "") + forms.get("text/html", "")
        assert not re.search(r"Player\(0 threads|not started\)", shown)
        if shown.startswith("Player("):
            assert "tk-tree" in forms["text/html"] or "<details" in forms["text/html"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_widget_is_stored(notebook):
    """Without its kernel JupyterLab says that it has no model, and a bar stands at 0%."""
    for forms in read_outputs(notebook):
        assert WIDGET not in forms, REMEDY
        assert not re.search(r"\d%\|", forms.get("text/plain", "")), REMEDY


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_are_for_readers(notebook):
    """At most four imports in a cell, and nothing that is the tests' business."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert len(re.findall(r"^(?:import|from) ", source, re.MULTILINE)) <= 4, source
            assert not re.search(r"NBVAL|^assert ", source, re.MULTILINE), source

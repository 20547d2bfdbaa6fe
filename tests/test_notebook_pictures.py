"""The figures of stored notebooks in a browser: without a kernel, and with no word cut."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.notebooks import FOLDER, NOTEBOOKS, PLOTLY, SVG, WIDGET, read_outputs

pytestmark = pytest.mark.browser

FAULTS = """async ([figure, width]) => {
    document.body.innerHTML = "<div></div>";
    const div = document.body.firstChild;
    div.style.width = `${width}px`;
    div.style.height = `${figure.layout.height ?? 450}px`;
    await Plotly.newPlot(div, figure.data, figure.layout, { displayModeBar: true });
    const bars = [...div.querySelectorAll(".modebar-group")].map((bar) => ["buttons", bar]);
    const texts = [...div.querySelectorAll("text")]
        .filter((text) => text.textContent.trim())
        .map((text) => [text.textContent, text]);
    const boxes = [...texts, ...bars].map(([name, node]) => [name, node.getBoundingClientRect()]);
    const page = div.getBoundingClientRect();
    const faults = boxes
        .filter(([, box]) => box.left < page.left - 1 || box.right > page.right + 1
            || box.top < page.top - 1 || box.bottom > page.bottom + 1)
        .map(([name]) => `cut: ${name}`);
    boxes.forEach(([name, a], place) => boxes.slice(place + 1).forEach(([other, b]) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 4) faults.push(`${name} is printed over ${other}`);
    }));
    return faults;
}"""
"""What is cut, or printed over something else, of a figure that is so many pixels wide."""


def freeze(*notebooks: Path) -> str:
    command = [sys.executable, FOLDER / "freeze.py", *notebooks]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_page_shows_its_figures_without_network_and_without_javascript(browser, tmp_path):
    notebook = FOLDER / "01_first_episode.ipynb"
    command = [*(sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", notebook)]
    subprocess.run([*command, "--output-dir", tmp_path], capture_output=True, check=True)
    page = browser.new_page(offline=True, java_script_enabled=False)
    page.goto((tmp_path / "01_first_episode.html").as_uri())
    pictures = page.locator(".jp-RenderedSVG svg, .jp-RenderedSVG img")
    assert pictures.count() == sum(PLOTLY in forms for forms in read_outputs(notebook)) > 0
    for picture in pictures.all():
        assert picture.is_visible()
        box = picture.bounding_box()
        assert box["width"] > 500
        assert box["height"] > 200
    page.close()


@pytest.mark.parametrize("width", [570, 970])  # an output's in JupyterLab, at 1000 and 1400 pixels
def test_no_word_of_a_figure_is_cut_or_printed_over_another(browser, width):
    import plotly

    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.add_script_tag(path=Path(plotly.__file__).with_name("package_data") / "plotly.min.js")
    faults = {
        f"{notebook.stem}, figure {place}": found
        for notebook in NOTEBOOKS
        for place, forms in enumerate(f for f in read_outputs(notebook) if PLOTLY in f)
        if (found := page.evaluate(FAULTS, [forms[PLOTLY], width]))
    }
    page.close()
    assert not faults


def test_freezing_draws_what_plotly_shows_and_the_same_each_time(tmp_path):
    import plotly.graph_objects as go

    figure = go.Figure(go.Bar(x=["a", "b"], y=[0.1234, 2]), {"title": {"text": "from 0.1234 on"}})
    output = {"output_type": "display_data", "metadata": {}, "data": {PLOTLY: None}}
    output["data"][PLOTLY] = json.loads(figure.to_json())
    bar = {"output_type": "display_data", "metadata": {}, "data": {WIDGET: {}}}
    bar["data"]["text/plain"] = ["  0%|          | 0/200 [00:00<?, ?call/s]"]
    cell = {"cell_type": "code", "source": [], "outputs": [output, bar, output]}
    cell["metadata"] = {"tags": ["nbval-ignore-output"]}
    path = tmp_path / "figures.ipynb"
    path.write_text(json.dumps({"cells": [cell], "nbformat": 4}), encoding="utf-8")
    assert freeze(path) == "figures.ipynb: 2 figures\n"
    first = path.read_bytes()
    freeze(path)
    assert path.read_bytes() == first
    assert len(read_outputs(path)) == 2  # the bar is gone
    picture = read_outputs(path)[0][SVG]
    assert "from 0.1234 on" in picture
    assert picture.count('class="point"') == 2

"""Make stored notebooks say all that they show to readers without a kernel and without JavaScript.

    python notebooks/freeze.py [NOTEBOOK ...]

Every plotly figure gets a picture (SVG) beside it: a forge, a printed page and nbconvert show no
other. Widgets are taken out, in whose place JupyterLab would say that it has no model of them; what
is stored beside them stays. So are progress bars, which would stand at 0% for ever, where nbval
does not compare. Run this when outputs are stored. With the same Chromium and fonts a figure gets
the same picture again, to the byte. Without names: all notebooks in this folder and below. Needs
the extra `test` (playwright) and a Chromium; whoever opens the notebooks needs neither.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plotly
from playwright.sync_api import Browser, sync_playwright

from thread_kit.bench.player import CHROMIUM

PLOTLY, SVG = "application/vnd.plotly.v1+json", "image/svg+xml"
WIDGET = "application/vnd.jupyter.widget-view+json"
WIDTH = 900
"""CSS pixels: about the column of a forge or of nbconvert's page."""

PLOTLY_JS = Path(plotly.__file__).with_name("package_data") / "plotly.min.js"

# Ids within the picture are random: seeded with the figure, they are the same at each run, and
# others in each figure of a page.
_DRAW = """async ([figure, seed, width]) => {
    Math.random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
    const { data, layout } = figure;
    const size = { width, height: layout.height ?? 450 };
    const address = await Plotly.toImage({ data, layout }, { format: "svg", ...size });
    return decodeURIComponent(address.slice(address.indexOf(",") + 1));
}"""


def draw_figures(notebook: dict[str, Any], browser: Browser) -> int:
    """Give each plotly output its picture; how many there are."""
    outputs = list(plotly_outputs(notebook))
    for data in outputs:
        figure = json.dumps(data[PLOTLY], sort_keys=True)
        seed = int(hashlib.sha256(figure.encode()).hexdigest()[:7], 16)
        page = browser.new_page(offline=True)  # what Plotly does late would draw from the next seed
        page.add_script_tag(path=PLOTLY_JS)
        svg = page.evaluate(_DRAW, [data[PLOTLY], seed, WIDTH])
        page.close()
        data[SVG] = svg.splitlines(keepends=True)
    return len(outputs)


def plotly_outputs(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The forms of each output that has plotly's among them, by their types."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if PLOTLY in output.get("data", {}):
                yield output["data"]


def drop_widgets(notebook: dict[str, Any]) -> None:
    """Take widgets out, and progress bars whole from the cells that nbval does not compare."""
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", [])
        if "nbval-ignore-output" in cell["metadata"].get("tags", ()):
            outputs = [output for output in outputs if not _is_bar(output)]
        for output in outputs:
            output.get("data", {}).pop(WIDGET, None)
        if "outputs" in cell:
            cell["outputs"] = [output for output in outputs if output.get("data", True)]


def _is_bar(output: dict[str, Any]) -> bool:
    forms = output.get("data", {})
    return WIDGET in forms and bool(re.search(r"%\||\[\d\d:", "".join(forms.get("text/plain", ""))))


def main(paths: list[Path]) -> None:
    if not CHROMIUM.exists():
        sys.exit(f"figures are drawn by Chromium, and there is no {CHROMIUM}: install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        for path in paths:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            drop_widgets(notebook)
            count = draw_figures(notebook, browser)
            text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
            path.write_text(text + "\n", encoding="utf-8")
            print(f"{path.name}: {count} figures")
        browser.close()


if __name__ == "__main__":
    named = [Path(name) for name in sys.argv[1:]]
    here = sorted(Path(__file__).parent.rglob("*.ipynb"))
    main(named or [path for path in here if ".ipynb_checkpoints" not in path.parts])

"""The notebooks of the kit, and what is stored in them."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(
    path for path in FOLDER.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
PLOTLY, SVG = "application/vnd.plotly.v1+json", "image/svg+xml"
WIDGET = "application/vnd.jupyter.widget-view+json"


def read_outputs(notebook: Path) -> list[dict[str, str]]:
    """The forms of each output, by their types."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return [
        {kind: data if isinstance(data, dict) else "".join(data) for kind, data in forms.items()}
        for forms in (output.get("data", {}) for output in outputs)
    ]

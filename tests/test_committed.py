"""What no committed file may hold."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


def committed() -> list[Path]:
    """The files of the checkout, those included that are yet to be committed."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file()]


def text(path: Path) -> str:
    """What a text file holds; nothing for any other file."""
    content = path.read_bytes()
    return "" if b"\0" in content else content.decode("utf-8", "replace")


# Without what follows the dot, so that this file holds none of them.
_NAMES = ("pypi", "pythonhosted", "npmjs", "yarnpkg", "anaconda", r"deb\.debian")
HOST = re.compile(rf"\b(?:{'|'.join(_NAMES)})\.(?:org|com|io)\b", re.IGNORECASE)
# In a notebook's JSON a path may follow the two characters of an escape.
MACHINE_PATH = re.compile(r"(?:(?<![\w.~$}/-])|(?<=\\[nrt]))/(?:(?:home|Users)/[\w.-]+|root|work)/")


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        (HOST, "--index-url https://{}.org/simple", True),
        (HOST, "https://files.{}hosted.org/packages/a.whl", True),
        (HOST, "pip looks on the package index", False),
        (MACHINE_PATH, "/{}/someone/kit/a.py", True),
        (MACHINE_PATH, 'File "/{}/someone/a.py"', True),
        (MACHINE_PATH, r'"text": ["saved\n/{}/someone/kit/a.py"]', True),
        (MACHINE_PATH, "https://example.com/{}/someone/a", False),
        (MACHINE_PATH, "data/{}/someone/a", False),
        (MACHINE_PATH, "/usr/lib /tmp/x /proc/self/mem", False),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern, line, found):
    name = "home" if pattern is MACHINE_PATH else "python" if "hosted" in line else "pypi"
    assert bool(pattern.search(line.format(name))) == found


@pytest.mark.parametrize("pattern", [HOST, MACHINE_PATH], ids=["registry host", "machine path"])
def test_no_committed_file_holds_a(pattern):
    files = committed()
    assert Path(__file__).resolve() in files
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        for match in pattern.finditer(text(path))
    ]
    assert not found


def test_notebooks_are_executed_and_hold_no_widget_state():
    notebooks = [path for path in committed() if path.suffix == ".ipynb"]
    if not notebooks:
        pytest.skip("no notebook yet")
    wrong = []
    for path in notebooks:
        notebook = json.loads(path.read_text("utf-8"))
        metadata = notebook["metadata"]
        if "widgets" in metadata:
            wrong.append(f"{path.name} holds widget state")
        if metadata.get("kernelspec", {}).get("name") != "python3":
            wrong.append(f"{path.name} is for the kernel {metadata.get('kernelspec')}")
        for number, cell in enumerate(notebook["cells"]):
            # nbval compares nothing for a cell that was never run.
            if cell["cell_type"] == "code" and cell["execution_count"] is None:
                wrong.append(f"{path.name}: cell {number} was not run before it was saved")
    assert not wrong


def test_a_notebook_that_needs_bubblewrap_is_skipped_with_the_remedy_where_there_is_none(tmp_path):
    notebook = ROOT / "notebooks" / "08_datacommons_qa.ipynb"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", notebook],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path), "CI": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ skipped in", done.stdout, re.MULTILINE)
    assert "apt install bubblewrap" in done.stdout

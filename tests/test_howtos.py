"""The how-tos run as they are printed, each in an empty folder (`helpers/howto.py`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import howto

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    return subprocess.run(
        [sys.executable, "-P", howto.__file__, str(page)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_howto_runs_as_it_is_printed(page, tmp_path):
    done = run(page, tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_blocks_share_a_namespace_and_make_files_and_some_are_left_out(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '```python title="mine.py"\nx = 1\n```\n\n```python title="mine.py"\ny = x + 1\n```\n'
        "```python norun\nraise SystemExit(3)\n```\n```text\nnothing\n```\n"
        "1. in a list\n\n    ```python\n    import mine\n    z = mine.y + 1\n    ```\n"
        '```python\nprint("z is", z)\n```\n```sh\npython -c "import mine; print(mine.y)"\n```\n'
        "```sh norun\nexit 3\n```\n"
    )
    done = run(page, tmp_path)
    assert done.stdout.split("\n") == ["z is 3", "2", ""], done.stderr


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("```python\n1 / 0\n```\n", 'page.md", line 3, in <module>'),
        ("```sh\nfalse\ntrue\n```\n", "page.md, line 3: exit status 1"),
        ("```sh\nfalse | true\n```\n", "page.md, line 3: exit status 1"),
    ],
)
def test_a_block_that_fails_is_named_by_the_line_of_the_page(tmp_path, block, message):
    page = tmp_path / "page.md"
    page.write_text(f"A page.\n{block}")
    done = run(page, tmp_path)
    assert done.returncode == 1
    assert message in done.stderr


def test_there_are_howtos():
    assert "own-environment" in {page.stem for page in PAGES}

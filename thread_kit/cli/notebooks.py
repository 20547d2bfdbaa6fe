"""`python -m thread_kit notebooks`: the notebooks, for those who have no checkout."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from thread_kit.paths import resource
from thread_kit.replace_file import replace_file


def add_command(commands: Any) -> None:
    """Add `notebooks` to the subparsers of the command line."""
    parser = commands.add_parser("notebooks", help="copy the notebooks into a folder of yours")
    parser.set_defaults(do=run)
    parser.add_argument("folder", type=Path, help="where to; what is there already stays as it is")


def run(options: argparse.Namespace) -> None:
    """Copy what the folder lacks, and say how to open it."""
    source = resource("notebooks")
    if options.folder.resolve() == source.resolve():
        raise ValueError(f"{options.folder} is where the notebooks are; name another folder")
    copied = [path for path in list_notebooks(source) if _copy(path, source, options.folder)]
    there = len(list_notebooks(source)) - len(copied)
    kept = f"; {there} were there already and stay as they are" if there else ""
    print(f"{len(copied)} notebooks copied to {options.folder}{kept}")
    print(f"open them: python -m jupyterlab --ServerApp.root_dir={options.folder}")


def list_notebooks(folder: Path) -> list[Path]:
    """All notebooks below a folder, less what JupyterLab and their own runs have left there."""
    hidden = (".ipynb_checkpoints", "runs")
    return sorted(
        path
        for path in folder.rglob("*.ipynb")
        if not set(path.relative_to(folder).parts) & set(hidden)
    )


def _copy(path: Path, source: Path, folder: Path) -> bool:
    target = folder / path.relative_to(source)
    if target.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(target) as part:  # a torn one would stay as it is
        shutil.copyfile(path, part)
    return True

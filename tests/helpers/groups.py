"""Which tests one worker of pytest-xdist runs, one after the other: a file's, or a browser's."""

from __future__ import annotations

from functools import cached_property

from xdist.scheduler import LoadFileScheduling

BROWSERS = 2
"""So many workers have a browser and a JupyterLab; each one more takes 45 processor seconds."""


class ByFileOrBrowser(LoadFileScheduling):
    """Tests of a file are a group; files with tests in a browser are `BROWSERS` groups together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return self._browsers.get(file, file)

    @cached_property
    def _browsers(self) -> dict[str, str]:
        """The group of each file with tests in a browser."""
        assert self.collection is not None  # in the order of tests/conftest.py
        files = dict.fromkeys(nodeid.partition("::")[0] for nodeid in self.collection)
        sources = {
            file: (self.config.rootpath / file).read_text(encoding="utf-8") for file in files
        }
        looking = [file for file, source in sources.items() if "mark.browser" in source]
        return {file: f"browser {number % BROWSERS}" for number, file in enumerate(looking)}

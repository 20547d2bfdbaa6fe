"""What holds when nbval runs the notebooks; their kernels inherit the environment set here."""

from __future__ import annotations

import atexit
import os
import tempfile
from pathlib import Path

import nbval.kernel
import pytest
from helpers.cores import move_to_an_idle_core, take_a_share
from jupyter_client.manager import KernelManager
from traitlets import default

from thread_kit.envs.alfworld import process as game_process
from thread_kit.sandbox import bubblewrap

take_a_share()

_scratch = tempfile.TemporaryDirectory(prefix="thread-kit-notebooks-")
atexit.register(_scratch.cleanup)
os.environ["THREAD_KIT_CACHE"] = str(Path(_scratch.name, "cache"))
os.environ["HF_HOME"] = _scratch.name
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("THREAD_KIT_WEBSHOP", None)  # the stored outputs are of the synthetic shop
os.environ["IPYTHONDIR"] = _scratch.name  # no start-up files of the user's

# A figure's JSON holds every default of the plotly version, its SVG is made when it is stored
# (freeze.py), and the HTML of a view is a second form of the text, which is compared. The
# views' own tests look at all of them.
NOT_COMPARED = ("application/vnd.plotly.v1+json", "image/svg+xml", "text/html")

NEEDS = {
    "07_alfworld": game_process.check_installed,
    "08_datacommons_qa": bubblewrap.check_installed,
    "11_sql_and_bash": bubblewrap.check_installed,
}


class SocketKernelManager(KernelManager):
    """A kernel manager that talks to its kernel over files, not over TCP ports.

    A port is chosen free and given back before the kernel takes it: of notebooks side by side,
    one kernel in some hundreds found its port taken by then and died.
    """

    @default("transport")
    def _transport(self):
        return "ipc"

    @default("ip")
    def _path_of_the_sockets(self):
        return str(Path(tempfile.mkdtemp(dir=_scratch.name), "kernel"))


nbval.kernel.KernelManager = SocketKernelManager


def pytest_runtest_setup():
    move_to_an_idle_core()  # a kernel stays where its notebook began


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):  # nbval's notebook collector
        collector.skip_compare += NOT_COMPARED


def pytest_collection_modifyitems(items):
    """Skip, with the reason, what needs a program that is not installed; where CI is set, fail.

    The reason is the error that a person would read, who opens the notebook.
    """
    if os.environ.get("CI"):
        return
    for name, check_installed in NEEDS.items():
        try:
            check_installed()
        except (ImportError, RuntimeError) as error:
            for item in items:
                if name in item.nodeid:
                    item.add_marker(pytest.mark.skip(reason=str(error)))

"""A real JupyterLab and a headless Chromium, for the tests that look at what people see.

The server has its own settings, folders and port on this machine alone, never the user's; only
processes that are started here are ended.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from helpers.cores import on_all_cores
from thread_kit.bench.player import CHROMIUM

PATIENCE = float(os.environ.get("PATIENCE", "120"))
"""Seconds that anything may take; only a test that fails waits so long."""

expect.set_options(timeout=PATIENCE * 1000)

SETTINGS = {
    "@jupyterlab/notebook-extension/tracker": {
        "windowingMode": "none",
        "autoStartDefaultKernel": True,
    },
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}

ERRORS = """() => jupyterapp.shell.currentWidget.content.widgets
    .flatMap((cell) => cell.model.outputs?.toJSON() ?? [])
    .filter((output) => output.output_type === 'error')
    .map((error) => error.traceback.join("\\n"))"""
"""The tracebacks of the cells. (In the page they look like what is printed to standard error.)"""

SIZE = ViewportSize(width=1280, height=1000)

LOST_IN_A_RESTART = "Canceled future for create_subshell_request"
"""JupyterLab's own error where a kernel is restarted before it has made a widget's subshell."""

CONTRAST = """() => {
    const player = document.querySelector(".tk-player");
    const rgb = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
    const light = (text) => rgb(text)
        .map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
    const style = getComputedStyle(player);
    const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
}"""
"""The contrast of the player's text with its ground, by the formula of WCAG 2: 7 is its AAA."""


class Lab(NamedTuple):
    """A JupyterLab: the address of its root, and a folder of notebooks in what it serves."""

    address: str
    folder: Path


@contextmanager
def jupyterlab(notebooks: Path, scratch: Path) -> Iterator[Lab]:
    """A JupyterLab that serves a folder (of copies: it may save)."""
    folders = {
        name: str(scratch / name.lower())
        for name in (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "JUPYTERLAB_SETTINGS_DIR",
            "JUPYTERLAB_WORKSPACES_DIR",
            "IPYTHONDIR",
        )
    }
    for name, settings in SETTINGS.items():
        path = Path(folders["JUPYTERLAB_SETTINGS_DIR"], f"{name}.jupyterlab-settings")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings), encoding="utf-8")
    port = _free_port()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
        *(f"--port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={notebooks}"),
        *("--IdentityProvider.token=", "--ServerApp.password="),
        *("--ServerApp.disable_check_xsrf=True", "--LabApp.expose_app_in_browser=True"),
        *("--LabApp.news_url=", "--LabApp.extension_manager=readonly"),
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    address = f"http://127.0.0.1:{port}"
    log = scratch / "jupyterlab.log"
    with log.open("w", encoding="utf-8") as output:
        server = subprocess.Popen(
            command, env=os.environ | folders, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _wait_for(address, server, log)
            yield Lab(address, notebooks)
        finally:
            server.terminate()  # it ends its kernels itself
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{address}/api/status", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser that asks nothing of the network by itself."""
    options = "no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    options += " disable-component-update disable-sync"
    with ExitStack() as stack:
        with on_all_cores():
            playwright = stack.enter_context(sync_playwright())
            browser = playwright.chromium.launch(
                executable_path=str(CHROMIUM), args=[f"--{option}" for option in options.split()]
            )
        yield browser
        _idle_pages.clear()
        browser.close()


_idle_pages: dict[str, Page] = {}
"""By JupyterLab's address a page of it without a notebook: to start one takes seconds."""


def close_pages(browser: Browser) -> None:
    """Close all pages but those that wait for another notebook."""
    kept = [page.context for page in _idle_pages.values()]
    for context in browser.contexts:
        if context not in kept:
            context.close()


def end_kernels(lab: Lab) -> None:
    """End all kernels of a JupyterLab."""
    sessions = f"{lab.address}/api/sessions"
    with urllib.request.urlopen(sessions, timeout=PATIENCE) as answer:
        running = json.load(answer)
    for session in running:
        ended = urllib.request.Request(f"{sessions}/{session['id']}", method="DELETE")
        urllib.request.urlopen(ended, timeout=PATIENCE).close()


class Notebook:
    """A notebook that is open in JupyterLab, with its kernel ready, in the light theme.

    path: in the folder of `lab`. page: the browser's page. errors: what the page reported as an
    error. outside: addresses of other machines that it asked for.
    """

    def __init__(self, browser: Browser, lab: Lab, path: str) -> None:
        self.errors: list[str] = []
        self.outside: list[str] = []
        idle = _idle_pages.pop(lab.address, None)
        self.page: Page = idle or browser.new_page(viewport=SIZE)
        self.page.set_default_timeout(PATIENCE * 1000)
        self.page.on("console", lambda message: self._console(message.type, message.text))
        self.page.on("pageerror", lambda error: self._pageerror(str(error)))
        self.page.on("request", lambda request: self._request(request.url, lab.address))
        self._lab, self._path = lab.address, f"{lab.folder.name}/{path}"
        if idle:
            self.page.set_viewport_size(SIZE)
            self.page.evaluate(
                """async (path) => {
                    await jupyterapp.commands.execute('docmanager:open', { path });
                }""",
                self._path,
            )
            self._wait_for_kernel()
        else:
            self.reload()
        if self.page.locator("body[data-jp-theme-light='false']").count():
            self.theme("JupyterLab Light")  # whoever chose another one is gone

    def _console(self, kind: str, text: str) -> None:
        if kind == "error":
            self.errors.append(text)

    def _pageerror(self, text: str) -> None:
        if LOST_IN_A_RESTART not in text:
            self.errors.append(text)

    def _request(self, url: str, address: str) -> None:
        here = (address, address.replace("http", "ws", 1), "data:", "blob:")
        if not url.startswith(here):
            self.outside.append(url)

    def reload(self) -> None:
        """Open the page (again) and wait until its kernel can run cells."""
        self.page.goto(f"{self._lab}/lab/tree/{self._path}?reset")
        self._wait_for_kernel()

    def close(self) -> None:
        """Close it, with its kernel, and leave its page, as it looks now, to the next notebook."""
        self.page.evaluate(
            """async () => {
                const panel = jupyterapp.shell.currentWidget;
                await panel.sessionContext.shutdown();
                panel.context.model.dirty = false;  // or it would ask
                panel.dispose();
            }"""
        )
        _idle_pages[self._lab] = self.page

    def _wait_for_kernel(self) -> None:
        # The toolbar says "idle" too early; a run then would be lost.
        self.page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.context")
        self.page.evaluate(
            """async () => {
                await jupyterapp.restored;
                const panel = jupyterapp.shell.currentWidget;
                await panel.context.ready;
                await panel.sessionContext.ready;
            }"""
        )
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        self.page.wait_for_function(
            """() => {
                const kernel = jupyterapp.shell.currentWidget.sessionContext.session?.kernel;
                return kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
            }"""
        )

    def run_all(self) -> None:
        """Run all cells and wait until the last one is done."""
        self.start()
        self.wait_until_run()

    def start(self) -> None:
        """Begin to run all cells."""
        self.page.evaluate("() => void jupyterapp.commands.execute('notebook:run-all-cells')")

    def wait_until_run(self) -> None:
        """Wait until all cells are done; AssertionError with its traceback where one failed."""
        # A cell that fails ends the run, so that the cells after it would never be done.
        self.page.wait_for_function(
            rf"""() => ({ERRORS})().length
                || [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]
                    .every((prompt) => /\[\d+\]/.test(prompt.textContent))"""
        )
        errors = self.page.evaluate(ERRORS)
        assert not errors, errors[0]
        self.wait_until_idle()

    def theme(self, name: str) -> None:
        """Switch to "JupyterLab Light" or "JupyterLab Dark"."""
        self.page.evaluate(
            "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", name
        )
        light = str(name.endswith("Light")).lower()
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")


def write_notebook(path: Path, cells: list[str]) -> None:
    """A notebook of code cells."""
    import nbformat

    book = nbformat.v4.new_notebook()
    book.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    book.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(book, path)

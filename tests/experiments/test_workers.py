"""Workers of a suite: what becomes of them when their host is killed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]

HOST = """
import multiprocessing, sys, threading
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from helpers import suites

if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        endless = suites.suite(sys.argv[1], models={"oracle": suites.endless})
        threading.Thread(target=partial(endless.run, executor=executor, progress=False)).start()
        while True:
            sys.stdin.readline()
            print(*executor._processes, flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no pidfd_open")
def test_workers_end_when_their_host_is_killed(tmp_path):
    script = tmp_path / "host.py"
    script.write_text(HOST)
    path = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": path, "LOADED": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, script, tmp_path / "r.jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as host:
        while len(list(tmp_path.glob("loaded-*"))) < 2:  # both play, and would for ever
            select.select([], [], [], 0.05)
            assert host.poll() is None
        host.stdin.write("\n")
        host.stdin.flush()
        workers = [os.pidfd_open(int(pid)) for pid in host.stdout.readline().split()]
        assert len(workers) == 2
        host.send_signal(signal.SIGKILL)
        for worker in workers:
            select.select([worker], [], [])
            with contextlib.suppress(OSError):
                os.close(worker)

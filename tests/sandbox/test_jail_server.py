"""The jail's server: what ends it, stalls it or shuts it out, and what a session sees of that."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from thread_kit.sandbox import jail_server
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox

pytestmark = pytest.mark.jail

LOST = "the files in the scratch folder are lost"
SAVE = "path = save(pd.DataFrame({'v': [1]}))"
FACE = "print(plt.rcParams['axes.facecolor'])"


@pytest.fixture(scope="module")
def sandbox():
    with BubblewrapSandbox(seconds=1) as sandbox:
        yield sandbox


def kill_server(sandbox):
    os.killpg(sandbox._server.process.pid, signal.SIGKILL)
    sandbox._server.process.wait()


def wait_for_end(process: int) -> None:
    """Wait until a process is over that is no child of ours, however long that takes."""
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(process)
        select.select([handle], [], [])
        os.close(handle)


# A server that dies


def test_a_server_that_is_killed_is_replaced():
    with BubblewrapSandbox() as sandbox:
        state = sandbox.execute(None, "x = 1").state
        kill_server(sandbox)
        assert sandbox.execute(state, "print(x)").printed == "1\n"


def test_files_that_are_lost_with_a_server_are_told_once():
    with BubblewrapSandbox() as sandbox:
        state = sandbox.execute(None, SAVE).state
        kill_server(sandbox)
        result = sandbox.execute(state, "print(1)")
        assert result.error.endswith(LOST)
        assert (result.state, result.variables) == (state, None)
        assert sandbox.execute(state, "pd.read_csv(path)").error.startswith("FileNotFoundError")


def test_a_server_that_dies_in_the_midst_of_a_line_is_the_lines_error():
    def end_server():
        kill_server(sandbox)

    with BubblewrapSandbox({"end_server": end_server}) as sandbox:
        state = sandbox.execute(None, f"x = 1; {SAVE}").state
        result = sandbox.execute(state, "x = 2; end_server()")
        assert result.error.startswith("RuntimeError: the code's process died (server ")
        assert LOST in result.error
        assert sandbox.execute(result.state, "print(x)").printed == "1\n"


def test_an_interrupted_line_is_not_the_answer_of_the_next():
    def interrupt():
        raise KeyboardInterrupt

    with BubblewrapSandbox({"interrupt": interrupt}) as sandbox:
        with pytest.raises(KeyboardInterrupt):
            sandbox.execute(None, "interrupt(); print('late')")
        assert sandbox.execute(None, "print('next')").printed == "next\n"


def test_a_jail_outlives_the_python_thread_that_used_it_first():
    with BubblewrapSandbox() as sandbox:
        with ThreadPoolExecutor(1) as pool:
            state = pool.submit(sandbox.execute, None, SAVE).result().state
        server = sandbox._server
        line = "print(list(pd.read_csv(path)['v']))"
        assert sandbox.execute(state, line).printed == "[1]\n"
        assert sandbox._server is server


def test_a_forked_process_can_start_a_jail_of_its_own():
    code = """
import multiprocessing
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
def run(_):
    with BubblewrapSandbox() as sandbox:
        return sandbox.execute(None, "print(1)").printed
assert run(0) == "1\\n"
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.map_async(run, [0]).get(100) == ["1\\n"]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_the_weaker_process_takes_its_folder_with_it_when_its_host_is_killed():
    code = """
import os, signal
from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
sandbox = BubblewrapSandbox(weaker=True)
sandbox.execute(None, "open('x', 'w').close()")
print(sandbox.scratch, sandbox._server.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert done.returncode == -signal.SIGKILL
    folder, server = done.stdout.split()
    wait_for_end(int(server))
    assert not os.path.exists(os.path.dirname(folder))


# A server that is stalled, signalled or shut out


def test_calls_whose_answers_are_not_read_do_not_stall_the_server():
    def answer():
        return "x" * 10**6

    line = (
        "import sys\nRUN = sys._getframe(1).f_locals['self']\n"
        "from thread_kit.sandbox.jail.wire import pack, send\n"
        "call = pack({'name': 'answer', 'arguments': [], 'named': {}})\n"
        "kind = bytes(4) + b'\\1' + bytes(7) + b'c'\n"
        "for _ in range(9): send(RUN.out, kind + call)\n"
        "while True: pass"
    )
    with BubblewrapSandbox({"answer": answer}, seconds=1) as sandbox:
        sandbox.execute(None, "open('kept', 'w').close()")
        server = sandbox._server
        assert sandbox.execute(None, line).error.startswith("TimeoutError")
        assert sandbox.execute(None, "import os; print(os.listdir())").printed == "['kept']\n"
        assert sandbox._server is server


@pytest.mark.parametrize(
    "line",
    [
        "fcntl.fcntl(r, 8, os.getppid())",  # F_SETOWN
        "fcntl.fcntl(r, 10, 9)",  # F_SETSIG
        "fcntl.fcntl(r, 15, bytes(8))",  # F_SETOWN_EX
        "fcntl.fcntl(r, fcntl.F_SETLEASE, fcntl.F_WRLCK)",
        "os.chmod('/scratch', 0)",
        "os.fchmod(os.open('/scratch', os.O_RDONLY), 0)",
        "os.setxattr('/scratch', 'user.x', b'x')",
    ],
)
def test_the_server_is_not_reached_by_files(sandbox, line):
    result = sandbox.execute(None, f"import fcntl, os\nr, w = os.pipe()\n{line}")
    assert result.error.startswith("PermissionError: [Errno 1]")


@pytest.mark.parametrize("line", ["os.openpty()", "open('/dev/ptmx')", "open('/tmp/x', 'w')"])
def test_terminals_and_shared_folders_are_not_there(sandbox, line):
    assert sandbox.execute(None, f"import os\n{line}").error.startswith(
        ("FileNotFoundError", "OSError: [Errno 30] Read-only", "OSError: out of pty devices")
    )


def test_flags_copies_and_locks_of_files_are_still_there(sandbox):
    line = "import fcntl, os\nr, w = os.pipe()\nos.set_blocking(r, False)\nos.dup(r)\n"
    line += "fcntl.lockf(open('lock', 'w'), fcntl.LOCK_EX)\nprint('ok')"
    assert sandbox.execute(None, line).printed == "ok\n"


def test_what_a_line_writes_beside_the_scratch_folder_is_gone_with_it(sandbox):
    line = (
        "import os, tempfile\n"
        "for n in range(30): open(f'{tempfile.gettempdir()}/{n}', 'w').write('x')\n"
        "open(os.environ['MPLCONFIGDIR'] + '/matplotlibrc', 'w').write('axes.facecolor: red')"
    )
    assert sandbox.execute(None, line).error is None
    look = "import os, tempfile\nprint(os.listdir(tempfile.gettempdir()))"
    assert sandbox.execute(None, look).printed == "[]\n"
    assert sandbox.execute(None, FACE).printed == "white\n"


def test_a_matplotlibrc_in_the_scratch_folder_changes_no_picture_that_uses_plt(sandbox):
    sandbox.execute(None, "open('matplotlibrc', 'w').write('axes.facecolor: red')")
    assert sandbox.execute(None, FACE).printed == "white\n"
    sandbox.execute(None, "import os; os.unlink('matplotlibrc')")


def test_code_that_ignores_the_end_of_its_time_is_told_that_it_was_too_slow(sandbox):
    line = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert sandbox.execute(None, line).error.startswith("TimeoutError: the code ran for more than")


STOPPED = """
from thread_kit.sandbox import bubblewrap
bubblewrap.PATIENCE = 1.0
with bubblewrap.BubblewrapSandbox(seconds=1) as jail:
    jail.execute(None, "import time")
    print("begins", flush=True)
    print(jail.execute(None, "import time\\ntime.sleep(1)\\nprint('done')"))
"""


def test_a_host_that_was_stopped_finds_the_answer_when_it_goes_on():
    """Ctrl-Z, for longer than it would ever wait for a line (5 s): not the line's error."""
    command = [sys.executable, "-c", STOPPED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout.readline() == "begins\n"
        host.send_signal(signal.SIGSTOP)
        time.sleep(7)
        host.send_signal(signal.SIGCONT)
        assert "printed='done\\n', error=None" in host.communicate()[0]


def test_what_a_host_has_set_for_all_is_not_in_the_jail():
    command = list(jail_server._jail(2**20))
    for folder in ("/usr/local/etc", "/usr/etc"):
        assert (folder in command) == os.path.isdir(folder)
        if folder in command:
            assert command[command.index(folder) - 1] == "--tmpfs"
            assert command.index(folder) > command.index("/usr")


@pytest.mark.parametrize("folder", ["/scratch/me/venv/lib/site-packages", "/temporary/x-packages"])
def test_libraries_below_a_folder_of_the_jail_itself_are_refused_with_the_reason(
    monkeypatch, folder
):
    monkeypatch.setattr(jail_server, "_libraries", lambda: [folder])
    with pytest.raises(RuntimeError, match="install Python and this kit elsewhere"):
        list(jail_server._jail(2**20))


def test_what_python_lacks_in_the_jail_is_not_put_down_to_the_kernel():
    said = str(jail_server._no_start("Traceback ...\nModuleNotFoundError: No module named 'x'"))
    assert "user namespaces" not in said
    assert "user namespaces" in str(jail_server._no_start("bwrap: No permissions"))

"""Hostile commands: nothing of the host is written, nothing hangs, nothing ends the session."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from thread_kit.envs.intercode_bash import container as module
from thread_kit.envs.intercode_bash.container import Container, Ran
from thread_kit.envs.intercode_bash.env import InterCodeBash
from thread_kit.envs.intercode_bash.reward import compute_reward, read_changes
from thread_kit.envs.intercode_bash.tasks import OWN, read_system

pytestmark = pytest.mark.jail

HOSTILE = [
    # the host's files
    "touch {folder}/out; echo x > {folder}/out",
    "mkdir -p {folder} && echo x > {folder}/out",
    "echo x > /usr/bin/thread-kit-was-here",
    "rm -rf /usr/bin /usr/lib",
    "rm -rf --no-preserve-root /",
    "cp /bin/bash /usr/local/bin/x; chmod 4755 /usr/local/bin/x",
    "echo 1 > /proc/sys/kernel/core_pattern",
    "echo b > /proc/sysrq-trigger",
    "echo x > /sys/kernel/uevent_helper",
    "ln -s {folder} /shop/link; echo x > /shop/link/out",
    "mknod /shop/disk b 8 0; cat /shop/disk",
    "dd if=/dev/zero of=/dev/sda count=1",
    "mount -t proc proc /mnt; mount --bind / /mnt; mount -o remount,rw /usr",
    "umount /usr; umount -l /proc",
    "chroot /proc/1/root ls",
    "ls -L /proc/1/root /proc/1/cwd/; cat /proc/1/environ /proc/1/mem",
    "cat /etc/shadow ~/.ssh/id_rsa ~/.bash_history",
    "chmod 755 /run/kit; echo x > /run/kit/init.py; rm -rf /run/kit/made/*",
    # other processes
    "kill -9 -1",
    "kill -9 1; kill -STOP 1; kill -TERM 1",
    "pkill -9 python; killall -9 bwrap",
    "exec kill -9 $PPID",
    "python3 -c 'import os; os.kill(1, 9)'",
    "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))'",
    "nsenter -t 1 -a ls; unshare -Ur id",
    "reboot -f; shutdown now; poweroff -f",
    # the network
    "ping -c 1 127.0.0.1",
    "exec 3<>/dev/tcp/127.0.0.1/80",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 22))'",
    "curl http://127.0.0.1; wget -q http://127.0.0.1",
    # time, processes, memory, disk, output
    ":(){ :|:& };:",
    "while true; do sleep 1000 & done",
    "sleep 100000",
    "sleep 100000 & disown; nohup sleep 100000 > /dev/null 2>&1 &",
    "trap '' TERM INT HUP; while :; do :; done",
    "setsid sleep 100000 < /dev/null > /dev/null 2>&1 &",
    "yes",
    "cat /dev/zero",
    "tail -f /dev/null",
    "read line < /dev/tty; cat",
    "head -c 2000000000 /dev/zero > /tmp/big",
    "yes > /tmp/big",
    "for i in $(seq 1 100000); do echo x > /tmp/f$i; done",
    "python3 -c 'x = [bytes(10**8) for _ in range(1000)]'",
    "awk 'BEGIN { while (1) x = x \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" }'",
    "ulimit -v unlimited; tail /dev/zero",
    # what is no text
    "printf '\\377\\376\\000\\001'",
    'echo "unbalanced',
    "cd",
    "cd /shop && ls; cd /nowhere && ls",
    "",
    "echo $((1/0)); exit 300",
    "git commit -qam x; rm -rf /.git",
    "exec > /dev/null 2>&1; sleep 0.2",
]


@pytest.fixture(scope="module")
def short():
    """Limits that are soon reached."""
    patch = pytest.MonkeyPatch()
    patch.setattr(module.Container.__init__, "__kwdefaults__", {"seconds": 3.0})
    yield
    patch.undo()


def list_host():
    return [sorted(os.listdir(path)) for path in ("/usr/bin", "/usr/local/bin", "/root", "/tmp")]


def test_there_are_forty_of_them():
    assert len(HOSTILE) >= 40


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_hostile_command_does_no_harm(short, number, tmp_path):
    env = InterCodeBash("train", 0)
    env.reset()
    step = env.step(HOSTILE[number].replace("{folder}", str(tmp_path)))
    assert len(step.observation) < 1_000
    assert 0 <= step.reward < 1
    assert os.listdir(tmp_path) == []
    assert not Path("/usr/bin/thread-kit-was-here").exists()
    assert "daemon:x:" not in step.observation
    assert "root:$" not in step.observation
    after = env.step("echo alive")
    if not HOSTILE[number].startswith("rm -rf"):  # what it deletes of its own root is its loss
        assert after.observation in ("Output: alive", "Error: Malformed command")
    env.reset()
    assert env.step("echo alive").observation == "Output: alive"
    env.close()


@pytest.fixture
def container(short):
    container = Container(*read_system(OWN))
    yield container
    container.close()


def test_nothing_but_the_memory_is_writable(container):
    places = container.inspect("awk '$4 ~ /^rw/ {print $2}' /proc/mounts").split()
    assert "/" in places
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
    assert set(places) <= {"/", "/dev/pts", "/dev/console", *devices}
    for path in ("/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj", "/usr/x", "/dev/x"):
        assert container.run(f"echo 1 > {path}").status != 0, path


def test_there_is_no_network(container):
    assert container.inspect("cat /proc/net/dev | tail -n +3 | cut -d: -f1").split() == ["lo"]
    assert container.run("exec 3<>/dev/tcp/127.0.0.1/1").status != 0


def test_a_command_without_end_is_stopped(container):
    assert container.run("while :; do :; done").stopped == "time"


def test_an_output_without_end_is_stopped(container):
    ran = container.run("yes")
    assert (ran.stopped, len(ran.output)) == ("output", module.OUTPUT)


def test_what_runs_gives_way_to_what_limits_it(container):
    before = int(container.inspect("awk '{print $19}' /proc/1/stat"))
    assert int(container.run("nice").output) == min(before + 10, 19)


def test_processes_without_end_are_stopped(container):
    assert container.run("while :; do sleep 1000 & done").stopped == "processes"
    assert container.inspect("ls /proc | grep -c '^[0-9]'").strip() in ("3", "4")


def test_memory_has_a_bound_for_one_process_and_for_all():
    with closing(Container(*read_system(OWN))) as container:  # with time, where a machine is busy
        assert container.run("python3 -c 'bytes(10**9)'").status != 0
        hold = "python3 -c 'import time; held = bytearray(200 << 20); time.sleep(60)'"
        ran = container.run(f"for i in 1 2 3 4; do {hold} & done; wait")
        assert ran.stopped == "memory"


def run_python(container: Container, text: str) -> Ran:
    return container.run(f"python3 - <<'END'\n{text}\nEND")


def call_libc(container: Container, call: str) -> str:
    """What a call of the C library prints, where `fail()` tells the error that it left."""
    ran = run_python(
        container,
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "def fail():\n    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n"
        f"{call}",
    )
    return ran.output


TAKERS = {
    "memfd_create": "os.memfd_create('x')",
    "shmget": "libc.shmget(0, 2**26, 0o1666) < 0 and fail()",
    "msgget": "libc.msgget(0, 0o1666) < 0 and fail()",
    "semget": "libc.semget(0, 1, 0o1666) < 0 and fail()",
    "inotify": "libc.inotify_init() < 0 and fail()",  # of these there is one number for a user
}


@pytest.mark.parametrize("call", TAKERS)
def test_memory_that_belongs_to_no_process_is_refused(container, call):
    assert "Function not implemented" in call_libc(container, TAKERS[call])


def test_what_is_under_way_in_sockets_counts_as_memory(container):
    ran = run_python(
        container,
        "import os, socket\nheld = []\nwhile True:\n"
        "    pair = socket.socketpair()\n    held.append(pair)\n    for one in pair:\n"
        "        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10**8)\n"
        "        one.setblocking(False)\n        try:\n"
        "            while True:\n                one.send(bytes(65536))\n"
        "        except BlockingIOError:\n            pass\n"
        # What one process may hold is open in another one then.
        "    if len(held) == 120:\n        os.fork() and os.fork()\n        held.clear()",
    )
    assert ran.stopped == "memory", ran
    size = container.run(
        "python3 -c 'import socket; a = socket.socket(socket.AF_UNIX); "
        "a.setsockopt(1, 7, 10**8); print(a.getsockopt(1, 7))'"
    )
    assert int(size.output) < 2**20


@pytest.mark.parametrize(("family", "address"), [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")])
def test_streams_count_as_memory_too(container, family, address):
    ran = run_python(
        container,
        "import socket, time\nheld = []\n"
        f"server = socket.socket(socket.{family})\nserver.bind(('{address}', 0))\n"
        "server.listen(200)\nfor n in range(100):\n"
        f"    one = socket.socket(socket.{family})\n    one.connect(server.getsockname())\n"
        "    held += [one, server.accept()[0]]\ntime.sleep(60)",
    )
    if "Cannot assign" in ran.output or "not supported" in ran.output:
        pytest.skip(f"there is no {family} here")
    assert ran.stopped == "memory", ran


NAMESPACES = {
    "unshare": "libc.unshare(0x10000000) and fail()",
    "clone": "libc.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0)"
    " < 0 and fail()",
    "setns": "libc.setns(0, 0) and fail()",
    "mount": "libc.mount(b'x', b'/mnt', b'tmpfs', 0, None) and fail()",
}


@pytest.mark.parametrize("call", NAMESPACES)
def test_there_are_no_rights_in_a_namespace_of_ones_own(container, call):
    assert "Operation not permitted" in call_libc(container, NAMESPACES[call])


def test_files_without_end_are_stopped_empty_ones_too(container):
    ran = container.run(
        "mkdir /tmp/d; cd /tmp/d; python3 - <<'END'\nimport os\n"
        f"for n in range({2 * module.FILES}):\n    os.close(os.open(str(n), os.O_CREAT))\nEND"
    )
    assert ran.stopped == "files"
    assert container.run("rm -r /tmp/d").stopped == ""
    assert container.run("touch /tmp/one").stopped == ""


def test_a_command_cannot_replace_what_looks_at_its_changes(container):
    container.run("rm /bin; mkdir /bin; cp /usr/bin/true /bin/bash")
    assert container.inspect("echo looked") == "looked\n"


def test_the_sums_of_many_new_files_are_all_read(container):
    container.run(
        "mkdir /shop/new; cd /shop/new; for n in {1..450}; do echo $n > $n-a-long-name; done"
    )
    container.run("cp /shop/new/* /shop/")
    container.run("mkdir /shop/many; cd /shop/many; for n in {1..6000}; do echo $n > $n; done")
    changes = read_changes(container)
    hashes = [text for (_, kind), text in changes.items() if kind == "??"]
    assert len(hashes) > 450
    assert all(re.match(r"[0-9a-f]{32}  ", text) for text in hashes)
    none = dict.fromkeys(changes, "")
    assert compute_reward("", none, "", none) < 1


def test_sockets_are_of_kinds_that_a_network_namespace_holds(container):
    for family, error in (("AF_INET", ""), ("AF_UNIX", ""), ("AF_VSOCK", "not supported")):
        ran = container.run(f"python3 -c 'import socket; socket.socket(socket.{family})'")
        assert error in ran.output
        assert bool(ran.status) == bool(error), ran.output


@pytest.mark.parametrize("signal", ["INT", "HUP", "TERM", "USR1", "QUIT", "ALRM", "KILL"])
def test_no_signal_reaches_the_process_that_executes_commands(container, signal):
    container.run("echo kept > /kept")
    container.run(f"kill -{signal} 1")
    assert container.run("cat /kept").output == "kept\n"


def test_files_have_a_bound(container):
    ran = container.run("head -c 200M /dev/zero > /tmp/big")
    assert ran.status != 0
    assert int(container.inspect("stat -c %s /tmp/big")) <= module.DISK


def test_what_a_command_leaves_running_is_ended(container):
    assert not container.run("sleep 1000 > /dev/null 2>&1 &").stopped
    assert "sleep" not in container.inspect("cat /proc/[0-9]*/comm")


def test_the_first_process_cannot_be_ended_or_traced(container):
    container.run("kill -9 1; kill -STOP 1")
    assert container.run("cat /proc/1/mem").status != 0
    for way in ("cat /proc/1/fd/0", "echo forged > /proc/1/fd/1", "ls /proc/1/cwd/"):
        assert container.run(way).status != 0, way
    assert container.run("echo alive").output == "alive\n"


def test_host_files_and_settings_are_not_there(container):
    assert container.inspect("ls -A /home /mnt /srv /opt").split() == [
        *("/home:", "/mnt:", "/opt:", "/srv:")
    ]
    assert set(container.inspect("ls /etc").split()) <= {*module.TABLES, "passwd", "group", "hosts"}
    assert container.inspect("env | cut -d= -f1 | sort").split() == sorted(
        {*module.ENVIRONMENT, "PWD", "SHLVL", "_"}
    )


def test_this_python_is_there_under_another_name_and_cannot_be_looked_into(container):
    prefix, program = module.find_python()
    if not prefix:
        pytest.skip("this Python is under /usr, which is there as it is")
    assert program.startswith(str(module.PYTHON))
    assert prefix not in container.inspect("cat /proc/mounts /proc/1/cmdline")
    assert container.run(f"ls {prefix}").status != 0
    assert container.run(f"ls {module.PYTHON}").status != 0


def test_without_bubblewrap_nothing_is_executed(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bwrap" else name)
    with pytest.raises(RuntimeError, match=r"bubblewrap is not installed.*apt install bubblewrap"):
        Container("touch /tmp/thread-kit-was-here", "")
    assert not Path("/tmp/thread-kit-was-here").exists()


def test_where_no_root_can_be_made_it_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RuntimeError, match=r"No permissions to create.*\n.*user namespaces"):
        Container("", "")


def test_what_a_killed_process_has_left_is_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    dead, alive = (tmp_path / f"{module.SYSTEMS}{pid}-x" for pid in (2**22 + 1, os.getpid()))
    young = tmp_path / f"{module.SYSTEMS}{2**22 + 1}-y"
    for folder in (dead, alive, young):
        folder.mkdir()
        os.utime(folder, (0, 0) if folder != young else None)
    (tmp_path / f"{module.SYSTEMS}1-x").symlink_to(tmp_path / "nowhere")
    module.make_system.__wrapped__(*read_system(OWN))
    assert not dead.exists()
    assert len(list(tmp_path.iterdir())) == 4


def test_a_container_ends_with_its_holder(short):
    container = Container(*read_system(OWN))
    process = container._process
    del container
    deadline = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is not None


def test_a_container_outlives_the_thread_that_used_it_first(short):
    """A notebook's worker plays, and a person goes on."""
    env = InterCodeBash("train", 0)
    env.reset()
    worker = threading.Thread(target=env.step, args=("echo x > /shop/new.txt",))
    worker.start()
    worker.join()
    assert env.step("cat /shop/new.txt").observation == "Output: x"
    env.close()


def test_a_command_cannot_make_the_look_at_its_changes_wait(container):
    container.run("git config core.fsmonitor 'sleep 1000'; touch /shop/new")
    assert ("shop/new", "??") in read_changes(container)


def test_a_container_that_cannot_be_looked_into_is_an_error(container, monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.2)
    with pytest.raises(RuntimeError, match="cannot be looked into"):
        container.inspect("sleep 1000")


@pytest.mark.parametrize(
    "reply",
    [b"", b"5\n", b"[]\n", b'{"output": 5, "status": 0}\n', b"[" * 100_000 + b"\n",
     b'{"output": "", "status": Infinity}\n', b'{"output": "\xc3\xa9", "status": 0}\n'],
    ids=lambda reply: repr(reply[:30]),
)  # fmt: skip
def test_whatever_comes_out_of_a_container_is_one_error(container, monkeypatch, reply):
    with container._process.stdout:
        monkeypatch.setattr(container._process, "stdout", io.BytesIO(reply))
        with pytest.raises(RuntimeError, match="the container does not start, or is gone"):
            container.run("echo x")


def test_an_interrupted_command_leaves_no_reply_to_the_next_one(container):
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        container.run("sleep 3; echo late")
    signal.signal(signal.SIGINT, before)
    with pytest.raises(RuntimeError, match="is gone"):
        container.run("echo x")

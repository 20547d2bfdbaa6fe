"""A throw-away root under bubblewrap, in which the commands of InterCode Bash are executed.

The root is a file system in memory, and gone with its process: setup script, git, then the
commands, as root of that root alone. Covered (tests/envs/test_intercode_bash_hostile.py, a test a
line, and 40 hostile commands):
- files of the host: of /usr, the libraries and a few tables of /etc there is a read-only view; home
  folders, other users' files and settings are not there; nothing is writable but the memory
- the network: there is none, nor a socket of a kind that no network namespace holds
- time (`SECONDS`), processes (`PROCESSES`), memory (`MEMORY`; of all files `DISK` and `FILES`),
  output (`OUTPUT`): a command beyond them is stopped with all that it has started; sockets count
  as memory, by what they can hold; other memory that belongs to no process, and what all of a
  user's programs share (`UNCOUNTED` of sandbox/jail/seccomp.py), is refused
- all rights again, in namespaces of their own: refused
- what a command leaves running: ended with it
- signals to the process that executes commands, its memory: refused
- commands that break their own container (deleted programs of its root): errors
- settings that make a look at its changes wait (git's monitor): ignored, or an error in time
- whatever a reply holds: read as an enemy's

Not covered: defects of the kernel or of bubblewrap. Without bubblewrap nothing is executed.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import functools
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, final

from thread_kit.sandbox.jail import seccomp
from thread_kit.sandbox.jail_server import launch

INIT = Path(__file__).parent / "container_init.py"
PYTHON = Path("/run/kit/python")
SECONDS = 10.0  # as InterCode has it
PATIENCE = 60.0  # seconds beyond them, for a process that is not even given the processor
OUTPUT = 200_000  # bytes
PROCESSES = 100
MEMORY = 512 * 2**20  # bytes, of all processes; as much of addresses for each
DISK = 64 * 2**20  # bytes, of all files
FILES = 50_000  # empty ones, too
ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "GIT_AUTHOR_NAME": "intercode",
    "GIT_AUTHOR_EMAIL": "intercode@example.org",
    "GIT_COMMITTER_NAME": "intercode",
    "GIT_COMMITTER_EMAIL": "intercode@example.org",
}
MISSING = (
    "bubblewrap is not installed, and commands of a model are never executed without it. Install "
    "it: `apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`"
)
UNKNOWN = "play InterCode Bash on Linux on x86_64 or aarch64"
NO_GIT = (
    "git is not installed, by which InterCode Bash sees what a command changed: apt install git"
)
TABLES = ("alternatives", "ld.so.cache", "magic", "mime.types", "ImageMagick-6")
"""Of /etc, what programs need; no users, keys or settings."""

USERS = r"""
chmod 755 /etc
printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n' > /etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' > /etc/group
printf '127.0.0.1 localhost intercode\n' > /etc/hosts
"""
STAMP = "find / -xdev -mmin -60 -exec touch -h -d @{seconds} {{}} + 2> /dev/null"
AGE = 86400  # seconds: as old as InterCode's images, so that none of its commands sees it pass
COMMIT = "git init -q . && git add -A && git commit -q -m initial"
OTHERS = ("bin", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr")
CLEAN = f"git clean -fdq {' '.join(f'-e /{name}' for name in OTHERS)}"
"""InterCode cleans its containers before each episode: empty folders are gone."""

KEEP = (
    f"tar cf - -C / --one-file-system {' '.join(f'--exclude=./{name}' for name in OTHERS)} . "
    "| tar xf - -C /run/kit/made"
)
"""A file system is made once, with all its files of one time, and copied into each root, as
InterCode's containers are of one image: archives of files are equal in both."""

SYSTEMS = "thread-kit-system-"
"""Of temporary folders, the process that made each behind it."""

FILL = f"{USERS}\ncp -a /run/kit/made/. / && chmod 000 /run/kit"


class Ran(NamedTuple):
    """What a command gave: standard output and errors as they came, and its exit status.

    stopped: which limit stopped it ("time", "output", "processes", "memory", "files"); "" if none
    did.
    """

    output: str
    status: int
    stopped: str = ""


@final
class Container:
    """A root of its own, as a setup script leaves it. Raises RuntimeError where none can be made.

    script: a text for bash. ignored: a .gitignore; what it names is not watched by git.
    """

    def __init__(self, script: str, ignored: str, *, seconds: float = SECONDS) -> None:
        for program, missing in (("bwrap", MISSING), ("git", NO_GIT)):
            if shutil.which(program) is None:
                raise RuntimeError(missing)
        if not seccomp.is_known():
            raise RuntimeError(f"there are no seccomp rules for {platform.machine()}; {UNKNOWN}")
        self.seconds = seconds
        self._start("--ro-bind", make_system(script, ignored))
        self._ask_for_success(FILL)

    @classmethod
    def make(cls, folder: str, script: str, ignored: str) -> None:
        """Keep in a folder of the host what a setup script makes; no model has a word in it."""
        container = cls.__new__(cls)
        container._start("--bind", folder)
        container._ask(_shell(f"{USERS}\n{script}\n"))  # InterCode's own have commands that fail
        container._ask_for_success(
            f"cd / && cat > .gitignore <<'EOF'\n{ignored}\nEOF\n"
            f"{COMMIT} && {CLEAN} && ({STAMP.format(seconds=int(time.time()) - AGE)}; {KEEP})"
        )
        container.close()

    def _start(self, bind: str, folder: str) -> None:
        bwrap = _bubblewrap(shutil.which("bwrap") or "bwrap", bind, folder)
        command = [*bwrap, find_python()[1], "-I", "-S", "/run/kit/init.py"]
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (`close` closes it)
        self._process = launch(command, {"LD_LIBRARY_PATH": f"{PYTHON}/lib"}, self._errors)
        self.close = weakref.finalize(self, _end, self._process, self._errors)

    def _ask_for_success(self, script: str) -> None:
        ran = self._ask(_shell(script))
        if ran.status or ran.stopped:
            self.close()
            raise RuntimeError(f"the file system cannot be made: {ran.output or ran.stopped}")

    def run(self, command: str, folder: str = "/") -> Ran:
        """Execute a command as InterCode does, by `docker exec /bin/bash -c "COMMAND"`.

        Double quotes within it are those of that line, so they are gone before bash reads it.
        Raises ValueError if they do not match.
        """
        argv = shlex.split(f'/bin/bash -c "{command.strip()}"')
        return hide_own(self._ask(argv, folder, self.seconds))

    def inspect(self, script: str, *arguments: str) -> str:
        """What a script of our own prints in there, with as much time as a command has.

        Raises RuntimeError where a command has left what makes it take longer.
        """
        ran = self._ask([*_shell(script), "bash", *arguments], seconds=SECONDS)
        if ran.stopped == "time":
            raise RuntimeError("the container cannot be looked into")
        return ran.output

    def _ask(self, argv: list[str], folder: str = "/", seconds: float = PATIENCE) -> Ran:
        request = {"argv": argv, "cwd": folder, "env": ENVIRONMENT, "seconds": seconds}
        limits = {"output": OUTPUT, "processes": PROCESSES, "memory": MEMORY, "files": FILES}
        sizes = {"AS": MEMORY, "FSIZE": DISK, "filter": _filter(), **_read_buffer_sizes()}
        if not self.close.alive:
            raise RuntimeError("the container is gone")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(seconds + PATIENCE, self._process.kill)
        watch.daemon = True
        watch.start()
        try:
            self._process.stdin.write(json.dumps({**request, **limits, **sizes}).encode() + b"\n")
            self._process.stdin.flush()
            reply: dict[str, Any] = json.loads(self._process.stdout.readline(2 * OUTPUT + 1_000))
            output = base64.b64decode(reply["output"])[:OUTPUT].decode(errors="replace")
            return Ran(output, int(reply["status"]), str(reply.get("stopped", ""))[:100])
        except Exception as error:  # nothing that comes out of there is taken for granted
            raise RuntimeError(self._describe(error)) from error
        except BaseException:  # what it would still send is not the reply to the next command
            self.close()
            raise
        finally:
            watch.cancel()

    def _describe(self, error: Exception) -> str:
        """Why the container does not answer: most often it could not be made."""
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        output = self._errors.read(2_000).decode(errors="replace").strip() or str(error)
        self.close()
        return (
            f"the container does not start, or is gone: {output}\nbubblewrap needs user "
            "namespaces, which some containers forbid; allow them. Commands are never "
            "executed without it"
        )


HIDDEN = re.compile(r"^find: ‘/(run/kit|proc|sys|usr|etc)\b.*’: Permission denied\n", re.MULTILINE)


def hide_own(ran: Ran) -> Ran:
    """What a search of all there is says without what this root keeps to itself, or the host does.

    InterCode's roots have no such places: nothing is forbidden there to root. A `find` that failed
    for them alone has not failed.
    """
    output, count = HIDDEN.subn("", ran.output)
    if not count:
        return ran
    has_failed = ran.status != 1 or re.search("^find: ", output, re.MULTILINE)
    return Ran(output, ran.status if has_failed else 0, ran.stopped)


@functools.cache
def make_system(script: str, ignored: str) -> str:
    """The folder with the file system of a setup script, made once by this process."""
    _drop_left_behind()
    folder = tempfile.mkdtemp(prefix=f"{SYSTEMS}{os.getpid()}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Container.make(folder, script, ignored)
    return folder


def _drop_left_behind() -> None:
    """What processes of this user have left that were killed more than a day ago.

    (Younger ones may be of a process that is not seen here, in another container, say.)
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{SYSTEMS}*-*"):
        maker = folder.name.removeprefix(SYSTEMS).partition("-")[0]
        with contextlib.suppress(OSError):  # another one takes it away
            facts = folder.lstat()
            is_old = facts.st_uid == os.getuid() and facts.st_mtime < time.time() - 86400
            if is_old and not Path("/proc", maker).exists():
                shutil.rmtree(folder)


@functools.cache
def _read_buffer_sizes() -> dict[str, int]:
    """Bytes that a socket, and the end of a TCP connection, can hold on this system, in and out."""

    def read(name: str) -> int:
        try:
            return int(Path("/proc/sys/net", name).read_text(encoding="ascii").split()[-1])
        except OSError:  # where it is hidden
            return 2**25

    return {
        "socket": read("core/rmem_default") + read("core/wmem_default"),
        "stream": read("ipv4/tcp_rmem") + read("ipv4/tcp_wmem"),
    }


@functools.cache
def _filter() -> str:
    return base64.b64encode(seccomp.shell_program(platform.machine())).decode()


def _shell(script: str) -> list[str]:
    """A script of our own, in a shell that no command can replace: /bin may be a link."""
    return [os.path.realpath("/bin/bash"), "-c", script]


def find_python() -> tuple[str, str]:
    """Where this Python is installed, if not under /usr (else ""), and its program in there.

    It is shown under a name of its own: a home folder's name need not stand in what a command
    prints. (`/proc/self/mountinfo` has where views are from; a name is all that it tells.)
    """
    prefix, program = Path(sys.base_prefix).resolve(), Path(sys.executable).resolve()
    if prefix.is_relative_to("/usr"):
        return "", str(program)
    return str(prefix), str(PYTHON / program.relative_to(prefix))


def _bubblewrap(program: str, bind: str, folder: str) -> Iterator[str]:
    """The command that makes the root, up to the program that it runs."""
    yield from (program, "--unshare-all", "--unshare-user", "--uid", "0", "--gid", "0")
    yield from ("--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL")
    yield from ("--hostname", "intercode", "--size", str(DISK), "--tmpfs", "/")
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("/bin", "/sbin", "/lib", "/lib64"):  # links into /usr on all but old systems
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        elif os.path.isdir(name):
            yield from ("--ro-bind", name, name)
    for name in TABLES:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    prefix, _ = find_python()
    if prefix:
        yield from ("--ro-bind", prefix, str(PYTHON))
    yield from (
        "--ro-bind",
        str(INIT),
        "/run/kit/init.py",
        bind,
        folder,
        "/run/kit/made",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    )
    for folder in ("/root", "/tmp", "/home", "/var", "/opt", "/srv", "/mnt", "/media"):
        yield from ("--dir", folder)
    yield from ("--remount-ro", "/dev", "--remount-ro", "/proc", "--chdir", "/")


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    process.kill()  # and with the first process all of the container
    process.wait()
    for pipe in (process.stdin, process.stdout, errors):
        if pipe:
            with contextlib.suppress(OSError):  # what was not sent yet
                pipe.close()

"""Attempts to get out of a sandbox. What one gets hold of it prints behind "OUT".

`ATTEMPTS` are single ones, each of its own kind; `list_escapes` adds whole families: every system
call that is refused, in both ABIs, files and folders of the host, programs, modules, walks.
"""

from __future__ import annotations

import os
import platform

from thread_kit.sandbox.jail.seccomp import REFUSED

SECRET = "THREAD_KIT_SECRET"
"""A variable of this process, as a key to somebody's account is one."""
os.environ[SECRET] = "a secret"

HEAD = "import os, ctypes\nLIBC = ctypes.CDLL(None)\n"

ATTEMPTS = {
    "read the password file": "print('OUT', open('/etc/passwd').read())",
    "read the host name": "print('OUT', open('/etc/hostname').read())",
    "read the home folder": "print('OUT', os.listdir('/root'), os.listdir('/home'))",
    "read the working folder": f"print('OUT', open({os.getcwd()!r} + '/pyproject.toml').read())",
    "read this test": f"print('OUT', open({__file__!r}).read())",
    "read the kit's session": "import thread_kit.session.session\nprint('OUT')",
    "read the environment": f"print('OUT' if {SECRET!r} in os.environ else '')",
    "read through /proc": "print('OUT', open('/proc/self/environ').read())",
    "list processes": "print('OUT', os.listdir('/proc'))",
    "the root of another process": "print('OUT', os.listdir('/proc/1/root'))",
    "climb out of the folder": "os.chdir('../../../..')\nprint('OUT' if 'etc/shadow' in "
    "os.listdir('.') or os.path.exists('etc/passwd') else '')",
    "devices": "print('OUT', os.open('/dev/sda', os.O_RDONLY))",
    "memory of the machine": "print('OUT', open('/dev/mem', 'rb').read(1))",
    "kernel's settings": "print('OUT', os.listdir('/sys'))",
    "write into /usr": "open('/usr/x', 'w')\nprint('OUT')",
    "write into the root": "open('/x', 'w')\nprint('OUT')",
    "write into /dev": "open('/dev/x', 'w')\nprint('OUT')",
    "write into /dev/shm": "open('/dev/shm/x', 'w')\nprint('OUT')",
    "write into a library": "open(np.__file__, 'a')\nprint('OUT')",
    "write into the server's code": (
        "open('/kit/thread_kit/sandbox/jail/worker.py', 'a')\nprint('OUT')"
    ),
    "make a folder": "os.mkdir('d')\nprint('OUT')",
    "make a link": "os.symlink('/etc', 'l')\nprint('OUT')",
    "make a device": "os.mknod('n')\nprint('OUT')",
    "change the root": "os.chroot('/')\nprint('OUT')",
    "mount": "print('OUT' if LIBC.mount(b'none', b'/scratch', b'tmpfs', 0, 0) == 0 else '')",
    "unmount": "print('OUT' if LIBC.umount2(b'/scratch', 2) == 0 else '')",
    "a namespace of one's own": "print('OUT' if LIBC.unshare(0x10000000) == 0 else '')",
    "fork": "print('OUT', os.fork())",
    "fork by number": "print('OUT' if LIBC.syscall(57) >= 0 else '')",
    "vfork by number": "print('OUT' if LIBC.syscall(58) >= 0 else '')",
    "clone by number": "print('OUT' if LIBC.syscall(56, 17, 0, 0, 0, 0) >= 0 else '')",
    "clone3 by number": "print('OUT' if LIBC.syscall(435, bytes(88), 88) >= 0 else '')",
    "fork of the other ABI": "print('OUT' if LIBC.syscall(0x40000039) >= 0 else '')",
    "a thread": "import threading\nthreading.Thread(target=print).start()\nprint('OUT')",
    "a shell": "print('OUT' if os.system('true') == 0 else '')",
    "a program": "import subprocess\nprint('OUT', subprocess.run(['/usr/bin/id']))",
    "become a program": "os.execv('/usr/bin/id', ['id'])\nprint('OUT')",
    "spawn": "print('OUT', os.posix_spawn('/usr/bin/id', ['id'], {}))",
    "multiprocessing": "import multiprocessing as m\nm.get_context('fork').Process(target=print)"
    ".start()\nprint('OUT')",
    "the network": "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')\n"
    "print('OUT')",
    "a socket": "import socket\nsocket.socket()\nprint('OUT')",
    "a local socket": "import socket\nsocket.socket(socket.AF_UNIX)\nprint('OUT')",
    "a pair of sockets": "import socket\nsocket.socketpair()\nprint('OUT')",
    "a name server": "import socket\nprint('OUT', socket.gethostbyname('localhost.localdomain'))",
    "kill the server": "os.kill(os.getppid(), 9)\nprint('OUT')",
    "kill the jail": "os.kill(1, 9)\nprint('OUT')",
    "kill everything": "os.kill(-1, 9)\nprint('OUT')",
    "trace the server": "print('OUT' if LIBC.ptrace(16, os.getppid(), 0, 0) == 0 else '')",
    "the server's memory": "print('OUT', open(f'/proc/{os.getppid()}/mem', 'r+b'))",
    "read the server's memory": "print('OUT' if LIBC.syscall(310, os.getppid(), 0, 0, 0, 0, 0) >= 0"
    " else '')",
    "raise a limit": "import resource as r\nr.setrlimit(r.RLIMIT_CPU, (9, 9))\nprint('OUT')",
    "take the server's limits": "import resource as r\n"
    "r.prlimit(os.getppid(), r.RLIMIT_NOFILE, (0, 0))\nprint('OUT')",
    "memory that is no address space": "os.memfd_create('x')\nprint('OUT')",
    "io_uring": "print('OUT' if LIBC.syscall(425, 1, bytes(120)) >= 0 else '')",
    "bpf": "print('OUT' if LIBC.syscall(321, 0, bytes(120), 120) >= 0 else '')",
    "keyrings": "print('OUT' if LIBC.syscall(250, 0, -3, 0) >= 0 else '')",
    "a kernel module": "print('OUT' if LIBC.syscall(175, b'', 0, b'') >= 0 else '')",
    "another user": "os.setuid(0)\nprint('OUT')",
    "less security": "print('OUT' if LIBC.prctl(38, 0, 0, 0, 0) == 0 else '')",
    "the server's pipes": "for fd in range(3, 60):\n"
    "    try:\n        os.write(fd, b'x' * 64)\n    except OSError:\n        pass",
    "a forged answer": "for fd in range(3, 60):\n"
    "    try:\n        os.write(fd, b'\\0\\0\\0\\0' + bytes([1]) + bytes(7) + b'd' + "
    "b'\\2\\0\\0\\0' + bytes(8) + b'{}')\n    except OSError:\n        pass",
    "a pickle that runs code": "class C:\n    def __reduce__(self):\n"
    "        return (os.system, ('true',))\nc = C()",
    "a hostile repr": "class C:\n    def __repr__(self):\n        while True: pass\nc = C()",
    "a hostile subclass of str": "class C(str):\n    def __repr__(self): return 1\nc = C()",
    "replace print for ever": "import builtins\nbuiltins.print = None",
    "replace pandas for ever": "pd.read_csv = pd.DataFrame = None",
    "replace the server's functions": "import __main__ as m\nm.serve = m.send = 1",
    "a handler for the end": "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "while True: pass",
}

_FILES = (
    *("/etc/passwd", "/etc/shadow", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"),
    *("/etc/fstab", "/etc/machine-id", "/etc/os-release", "/etc/ssl/openssl.cnf", "/etc/sudoers"),
    *("/etc/group", "/home", "/var", "/var/log", "/opt"),
    *("/srv", "/mnt", "/proc/1/environ", "/proc/1/cmdline", "/proc/self/maps", "/proc/self/mem"),
    *("/proc/version", "/proc/cpuinfo", "/proc/mounts", "/proc/net/tcp", "/proc/kallsyms"),
    *("/proc/sys/kernel/hostname", "/sys", "/sys/class/net", "/sys/kernel", "/sys/fs/cgroup"),
    *("/run", "/run/dbus", "/run/user", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/tty"),
    *("/dev/ptmx", "/dev/shm", "/dev/fuse", "/dev/kvm", "/boot", "/lost+found", "/.dockerenv"),
    *("/dev/stdin", "/dev/console", "/dev/pts", "/dev/net/tun"),
)
_FOLDERS = (
    *("/", "/usr", "/usr/lib", "/usr/bin", "/usr/local", "/bin", "/lib", "/etc", "/dev"),
    *("/dev/shm", "/proc", "/sys", "/kit", "/kit/thread_kit", "/kit/thread_kit/sandbox/jail"),
    *("/tmp", "/root", "/home", "/var/tmp", "/run", "/scratch/..", "/scratch/../usr"),
    *("/temporary/..", "/opt"),
)
_PROGRAMS = (
    *("sh", "bash", "python3", "cat", "id", "env", "mount", "unshare", "bwrap", "dash", "perl"),
)
_MODULES = (
    *("multiprocessing", "subprocess", "socket", "ctypes", "signal", "threading", "pty", "gc"),
    *("inspect", "pickle", "builtins", "importlib", "code", "posix", "resource", "mmap", "fcntl"),
)
_WALKS = (
    *("().__class__.__base__.__subclasses__()", "(lambda: 0).__globals__", "print.__self__"),
    *("[].append.__self__.__class__.__mro__", "(lambda: 0).__code__.co_consts", "type(open)"),
    *("(i for i in []).gi_frame.f_back", "'{0.__class__.__mro__}'.format(1)", "vars()", "dir()"),
    *("getattr((), '__cla' + 'ss__')", "object.__subclasses__()", "Exception().__traceback__"),
    *("__loader__", "__spec__", "__builtins__", "globals()", "compile('1', '', 'eval')", "help"),
)


def list_escapes() -> dict[str, str]:
    """Names and codes for the jail: more than 400."""
    escapes = {f"attempt: {name}": code for name, code in ATTEMPTS.items()}
    column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
    call = "print('OUT' if LIBC.syscall({}, {}) >= 0 else '')"
    for name, numbers in REFUSED.items():
        if (number := numbers[column]) is not None:
            escapes[f"{name} by number"] = call.format(number, "0, 0, 0, 0, 0, 0")
            escapes[f"{name} of the other ABI"] = call.format(number | 2**30, "0, 0, 0, 0, 0, 0")
    for path in _FILES:
        escapes[f"read {path}"] = (
            f"path = {path!r}\nis_folder = os.path.isdir(path)\n"
            "print('OUT' if (os.listdir(path) if is_folder else open(path).read()) else '')"
        )
    for folder in _FOLDERS:
        escapes[f"write into {folder}"] = f"open({folder + '/x'!r}, 'w')\nprint('OUT')"
        escapes[f"empty {folder}"] = (
            f"for name in os.listdir({folder!r}):\n"
            f"    os.unlink({folder + '/'!r} + name)\n    print('OUT')"
        )
    for program in _PROGRAMS:
        for place in ("/bin", "/usr/bin"):
            path = f"{place}/{program}"
            escapes[f"become {path}"] = f"os.execv({path!r}, [{path!r}])\nprint('OUT')"
            escapes[f"spawn {path}"] = f"print('OUT', os.posix_spawn({path!r}, ['x'], {{}}))"
    for command in (8, 10, 15, 1024, 1025, 1026, 1029, 1031):
        code = (
            f"import fcntl\nr, w = os.pipe()\nfcntl.fcntl(r, {command}, os.getppid())\nprint('OUT')"
        )
        escapes[f"fcntl {command}"] = code
    return escapes


def list_escapes_of_monty() -> dict[str, str]:
    """Those, and what only makes sense where there are no modules and no types to walk over."""
    escapes = list_escapes()
    for module in _MODULES:
        escapes[f"import {module}"] = f"import {module}\nprint('OUT', {module})"
        escapes[f"__import__ {module}"] = f"print('OUT', __import__({module!r}))"
    for walk in _WALKS:
        escapes[f"walk {walk}"] = f"found = {walk}\nprint('OUT', found.__class__)"
    return escapes

"""The system calls that model-written code is refused, as a seccomp filter (Linux).

Refused are new processes and threads, programs, signals, sockets, mounts, other processes' memory,
limits, kernel modules, modes of files, what all users of a machine share (asynchronous I/O, syncs
of its disks) and the kernel's rarer interfaces: what numpy, pandas and scipy never need.
The rest of the jail (`sandbox/bubblewrap.py`) decides which files there are. The numbers are those
of the kernel's own tables; the filter was tried on x86_64 only.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import platform
import struct
import sys
from collections.abc import Iterable, Mapping

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000  # the same kernel entries under other numbers

REFUSED: dict[str, tuple[int | None, int | None]] = {
    # sockets
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "bind": (49, 200),
    "listen": (50, 201),
    "socketpair": (53, 199),
    "accept4": (288, 242),
    "recvmmsg": (299, 243),
    "sendmmsg": (307, 269),
    # processes, threads, programs
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    # signals, other processes
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    # what would leave the group of processes that ends with the server
    "setsid": (112, 157),
    "setpgid": (109, 154),
    # limits and priorities (of the jail's server, too)
    "setrlimit": (160, 164),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    # what counts against no limit, and folders and links in the scratch folder
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "io_setup": (206, 0),  # of contexts for asynchronous I/O there is one number for all users
    "io_submit": (209, 2),
    "io_getevents": (208, 4),
    "io_pgetevents": (333, 292),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "link": (86, None),
    "linkat": (265, 37),
    # what would shut the server out of that folder, or store what no limit counts
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    # what would make all of the machine's disks busy
    "sync": (162, 81),
    "syncfs": (306, 267),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # the kernel's rarer interfaces
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "fanotify_init": (300, 262),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "iopl": (172, None),
    "ioperm": (173, None),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
}
"""Numbers on x86_64 and aarch64; None where the kernel has no such call."""

# Programs try these first and fall back to an older call where they do not exist.
_UNKNOWN: dict[str, tuple[int, int]] = {"clone3": (435, 435), "memfd_create": (319, 279)}
UNCOUNTED = (
    *("memfd_create", "memfd_secret", "shmget", "semget", "msgget", "mq_open"),
    *("bpf", "perf_event_open", "io_setup", "io_uring_setup", "userfaultfd"),
    *("add_key", "request_key", "keyctl"),
    *("inotify_init", "inotify_init1", "fanotify_init"),
)
"""What a shell's programs are refused: memory and kernel objects that no limit of theirs counts, or
that one number counts for all of a user."""

NAMESPACES = (
    *("unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
)
"""Refused to them, too: in a namespace of its own a program has all rights again."""

_NEW_NAMESPACES = 0x7E020000
"""Flags of `clone` that make one: mounts, cgroups, names, IPC, users, processes, network."""

_SET_OPTION = (54, 208)
_BUFFER_SIZES = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF and those for administrators: said to be done, and not done."""

SHELL_SOCKETS = (1, 2, 10, 16)
"""Families: local ones, IPv4 and IPv6 (of a network of its own), the kernel's tables. No others
(AF_VSOCK, AF_ALG): not all of them are behind a network namespace."""

_PRLIMIT = (302, 261)
_FCNTL = (72, 25)
# Copies, flags, locks, sizes and seals of files. Not there: owners, signals, leases and notices
# (F_SETOWN, F_SETSIG, F_SETOWN_EX, ...), by which the kernel itself would signal the server.
_FCNTL_COMMANDS = (*range(8), 36, 37, 38, 1030, 1032, 1033, 1034)

_LOAD, _JUMP, _JUMP_EQUAL, _JUMP_FROM, _JUMP_IF_ANY, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _FIRST_LOW, _SECOND_LOW, _THIRD_LOW, _THIRD_HIGH = 0, 4, 16, 24, 32, 36
_SOL_SOCKET = 1
_SET_MODE_FILTER, _TSYNC, _NO_NEW_PRIVS = 1, 1, 38


def is_known() -> bool:
    """Whether there is a filter for this system."""
    return sys.platform == "linux" and platform.machine() in _ARCHITECTURES


@functools.cache
def program(machine: str) -> bytes:
    """The filter as the kernel's instructions; raises KeyError for an unknown architecture."""
    code, column = _begin(machine), list(_ARCHITECTURES).index(machine)
    errors = _numbers(REFUSED, column, errno.EPERM) | _numbers(_UNKNOWN, column, errno.ENOSYS)
    code += _refuse_each(errors)
    commands = [_instruction(_LOAD, _SECOND_LOW)]
    for command in _FCNTL_COMMANDS:
        commands += [_instruction(_JUMP_EQUAL, command, 0, 1), _instruction(_RETURN, _ALLOW)]
    commands.append(_refuse(errno.EPERM))
    code += [_instruction(_JUMP_EQUAL, _FCNTL[column], 0, len(commands)), *commands]
    code += [
        # A limit may be read (no new value is given) but not set.
        _instruction(_JUMP_EQUAL, _PRLIMIT[column], 0, 5),
        _instruction(_LOAD, _THIRD_LOW),
        _instruction(_JUMP_EQUAL, 0, 0, 2),
        _instruction(_LOAD, _THIRD_HIGH),
        _instruction(_JUMP_EQUAL, 0, 1, 0),
        _refuse(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]
    return b"".join(code)


def shell_program(machine: str) -> bytes:
    """A filter for programs at large: without memory that belongs to no process, so that no look at
    processes counts it, without new namespaces, with sockets of `SHELL_SOCKETS` alone, and buffers
    of the system's size in them. Raises KeyError as `program`.
    """
    code, column = _begin(machine), list(_ARCHITECTURES).index(machine)
    unknown = (*UNCOUNTED, "clone3")  # `clone`, which is tried next, says its flags in a register
    errors = _numbers(unknown, column, errno.ENOSYS) | _numbers(NAMESPACES, column, errno.EPERM)
    code += _refuse_each(errors)
    clone = REFUSED["clone"][column]
    assert clone is not None
    code += [
        _instruction(_JUMP_EQUAL, clone, 0, 4),
        _instruction(_LOAD, _FIRST_LOW),
        _instruction(_JUMP_IF_ANY, _NEW_NAMESPACES, 0, 1),
        _refuse(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]
    option = [_instruction(_LOAD, _SECOND_LOW), _instruction(_JUMP_EQUAL, _SOL_SOCKET, 1, 0)]
    option += [_instruction(_RETURN, _ALLOW), _instruction(_LOAD, _THIRD_LOW)]
    for size in _BUFFER_SIZES:
        option += [_instruction(_JUMP_EQUAL, size, 0, 1), _refuse(0)]
    option.append(_instruction(_RETURN, _ALLOW))
    code += [_instruction(_JUMP_EQUAL, _SET_OPTION[column], 0, len(option)), *option]
    families = [_instruction(_LOAD, _FIRST_LOW)]
    for family in SHELL_SOCKETS:
        families += [_instruction(_JUMP_EQUAL, family, 0, 1), _instruction(_RETURN, _ALLOW)]
    families.append(_refuse(errno.EAFNOSUPPORT))
    socket = REFUSED["socket"][column]
    assert socket is not None
    code += [_instruction(_JUMP_EQUAL, socket, 0, len(families)), *families]
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def _numbers(names: Iterable[str], column: int, error: int) -> dict[int, int]:
    """The error by the number of each call, where the kernel has such a call."""
    of = {**REFUSED, **_UNKNOWN}
    return {number: error for name in names if (number := of[name][column]) is not None}


def _begin(machine: str) -> list[bytes]:
    """Calls of another architecture end the process; the number of the call is loaded."""
    code = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        code += [_instruction(_JUMP_FROM, _X32, 0, 1), _refuse(errno.ENOSYS)]
    return code


def _refuse_each(errors: Mapping[int, int]) -> list[bytes]:
    """Refuse the call that is loaded with the error of its number; what is no key goes on.

    The number is looked for by halves: a kernel that takes a filter goes through it for each of
    its calls, which was an eighth of the time of a short line of code.
    """
    numbers = sorted(errors)
    if len(numbers) <= 3:
        each = [(_instruction(_JUMP_EQUAL, n, 0, 1), _refuse(errors[n])) for n in numbers]
        return [instruction for pair in each for instruction in pair]
    middle = numbers[len(numbers) // 2]
    below = _refuse_each({n: error for n, error in errors.items() if n < middle})
    above = _refuse_each({n: error for n, error in errors.items() if n >= middle})
    below.append(_instruction(_JUMP, len(above)))
    return [_instruction(_JUMP_FROM, middle, len(below), 0), *below, *above]


def install() -> None:
    """Refuse these calls to this process from now on, for ever; raises OSError if that fails."""
    code = program(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    seccomp = {"x86_64": 317, "aarch64": 277}[platform.machine()]
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(
        seccomp, _SET_MODE_FILTER, _TSYNC, filter_
    ):
        number = ctypes.get_errno()
        raise OSError(number, f"the seccomp filter was refused: {errno.errorcode.get(number)}")


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(error: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | error)

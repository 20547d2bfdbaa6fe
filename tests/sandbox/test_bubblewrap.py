"""The jail: one adversarial test a line of its docstring, and a table of attempts to get out."""

from __future__ import annotations

import errno
import os
import pickle
import platform
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.escapes import ATTEMPTS, HEAD

from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sandbox.jail.seccomp import (
    NAMESPACES,
    REFUSED,
    SHELL_SOCKETS,
    UNCOUNTED,
    program,
    shell_program,
)
from thread_kit.sandbox.namespace import PythonNamespace

pytestmark = pytest.mark.jail
SECONDS = 1.0


def look_up(place, year=None):
    if place == "Atlantis":
        raise LookupError("no place is called Atlantis")
    return [{"date": year or 2000, "value": 1.5}]


@pytest.fixture(scope="module")
def sandbox():
    with BubblewrapSandbox({"look_up": look_up}, seconds=SECONDS) as sandbox:
        yield sandbox


def after(sandbox, *lines):
    """The outcome of the last line."""
    state = None
    for line in lines:
        outcome = sandbox.execute(state, line)
        state = outcome.state
    return outcome


# What a thread does with it


def test_a_line_sees_the_variables_of_the_lines_before(sandbox):
    outcome = after(sandbox, "x = 2", "y = x + 1", "print(x, y)")
    assert (outcome.printed, outcome.error) == ("2 3\n", None)
    assert outcome.variables == {"x": "2", "y": "3"}


def test_the_libraries_are_there_by_their_usual_names(sandbox):
    outcome = after(
        sandbox,
        "table = pd.DataFrame({'date': [2018, 2020], 'value': [1.0, 2.0]})",
        "print(stats.linregress(table['date'], table['value']).slope, np.mean([1, 2]))",
    )
    assert outcome.printed == "0.5 1.5\n"


def test_numbers_of_numpy_read_as_numbers(sandbox):
    outcome = after(sandbox, "x = np.mean([1, 2])", "y = [x]", "print(y)")
    assert outcome.printed == "[1.5]\n"
    assert outcome.variables == {"x": "1.5", "y": "[1.5]"}


def test_functions_see_what_is_bound_after_them(sandbox):
    outcome = after(sandbox, "def f():\n    return x", "x = 1", "x = 2", "print(f())")
    assert outcome.printed == "2\n"


def test_two_names_of_one_list_stay_one_list(sandbox):
    assert after(sandbox, "a = []", "b = a", "b.append(1)", "print(a)").printed == "[1]\n"


def test_a_state_can_be_gone_on_with_twice(sandbox):
    state = after(sandbox, "x = [1]").state
    assert sandbox.execute(state, "x.append(2); print(x)").printed == "[1, 2]\n"
    assert sandbox.execute(state, "x.append(3); print(x)").printed == "[1, 3]\n"


def test_a_child_namespace_inherits_and_leaves_its_parent_alone(sandbox):
    parent = PythonNamespace(sandbox, variables={"n": 1, "more": [None, (2, float("inf"))]})
    parent.run("table = pd.DataFrame({'v': [1, 2]})")
    child, before = parent.child(), parent.child()
    assert child.run("n = int(table['v'].sum())").error is None
    assert (child.variables["n"], parent.variables["n"]) == (3, 1)
    parent.run("n = 5")
    assert before.run("print(n, more)").printed == "1 [None, (2, inf)]"


def test_an_error_keeps_what_was_bound_before_it(sandbox):
    outcome = after(sandbox, "x = 1\ny = 1 / 0")
    assert outcome.error == "ZeroDivisionError: division by zero"
    assert outcome.variables == {"x": "1"}


def test_what_cannot_be_kept_is_said_and_the_rest_stays(sandbox):
    outcome = after(sandbox, "x = 1\ng = (i for i in [1])")
    assert outcome.error == "TypeError: g cannot be kept for the next line"
    assert outcome.variables == {"x": "1"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("['crash at 0x7ffe> in main']", "['crash at 0x7ffe> in main']"),
        ("{'a at 0x1>': (None, b'b at 0x2>')}", "{'a at 0x1>': (None, b'b at 0x2>')}"),
        ("[x := ['a at 0x1>'], x]", "[['a at 0x1>'], ['a at 0x1>']]"),
        ("['a at 0x1>', f]", "['a>', <function f>]"),
        ("f", "<function f>"),
    ],
)
def test_an_address_is_left_out_of_what_is_no_plain_data(sandbox, value, text):
    outcome = after(sandbox, "def f(): pass", f"value = {value}")
    assert outcome.variables["value"] == text


def test_a_list_that_holds_itself_is_plain(sandbox):
    outcome = after(sandbox, "value = ['a at 0x1>']\nvalue.append(value)")
    assert outcome.variables["value"] == "['a at 0x1>', [...]]"


@pytest.mark.parametrize("line", ["a = A()", "a = A(); g = (i for i in [1])"])
def test_a_line_whose_variables_need_too_much_memory_to_be_kept_is_undone(sandbox, line):
    many = "class A:\n    def __reduce__(self): raise MemoryError\n"
    state = after(sandbox, "x = 1").state
    outcome = sandbox.execute(state, f"{many}x = 2\n{line}")
    assert outcome.error == "MemoryError: the code needs more memory than it may have"
    assert (outcome.state, outcome.variables) == (state, None)


def test_a_table_is_handed_over_by_a_path_that_its_content_names(sandbox):
    line = "path = save(pd.DataFrame({'v': [1, 2]}))"
    one, other = after(sandbox, line), after(sandbox, line)
    assert one.variables["path"] == other.variables["path"]
    assert one.variables["path"].startswith("'/scratch/")
    assert sandbox.execute(one.state, "print(list(pd.read_csv(path)['v']))").printed == "[1, 2]\n"


def test_a_picture_comes_out_as_png(sandbox):
    outcome = after(sandbox, "figure, axes = plt.subplots()\naxes.plot([1, 2])\np = save(figure)")
    (path, picture), *none = outcome.pictures.items()
    assert not none
    assert outcome.variables["p"] == repr(path)
    assert picture.startswith(b"\x89PNG")


def test_save_says_what_it_takes(sandbox):
    assert after(sandbox, "save(3)").error == "TypeError: save takes a table or a figure, not int"


def test_host_functions_answer_and_their_errors_are_feedback(sandbox):
    outcome = after(sandbox, "data = look_up('Ohio', year=2001)", "print(data[0]['date'])")
    assert outcome.printed == "2001\n"
    assert after(sandbox, "look_up('Atlantis')").error == "LookupError: no place is called Atlantis"
    assert "unexpected keyword" in after(sandbox, "look_up(a=1)").error


def test_random_numbers_are_the_same_in_a_replay(sandbox):
    line = "import random\nprint(np.random.rand(), random.random())"
    with BubblewrapSandbox() as other:
        assert after(sandbox, line).printed == after(other, line).printed != ""


def test_a_set_has_one_order_in_every_jail(sandbox):
    line = "places = {'north', 'south', 'east', 'west', 'here', 'there'}\nprint(places)"
    with BubblewrapSandbox() as other:
        one, same = after(sandbox, line), after(other, line)
    assert (one.printed, one.variables) == (same.printed, same.variables)


@pytest.mark.parametrize("name", ["pd", "stats", "plt", "save", "look_up"])
def test_a_name_that_a_thread_has_bound_stays_its_own(sandbox, name):
    outcome = after(sandbox, f"import math\n{name} = math.pi", "x = 1", f"print({name})")
    assert outcome.printed == "3.141592653589793\n"
    assert outcome.variables[name] == "3.141592653589793"
    assert after(sandbox, f"print({name})").printed != outcome.printed


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("print(stats.norm.cdf(0))", "0.5\n"),
        ("print(pd.Series([1, 2, 3]).corr(pd.Series([1, 4, 9]), method='spearman'))", "1.0\n"),
        ("from scipy.special import expit\nprint(expit(0))", "0.5\n"),
    ],
)
def test_what_takes_long_to_import_is_imported_once_and_where_it_is_used(line, printed):
    def loaded():
        backwards = "scipy"[::-1], "matplotlib"[::-1]  # naming them would load them
        code = f"import sys\nprint([name[::-1] in sys.modules for name in {backwards}])"
        return after(sandbox, code).printed

    with BubblewrapSandbox() as sandbox:
        assert loaded() == "[False, False]\n"
        assert after(sandbox, line).printed == printed
        assert loaded() == "[True, False]\n"


def test_many_python_threads_may_share_it(sandbox):
    with ThreadPoolExecutor(4) as pool:
        printed = list(pool.map(lambda n: after(sandbox, f"print({n})").printed, range(8)))
    assert printed == [f"{n}\n" for n in range(8)]


@pytest.mark.parametrize("value", [object(), {"x": print}, [object()]])
def test_inputs_are_plain_data(sandbox, value):
    with pytest.raises(TypeError, match="no plain data"):
        sandbox.execute(None, "", {"x": value})


def test_a_state_of_another_sandbox_is_refused(sandbox):
    with pytest.raises(ValueError, match="not a state"):
        sandbox.execute(b"something else", "x = 1")


def test_a_closed_sandbox_says_so():
    sandbox = BubblewrapSandbox()
    sandbox.close()
    sandbox.close()
    with pytest.raises(RuntimeError, match="closed"):
        sandbox.execute(None, "x = 1")
    with pytest.raises(RuntimeError, match="closed"):
        sandbox.scratch  # noqa: B018 (a property)
    assert sandbox._server is None


# Limits are feedback, and the line is undone


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("while True: pass", "TimeoutError: the code ran for more than 1 seconds"),
        ("9**9**9", "TimeoutError"),
        ("sum(np.ones(10**6).sum() for _ in iter(int, 1))", "TimeoutError"),
        ("x = 'y' * 10**11", "MemoryError"),
        ("x = np.ones(10**10)", "MemoryError"),
        ("x = list(range(60_000))", "MemoryError: the variables take more than 200,000"),
        ("x = pd.DataFrame(np.ones((5_000_000, 1)))", "MemoryError: the namespace takes more"),
        ("for n in range(2000): look_up('Ohio')", "RuntimeError: more than 1,000 look-ups"),
        ("import os\nos._exit(0)", "RuntimeError: the code ended its own process"),
        ("import ctypes\nctypes.string_at(0)", "RuntimeError: the code's process died (signal 11)"),
        ("import os\nfor n in range(1500): open(f'f{n}', 'w').close()", "OSError: too many files"),
    ],
)
def test_a_limit_is_feedback_and_the_line_is_undone(sandbox, line, error):
    state = after(sandbox, "before = 1").state
    outcome = sandbox.execute(state, line)
    assert outcome.error.startswith(error)
    assert (outcome.state, outcome.variables) == (state, None)
    assert sandbox.execute(state, "print(before)").printed == "1\n"


def test_a_file_that_grows_too_large_is_an_error(sandbox):
    outcome = after(sandbox, "with open('large', 'wb') as f: f.write(bytes(20 * 2**20))")
    assert outcome.error.startswith("OSError: [Errno 27]")
    after(sandbox, "import os\nos.unlink('large')")


def test_the_scratch_folder_has_an_end():
    with BubblewrapSandbox(scratch_bytes=2**20) as sandbox:
        line = "for n in range(8): open(f'{n}', 'wb').write(bytes(2**19))"
        assert "No space left" in after(sandbox, line).error


def test_printed_text_is_cut(sandbox):
    printed = after(sandbox, "print('x' * 30_000)").printed
    assert printed.endswith("... [20,001 more characters were printed and cut]")
    assert len(printed) < 10_100


def test_deep_recursion_and_deep_source_end(sandbox):
    assert after(sandbox, "f = lambda: f()", "f()").error.startswith("RecursionError")
    assert after(sandbox, "x = " + "-" * 3_000 + "1").error


# Getting out. What an attempt gets hold of it prints behind "OUT".


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_to_get_out_gets_nothing_and_ends(sandbox, name):
    outcome = sandbox.execute(None, HEAD + ATTEMPTS[name])
    assert "OUT" not in outcome.printed
    assert after(sandbox, "print(pd.DataFrame({'v': [1]})['v'].sum())").printed == "1\n"


def test_there_are_more_than_fifty_attempts():
    assert len(ATTEMPTS) >= 50


def test_a_state_that_was_made_to_be_executed_is_executed_in_the_jail(sandbox, tmp_path):
    class Evil:
        def __reduce__(self):
            return (exec, (f"open({str(tmp_path / 'out')!r}, 'w').close()",))

    mark = after(sandbox, "x = 1").state.partition(b"\n")[0] + b"\n"
    outcome = sandbox.execute(mark + pickle.dumps(Evil()), "print(1)")
    assert outcome.error.startswith("FileNotFoundError")
    assert not (tmp_path / "out").exists()


# Without bubblewrap


def test_a_machine_without_bubblewrap_is_told_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"apt install bubblewrap.*weaker=True"):
        BubblewrapSandbox()


def test_a_jail_that_does_not_start_says_why(monkeypatch, tmp_path):
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create namespace' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(RuntimeError, match="No permissions to create namespace"):
        BubblewrapSandbox()


def test_a_weaker_process_that_does_not_start_says_why_and_asks_for_nothing_weaker(
    monkeypatch, tmp_path
):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named cloudpickle' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with (
        BubblewrapSandbox(weaker=True) as sandbox,
        pytest.raises(RuntimeError, match="does not start: No module named cloudpickle") as error,
    ):
        sandbox.scratch  # noqa: B018 (a property, which starts it)
    assert "bubblewrap" not in str(error.value)
    assert "weaker=True" not in str(error.value)


def test_the_weaker_process_must_be_asked_for_and_still_refuses_what_the_kernel_can():
    with BubblewrapSandbox(seconds=SECONDS, weaker=True) as sandbox:
        assert "weaker" in repr(sandbox)
        assert after(sandbox, "path = save(pd.DataFrame({'v': [1]}))", "print(1)").printed == "1\n"
        for line in ("import socket\nsocket.socket()", "import os\nos.fork()"):
            assert after(sandbox, line).error.startswith("PermissionError")
        assert after(sandbox, "while True: pass").error.startswith("TimeoutError")
        folder = sandbox.scratch
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)


def test_what_all_users_of_a_machine_share_is_refused(sandbox):
    column = ["x86_64", "aarch64"].index(platform.machine())
    for name in ("io_setup", "io_submit", "io_getevents", "io_pgetevents", "sync", "syncfs"):
        number = REFUSED[name][column]
        line = f"{HEAD}ctypes.set_errno(0)\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        line += f"print(libc.syscall({number}, 0, 0, 0, 0, 0, 0), ctypes.get_errno())"
        assert sandbox.execute(None, line).printed == "-1 1\n", name
    assert "io_setup" in UNCOUNTED
    numbers = [number for pair in REFUSED.values() for number in pair[column : column + 1]]
    known = [number for number in numbers if number is not None]
    assert len(set(known)) == len(known)


def test_files_without_content_are_counted_while_a_run_makes_them(sandbox):
    """Their names took 2.5 GB of the kernel's memory in ten seconds."""
    line = (
        "import os, tempfile\nn, folder = 0, tempfile.gettempdir()\nwhile True:\n"
        "    os.close(os.open(f'{folder}/{n}', os.O_CREAT))\n    n += 1"
    )
    left = "open('left.txt', 'w').close()\n"
    assert "files" in sandbox.execute(None, left + line).error
    listed = sandbox.execute(None, "import os\nprint('left.txt' in os.listdir('.'))")
    assert listed.printed == "False\n"
    assert sandbox.execute(None, "print(1)").printed == "1\n"


def test_nothing_leaves_the_group_of_processes_that_ends_with_the_server():
    with BubblewrapSandbox(seconds=SECONDS, weaker=True) as sandbox:
        for line in ("os.setsid()", "os.setpgid(0, 0)"):
            assert after(sandbox, f"import os\n{line}").error.startswith("PermissionError")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_filter_is_whole_instructions_that_end_in_a_return(machine):
    code = program(machine)
    assert len(code) % 8 == 0
    assert code[-8] == 0x06
    assert len(code) // 8 < 4096
    with pytest.raises(KeyError):
        program("vax")
    assert sys.byteorder == "little"


def answer(code: bytes, number: int, architecture: int, *arguments: int) -> int:
    """What a filter returns for a call, computed as the kernel does (seccomp(2))."""
    data = struct.pack("<iIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    at = loaded = 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("HBBI", code, 8 * at)
        at += 1
        match operation:
            case 0x20:
                (loaded,) = struct.unpack_from("<I", data, value)
            case 0x05:
                at += value
            case 0x06:
                return value
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: loaded & value != 0}
                at += if_true if holds[operation] else if_false


ALLOWED = 0x7FFF0000


@pytest.mark.parametrize(
    ("machine", "architecture", "column", "fcntl", "limit"),
    [("x86_64", 0xC000003E, 0, 72, 302), ("aarch64", 0xC00000B7, 1, 25, 261)],
)
def test_a_filter_refuses_the_calls_of_its_table_and_no_others(
    machine, architecture, column, fcntl, limit
):
    code = program(machine)
    refused = {numbers[column] for numbers in REFUSED.values()} - {None}
    refused |= {(435, 435)[column], (319, 279)[column]}  # clone3, memfd_create: none such
    assert {n for n in range(1_000) if answer(code, n, architecture) != ALLOWED} == refused
    assert {answer(code, n, architecture) & 0xFFFF for n in refused} == {errno.EPERM, errno.ENOSYS}
    assert answer(code, 0, 0x40000003) == 0x80000000  # a call of another architecture
    assert answer(code, fcntl, architecture, 0, 8) == 0x50000 | errno.EPERM  # F_SETOWN
    assert answer(code, limit, architecture, 0, 7, 1) == 0x50000 | errno.EPERM  # a new value
    if machine == "x86_64":
        assert answer(code, 0x40000000, architecture) == 0x50000 | errno.ENOSYS


def test_a_shells_filter_refuses_what_it_names_and_no_others():
    code, architecture = shell_program("x86_64"), 0xC000003E
    named = {(REFUSED | {"memfd_create": (319, 279)})[name][0] for name in UNCOUNTED + NAMESPACES}
    named |= {435}  # clone3
    sockets = {41}  # of the family 0, which is none
    assert {n for n in range(1_000) if answer(code, n, architecture) != ALLOWED} == named | sockets
    for family in SHELL_SOCKETS:
        assert answer(code, 41, architecture, family) == ALLOWED
    assert answer(code, 56, architecture, 0x10000000) == 0x50000 | errno.EPERM  # a user namespace
    assert answer(code, 54, architecture, 3, 1, 7) == 0x50000  # said to be done

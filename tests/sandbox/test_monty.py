"""One adversarial test for each line of the list in the docstring of `thread_kit.sandbox.monty`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from thread_kit.sandbox.jail.limits import ERROR_CHARACTERS
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.sandbox import Sandbox, SandboxResult

SECONDS = 5.0  # a line that needs as long is endless, however busy the machine is
HASTY = 0.2
PATIENCE = 60.0  # of a sandbox that no line here comes to the end of

# 2**40 empty tuples when written out, 41 in memory; hashing it in CPython takes hours.
NESTED = "reduce(lambda t, _: (t, t), range(40), ())"
CLASS = "Thing = type('Thing', (), {{{methods}}})\nthing = Thing()\n"


@pytest.fixture(scope="module")
def sandbox():
    with MontySandbox(seconds=SECONDS) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def hasty():
    """For code that must be stopped."""
    with MontySandbox(seconds=HASTY) as sandbox:
        yield sandbox


def run(sandbox: Sandbox, code: str) -> SandboxResult:
    """Runs code after `before = 1` and checks what holds after every attack."""
    state = sandbox.execute(None, "before = 1").state
    outcome = sandbox.execute(state, code)
    if outcome.variables is None:
        assert outcome.state is state
        assert outcome.error is not None
    assert sandbox.execute(outcome.state, "").variables["before"] == "1"
    return outcome


def error(sandbox: Sandbox, code: str) -> str:
    """The type of the error that the code ends with."""
    message = run(sandbox, code).error
    assert message is not None, "the code succeeded"
    return message.partition(":")[0]


def undone(sandbox: Sandbox, code: str) -> str:
    """The same for code that must leave nothing behind."""
    outcome = run(sandbox, code)
    assert outcome.variables is None
    return str(outcome.error).partition(":")[0]


def workers() -> set[int]:
    """The worker processes of this process, by id."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has just ended
            continue
        state, parent = rest.split()[:2]
        if parent == str(os.getpid()) and name == "monty" and state != "Z":
            found.add(int(stat.parent.name))
    return found


def ticks(process: int) -> int:
    """The processor time that a process has used, in hundredths of a second on most systems."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])
    except FileNotFoundError:
        return 0


def busy_worker(others: set[int]) -> int:
    """The new worker that runs a line, once it does, however long a busy machine takes."""
    while not (busy := [worker for worker in workers() - others if ticks(worker) > 30]):
        time.sleep(0.01)
    return busy[0]


sees_processes = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)


# Time


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "[0 for _ in range(10**15) if False]",
        "sum(range(10**15))",
        "exec('while True: pass')",
        "before = max(range(10**12))",
        CLASS.format(methods="'__repr__': lambda self: str(sum(range(10**15)))"),
    ],
)
def test_endless_work_is_stopped_and_undone(hasty, code):
    assert undone(hasty, code) == "TimeoutError"


def test_catching_everything_does_not_outlive_the_time_limit(hasty):
    code = "while True:\n  try:\n    while True: pass\n  except BaseException: pass"
    assert undone(hasty, code) == "TimeoutError"


def test_sleep_returns_at_once(sandbox):
    assert run(sandbox, "import time\ntime.sleep(10**6)").error is None


# Memory


@pytest.mark.parametrize(
    "code",
    [
        "x = [0] * 10**9",
        "x = list(range(10**12))",
        "x = 'x' * 10**10",
        "x = 9**9**8",
        "x = 'x'.ljust(10**10)",
        "x = f'{1:>10000000000}'",
        "x = 'a'.replace('a', 'b' * 10**9)",
    ],
)
def test_huge_values_are_refused_and_undone(sandbox, code):
    assert undone(sandbox, code) == "MemoryError"


def test_an_integer_too_long_to_print_is_undone(sandbox):
    assert undone(sandbox, "x = 10**5000") == "ValueError"


@pytest.mark.slow
def test_a_value_that_is_huge_only_in_print_is_undone(hasty):
    code = f"from functools import reduce\nx = {NESTED}"
    assert undone(hasty, code) in ("MemoryError", "TimeoutError")


def test_variables_cannot_grow_without_end():
    with MontySandbox(variables_characters=1000) as sandbox:
        assert run(sandbox, "x = 'x' * 900").variables == {"before": "1", "x": repr("x" * 900)}
        assert undone(sandbox, "x = y = 'x' * 900") == "MemoryError"


def test_a_state_cannot_grow_behind_variables_that_look_small():
    with MontySandbox(state_bytes=10_000) as sandbox:
        assert undone(sandbox, "x = iter([0] * 100_000)") == "MemoryError"


# Recursion


@pytest.mark.parametrize(
    "code",
    [
        "f = lambda: f()\nf()",
        "f = lambda k: sorted([k], key=f)\nf(1)",
        "f = lambda k: eval('f(k)')\nf(1)",
        CLASS.format(methods="'__eq__': lambda a, b: a == b") + "thing == thing",
        CLASS.format(methods="'__repr__': lambda self: repr(self)"),
    ],
)
def test_endless_recursion_is_an_error(sandbox, code):
    assert error(sandbox, code) == "RecursionError"


def test_deeply_nested_values_do_no_harm(sandbox):
    deep = "reduce(lambda t, _: [t], range(20_000), [])"
    run(sandbox, f"from functools import reduce\nx = {deep}\nx == {deep}")


@pytest.mark.parametrize(
    "code", ["(" * 5000 + ")" * 5000, "x" + ".x" * 50_000, "-" * 50_000 + "1", "1" + "+1" * 50_000]
)
def test_deeply_nested_source_is_an_error(sandbox, code):
    assert error(sandbox, code) == "SyntaxError"


# Printing


def test_much_printed_text_is_cut_with_a_note():
    with MontySandbox(print_characters=10) as sandbox:
        outcome = run(sandbox, "print('x' * 10**6)")
    assert outcome.error is None
    assert outcome.printed == "x" * 10 + "... [999,991 more characters were printed and cut]"


def test_text_at_the_limit_is_not_cut():
    with MontySandbox(print_characters=10) as sandbox:
        assert run(sandbox, "print('x' * 9)").printed == "x" * 9 + "\n"


def test_endless_printing_is_stopped_and_what_was_kept_is_small(hasty):
    outcome = run(hasty, "while True: print('x' * 1000)")
    assert str(outcome.error).startswith("TimeoutError")
    assert hasty.print_characters < len(outcome.printed) < hasty.print_characters + 100


# The machine


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        "open('../../../etc/passwd').read()",
        "from pathlib import Path\nPath('/etc/passwd').read_text()",
        "from pathlib import Path\nlist(Path('/').iterdir())",
        "import os\nos.listdir('/')",
    ],
)
def test_files_cannot_be_read(sandbox, code):
    assert error(sandbox, code) == "PermissionError"


def test_files_cannot_be_written(sandbox, tmp_path):
    path = tmp_path / "written"
    assert error(sandbox, f"open({str(path)!r}, 'w').write('x')") == "PermissionError"
    assert not path.exists()


@pytest.mark.parametrize("read", ["os.environ", "os.environ['SECRET']", "os.getenv('SECRET')"])
def test_environment_variables_cannot_be_read(monkeypatch, read):
    monkeypatch.setenv("SECRET", "hunter2")
    with MontySandbox() as sandbox:  # after the variable is set, so that its workers inherit it
        outcome = run(sandbox, f"import os\nprint({read})")
    assert outcome.printed == ""
    assert str(outcome.error).startswith("RuntimeError")


@pytest.mark.parametrize(
    "call",
    ["system('id')", "fork()", "kill(os.getppid(), 9)", "_exit(1)", "popen('id')", "getpid()"],
)
def test_processes_and_signals_do_not_exist(sandbox, call):
    assert error(sandbox, f"import os\nos.{call}") == "AttributeError"


@pytest.mark.parametrize(
    "module",
    ["subprocess", "socket", "ctypes", "signal", "builtins", "importlib", "gc", "pickle", "pytest"],
)
def test_other_modules_do_not_exist(sandbox, module):
    assert error(sandbox, f"import {module}") == "ModuleNotFoundError"


def test_modules_of_the_host_cannot_be_reached(sandbox):
    assert error(sandbox, "import sys\nsys.modules") == "AttributeError"
    assert error(sandbox, "import sys\nsys._getframe()") == "AttributeError"


@pytest.mark.parametrize("name", ["__import__", "__builtins__", "globals", "compile", "breakpoint"])
def test_ways_to_the_interpreter_do_not_exist(sandbox, name):
    assert error(sandbox, f"{name}('os').system('id')") == "NameError"


@pytest.mark.parametrize(
    "walk",
    [
        "().__class__.__bases__[0].__subclasses__()",
        "(lambda: 0).__globals__",
        "(lambda: 0).__code__",
        "print.__self__",
        "'{0.__class__}'.format(1)",
        "getattr((), '__cla' + 'ss__')",
        "object.__subclasses__()",
    ],
)
def test_walks_over_the_type_system_lead_nowhere(sandbox, walk):
    assert error(sandbox, walk) in ("AttributeError", "NameError")


def test_leaving_the_interpreter_does_not_end_anything(sandbox):
    assert error(sandbox, "raise SystemExit") == "SystemExit"
    assert error(sandbox, "raise KeyboardInterrupt") == "KeyboardInterrupt"


# What crosses over to our process


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["{nested: 1}", "unknown({nested: 1})", "{}[nested]"])
def test_a_value_whose_hash_takes_hours_never_reaches_us(hasty, attack):
    # As the value of the last expression, as an argument of an unknown function, in an error.
    run(hasty, f"from functools import reduce\n(lambda nested: {attack})({NESTED})")


def test_only_text_is_returned_even_if_builtins_are_replaced(sandbox):
    code = "repr = str = dict = list = lambda *a: [1]\nlocals = lambda: {(1, 2): [3]}\nx = [2]"
    variables = sandbox.execute(None, code).variables
    assert set(variables) == {"repr", "str", "dict", "list", "x"}
    assert variables["x"] == "[2]"


@pytest.mark.parametrize("value", ["5", "[1]", "lambda: {'class': 1}", "lambda: {'n' * 10**7: 1}"])
def test_the_variables_are_listed_whatever_locals_is(sandbox, value):
    result = run(sandbox, f"locals = {value}\nx = 1")
    assert (result.error, result.variables) == (None, {"before": "1", "x": "1"})
    assert sandbox.execute(result.state, "y = 2").variables == {"before": "1", "x": "1", "y": "2"}


def test_a_namespace_that_cannot_be_listed_is_undone(sandbox):
    assert undone(sandbox, "ZeroDivisionError = 5") == "TypeError"


def test_names_count_as_much_as_values():
    with MontySandbox(variables_characters=1000) as sandbox:
        assert undone(sandbox, "exec('n' * 995 + ' = 1')") == "MemoryError"


def test_what_is_no_name_of_a_variable_is_none(sandbox):
    assert run(sandbox, "n" * 101 + " = 1; x = 1").variables == {"before": "1", "x": "1"}


@pytest.mark.parametrize("method", ["5", "[].missing", "1 / 0"])
def test_a_repr_that_fails_is_undone(sandbox, method):
    undone(sandbox, CLASS.format(methods=f"'__repr__': lambda self: {method}"))


def test_a_repr_that_prints_or_assigns_leaves_no_trace(sandbox):
    code = CLASS.format(methods="'__repr__': lambda self: print('x') or exec('before = 2') or 'me'")
    outcome = run(sandbox, code)
    assert outcome.printed == ""
    assert outcome.variables["thing"] == "me"


def test_a_str_that_fails_is_an_error(sandbox):
    assert error(sandbox, CLASS.format(methods="'__str__': lambda self: 5") + "str(thing)") == (
        "TypeError"
    )


def test_a_long_error_message_is_cut(sandbox):
    message = run(sandbox, "raise ValueError('x' * 10**7)").error
    assert message.startswith("ValueError: xxx")
    assert len(message) <= ERROR_CHARACTERS + 3


def test_null_bytes_and_lone_surrogates_are_errors_or_data(sandbox):
    assert error(sandbox, "x = 1\0") == "SyntaxError"
    assert error(sandbox, "x = '\ud800'") == "SyntaxError"
    assert run(sandbox, "x = '\0'").variables["x"] == r"'\x00'"
    run(sandbox, r"print('\ud800')").printed.encode()


# Inputs


def test_inputs_are_bound_before_the_code_runs(sandbox):
    outcome = sandbox.execute(None, "x = n + 1", {"n": 2})
    assert outcome.variables == {"n": "2", "x": "3"}
    assert sandbox.execute(None, "", {"n": 2}).variables == {"n": "2"}


def test_an_input_that_is_not_plain_data_is_refused(sandbox):
    with pytest.raises(TypeError, match="object"):
        sandbox.execute(None, "", {"x": object()})


def test_bytes_that_are_no_state_are_refused(sandbox):
    with pytest.raises(ValueError, match="not a state"):
        sandbox.execute(b"garbage", "x = 1")


# State


def test_a_state_can_be_continued_many_times(sandbox):
    start = sandbox.execute(None, "x = [1]").state
    left = sandbox.execute(start, "x.append(2)")
    right = sandbox.execute(start, "x.append(3)")
    assert (left.variables, right.variables) == ({"x": "[1, 2]"}, {"x": "[1, 3]"})
    assert sandbox.execute(start, "").variables == {"x": "[1]"}


def test_a_line_that_fails_keeps_what_it_did_before(sandbox):
    outcome = run(sandbox, "x = 1; y = 1 / 0")
    assert outcome.error == "ZeroDivisionError: division by zero"
    assert outcome.variables == {"before": "1", "x": "1"}


def test_random_numbers_are_the_same_in_a_replay(sandbox):
    code = "import random\nx = random.random()"
    first, second = (sandbox.execute(None, code) for _ in range(2))
    assert first.variables == second.variables
    assert sandbox.execute(first.state, code).variables != first.variables


# Processes


@sees_processes
def test_a_thousand_waiting_states_need_no_more_processes(sandbox):
    others = workers()
    with MontySandbox(workers=2) as own:
        states = [own.execute(None, f"x = {number}").state for number in range(1000)]
        assert len(workers() - others) <= 2
        assert own.execute(states[500], "").variables == {"x": "500"}


@sees_processes
def test_a_worker_that_dies_between_lines_is_replaced(sandbox):
    others = workers()
    with MontySandbox() as own:
        state = own.execute(None, "x = 1").state
        for worker in workers() - others:
            os.kill(worker, signal.SIGKILL)
        assert own.execute(state, "x += 1").variables == {"x": "2"}


@sees_processes
def test_a_line_whose_worker_dies_is_undone(sandbox):
    others = workers()
    with MontySandbox(seconds=PATIENCE, workers=1) as own, ThreadPoolExecutor() as pool:
        state = own.execute(None, "x = 1").state
        running = pool.submit(own.execute, state, "while True: x = 2")
        os.kill(busy_worker(others), signal.SIGKILL)
        outcome = running.result()
        assert outcome == SandboxResult(
            state, "", "RuntimeError: the sandbox worker died and was replaced", None
        )
        assert own.execute(outcome.state, "x += 1").variables == {"x": "2"}


@sees_processes
def test_what_a_terminal_sends_to_all_processes_stops_no_worker():
    # As a terminal does it: one signal to every process of the group, while lines run.
    code = """
import os, signal, threading
from thread_kit.sandbox.monty import MontySandbox
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
for number in SIGNALS:
    signal.signal(number, lambda *_: None)
results = []
def work():
    state = sandbox.execute(None, "x = 0").state
    for _ in range(40):
        result = sandbox.execute(state, "for _ in range(3_000): x += 1")
        results.append(result.error)
        state = result.state
with MontySandbox(seconds=60) as sandbox:
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        for number in SIGNALS:
            os.killpg(0, number)
        thread.join(0.01)
assert results == [None] * 40, results
"""
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, timeout=600, start_new_session=True)


@sees_processes
def test_a_worker_that_a_signal_ends_is_an_interrupt_and_no_error_of_the_line(monkeypatch):
    # Blocked signals do not come; where they cannot be blocked, this is what is left.
    monkeypatch.delattr(signal, "pthread_sigmask")
    others = workers()
    with MontySandbox(seconds=PATIENCE, workers=1) as own, ThreadPoolExecutor() as pool:
        state = own.execute(None, "x = 1").state
        running = pool.submit(own.execute, state, "while True: x = 2")
        os.kill(busy_worker(others), signal.SIGTERM)  # SIGINT is ignored in a background job
        with pytest.raises(KeyboardInterrupt):
            running.result()
        assert own.execute(state, "x += 1").variables == {"x": "2"}


def test_threads_share_a_sandbox(sandbox):
    def count(start: int) -> dict[str, str] | None:
        outcome = sandbox.execute(None, f"x = {start}")
        for _ in range(20):
            outcome = sandbox.execute(outcome.state, "x += 1; print(x)")
        return outcome.variables

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, range(8))) == [{"x": str(n + 20)} for n in range(8)]


def test_an_attack_in_one_thread_does_not_disturb_another(hasty):
    attack = threading.Thread(target=hasty.execute, args=(None, "while True: pass"))
    attack.start()
    assert hasty.execute(None, "x = 1").variables == {"x": "1"}
    attack.join()


def test_a_closed_sandbox_refuses_to_run():
    sandbox = MontySandbox()
    sandbox.close()
    sandbox.close()
    assert "closed" in repr(sandbox)
    with pytest.raises(RuntimeError, match="closed"):
        sandbox.execute(None, "x = 1")


@sees_processes
def test_a_sandbox_that_is_dropped_ends_its_workers():
    others = workers()
    sandbox = MontySandbox()
    assert workers() > others
    del sandbox
    assert workers() == others


def test_the_end_of_the_interpreter_ends_the_workers():
    code = (
        "import pathlib\nfrom thread_kit.sandbox.monty import MontySandbox\n"
        "sandbox = MontySandbox()\nprint(sandbox.execute(None, 'x = 1').variables)"
    )
    # It can only end, and close our pipe, after the worker that inherited the pipe did.
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert (done.stdout, done.stderr) == ("{'x': '1'}\n", "")

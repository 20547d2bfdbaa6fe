from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thread_kit import code_lines
from thread_kit.code_lines import LINE_CHARACTERS, blocks, executable, is_python
from thread_kit.exchange import mentioned, references
from thread_kit.sandbox import namespace as namespaces
from thread_kit.sandbox.monty import MontySandbox
from thread_kit.sandbox.namespace import LineResult, LiteralNamespace, PythonNamespace

# Each example may start a worker, and the machine may be busy: no deadline.
PROPERTY = settings(deadline=None, max_examples=100)


@pytest.fixture(scope="module")
def sandbox():
    with MontySandbox(seconds=2) as sandbox:
        yield sandbox


@pytest.fixture
def namespace(sandbox):
    return PythonNamespace(sandbox)


def run(namespace, *lines: str) -> LineResult:
    """Runs lines that must not fail; the result of the last one."""
    for line in lines:
        ran = namespace.run(line)
        assert ran.error is None, ran
    return ran


# Which lines are code


@pytest.mark.parametrize(
    "line",
    [
        "x = 1",
        "x += 1",
        "x: int = 1",
        "a = b = 1",
        "a, *b = 1, 2, 3",
        "items[0] = 'x'",
        "(x := 3)",
        "import math",
        "from math import ceil",
        "print('x')",
        "items.append(x)",
        "[print(x) for x in items]",
        "x = 1; y = 2",
        "x = 1  # a comment",
        r"x = '\d'",
    ],
)
def test_code_is_executable(line):
    assert executable(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "# x = 1",
        "Done",
        "3",
        "'a string'",
        "None",
        "...",
        "Done, thanks",
        "yes or no",
        "not found",
        "wooden-sticks",
        "Answer: 42",
        "Note: done",
        "To craft {target_item}, I need 2 sticks.",
        "First, I need to find the {obj}. =>",
        "> get 2 stick",
        "for x in items:",
        "for x in items: print(x)",
        "if x: y = 1",
        "def f(): pass",
        "del x",
        "pass",
        "return x",
        "x = (1,",
        "x = 1\ny = 2",
        "x = 1\ry = 2",
        "x = 1\0",
        "x = '\ud800'",
        "#END#",
    ],
)
def test_prose_is_not_executable(line, namespace):
    assert not executable(line)
    assert namespace.run(line) == LineResult(line)


def test_spaces_around_a_line_do_not_count(namespace):
    assert run(namespace, "  x = 1  ").changed == {"x": 1}
    assert run(namespace, "\ty = 2\n").changed == {"y": 2}


def test_lines_beyond_the_limit_are_prose():
    assert executable("x = '" + "y" * (LINE_CHARACTERS - 6) + "'")
    assert not executable("x = '" + "y" * LINE_CHARACTERS + "'")
    assert is_python("'" + "y" * (LINE_CHARACTERS - 2) + "'")
    assert not is_python("'" + "y" * LINE_CHARACTERS + "'")


def test_a_line_with_a_questionable_escape_does_not_warn(namespace):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(namespace, r"x = '\d'").changed == {"x": r"\d"}


@pytest.mark.parametrize(
    "unit", ["-", "(", "[", "f(", "not ", "lambda:", "a if b else ", "x.", "1+", "2**", "f'{", "~"]
)
def test_nested_source_never_crashes_the_parser(unit):
    executable(unit * (LINE_CHARACTERS // len(unit) - 1) + "1")


def test_nested_source_fits_the_smallest_stack_of_a_thread():
    # macOS gives 512 KiB to a thread; in a process of its own, because the failure is a crash.
    code = f"""
import threading
from thread_kit.code_lines import executable
threading.stack_size(512 * 1024)
for unit in ("-", "~", "not ", "2**", "f("):
    line = unit * ({LINE_CHARACTERS} // len(unit) - 1) + "1"
    thread = threading.Thread(target=executable, args=(line,))
    thread.start()
    thread.join()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.slow
def test_another_threads_parsing_does_not_get_in_the_way():
    # In a process of its own, where threads change places while a syntax tree is built.
    code = """
import ast, gc, threading, time
from thread_kit.code_lines import executable
gc.set_threshold(5)
line = "x = [f'{a} is {b + c * (d - e)}' for a in range(10) if a % 2]"
running = True
class Leaves:
    def __del__(self):
        time.sleep(0)
def parse():
    while running:
        try:
            ast.parse(line)
        except SystemError:
            pass
others = [threading.Thread(target=parse) for _ in range(3)]
for other in others:
    other.start()
try:
    for _ in range(200):
        garbage = Leaves()
        garbage.itself = garbage
        assert executable(line)
finally:
    running = False
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_string_that_is_never_closed_is_looked_for_once_and_not_at_each_quote(quote, monkeypatch):
    tried = []

    class Counting:
        def match(self, source, at, pattern=code_lines._STRINGS[quote]):
            tried.append(at)
            return pattern.match(source, at)

    monkeypatch.setitem(code_lines._STRINGS, quote, Counting())
    line = quote + f"\\{quote}" * 900
    code_lines._blocks.cache_clear()
    assert blocks(["#"] * 50 + [line]) == ["#"] * 50 + [line]
    assert len(tried) == 51  # once from each line on; not 900 times


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (["for x in y:", "    f(x)", "    g(x)", "    don't"], 3),
        (["for x in y:", "    f(x)", "    g(x)", "    don't ("], 2),
        (["x = [1,", "2]  # it's"], 1),
        (["x = ['it\\'s',", "2]"], 1),
        (["x = '\\", "y'"], 1),
        (["x = '\\", "y"], 2),
    ],
)
def test_where_a_quote_is_never_closed_the_rest_of_its_line_counts(lines, count):
    assert len(blocks(lines)) == count


@PROPERTY
@given(st.text() | st.text("()[]{}'\"=:;,.\\ \tabx1f#\n"))
def test_any_text_is_code_or_prose(line):
    assert executable(line) in (True, False)


@PROPERTY
@given(st.text("()[]{}'\"=:;,.\\ abx1f#+-*%@!<>"))
def test_any_line_runs_without_raising(sandbox, line):
    PythonNamespace(sandbox).run(line)


# What the tasks' lines need


def test_the_lookup_of_the_papers_prompt(namespace):
    run(namespace, "names = ['oak log 2', 'log 1', 'stick 3']", "target = 'log'")
    ran = run(namespace, "idx = names.index(min([x for x in names if target in x], key=len))")
    assert ran.changed == {"idx": 1}


def test_braces_in_a_printed_constant_stay_literal(namespace):
    run(namespace, "obj_ID = 'apple 1'")
    ran = run(namespace, "print('You have found {obj_ID}.')")
    assert ran == LineResult("print('You have found {obj_ID}.')", "You have found {obj_ID}.")


def test_the_arithmetic_of_the_papers_prompt(namespace):
    assert run(namespace, "reps = -(-6 // 4)").changed == {"reps": 2}
    assert run(namespace, "per = 4", "count = per * reps").changed == {"count": 8}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("x = f'{name!r:>9}|{n:03d}|{n / 3:.2f}'", "  'apple'|007|2.33"),
        ("x = '{} and {n}'.format(name, n=n)", "apple and 7"),
        ("x = '%s x%d' % (name, n)", "apple x7"),
        ("x = max(items, key=lambda item: item[1])[0]", "b"),
        ("x = sorted(counts, key=lambda c: counts[c], reverse=True)", ["log", "stick"]),
        ("x = [w.strip('.,').title() for w in 'red fox.'.split() if w]", ["Red", "Fox"]),
        ("x = {k: v for k, v in items if v > 1}", {"b": 2}),
        ("x = sum(v for _, v in items)", 3),
        ("x = any(v == 2 for _, v in items) and all(v for _, v in items)", True),
        ("x = counts.get('plank', 0) + counts['log']", 3),
        ("x = ', '.join(map(str, range(3)))", "0, 1, 2"),
        ("x = name[::-1].upper() if n else None", "ELPPA"),
        ("x = list(zip('ab', [1, 2]))", [("a", 1), ("b", 2)]),
        ("x = [i for i, c in enumerate(name) if c == 'p']", [1, 2]),
        ("x = divmod(n, 2) + (round(2.567, 1), abs(-3), min(4, 2))", (3, 1, 2.6, 3, 2)),
        ("x = int('12') + float('0.5')", 12.5),
        ("x = isinstance(name, str) and 'pp' in name", True),
    ],
)
def test_what_models_write_works(namespace, line, value):
    run(namespace, "name = 'apple'; n = 7", "items = [('a', 1), ('b', 2)]")
    run(namespace, "counts = {'log': 3, 'stick': 1}", line)
    assert namespace.variables["x"] == value


def test_imports_work_and_stay(namespace):
    run(namespace, "import math", "from math import ceil, pi", "import re, json")
    assert run(namespace, "x = math.ceil(6 / 4) + ceil(0.5)").changed == {"x": 3}
    assert run(namespace, "y = re.findall('[0-9]+', 'a1b22')").changed == {"y": ["1", "22"]}
    assert list(namespace.variables) == ["ceil", "pi", "x", "y"]


# Printing


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("print('a', 1, [2], sep=' | ')", "a | 1 | [2]"),
        ("print('a', end='')", "a"),
        ("print('a', end='!\\n')", "a!"),
        ("print('a\\n')", "a\n"),
        ("print()", ""),
        ("print(1); print(2)", "1\n2"),
        ("x = 1", None),
        ("len('x')", None),
    ],
)
def test_printed_text_comes_without_its_last_newline(namespace, line, printed):
    assert run(namespace, line).printed == printed


# Variables


def test_values_keep_their_types(namespace):
    run(namespace, "a = 1; b = 1.5; c = True; d = None; e = 'x'; f = (1, [2, {'k': ()}]); g = {3}")
    expected = {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": None,
        "e": "x",
        "f": (1, [2, {"k": ()}]),
        "g": {3},
    }
    assert namespace.variables == expected
    assert [type(v) for v in namespace.variables.values()] == [type(v) for v in expected.values()]


def test_infinity_is_a_number(namespace):
    run(namespace, "best = float('inf')", "worst = -best", "none = best - best")
    assert namespace.variables["best"] == math.inf
    assert namespace.variables["worst"] == -math.inf
    assert math.isnan(namespace.variables["none"])


def test_other_values_are_their_repr(namespace):
    run(namespace, "f = lambda x: x", "g = len", "h = range(3)")
    assert namespace.variables == {
        "f": "<function '<lambda>'>",
        "g": "<built-in function len>",
        "h": "range(0, 3)",
    }


def test_modules_and_private_names_are_left_out(namespace):
    run(namespace, "import math", "import math as m", "_x = 1", "__y = 2", "text = '<module 1>'")
    assert namespace.variables == {"text": "<module 1>"}
    assert run(namespace, "z = _x + m.floor(1.5)").changed == {"z": 2}


def test_a_hostile_repr_is_only_text(namespace):
    run(namespace, "Thing = type('Thing', (), {'__repr__': lambda self: '-' * 50_000 + '1'})")
    run(namespace, "thing = Thing()")
    assert namespace.variables["thing"] == "-" * 50_000 + "1"


def test_variables_are_copies(namespace):
    run(namespace, "items = [1]")
    namespace.variables["items"].append(2)
    assert namespace.variables == {"items": [1]}


def test_a_mutation_by_a_method_is_seen(namespace):
    run(namespace, "items = ['a']", "other = items")
    ran = run(namespace, "items.append('b')")
    assert ran.changed == {"items": ["a", "b"], "other": ["a", "b"]}
    assert namespace.variables["items"] == ["a", "b"]
    assert run(namespace, "other[0] = 'c'").changed == {"items": ["c", "b"], "other": ["c", "b"]}


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("a = b = 1", {"a": 1, "b": 1}),
        ("a, (b, *c) = 1, (2, 3)", {"a": 1, "b": 2, "c": [3]}),
        ("print(y := 4)", {"y": 4}),
        ("x = 0", {"x": 0}),
        ("x = False", {"x": False}),
        ("x += 1; z = x", {"x": 1, "z": 1}),
        ("z = [x for x in range(2)]", {"z": [0, 1]}),
        ("for_later: int = 3", {"for_later": 3}),
        ("print(x)", {}),
    ],
)
def test_changed_has_the_names_that_the_line_bound(namespace, line, changed):
    run(namespace, "x = 0")
    ran = run(namespace, line)
    assert ran.changed == changed
    assert [type(v) for v in ran.changed.values()] == [type(v) for v in changed.values()]


def test_changed_can_be_written_as_json(namespace):
    ran = run(namespace, "a = {1}; b = {(1, 2): 3}; c = float('inf'); d = (1, 'x'); e = b'x'")
    assert json.loads(json.dumps(ran.changed, allow_nan=False)) == {
        "a": "{1}",
        "b": "{(1, 2): 3}",
        "c": "inf",
        "d": [1, "x"],
        "e": "b'x'",
    }


def test_the_latest_bound_comes_last(namespace):
    run(namespace, "a = 1", "b = 2", "c = 3", "a = 1")
    assert list(namespace.variables) == ["b", "c", "a"]


# Errors


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("y = x", "NameError: name 'x' is not defined"),
        ("y = 1 / 0", "ZeroDivisionError: division by zero"),
        ("print([][0])", "IndexError: list index out of range"),
        ("import pandas", "ModuleNotFoundError: No module named 'pandas'"),
    ],
)
def test_an_error_is_one_line(namespace, line, error):
    run(namespace, "y = 0")
    assert namespace.run(line) == LineResult(line, None, error, {})
    assert namespace.variables == {"y": 0}


def test_a_line_that_fails_half_way_keeps_the_first_half(namespace):
    ran = namespace.run("print('a'); x = 1; y = 1 / 0")
    assert (ran.printed, ran.changed) == ("a", {"x": 1})


@pytest.mark.slow
def test_a_line_of_code_that_is_refused_does_nothing_and_prose_is_none(namespace):
    run(namespace, "x = 1")
    refused = namespace.run("x = 2", refusal="MemoryError: enough")
    assert (refused.executed, refused.error, refused.answer) == (True, "MemoryError: enough", None)
    assert namespace.run("print(x)", refusal="MemoryError: enough").answer == "MemoryError: enough"
    assert namespace.run("So it is.", refusal="MemoryError: enough") == LineResult("So it is.")
    assert namespace.variables == {"x": 1}


@pytest.mark.slow
def test_the_namespace_goes_on_after_a_line_that_is_undone(namespace):
    run(namespace, "x = [1]")
    for line in ("x = sum(range(10**15))", "x = [0] * 10**9", "x.extend('y' * 10**6)"):
        ran = namespace.run(line)
        assert ran.error.startswith(("TimeoutError", "MemoryError"))
        assert ran.changed == {}
    assert run(namespace, "x.append(2)").changed == {"x": [1, 2]}


# psi: define


def test_defined_variables_can_be_used(namespace):
    assert namespace.define({"name": "apple 1", "n": 2}).changed == {"name": "apple 1", "n": 2}
    assert run(namespace, "print(name * n)").printed == "apple 1apple 1"


def test_defining_again_is_a_change_and_the_latest(namespace):
    namespace.define({"a": 1, "b": 2})
    assert namespace.define({"a": 1}).changed == {"a": 1}
    assert list(namespace.variables) == ["b", "a"]


@pytest.mark.parametrize(
    "name", ["", "a b", "class", "x = 1; y", "1x", "x\n", "²", "ﬁ", "e\u0301", "n" * 101]
)
def test_only_names_can_be_defined(namespace, name):
    with pytest.raises(ValueError, match="not the name of a variable"):
        namespace.define({name: 1})


@pytest.mark.parametrize(
    "name", ["x", "é", "变量", "कि", "col·lecció", "℘", "match", "n" * 100, "t1"]
)
def test_a_name_that_a_line_can_bind_can_be_defined_and_referred_to(namespace, name):
    assert run(namespace, f"{name} = 1").changed == {name: 1}
    assert mentioned(f"{{{name}}} {{class}}", namespace.variables) == {name: 1}
    assert namespace.define({name: 2}).changed == {name: 2}


def test_only_names_can_be_given_at_the_start(sandbox):
    with pytest.raises(ValueError, match="not the name of a variable"):
        PythonNamespace(sandbox, variables={"class": 1})


def test_what_a_line_makes_of_locals_comes_to_nothing(namespace):
    run(namespace, "locals = lambda: {'class': 1}", "x = 1")
    assert references("{class} {²} {x}") == ["x"]
    assert mentioned("{class} {x}", namespace.variables) == {"x": 1}
    assert namespace.define(namespace.variables).error is None


def test_halves_of_surrogates_stay_as_they_are_written(namespace):
    run(namespace, r"C = type('C', (), {'__repr__': lambda self: chr(39) + r'\ud800' + chr(39)})")
    run(namespace, "x = C()")
    assert namespace.variables["x"] == r"'\ud800'"
    assert PythonNamespace(namespace.sandbox).define(namespace.variables).error is None


def test_only_plain_data_can_be_defined(namespace):
    with pytest.raises(TypeError):
        namespace.define({"x": object()})


def test_defining_too_much_is_an_error_of_the_result(namespace):
    ran = namespace.define({"x": "x" * 10**6})
    assert ran.error.startswith("MemoryError")
    assert namespace.variables == {}


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    lambda values: (
        st.lists(values)
        | st.tuples(values, values)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])) | st.integers(), values)
    ),
    max_leaves=10,
)


@PROPERTY
@given(PLAIN)
def test_plain_data_comes_back_as_it_went_in(sandbox, value):
    namespace = PythonNamespace(sandbox)
    assert namespace.define({"x": value}).error is None
    assert repr(namespace.variables["x"]) == repr(value)
    parent = PythonNamespace(sandbox)
    parent.define(namespace.variables)
    assert repr(parent.variables) == repr(namespace.variables)


# Children


def test_a_child_has_a_copy(namespace):
    run(namespace, "items = [1]", "import math", "_private = 3")
    child = namespace.child()
    run(child, "items.append(math.ceil(1.5))", "new = _private")
    assert child.variables == {"items": [1, 2], "new": 3}
    assert namespace.variables == {"items": [1]}
    run(namespace, "items = 'gone'")
    assert child.variables["items"] == [1, 2]


def test_what_a_child_names_comes_back(namespace):
    child = namespace.child()
    run(child, "obj_ID = 'apple 1'", "scratch = 1")
    namespace.define({"obj_ID": child.variables["obj_ID"]})
    assert namespace.variables == {"obj_ID": "apple 1"}


def test_a_child_of_its_own_begins_as_the_main_thread_did_and_hands_nothing_up(sandbox):
    namespace = PythonNamespace(sandbox, scope="own", variables={"given": 1})
    run(namespace, "x = 1")
    child = namespace.child()
    assert child.variables == {"given": 1}
    run(child, "y = given")
    assert namespace.define({"y": 1}) == LineResult("")
    assert namespace.variables == {"given": 1, "x": 1}
    assert child.child().variables == {"given": 1}


def test_a_shared_child_is_its_parent(sandbox):
    namespace = PythonNamespace(sandbox, scope="shared")
    child = namespace.child()
    run(child, "x = 1")
    assert child is namespace
    assert namespace.variables == {"x": 1}


def test_a_grandchild_keeps_the_scope(sandbox):
    assert PythonNamespace(sandbox).child().child().scope == "exported"


def test_an_unknown_scope_is_refused(sandbox):
    with pytest.raises(ValueError, match="scope"):
        PythonNamespace(sandbox, scope="global")


def test_threads_that_share_a_namespace_lose_no_line(sandbox):
    namespace = PythonNamespace(sandbox, scope="shared")
    run(namespace, "n = 0")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(namespace.run, ["n += 1"] * 40))
    assert namespace.variables == {"n": 40}


# A copy of a moment


def test_a_moment_can_be_gone_on_from_more_than_once(namespace):
    run(namespace, "x = [1]", "y = 2")
    for child in (namespace.child(), namespace.child()):
        run(child, "x.append(2)", "x.append(y)", "z = 0")
        assert child.variables == {"x": [1, 2, 2], "y": 2, "z": 0}
        assert namespace.variables == {"x": [1], "y": 2}


def test_functions_go_on_in_a_copy(namespace):
    run(namespace, "f = lambda n: n + k", "k = 1")
    assert run(namespace.child(), "x = f(1)").changed == {"x": 2}


def test_a_namespace_shows_its_variables_and_not_its_bytes(namespace):
    run(namespace, "x = 'apple'")
    assert repr(namespace) == "PythonNamespace({'x': 'apple'}, scope='exported')"
    result = namespace.sandbox.execute(None, "x = 'apple'")
    assert "state" not in repr(result)
    assert "'apple'" in repr(result)


# Without variables


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("print('You have found {obj_ID}.')", "You have found {obj_ID}."),
        ('  print("a", "b")  ', "a b"),
        ("print('a' 'b')", "ab"),
        ("print()", ""),
        ("print(x)", None),
        ("print(f'{x}')", None),
        ("print('a', sep=open('/etc/passwd'))", None),
        ("print('a' * 10**9)", None),
        ("print(*'ab')", None),
        ("printed('a')", None),
        ("x = print('a')", None),
        ("To craft a stick, I need planks.", None),
    ],
)
def test_without_variables_only_constants_are_printed(line, printed):
    assert LiteralNamespace().run(line) == LineResult(line, printed)


def test_without_variables_nothing_is_kept():
    namespace = LiteralNamespace()
    assert namespace.run("x = 1") == LineResult("x = 1")
    assert namespace.define({"x": 1}) == LineResult("")
    assert namespace.child().variables == {}
    assert repr(namespace) == "LiteralNamespace()"


@pytest.mark.parametrize("before", ["5", "[1, 2]", "True", "'a'"])
def test_a_string_comes_up_over_a_value_that_it_spells(before):
    namespace = PythonNamespace(MontySandbox())
    namespace.run(f"x = {before}")
    assert namespace.define({"x": before}).changed == {"x": before}
    assert namespace.variables == {"x": before}


def test_a_value_is_made_of_its_text_when_it_is_asked_for(monkeypatch):
    """A model can bind megabytes in a short line, and few of them are ever read."""
    made = []
    value = namespaces._value
    monkeypatch.setattr(namespaces, "_value", lambda text: made.append(text) or value(text))
    with MontySandbox() as sandbox:
        own = PythonNamespace(sandbox, variables={"x": 1})
        own.run("big = [0] * 1000")
        made.clear()
        now = own.variables
        assert ("big" in now, len(now), list(now)) == (True, 2, ["x", "big"])
        assert now["x"] == 1
        assert made == ["1"]
        own.run("x = 2")
        assert now["x"] == 1
        assert now == {"x": 1, "big": [0] * 1000}
        assert repr(own.variables).startswith("{'big': [0, ")

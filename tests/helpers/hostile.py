"""What a hostile model writes, weighted towards what once broke something.

`lines` are single lines of code, `blocks` several; `replies` are texts of a model that hold them,
and refer to, print and spawn with the names. For the jail there is code that forges what its own
process sends (`forgeries`).
"""

from __future__ import annotations

import json

from hypothesis import strategies as st

from thread_kit.code_lines import is_variable_name
from thread_kit.sandbox.jail.limits import ERROR_CHARACTERS
from thread_kit.sandbox.sandbox import SandboxResult

BUILTINS = ["locals", "repr", "str", "dict", "print", "len", "open", "ZeroDivisionError", "globals"]
ODD_NAMES = [
    *("class", "None", "print", "__debug__", "__builtins__", "_", "_x", "t1", "lambda", "match"),
    *(
        "é",
        "e\u0301",
        "ﬁ",
        "²",
        "ª",
        "x²",
        "ℕ",
        "变量",
        "a\u200db",
        "𝐱",
        "1x",
        "a b",
        "",
        "a.b",
        "℘",
        "कि",
        "l·l",
    ),
]
names = st.one_of(
    st.sampled_from("abcxyz"),
    st.sampled_from(BUILTINS),
    st.sampled_from(ODD_NAMES),
    st.integers(90, 3_000).map("n".__mul__),
    st.text(max_size=4),
)
identifiers = names.filter(str.isidentifier)

TEXTS = ["{x}", "{class}", "{²}", "{t1}", "{}", "\0", "\\ud800", "\u2028", "<=", "=>"]
texts = st.one_of(
    st.text(max_size=8),
    st.sampled_from(TEXTS),
    names.map("{{{}}}".format),
)
VALUES = [
    *("1", "[]", "{}", "()", "{1}", "None", "1e999", "-1e999", "float('nan')", "10**4299"),
    *("10**5000", "'a' * 90_000", "[0] * 30_000", "'a' * 10**8", "9**9**9", "[[]] * 9_000"),
    *("'\\ud800'", "['\\udfff']", "'\\x00'", "b'\\xff'", "range(9)", "locals", "...", "1j"),
    *("lambda: {'class': 1}", "lambda *a: [1]", "lambda *a: {'²': 1, (1, 2): [3]}"),
    *("{('n%d' % i) * 900: i for i in range(900)}", "[[[[[[[[[]]]]]]]]]", "print", "open"),
    *("f'{1:>100000}'", "'{x}' * 1_000", "(i for i in range(9))", "{1: {2: {3: {1, 2}}}}"),
]
values = st.one_of(
    texts.map(repr),
    st.sampled_from(VALUES),
    st.integers(1, 400).map(lambda depth: "[" * depth + "]" * depth),
    st.integers(100, 30_000).map(
        lambda depth: f"__import__('functools').reduce(lambda v, _: [v], range({depth}), 0)"
    ),
)
HOSTILE_CLASS = "type('C', (), {{'__repr__': lambda self: {}}})()"
values |= values.map(HOSTILE_CLASS.format)

LINES = [
    *("while True: print('x' * 1000)", "raise SystemExit", "raise KeyboardInterrupt"),
    *("print(*['x' * 10**6] * 30)", "x = x = x", "del x", "f = lambda: f()", "f()"),
    *("print('\\ud800')", "print('\\x00\\x1b[2J')", "exit()", "import sys; sys.exit(0)"),
]
lines = st.one_of(
    st.builds("{} = {}".format, names, values),
    st.builds("globals()[{!r}] = {}".format, names, values),
    st.builds("locals = lambda: {{{!r}: {}}}".format, names, values),
    st.builds("print({})".format, values),
    st.builds("print('{{{}}}')".format, names),
    st.builds("{0} = {0} + {0}".format, identifiers),
    st.builds("import math as {}".format, identifiers),
    st.builds("exec({!r})".format, st.builds("{} = {}".format, names, values)),
    st.builds("({} := {})".format, identifiers, values),
    st.sampled_from(LINES),
    st.text(max_size=12),
)
blocks = st.lists(lines, min_size=1, max_size=4).map("\n".join)

endings = st.sampled_from([" =>", "\n> go {x} =>", "\nprint('{x}')\n#END#", "\n#END#", "", " ~>"])
replies = st.builds("{}\n{}{}".format, blocks, texts, endings)

# What the jail's process sends

NUMBERS = [0, 1, -1, 2**31, 2**63, 10**400, 0.5, float("inf"), float("nan"), True]
odd_json = st.recursive(
    st.none()
    | st.sampled_from(NUMBERS)
    | texts
    | st.text(st.characters(codec="utf-16"), max_size=3),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(names, parts, max_size=3),
    max_leaves=6,
)
PNG = b"\x89PNG\r\n\x1a\n"
pictures = st.lists(
    st.tuples(st.sampled_from(["/scratch/a.png", "../x", 5, "", None]), st.sampled_from(NUMBERS)),
    max_size=9,
)
answers = st.fixed_dictionaries(
    {
        "printed": st.sampled_from(["", "a" * 60_000, "\ud800"]) | odd_json,
        "cut": st.sampled_from(NUMBERS) | odd_json,
        "error": st.none() | st.sampled_from(["e" * 9_000, "\udfff"]) | odd_json,
        "variables": st.dictionaries(names, st.sampled_from(["1", "'\\ud800'", "\ud800", "["]))
        | odd_json,
        "pictures": pictures | odd_json,
    },
)
answers |= st.dictionaries(st.sampled_from(["printed", "variables", "name", ""]), odd_json)
calls = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["look_up", "save", "__class__"]) | odd_json,
        "arguments": st.lists(odd_json, max_size=2) | odd_json,
        "named": st.dictionaries(names, odd_json, max_size=2) | odd_json,
    }
)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


messages = st.one_of(
    answers.map(json.dumps).map(_encode),
    calls.map(json.dumps).map(_encode),
    odd_json.map(json.dumps).map(_encode),
    st.sampled_from([b"[" * 100_000, b"{" * 9, b"", b"[" + b"[]," * 40_000, b"9" * 5_000]),
    st.binary(max_size=20),
)
tails = st.sampled_from([b"", PNG, PNG + bytes(30), bytes(5_000_000)]) | st.binary(max_size=9)


def _frame(message: bytes, tail: bytes, off: tuple[int, int]) -> bytes:
    head = (len(message) + off[0]) % 2**32, (len(tail) + off[1]) % 2**64
    return head[0].to_bytes(4, "little") + head[1].to_bytes(8, "little") + message + tail


off = st.just((0, 0)) | st.tuples(
    st.sampled_from([0, 1, -1, 2**31]), st.sampled_from([0, -1, 2**62])
)
frames = st.builds(_frame, messages, tails, st.just((0, 0)))
kinds = st.sampled_from([b"d", b"c", b"x", b""])
sent = st.builds(
    lambda kind, frame: _frame(b"", kind, (0, 0)) + frame,
    kinds,
    st.builds(_frame, messages, tails.filter(lambda tail: len(tail) < 9_000), off),
)

FIND_PIPE = "import os, sys\nRUN = sys._getframe(1).f_locals['self']\n"
ATTRIBUTES = ["printed.cut", "printed.room", "printed.parts", "pictures", "_keep", "out", "answers"]
forgeries = st.one_of(
    st.lists(sent, min_size=1, max_size=3).map(
        lambda parts: f"{FIND_PIPE}os.write(RUN.out, {b''.join(parts)!r})\nos._exit(0)"
    ),
    st.builds(
        "{}RUN.{} = {}".format,
        st.just(FIND_PIPE),
        st.sampled_from(ATTRIBUTES),
        st.sampled_from(
            [
                *("float('inf')", "10**9", "-1", "None", "['x' * 10**7]", "{'/x': b'y'}"),
                *("lambda s: ([], b'', None)", "lambda s: ({'class': '1'}, b'x', 'y')", "{1: 2}"),
                *("lambda s: ({'n' * 10**7: '1'}, b'', None)", "[]", "3", "9" * 30),
            ]
        ),
    ),
)

# What must hold of a sandbox

LIMITS = {"print_characters": 2_000, "variables_characters": 50_000, "state_bytes": 2**19}


def must_hold(result: SandboxResult, before: bytes | None) -> None:
    """What is true of every result, whatever the code did."""
    note = "... [] more characters were printed and cut"
    assert len(result.printed) <= LIMITS["print_characters"] + len(note) + 30
    result.printed.encode()
    assert len((result.error or "").encode()) <= 4 * ERROR_CHARACTERS + 3
    if result.variables is None:
        assert result.state is before
        assert result.error
        assert not result.pictures
        return
    size = sum(len(name) + len(text) for name, text in result.variables.items())
    assert size <= LIMITS["variables_characters"]
    for name, text in result.variables.items():
        assert is_variable_name(name)
        text.encode()
    assert len(result.state or b"") <= LIMITS["state_bytes"] + 100
    assert len(result.pictures) <= 4
    assert all(len(picture) <= 2**20 for picture in result.pictures.values())

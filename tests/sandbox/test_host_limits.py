"""What the host checks of all that comes back from the jail, as if an enemy had written it."""

from __future__ import annotations

import pytest

from thread_kit.sandbox.bubblewrap import BubblewrapSandbox
from thread_kit.sandbox.jail import wire

pytestmark = pytest.mark.jail

RUN = "import sys\nRUN = sys._getframe(1).f_locals['self']\n"
"""Code that gets hold of the object that runs it, and sends the answer."""


def look_up(place):
    return place


@pytest.fixture(scope="module")
def sandbox():
    with BubblewrapSandbox({"look_up": look_up}) as sandbox:
        yield sandbox


def forge(answer: str) -> str:
    """Code that sends these variables, as text, state and error, whatever it has made."""
    return f"{RUN}type(RUN)._keep = lambda self, namespace: {answer}"


@pytest.mark.parametrize(
    "line",
    [
        RUN + "RUN.printed.cut = True",
        RUN + "RUN.printed.cut = -1",
        RUN + "RUN.printed.parts = [1]",
        RUN + "RUN.pictures = {'/scratch/x.png': b'x'}",
        RUN + "RUN.pictures = {str(n): b'' for n in range(9)}",
        RUN + "RUN.pictures = {5: 6}",
        forge("([], b'', None)"),
        forge("(5, b'', None)"),
        forge("('abc', b'', None)"),
        forge("({'x': 1}, b'', None)"),
        forge("({'x': '1'}, b'', 5)"),
        forge("({'x': '1'}, 'text', None)"),
    ],
)
def test_a_forged_answer_is_the_lines_error(sandbox, line):
    before = sandbox.execute(None, "x = 1").state
    result = sandbox.execute(before, line)
    assert result.error
    assert (result.state, result.variables, result.printed) == (before, None, "")


def test_a_line_that_is_undone_says_why(sandbox):
    reply = {"printed": "", "cut": 0, "error": None, "variables": None, "pictures": []}
    assert "neither what there is" in sandbox._read_result(b"before", wire.pack(reply), "").error


def test_a_count_that_is_none_is_no_count(sandbox):
    result = sandbox.execute(None, "import sys; sys.stdout.cut = float('inf')")
    assert result.error == "RuntimeError: the code sent no result (its count is none)"


def test_printed_text_is_cut_by_the_host(sandbox):
    result = sandbox.execute(None, "import sys; sys.stdout.room = 10**9; print('x' * 30_000)")
    assert result.printed.endswith("... [20,001 more characters were printed and cut]")
    assert len(result.printed) < 10_100
    line = "RUN.printed.parts = ['x' * 3 * 10**7]\ndel RUN"
    assert "a message of more than" in sandbox.execute(None, RUN + line).error


def test_names_count_as_much_as_values(sandbox):
    excess = "MemoryError: the variables take more than 200,000 characters"
    many = "globals().update({f'n{i:050}': 1 for i in range(9_000)})"
    for line in (
        "globals()['x' * 2 * 10**7] = 1",
        many,
        forge("({'x' * 300_000: '1'}, b'', None)"),
    ):
        assert sandbox.execute(None, line).error == excess
    forged = "RUN.settings['variables_characters'] = 10**9\nRUN = 0\nx = 'y' * 300_000"
    assert sandbox.execute(None, RUN + forged).error == excess


def test_states_are_weighed_by_the_host(sandbox):
    line = forge("({}, bytes(33 * 2**20), None)") + "\nRUN.settings['state_bytes'] = 10**9"
    assert sandbox.execute(None, line).error == (
        "MemoryError: the namespace takes more than 33,554,432 bytes"
    )


def test_what_is_no_name_of_a_variable_is_none(sandbox):
    names = ["class", "²", "a b", "", "ﬁ", "e\u0301", "n" * 101, "x"]
    assert sandbox.execute(None, f"globals().update(dict.fromkeys({names}, 1))").variables == {
        "x": "1"
    }


def test_halves_of_surrogates_are_no_text(sandbox):
    result = sandbox.execute(None, "x = chr(0xd800); print(x); raise ValueError(x)")
    assert (result.printed, result.error) == ("?\n", "ValueError: ?")
    assert result.variables == {"x": r"'\ud800'"}


@pytest.mark.parametrize(
    ("size", "pixels"), [(2**21, 9), (100, 10_000)], ids=["large", "of many pixels"]
)
def test_a_picture_that_is_too_large_is_refused(sandbox, size, pixels):
    head = b"\x89PNG\r\n\x1a\n" + bytes(8) + pixels.to_bytes(4, "big") * 2
    line = f"import hashlib\nDATA = {head!r} + bytes({size - len(head)})\n"
    line += "NAME = f'/scratch/{hashlib.sha256(DATA).hexdigest()[:10]}.png'\n"
    result = sandbox.execute(None, f"{RUN}{line}RUN.pictures = {{NAME: DATA}}\ndel RUN, DATA")
    assert result.error.startswith("RuntimeError: the code sent no result (a picture that")
    assert not result.pictures


@pytest.mark.parametrize("folder", ["/etc", "/scratch/..", "/scratch/a", "<img>", "/scratch/"])
def test_a_picture_lies_in_the_scratch_folder(sandbox, folder):
    head = b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\0\0\0\x09" * 2
    path = f"{folder}/{wire.name_file(head, 'png')}"
    line = f"RUN.pictures = {{{path!r}: {head!r}}}\ndel RUN"
    assert sandbox.execute(None, RUN + line).error == (
        "RuntimeError: the code sent no result (a picture of another name)"
    )
    path = f"/scratch/{wire.name_file(head, 'png')}"
    line = f"RUN.pictures = {{{path!r}: {head!r}}}\ndel RUN"
    assert sandbox.execute(None, RUN + line).pictures == {path: head}


def test_a_picture_has_the_name_that_its_content_gives_it(sandbox):
    head = b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\0\0\0\x09" * 2
    line = f"RUN.pictures = {{'/scratch/0123456789.png': {head!r}}}\ndel RUN"
    assert sandbox.execute(None, RUN + line).error == (
        "RuntimeError: the code sent no result (a picture of another name)"
    )


def test_json_that_would_fill_the_hosts_memory_is_not_read(sandbox):
    line = RUN + "RUN.pictures = dict.fromkeys(range(10**6), b'')"
    assert "a message of more than" in sandbox.execute(None, line).error


def test_what_code_asks_the_host_is_limited(sandbox):
    assert sandbox.execute(None, "look_up('x' * 10**5)").error == (
        "ValueError: the arguments of look_up are too large"
    )
    line = RUN + "RUN.settings['call_bytes'] = 10**9\nlook_up('x' * 10**6)"
    assert sandbox.execute(None, line).error.startswith("MemoryError")

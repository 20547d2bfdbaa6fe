"""The methods by name, with the few-shot prompts of a benchmark and the budgets of their papers.

    method = named("adapt", "textcraft")        # a Method, as a suite wants it
    method(engine, env, seed=0, path=None)      # a Session that plays it

A method's prompts are prompts/METHOD/BENCHMARK.txt for its main thread and BENCHMARK-ROLE.txt for
the others, in the benchmark's dialect; the executor is the same for all methods that have one
(ADaPT paper, section 4.2): its prompt is ReAct's, or where there are `EXECUTORS` the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from thread_kit.dialect import QA_ASYNC
from thread_kit.envs.registry import dialect_of
from thread_kit.experiments.ablations import ABLATIONS, SEPARATE, ablated, ablated_taught
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
from thread_kit.program import threads
from thread_kit.prompts import EMPTY, Prompt, load_prompt
from thread_kit.requests import Program

START: dict[str, tuple[str, ...]] = {"textcraft": ("inventory",)}
"""What is done before an executor's first call (ADaPT paper, appendix A); elsewhere nothing."""

MAX_DEPTH = {"textcraft": 4}
"""d_max of the ADaPT paper (section 4.2), and its number of trials; elsewhere 3."""

EXECUTOR, ALONE = 20, 60
"""Iterations of an executor, and of one that is the whole method (appendix A: ALFWorld and
TextCraft)."""

EXECUTORS = {"alfworld": ("executor", "atomic")}
"""Executor prompts of ADaPT's own, by their roles: "executor" has atomic skills and two whole games
(hybrid), "atomic" the skills only (section 6.2). Elsewhere the executor is ReAct's."""

HANDLERS = {
    "textcraft": ("get", "make"),
    "alfworld": ("find", "make", "put", "use"),
    "datacommons": ("get", "compute"),
    "icu": ("measure", "group"),
}
"""DecomP's fixed sets."""


def _prompt(path: str, benchmark: str) -> Prompt:
    return load_prompt(path, dialect_of(benchmark))


def _asks(benchmark: str) -> bool:
    """Whether its tasks are questions, which threads answer by code."""
    return dialect_of(benchmark).code


def _start(benchmark: str) -> tuple[str, ...]:
    return START.get(benchmark, ())


def _depth(benchmark: str) -> int:
    return MAX_DEPTH.get(benchmark, 3)


def _executor(benchmark: str, iterations: int) -> Program:
    return partial(react, iterations=iterations, start=_start(benchmark))


def _method(name: str, program: Program, main: Prompt, *others: Prompt) -> SessionMethod:
    scope = "exported" if main.dialect.code else "none"
    return SessionMethod(name, main, {"program": program, "prompts": others, "scope": scope})


def _thread(benchmark: str) -> SessionMethod:
    return SessionMethod("thread", _prompt(benchmark, benchmark))


def _thread_async(benchmark: str) -> SessionMethod:
    return SessionMethod("thread, async", load_prompt(f"{benchmark}-async", QA_ASYNC))


def _thread_lines(benchmark: str) -> SessionMethod:
    """One request a line: small models read "of A is ... and of B is =>" as a request about A."""
    return SessionMethod("thread, lines", _prompt(f"{benchmark}-lines", benchmark))


def _nlep(benchmark: str) -> SessionMethod:
    return _method("nlep", nlep, _prompt(f"nlep/{benchmark}", benchmark))


def _nlep_react(benchmark: str) -> SessionMethod:
    prompt = _prompt(f"nlep-react/{benchmark}", benchmark)
    return _method("nlep+react", _executor(benchmark, ALONE), prompt)


def _react(benchmark: str) -> SessionMethod:
    program = _executor(benchmark, ALONE)
    return _method("react", program, load_prompt(f"react/{benchmark}"))


def _taught_react() -> SessionMethod:
    """Of a model that needs no examples: nothing is done before it begins."""
    return _method("react", partial(react, iterations=ALONE), EMPTY)


def _try_again(benchmark: str) -> SessionMethod:
    program = partial(
        try_again, trials=_depth(benchmark), iterations=EXECUTOR, start=_start(benchmark)
    )
    return _method("try again", program, load_prompt(f"react/{benchmark}"))


def _family(benchmark: str) -> str:
    """ "alfworld" of "alfworld-heat": what has prompts for all of its task types."""
    return benchmark.partition("-")[0]


def _carries(benchmark: str) -> bool:
    """Whether an executor is told the last step of the one before (see `adapt`)."""
    return _family(benchmark) == "alfworld"


def _executor_prompt(benchmark: str, role: str = "executor") -> Prompt:
    """Of an executor that is a part of a method."""
    if role in EXECUTORS.get(_family(benchmark), ()):
        return load_prompt(f"adapt/{_family(benchmark)}-{role}")
    return load_prompt(f"react/{benchmark}")


def _plan_and_execute(benchmark: str) -> SessionMethod:
    executor = _executor_prompt(benchmark)
    program = partial(
        plan_and_execute,
        executor=executor,
        iterations=EXECUTOR,
        start=_start(benchmark),
        carry=_carries(benchmark),
    )
    planner = load_prompt(f"plan_and_execute/{_family(benchmark)}")
    return _method("plan-and-execute", program, planner, executor)


def _adapt(benchmark: str, executor: str = "executor") -> SessionMethod:
    """executor: of the three that the ADaPT paper compares on ALFWorld (section 6.2)."""
    planner = load_prompt(f"adapt/{_family(benchmark)}-planner")
    program = partial(
        adapt,
        planner=planner,
        max_depth=_depth(benchmark),
        iterations=EXECUTOR,
        start=_start(benchmark),
        carry=_carries(benchmark),
    )
    name = "adapt" if executor == "executor" else f"adapt, {executor}"
    return _method(name, program, _executor_prompt(benchmark, executor), planner)


def _machine(benchmark: str, machines: Mapping[str, Machine] = MACHINES) -> Program:
    if benchmark not in machines:
        raise ValueError(
            f"nobody has written a state machine for {benchmark!r}; known: {', '.join(machines)}"
        )
    return partial(stateflow, machine=machines[benchmark], turns=ALONE)


def _stateflow(benchmark: str) -> SessionMethod:
    return _method("stateflow", _machine(benchmark), load_prompt(f"stateflow/{benchmark}"))


def _stateflow_split(benchmark: str) -> SessionMethod:
    prompt = load_prompt(f"stateflow/{benchmark}-split")
    return _method("stateflow, 10 states", _machine(benchmark, SPLIT_MACHINES), prompt)


def _on(name: str, actor: Program, prompt: Prompt, benchmark: str, **fixed: Any) -> SessionMethod:
    """Reflexion on top of an actor."""
    reflect = _prompt(f"reflexion/{_family(benchmark)}", benchmark)
    program = partial(reflexion, actor=actor, reflect=reflect, trials=_depth(benchmark))
    method = _method(name, program, prompt, reflect)
    return SessionMethod(name, prompt, {**method.fixed, **fixed})


def _reflexion(benchmark: str) -> SessionMethod:
    actor = "nlep-react" if _asks(benchmark) else "react"
    prompt = _prompt(f"{actor}/{benchmark}", benchmark)
    return _on("reflexion", _executor(benchmark, EXECUTOR), prompt, benchmark)


def _stateflow_reflexion(benchmark: str) -> SessionMethod:
    prompt = load_prompt(f"stateflow/{benchmark}")
    return _on("stateflow+reflexion", _machine(benchmark), prompt, benchmark)


def _thread_reflexion(benchmark: str) -> SessionMethod:
    if _asks(benchmark):
        raise ValueError(
            f"thread+reflexion is for tasks that are solved by acting, not {benchmark}"
        )
    return _on("thread+reflexion", threads, load_prompt(benchmark), benchmark, scope="exported")


def _decomp(benchmark: str) -> SessionMethod:
    family = _family(benchmark)
    names = HANDLERS.get(family, ())
    handlers = {name: _prompt(f"decomp/{family}-{name}", benchmark) for name in names}
    program = partial(decomp, handlers=handlers)
    main = _prompt(f"decomp/{family}", benchmark)
    return _method("decomp", program, main, *handlers.values())


def _tdag(benchmark: str) -> SessionMethod:
    family = _family(benchmark)
    generator = load_prompt(f"tdag/{family}-agent")
    executor = _executor_prompt(benchmark)
    program = partial(
        tdag,
        generator=generator,
        executor=executor,
        iterations=EXECUTOR,
        start=_start(benchmark),
    )
    return _method("tdag", program, load_prompt(f"tdag/{family}"), generator, executor)


BUILDERS: dict[str, Callable[[str], SessionMethod]] = {
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
    **{name: partial(ablated, name) for name in ABLATIONS},
}
"""By the papers' names in small letters, so that published rows stand beside ours."""


TAUGHT: dict[str, Callable[[], SessionMethod]] = {
    "thread": partial(SessionMethod, "thread"),
    "react": _taught_react,
    **{name: partial(ablated_taught, name) for name in ABLATIONS if name != SEPARATE},
}
"""Those that an adapter can teach a model, which then needs no examples; and ablations of them."""


ON_ALFWORLD: dict[str, Callable[[str], SessionMethod]] = {
    "adapt, atomic": partial(_adapt, executor="atomic"),
    "adapt, by type": partial(_adapt, executor="by type"),
    "stateflow, 10 states": _stateflow_split,
}
"""Variants that the papers have on ALFWorld only: other executors, a machine with more states."""


ON_QUESTIONS: dict[str, Callable[[str], SessionMethod]] = {
    "thread, async": _thread_async,
    "thread, lines": _thread_lines,
    "nlep": _nlep,
    "nlep+react": _nlep_react,
}
"""Methods for questions about data: threads that need not wait (THREAD paper, section 2.2), that
ask for one figure a line (this kit's own), and programs (section 4.4)."""


def named(name: str, benchmark: str, *, taught: bool = False) -> SessionMethod:
    """A method with its prompts for a benchmark; with none if the model was taught the method.

    Raises ValueError for an unknown name, or where a benchmark lacks what the method needs;
    FileNotFoundError for a prompt that nobody has written.
    """
    if taught:
        if name not in TAUGHT:
            raise ValueError(f"no adapter teaches {name!r}; those taught: {', '.join(TAUGHT)}")
        return TAUGHT[name]()
    known = BUILDERS | (ON_ALFWORLD if _family(benchmark) == "alfworld" else {})
    known |= ON_QUESTIONS if _asks(benchmark) else {}
    if name not in known:
        raise ValueError(f"there is no method {name!r} on {benchmark}; known: {', '.join(known)}")
    return known[name](benchmark)

"""Each method with its prompts for a benchmark: what stands behind the names of the registry.

A method's prompts are prompts/METHOD/BENCHMARK.txt for its main thread and BENCHMARK-ROLE.txt for
the others, or what the benchmark's own record has by these names. The executor is the same for all
methods of the ADaPT paper (section 4.2): its prompt is ReAct's, or where the benchmark has
executors the first of them; a method with another one says so in its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from thread_kit.dialect import QA_ASYNC
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.budgets import own_limit
from thread_kit.experiments.method import SessionMethod, VisibleRewardMethod
from thread_kit.methods.adaplanner import adaplanner
from thread_kit.methods.adapt import adapt
from thread_kit.methods.alfchat import alfchat
from thread_kit.methods.autoguide import autoguide
from thread_kit.methods.decomp import decomp
from thread_kit.methods.lats import lats
from thread_kit.methods.memory import Guideline, GuidelineMemory, Log, LogMemory, read_records
from thread_kit.methods.nlep import nlep
from thread_kit.methods.plan_and_execute import plan_and_execute
from thread_kit.methods.plan_and_solve import plan_and_solve
from thread_kit.methods.rap import rap
from thread_kit.methods.react import react
from thread_kit.methods.reflexion import reflexion
from thread_kit.methods.sf_chat import as_chat
from thread_kit.methods.state_outputs import list_agents
from thread_kit.methods.stateflow import Machine, stateflow
from thread_kit.methods.tdag import tdag
from thread_kit.methods.try_again import try_again
from thread_kit.paths import resource
from thread_kit.program import thread_program
from thread_kit.prompts import EMPTY, Example, Prompt
from thread_kit.requests import Program

TEN = "10 states"
"""ALFWorld's machine with three states more (StateFlow paper, appendix B.3)."""

GOLD_ANSWER = "reflexion, gold answer"

Builder = Callable[..., SessionMethod]
"""Of a benchmark, and of the name of the few-shot prompts that fit a task (`Env.examples`)."""


def _load_prompt(benchmark: Benchmark, path: str) -> Prompt:
    """A prompt of another method than THREAD, whose threads all wait for their children."""
    return benchmark.load_prompt(path, replace(benchmark.dialect, spawn=None))


SHARED, ATOMIC, BY_TYPE = "executor", "atomic", "by-type"
"""The executors of the ADaPT paper on ALFWorld (section 6.2): atomic skills and two whole games
("hybrid"), which all methods share; atomic skills alone; whole games of the task's type."""


def _load_executor(benchmark: Benchmark, examples: str, role: str = SHARED) -> Prompt:
    """The prompt of an executor."""
    own = role in benchmark.executors
    return _load_prompt(benchmark, f"adapt/{benchmark.name}-{role}" if own else f"react/{examples}")


def _named(method: str, role: str) -> str:
    """A method's name, with its executor where that is not the shared one."""
    return method if role == SHARED else f"{method}-{role}"


def _executor(method: str, benchmark: Benchmark) -> Program:
    """With the iterations that the method's paper gives one."""
    iterations = own_limit(method, benchmark, "iterations")
    return partial(react, iterations=iterations, start=benchmark.start)


def _method(name: str, program: Program, main: Prompt, *others: Prompt) -> SessionMethod:
    scope = "exported" if main.dialect.code else "none"
    return SessionMethod(name, main, {"program": program, "prompts": others, "scope": scope})


# THREAD


def make_thread(benchmark: Benchmark, examples: str) -> SessionMethod:
    return SessionMethod("thread", benchmark.load_prompt(examples))


def make_thread_general(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Task-general prompting (THREAD paper, appendix D): the same examples for tasks of all types.

    One set of examples for the main thread, another for all others.
    """
    fixed = {"main_prompt": benchmark.load_prompt(f"{benchmark.name}-main")}
    prompt = benchmark.load_prompt(f"{benchmark.name}-others")
    return SessionMethod("thread, task-general", prompt, fixed)


def make_thread_async(benchmark: Benchmark, examples: str) -> SessionMethod:
    dialect = replace(benchmark.dialect, spawn=QA_ASYNC.spawn)
    return SessionMethod("thread, async", benchmark.load_prompt(f"{examples}-async", dialect))


def make_thread_lines(benchmark: Benchmark, examples: str) -> SessionMethod:
    """One request a line: small models read "of A is ... and of B is =>" as a request about A."""
    return SessionMethod("thread, lines", benchmark.load_prompt(f"{examples}-lines"))


# One thread


def make_nlep(benchmark: Benchmark, examples: str) -> SessionMethod:
    program = partial(nlep, calls=own_limit("nlep", benchmark, "iterations"))
    return _method("nlep", program, _load_prompt(benchmark, f"nlep/{examples}"))


def make_nlep_react(benchmark: Benchmark, examples: str) -> SessionMethod:
    prompt = _load_prompt(benchmark, f"nlep-react/{examples}")
    return _method("nlep+react", _executor("nlep+react", benchmark), prompt)


def make_react(benchmark: Benchmark, examples: str) -> SessionMethod:
    prompt = _load_prompt(benchmark, f"react/{examples}")
    return _method("react", _executor("react", benchmark), prompt)


def make_react_alone(benchmark: Benchmark, examples: str, executor: str = SHARED) -> SessionMethod:
    """An executor of the ADaPT paper alone, with as many iterations as d_max of them."""
    name = _named("react", "hybrid" if executor == SHARED else executor)
    prompt = _load_executor(benchmark, examples, executor)
    return _method(name, _executor(name, benchmark), prompt)


def make_react_refined(benchmark: Benchmark, examples: str) -> SessionMethod:
    """ReAct with examples that first look what there is (StateFlow paper, Tables 18 and 19)."""
    prompt = _load_prompt(benchmark, f"react-refined/{examples}")
    return _method("react, refined", _executor("react", benchmark), prompt)


def make_taught_react(benchmark: Benchmark) -> SessionMethod:
    """Of a model that needs no examples: nothing is done before it begins."""
    iterations = own_limit("react", benchmark, "iterations")
    return _method("react", partial(react, iterations=iterations), EMPTY)


def make_stateflow(
    benchmark: Benchmark, examples: str, variant: str = "", without: Sequence[str] = ()
) -> SessionMethod:
    """variant: "-split" for the machine of ten states. without: states that are left out."""
    program, prompts = _machine(benchmark, examples, variant, without)
    parts = ["stateflow", *([TEN] if variant else []), *(f"no_{state}" for state in without)]
    return _method(", ".join(parts), program, *prompts)


def _machine(
    benchmark: Benchmark,
    examples: str,
    variant: str = "",
    without: Sequence[str] = (),
    method: str = "stateflow",
) -> tuple[Program, tuple[Prompt, ...]]:
    """StateFlow as a program, and its prompts: none for the main thread, then the agents'.

    without: in small letters. method: whose turns it has.
    """
    machine = _find_machine(benchmark, examples + variant)
    names = {name.lower(): name for name in machine.states}
    machine = machine.without(*(names.get(name, name) for name in without))
    agents = _load_agents(benchmark, examples, variant, machine)
    turns = own_limit(method, benchmark, "turns")
    program = partial(stateflow, machine=machine, agents=agents, turns=turns)
    main = replace(EMPTY, dialect=replace(benchmark.dialect, spawn=None))
    return program, (main, *agents.values())


def _find_machine(benchmark: Benchmark, name: str) -> Machine:
    if name not in benchmark.machines:
        known = ", ".join(machine for other in BENCHMARKS.values() for machine in other.machines)
        raise ValueError(f"nobody has written a state machine for {name!r}; known: {known}")
    return benchmark.machines[name]


def _load_agents(
    benchmark: Benchmark, examples: str, variant: str, machine: Machine
) -> dict[str, Prompt]:
    """The prompt of each state's agent, a section of one file.

    "[Process heat]" goes before "[Process]" for tasks of the type heat, and "[Solve without
    Verify]" where Verify is left out. A variant's own file has what differs.
    """
    dialect = replace(benchmark.dialect, spawn=None)
    sections = benchmark.load_instructions(f"stateflow/{benchmark.name}", dialect)
    if variant:
        sections |= benchmark.load_instructions(f"stateflow/{benchmark.name}{variant}", dialect)
    kind = examples.removeprefix(benchmark.name).removeprefix("-")
    agents = {}
    for state in list_agents(machine):
        names = [f"{state} without {left_out}" for left_out in machine.rerouted]
        names += [f"{state} {kind}", state]
        section = next((name for name in names if name in sections), None)
        if section is None:
            raise ValueError(
                f"the prompt stateflow/{benchmark.name} has no section for the state {state!r}; "
                f"it has: {', '.join(sections)}"
            )
        agents[state] = sections[section]
    return agents


def make_sf_chat(benchmark: Benchmark, examples: str, variant: str = "") -> SessionMethod:
    machine = as_chat(_find_machine(benchmark, examples + variant))
    prompt = _load_prompt(benchmark, f"sf_chat/{examples}{variant}")
    name = "sf_chat, 10 states" if variant else "sf_chat"
    turns = own_limit("sf_chat", benchmark, "turns")
    return _method(name, partial(stateflow, machine=machine, turns=turns), prompt)


def make_alfchat(benchmark: Benchmark, examples: str, agents: int = 2) -> SessionMethod:
    """Of ReAct's examples, behind an instruction. agents: with three of them one gives hints."""
    sections = benchmark.load_instructions(
        f"alfchat/{benchmark.name}", replace(benchmark.dialect, spawn=None)
    )
    kind = examples.removeprefix(benchmark.name).removeprefix("-")
    hint = sections[f"Hint {kind}"].instructions.strip() if agents == 3 else ""
    react_prompt = _load_prompt(benchmark, f"react/{examples}")
    prompt = replace(
        react_prompt,
        name=f"alfchat/{examples}",
        instructions=sections["Assistant"].instructions,
    )
    rounds = own_limit("alfchat", benchmark, "turns")
    return _method(f"alfchat, {agents} agents", partial(alfchat, hint=hint, rounds=rounds), prompt)


# Several trials


def make_try_again(benchmark: Benchmark, examples: str, executor: str = SHARED) -> SessionMethod:
    prompt = _load_executor(benchmark, examples, executor)
    program = partial(
        try_again,
        trials=own_limit("try again", benchmark, "trials"),
        iterations=own_limit("try again", benchmark, "iterations"),
        start=benchmark.start,
    )
    name = "try again" if executor == SHARED else _named("try-again", executor)
    return _method(name, program, prompt)


def make_try_again_rewarded(benchmark: Benchmark, examples: str) -> SessionMethod:
    """InterCode's: one trial, with the reward behind each command (StateFlow paper, A.3)."""
    prompt = _load_prompt(benchmark, f"try-again-reward/{examples}")
    program = _executor("react", benchmark)
    method = _method("try again, visible reward", program, prompt)
    return VisibleRewardMethod(method.name, prompt, method.fixed)


def _reflect(
    name: str,
    actor: Program,
    prompts: tuple[Prompt, ...],
    benchmark: Benchmark,
    scope: str = "",
) -> SessionMethod:
    """Reflexion on top of an actor. prompts: the actor's, its own first."""
    reflect = _load_prompt(benchmark, f"reflexion/{benchmark.name}")
    trials = own_limit(name, benchmark, "trials")
    program = partial(reflexion, actor=actor, reflect=reflect, trials=trials)
    method = _method(name, program, *prompts, reflect)
    return replace(method, fixed={**method.fixed, "scope": scope}) if scope else method


def make_reflexion(benchmark: Benchmark, examples: str, executor: str = SHARED) -> SessionMethod:
    if benchmark.dialect.code:
        raise ValueError(
            f"on {examples} a trial is judged by the gold answer; the method that says so is "
            f"{GOLD_ANSWER!r}"
        )
    name, prompt = _named("reflexion", executor), _load_executor(benchmark, examples, executor)
    return _reflect(name, _executor("reflexion", benchmark), (prompt,), benchmark)


def make_reflexion_by_gold_answer(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Of questions: another trial where the answer is not the benchmark's (`Env.judge`)."""
    prompt = _load_prompt(benchmark, f"nlep-react/{examples}")
    return _reflect(GOLD_ANSWER, _executor("reflexion", benchmark), (prompt,), benchmark)


def make_stateflow_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    name = "stateflow+reflexion"
    actor, prompts = _machine(benchmark, examples, method=name)
    return _reflect(name, actor, prompts, benchmark)


def make_react_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    """The StateFlow paper's (section 4.2, Figure 6), on ReAct's own two examples of a type."""
    prompt = _load_prompt(benchmark, f"react/{examples}")
    name = "react+reflexion"
    return _reflect(name, _executor(name, benchmark), (prompt,), benchmark)


def make_thread_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    if benchmark.dialect.code:
        raise ValueError(f"thread+reflexion is for tasks that are solved by acting, not {examples}")
    prompt = _load_prompt(benchmark, examples)
    return _reflect("thread+reflexion", thread_program, (prompt,), benchmark, "exported")


def make_lats(benchmark: Benchmark, examples: str) -> SessionMethod:
    value = _load_prompt(benchmark, f"lats/{benchmark.name}-value")
    reflect = _load_prompt(benchmark, f"reflexion/{benchmark.name}")
    program = partial(
        lats,
        value=value,
        reflect=reflect,
        iterations=own_limit("lats", benchmark, "trials"),
        max_depth=own_limit("lats", benchmark, "iterations"),
        start=benchmark.start,
    )
    prompt = _load_prompt(benchmark, f"react/{examples}")
    return replace(_method("lats", program, prompt, value, reflect), keep_cells=True)


# A memory of earlier episodes


def _read_memory(method: str, benchmark: Benchmark) -> list[dict[str, Any]]:
    """The records of data/memories, or of the folder that THREAD_KIT_MEMORIES names.

    Raises FileNotFoundError where nobody has made them.
    """
    name = f"{method}-{benchmark.name}.jsonl"
    own = os.environ.get("THREAD_KIT_MEMORIES")
    path = Path(own).expanduser() / name if own else resource("data") / "memories" / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{method} has no memory for {benchmark.name}: there is no {path}. Make it with "
            f"`python -m thread_kit.experiments.memories {method} --env {benchmark.name}`"
        )
    return read_records(path)


def make_rap(benchmark: Benchmark, examples: str) -> SessionMethod:
    """With plans and keys where the benchmark has a prompt for these (ALFWorld)."""
    memory = LogMemory([Log.of(record) for record in _read_memory("rap", benchmark)])
    has_keys = benchmark.name != "webshop"
    key = _load_prompt(benchmark, f"rap/{benchmark.name}-key") if has_keys else None
    program = partial(
        rap,
        memory=memory,
        key=key,
        kind=examples,
        iterations=own_limit("rap", benchmark, "iterations"),
        start=benchmark.start,
    )
    main = replace(EMPTY, dialect=replace(benchmark.dialect, spawn=None))
    return replace(_method("rap", program, main, *([key] if key else [])), keep_cells=True)


def load_guides(benchmark: Benchmark) -> dict[str, Prompt]:
    """AutoGuide's prompts beside its agent's: identify, match, select, and extract a guideline."""
    names = {"identify": f"{benchmark.name}-context", "match": "match", "select": "select"}
    names["extract"] = f"{benchmark.name}-guideline"
    return {role: _load_prompt(benchmark, f"autoguide/{name}") for role, name in names.items()}


def make_autoguide(benchmark: Benchmark, examples: str) -> SessionMethod:
    guides = load_guides(benchmark)
    identify, match, select = (guides[role] for role in ("identify", "match", "select"))
    records = _read_memory("autoguide", benchmark)
    program = partial(
        autoguide,
        memory=GuidelineMemory(Guideline.of(record) for record in records),
        identify=identify,
        match=match,
        select=select,
        iterations=own_limit("autoguide", benchmark, "iterations"),
        start=benchmark.start,
    )
    prompt = _load_prompt(benchmark, f"react/{examples}")
    method = _method("autoguide", program, prompt, identify, match, select)
    return replace(method, keep_cells=True)


def make_adaplanner(benchmark: Benchmark, examples: str, *, skills: bool = False) -> SessionMethod:
    """skills: with the plans that solved tasks of this kind before, as examples (section 3.4)."""
    questions = _load_prompt(benchmark, f"adaplanner/{benchmark.name}-ask")
    prompt = _load_prompt(benchmark, f"adaplanner/{examples}")
    if skills:
        records = _read_memory("adaplanner", benchmark)
        own = [record for record in records if record.get("kind") == examples]
        known = [Example(one["context"], f"{one['plan']}\n{prompt.dialect.end}") for one in own]
        prompt = replace(prompt, examples=(*prompt.examples, *known))
    program = partial(
        adaplanner,
        questions=questions,
        executions=own_limit("adaplanner", benchmark, "trials"),
        iterations=own_limit("adaplanner", benchmark, "iterations"),
    )
    method = _method("adaplanner, skills" if skills else "adaplanner", program, prompt, questions)
    return replace(method, fixed={**method.fixed, "scope": "exported"})


# Plans


def make_plan_and_execute(
    benchmark: Benchmark, examples: str, executor: str = SHARED
) -> SessionMethod:
    planner = _load_prompt(benchmark, f"plan_and_execute/{benchmark.name}")
    prompt = _load_executor(benchmark, examples, executor)
    program = partial(
        plan_and_execute,
        executor=prompt,
        iterations=own_limit("plan-and-execute", benchmark, "iterations"),
        start=benchmark.start,
        carry=benchmark.carry,
    )
    return _method(_named("plan-and-execute", executor), program, planner, prompt)


def make_plan_and_solve(benchmark: Benchmark, examples: str) -> SessionMethod:
    prompt = _load_prompt(benchmark, f"plan_and_solve/{examples}")
    program = partial(plan_and_solve, steps=own_limit("plan-and-solve", benchmark, "turns"))
    return _method("plan-and-solve", program, prompt)


def make_adapt(
    benchmark: Benchmark, examples: str, executor: str = SHARED, max_depth: int | None = None
) -> SessionMethod:
    """max_depth: d_max; None is the paper's for the benchmark."""
    planner = _load_prompt(benchmark, f"adapt/{benchmark.name}-planner")
    program = partial(
        adapt,
        planner=planner,
        max_depth=max_depth or own_limit("adapt", benchmark, "d_max"),
        iterations=own_limit("adapt", benchmark, "iterations"),
        start=benchmark.start,
        look=benchmark.look,
        carry=benchmark.carry,
    )
    name = f"adapt-d{max_depth}" if max_depth else _named("adapt", executor)
    prompt = _load_executor(benchmark, examples, executor)
    return _method(name, program, prompt, planner)


def make_decomp(benchmark: Benchmark, examples: str) -> SessionMethod:
    path = f"decomp/{benchmark.name}"
    main = _load_prompt(benchmark, path)
    handlers = {name: _load_prompt(benchmark, f"{path}-{name}") for name in benchmark.handlers}
    iterations = own_limit("decomp", benchmark, "iterations")
    program = partial(decomp, handlers=handlers, iterations=iterations)
    return _method("decomp", program, main, *handlers.values())


def make_tdag(benchmark: Benchmark, examples: str) -> SessionMethod:
    generator = _load_prompt(benchmark, f"tdag/{benchmark.name}-agent")
    executor = _load_executor(benchmark, examples)
    program = partial(
        tdag,
        generator=generator,
        executor=executor,
        subtasks=own_limit("tdag", benchmark, "subtasks"),
        iterations=own_limit("tdag", benchmark, "iterations"),
        start=benchmark.start,
    )
    main = _load_prompt(benchmark, f"tdag/{benchmark.name}")
    return _method("tdag", program, main, generator, executor)


def load_planners(benchmark: Benchmark) -> list[Prompt]:
    """The prompts of the planners of ADaPT and of Plan-and-Execute (`engines/by_prompt.py`).

    Raises FileNotFoundError where a benchmark has none.
    """
    paths = f"adapt/{benchmark.name}-planner", f"plan_and_execute/{benchmark.name}"
    return [_load_prompt(benchmark, path) for path in paths]

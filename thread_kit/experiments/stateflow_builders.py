"""The methods of the StateFlow paper with machines or conversations, as `method_builders.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.intercode.interaction import STATEFLOW, InterCodeEnv
from thread_kit.envs.registry import BENCHMARKS
from thread_kit.experiments.budgets import own_limit
from thread_kit.experiments.method import ScriptedMethod, SessionMethod
from thread_kit.experiments.method_builders import (
    add_reflexion,
    load_waiting_prompt,
    make_method,
    waiting_dialect,
)
from thread_kit.methods.alfchat import alfchat
from thread_kit.methods.sf_chat import as_chat
from thread_kit.methods.state_outputs import list_agents
from thread_kit.methods.stateflow import Machine, stateflow
from thread_kit.prompts import EMPTY, Prompt
from thread_kit.requests import Program
from thread_kit.session.scheduler import UNTIL_OVER

TEN = "10 states"
"""ALFWorld's machine with three states more (StateFlow paper, appendix B.3)."""


def _task_type(benchmark: Benchmark, examples: str) -> str:
    """ "heat" of "alfworld-heat"."""
    return examples.removeprefix(benchmark.name).removeprefix("-")


def make_stateflow(
    benchmark: Benchmark, examples: str, variant: str = "", without: Sequence[str] = ()
) -> SessionMethod:
    """variant: "-split" for the machine of ten states. without: states that are left out."""
    program, prompts = _machine(benchmark, examples, variant, without)
    parts = ["stateflow", *([TEN] if variant else []), *(f"no_{state}" for state in without)]
    method = make_method(", ".join(parts), program, *prompts)
    return _add_script(replace(method, keep_cells=UNTIL_OVER), benchmark)


def _add_script(method: SessionMethod, benchmark: Benchmark) -> SessionMethod:
    """The method with the script that plays machines, where the benchmark is one of InterCode's."""
    environment = benchmark.environment
    if not (isinstance(environment, type) and issubclass(environment, InterCodeEnv)):
        return method
    return ScriptedMethod(**vars(method), script=STATEFLOW)


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
    main = replace(EMPTY, dialect=waiting_dialect(benchmark))
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
    dialect = waiting_dialect(benchmark)
    sections = benchmark.load_instructions(f"stateflow/{benchmark.name}", dialect)
    if variant:
        sections |= benchmark.load_instructions(f"stateflow/{benchmark.name}{variant}", dialect)
    kind = _task_type(benchmark, examples)
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


def make_stateflow_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    """StateFlow as the actor of Reflexion (StateFlow paper, Figure 6)."""
    name = "stateflow+reflexion"
    actor, prompts = _machine(benchmark, examples, method=name)
    method = add_reflexion(name, actor, prompts, benchmark)
    return _add_script(replace(method, keep_cells=UNTIL_OVER), benchmark)


def make_sf_chat(benchmark: Benchmark, examples: str, variant: str = "") -> SessionMethod:
    """StateFlow's machine and instructions; what these have in common is read once, at the top."""
    machine = _find_machine(benchmark, examples + variant)
    agents = _load_agents(benchmark, examples, variant, machine)
    opening = next(prompt.opening for prompt in agents.values())
    turns = own_limit("sf_chat", benchmark, "turns")
    program = partial(stateflow, machine=as_chat(machine), agents=agents, turns=turns)
    name = f"sf_chat, {TEN}" if variant else "sf_chat"
    main = Prompt(name, (), waiting_dialect(benchmark), opening and f"{opening}\n\n")
    return _add_script(make_method(name, program, main, *agents.values()), benchmark)


def make_alfchat(benchmark: Benchmark, examples: str, agents: int = 2) -> SessionMethod:
    """Of ReAct's examples, behind an instruction. agents: with three of them one gives hints."""
    shown = load_waiting_prompt(benchmark, f"react/{examples}")
    sections = benchmark.load_instructions(f"alfchat/{benchmark.name}", waiting_dialect(benchmark))
    instructions = sections["Assistant"].instructions
    prompt = replace(shown, name=f"alfchat/{examples}", instructions=instructions)
    kind = _task_type(benchmark, examples)
    hint = sections[f"Hint {kind}"].instructions.strip() if agents == 3 else ""
    program = partial(alfchat, hint=hint, rounds=own_limit("alfchat", benchmark, "turns"))
    return make_method(f"alfchat, {agents} agents", program, prompt)

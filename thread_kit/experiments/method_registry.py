"""The methods by name, with the few-shot prompts of a benchmark and the budgets of their papers.

    method = load_method("adapt", "textcraft")  # a Method, as a suite wants it
    method(engine, env, seed=0, path=None)      # a Session that plays it

`method_builders.py`, `stateflow_builders.py` and `memory_builders.py` put each together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, partial

from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.registry import BENCHMARKS, find_benchmark
from thread_kit.experiments.ablations import (
    ABLATIONS,
    SEPARATE,
    load_ablation,
    make_taught_ablation,
)
from thread_kit.experiments.memory_builders import make_adaplanner, make_autoguide, make_rap
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_builders import (
    ATOMIC,
    BY_TYPE,
    GOLD_ANSWER,
    Builder,
    make_adapt,
    make_decomp,
    make_lats,
    make_naive,
    make_nlep,
    make_nlep_react,
    make_plan_and_execute,
    make_plan_and_solve,
    make_react,
    make_react_alone,
    make_react_refined,
    make_react_reflexion,
    make_reflexion,
    make_reflexion_by_gold_answer,
    make_taught_react,
    make_taught_thread,
    make_tdag,
    make_thread,
    make_thread_async,
    make_thread_general,
    make_thread_lines,
    make_thread_reflexion,
    make_try_again,
    make_try_again_rewarded,
)
from thread_kit.experiments.stateflow_builders import (
    TEN,
    make_alfchat,
    make_sf_chat,
    make_stateflow,
    make_stateflow_reflexion,
)

BUILDERS: dict[str, Builder] = {
    "thread": make_thread,
    "react": make_react,
    "try again": make_try_again,
    "plan-and-execute": make_plan_and_execute,
    "adapt": make_adapt,
    "stateflow": make_stateflow,
    "sf_chat": make_sf_chat,
    "reflexion": make_reflexion,
    "stateflow+reflexion": make_stateflow_reflexion,
    "thread+reflexion": make_thread_reflexion,
    "decomp": make_decomp,
    "tdag": make_tdag,
    "lats": make_lats,
    "adaplanner": make_adaplanner,
    "adaplanner, skills": partial(make_adaplanner, skills=True),
    "rap": make_rap,
    "autoguide": make_autoguide,
    **{f"adapt-d{depth}": partial(make_adapt, max_depth=depth) for depth in (1, 2, 3)},
    **{name: partial(load_ablation, name) for name in ABLATIONS},
}
"""By the papers' names in small letters, so that published rows stand beside ours; ADaPT with d_max
from 1 to 3 (section 6.1, Figure 4)."""


VARIANTS: dict[str, Builder] = {
    "naive": make_naive,
    "react-hybrid": make_react_alone,
    "react-atomic": partial(make_react_alone, executor=ATOMIC),
    "adapt-atomic": partial(make_adapt, executor=ATOMIC),
    "react-by-type": partial(make_react_alone, executor=BY_TYPE),
    "plan-and-execute-by-type": partial(make_plan_and_execute, executor=BY_TYPE),
    "try-again-by-type": partial(make_try_again, executor=BY_TYPE),
    "reflexion-by-type": partial(make_reflexion, executor=BY_TYPE),
    "adapt-by-type": partial(make_adapt, executor=BY_TYPE),
    "react+reflexion": make_react_reflexion,
    f"stateflow, {TEN}": partial(make_stateflow, variant="-split"),
    f"sf_chat, {TEN}": partial(make_sf_chat, variant="-split"),
    "alfchat, 2 agents": make_alfchat,
    "alfchat, 3 agents": partial(make_alfchat, agents=3),
    "plan-and-solve": make_plan_and_solve,
    "react, refined": make_react_refined,
    "try again, visible reward": make_try_again_rewarded,
    "thread, task-general": make_thread_general,
    "thread, async": make_thread_async,
    "thread, lines": make_thread_lines,
    "nlep": make_nlep,
    "nlep+react": make_nlep_react,
    GOLD_ANSWER: make_reflexion_by_gold_answer,
}
"""Those that only some benchmarks have (`Benchmark.methods`). The shared executor alone, where it
has a prompt of its own. On WebShop: what buys the first product (ADaPT paper, appendix D). On
ALFWorld: the other executors of ADaPT paper alone, and its methods with them (Figure 5, Table 6);
Reflexion and ALFChat as the StateFlow paper has them (Figure 6, Table 3); a machine with more
states; the same examples for tasks of all types (THREAD paper, appendix D). On InterCode: the
baselines of the StateFlow paper (section 4.1, A.3). On questions about data: threads that need not
wait (THREAD paper, section 2.2), that ask for one figure a line (this kit's own), programs (section
4.4), and trials that are told whether they are right."""


TAUGHT: dict[str, Callable[[Benchmark], SessionMethod]] = {
    "thread": make_taught_thread,
    "react": make_taught_react,
    **{name: partial(make_taught_ablation, name) for name in ABLATIONS if name != SEPARATE},
}
"""Those that an adapter can teach a model, which then needs no examples; and ablations of them."""


WITH_STATES = ("stateflow", f"stateflow, {TEN}")
LEFT_OUT = ", no_"
"""Names a state of StateFlow's machine that is left out: "stateflow, no_verify" (StateFlow paper,
Figure 4 and Table 7)."""


def list_methods() -> list[str]:
    """The names of all methods, of whatever benchmark they are."""
    machines = (item for benchmark in BENCHMARKS.values() for item in benchmark.machines.items())
    left_out = (
        f"stateflow{f', {TEN}' if name.endswith('-split') else ''}{LEFT_OUT}{state.lower()}"
        for name, machine in machines
        for state in machine.optional
    )
    return [*BUILDERS, *VARIANTS, *dict.fromkeys(left_out)]


def method_slug(name: str) -> str:
    """A method's name without commas and spaces: "thread-no-variables" for a command line."""
    return re.sub(", | ", "-", name)


def find_method(name: str) -> str:
    """The name that a method has in tables and rows; name: that one, or its slug.

    Raises ValueError for a name that there is not.
    """
    if (own := _complete_name(name.lower())) is None:
        near = get_close_matches(name.lower(), {method_slug(own) for own in list_methods()})
        lists = "run --help and suite --help list them"
        known = f"did you mean {' or '.join(near)}?" if near else lists
        raise ValueError(f"there is no method {name!r}; {known}")
    return own


def _complete_name(name: str) -> str | None:
    """The name in tables, of that one or a slug; None if there is none.

    Several states that are left out ("stateflow-no_plan-no_error") are in no list of names.
    """
    names = {method_slug(own): own for own in list_methods()}
    slug, left_out = method_slug(name), method_slug(LEFT_OUT)
    whole, *states = slug.split(left_out)
    if len(states) < 2:
        return names.get(slug)
    alone = {f"{whole}{left_out}{state}" for state in states}
    return LEFT_OUT.join([names[whole], *states]) if names.keys() >= alone else None


@cache
def find_base(name: str) -> str:
    """The method that a variant is of: "plan-and-execute" of "plan-and-execute-by-type".

    name: as in tables. Of what is a variant of nothing, itself.
    """
    slug = method_slug(name)
    kin = [own for own in list_methods() if re.match(rf"{re.escape(method_slug(own))}[-+]", slug)]
    return min(kin, key=len, default=name)


def has_trials(name: str) -> bool:
    """Whether a method gives the task to its actor again and again."""
    return "reflexion" in name or name == "try again" or name.startswith("try-again")


def _with_budget(method: SessionMethod, unit: str, number: int) -> SessionMethod:
    """The method with another number of trials or iterations; raises ValueError if it has none."""
    program = method.fixed.get("program")
    if number < 1 or not isinstance(program, partial) or unit not in program.keywords:
        other = {"trials": "Reflexion", "iterations": "ReAct"}[unit]
        raise ValueError(f"{method.name!r} cannot have {number} {unit}; {other} can, 1 or more")
    return replace(method, fixed={**method.fixed, "program": partial(program, **{unit: number})})


def load_method(
    name: str,
    benchmark: str | Benchmark,
    *,
    taught: bool = False,
    trials: int | None = None,
    iterations: int | None = None,
) -> SessionMethod:
    """A method with its prompts for a benchmark; with none if the model was taught the method.

    name: as in tables, or its slug ("thread-no-variables").
    benchmark: its record; or its name, or that of the few-shot prompts of one of its task types
        ("alfworld-heat", see `Env.examples`).
    trials: of Reflexion and Try Again. iterations: of ReAct and ADaPT's kind, whose executors have
        them, and of LATS, whose search has. None takes those of their papers.
    Raises ValueError for an unknown name, or where a benchmark lacks what the method needs;
    FileNotFoundError for a prompt that nobody has written.
    """
    if isinstance(benchmark, Benchmark):
        examples = benchmark.name
    else:
        examples, benchmark = benchmark, find_benchmark(benchmark)
    name = _complete_name(name) or name
    if taught:
        if name not in TAUGHT:
            raise ValueError(f"no adapter teaches {name!r}; those taught: {', '.join(TAUGHT)}")
        return TAUGHT[name](benchmark)
    builders = BUILDERS | {variant: VARIANTS[variant] for variant in benchmark.methods}
    whole, *left_out = name.split(LEFT_OUT)
    if whole not in builders or (left_out and whole not in WITH_STATES):
        known = ", ".join(builders)
        raise ValueError(f"there is no method {name!r} on {examples}; known: {known}")
    build = builders[whole]
    method = (
        build(benchmark, examples, without=left_out) if left_out else build(benchmark, examples)
    )
    for unit, number in (("trials", trials), ("iterations", iterations)):
        method = method if number is None else _with_budget(method, unit, number)
    return method

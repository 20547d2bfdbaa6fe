"""Each method with its prompts for a benchmark: what stands behind the names of the registry.

A method's prompts are prompts/METHOD/BENCHMARK.txt for its main thread and BENCHMARK-ROLE.txt for
the others, or what the benchmark's own record has by these names. The executor is the same for all
methods of the ADaPT paper (section 4.2): its prompt is ReAct's, or where the benchmark has
executors the first of them; a method with another one says so in its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from thread_kit.dialect import QA_ASYNC, Dialect
from thread_kit.envs.benchmark import Benchmark
from thread_kit.envs.intercode.interaction import PLAN_AND_SOLVE, TRY_AGAIN, Script
from thread_kit.experiments.budgets import own_limit
from thread_kit.experiments.method import ScriptedMethod, SessionMethod
from thread_kit.methods.adapt import adapt
from thread_kit.methods.common import add_verdicts
from thread_kit.methods.decomp import decomp
from thread_kit.methods.lats import lats
from thread_kit.methods.nlep import nlep
from thread_kit.methods.plan_and_execute import plan_and_execute
from thread_kit.methods.plan_and_solve import plan_and_solve
from thread_kit.methods.react import react
from thread_kit.methods.reflexion import reflexion
from thread_kit.methods.tdag import tdag
from thread_kit.methods.try_again import try_again
from thread_kit.methods.try_again_reward import try_again_with_reward
from thread_kit.program import thread_program
from thread_kit.prompts import EMPTY, Prompt
from thread_kit.requests import Program
from thread_kit.session.scheduler import UNTIL_OVER

GOLD_ANSWER = "reflexion, gold answer"

Builder = Callable[..., SessionMethod]
"""Of a benchmark, and of the name of the few-shot prompts that fit a task (`Env.examples`)."""


def waiting_dialect(benchmark: Benchmark) -> Dialect:
    """That of other methods than THREAD, whose threads all wait for their children."""
    return replace(benchmark.dialect, spawn=None)


def load_waiting_prompt(benchmark: Benchmark, path: str) -> Prompt:
    """A prompt of another method than THREAD, whose calls wait for what they ask."""
    return benchmark.load_prompt(path, waiting_dialect(benchmark))


SHARED, ATOMIC, BY_TYPE = "executor", "atomic", "by-type"
"""The executors of the ADaPT paper on ALFWorld (section 6.2): atomic skills and two whole games
("hybrid"), which all methods share; atomic skills alone; whole games of the task's type."""


def _load_executor(benchmark: Benchmark, examples: str, role: str = SHARED) -> Prompt:
    """The prompt of an executor; ReAct's examples say at their end that the task is completed."""
    if role in benchmark.executors:
        return load_waiting_prompt(benchmark, f"adapt/{benchmark.name}-{role}")
    judging = add_verdicts(load_waiting_prompt(benchmark, f"react/{examples}"))
    if SHARED not in benchmark.executors:
        return judging
    return replace(judging, closing=_load_executor(benchmark, examples).closing)


def _named(method: str, role: str) -> str:
    """A method's name, with its executor where that is not the shared one."""
    return method if role == SHARED else f"{method}-{role}"


def _executor(method: str, benchmark: Benchmark, **more: Any) -> Program:
    """With the iterations that the method's paper gives one."""
    iterations = own_limit(method, benchmark, "iterations")
    return partial(react, iterations=iterations, start=benchmark.start, **more)


def _own_rules(benchmark: Benchmark) -> dict[str, Any]:
    """Of executors; named where they are other than the default, so that traces are told apart.

    Where the environment alone ends ReAct, an end mark without a verdict ends no executor either.
    """
    in_on = {"in_on": True} if benchmark.in_on else {}
    return in_on if benchmark.react_judges else {**in_on, "ends": False}


def _placeholders(benchmark: Benchmark) -> dict[str, Any]:
    return {"placeholders": benchmark.placeholders} if benchmark.placeholders else {}


def _react(method: str, benchmark: Benchmark) -> Program:
    """ReAct itself, which on the benchmarks of its own paper the environment alone ends.

    On TextCraft it is the executor of the ADaPT paper, and on InterCode its end submits the task,
    or the rounds do, behind which nobody reads what it finds of itself.
    """
    asked = {"is_asked": False} if benchmark.react_judges and benchmark.max_actions else {}
    return _executor(method, benchmark, judges=benchmark.react_judges, **asked)


def make_method(
    name: str, program: Program, main: Prompt, *others: Prompt, scope: str = ""
) -> SessionMethod:
    """A method of a program. main: the main thread's prompt; others: all that it asks with.

    scope: "" is "exported" where threads write code, else "none".
    """
    scope = scope or ("exported" if main.dialect.code else "none")
    return SessionMethod(name, main, {"program": program, "prompts": others, "scope": scope})


def make_scripted(name: str, program: Program, prompt: Prompt, script: Script) -> ScriptedMethod:
    """A method of a program with a script of its own in InterCode."""
    method = make_method(name, program, prompt)
    return ScriptedMethod(name, prompt, method.fixed, script=script)


# THREAD


def make_thread(benchmark: Benchmark, examples: str) -> SessionMethod:
    """THREAD with few-shot examples (THREAD paper, section 3)."""
    return SessionMethod("thread", benchmark.load_prompt(examples))


def make_taught_thread(benchmark: Benchmark) -> SessionMethod:
    """Of a model that needs no examples, with the marks of the benchmark."""
    return SessionMethod("thread", benchmark.no_examples)


def make_thread_general(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Task-general prompting (THREAD paper, appendix D): the same examples for tasks of all types.

    One set of examples for the main thread, another for all others.
    """
    fixed = {"main_prompt": benchmark.load_prompt(f"{benchmark.name}-main")}
    prompt = benchmark.load_prompt(f"{benchmark.name}-others")
    return SessionMethod("thread, task-general", prompt, fixed)


def make_thread_async(benchmark: Benchmark, examples: str) -> SessionMethod:
    """THREAD whose parents go on without waiting (THREAD paper, section 2.2)."""
    dialect = replace(benchmark.dialect, spawn=QA_ASYNC.spawn)
    return SessionMethod("thread, async", benchmark.load_prompt(f"{examples}-async", dialect))


def make_thread_lines(benchmark: Benchmark, examples: str) -> SessionMethod:
    """One request a line: small models read "of A is ... and of B is =>" as a request about A."""
    return SessionMethod("thread, lines", benchmark.load_prompt(f"{examples}-lines"))


# One thread


def make_nlep(benchmark: Benchmark, examples: str) -> SessionMethod:
    """One program a question (THREAD paper, section 4.4, Tables 5 and 6)."""
    program = partial(nlep, calls=own_limit("nlep", benchmark, "iterations"))
    return make_method("nlep", program, load_waiting_prompt(benchmark, f"nlep/{examples}"))


def make_nlep_react(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Programs with thoughts in them (THREAD paper, section 4.4, Tables 5 and 6)."""
    prompt = load_waiting_prompt(benchmark, f"nlep-react/{examples}")
    return make_method("nlep+react", _executor("nlep+react", benchmark), prompt)


def make_react(benchmark: Benchmark, examples: str) -> SessionMethod:
    """ReAct itself, with its own examples of a task's type (Yao et al. 2023)."""
    prompt = load_waiting_prompt(benchmark, f"react/{examples}")
    return make_method("react", _react("react", benchmark), prompt)


def make_react_alone(benchmark: Benchmark, examples: str, executor: str = SHARED) -> SessionMethod:
    """An executor of the ADaPT paper alone, with as many iterations as d_max of them."""
    name = _named("react", "hybrid" if executor == SHARED else executor)
    prompt = _load_executor(benchmark, examples, executor)
    return make_method(name, _executor(name, benchmark, **_own_rules(benchmark)), prompt)


def make_react_refined(benchmark: Benchmark, examples: str) -> SessionMethod:
    """ReAct with examples that first look what there is (StateFlow paper, Tables 18 and 19)."""
    prompt = load_waiting_prompt(benchmark, f"react-refined/{examples}")
    return make_method("react, refined", _react("react", benchmark), prompt)


def make_naive(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Buys the first product that its one search finds (ADaPT paper, appendix D, Table 7)."""
    prompt = load_waiting_prompt(benchmark, f"naive/{examples}")
    return make_method("naive", _executor("naive", benchmark, judges=False), prompt)


def make_taught_react(benchmark: Benchmark) -> SessionMethod:
    """Of a model that needs no examples: nothing is done before it begins."""
    iterations = own_limit("react", benchmark, "iterations")
    return make_method("react", partial(react, iterations=iterations), EMPTY)


# Several trials


def make_try_again(benchmark: Benchmark, examples: str, executor: str = SHARED) -> SessionMethod:
    """The same executor again (ADaPT paper, section 4.2)."""
    prompt = _load_executor(benchmark, examples, executor)
    program = partial(
        try_again,
        trials=own_limit("try again", benchmark, "trials"),
        iterations=own_limit("try again", benchmark, "iterations"),
        start=benchmark.start,
        **_own_rules(benchmark),
    )
    name = "try again" if executor == SHARED else _named("try-again", executor)
    return make_method(name, program, prompt)


def make_try_again_rewarded(benchmark: Benchmark, examples: str) -> SessionMethod:
    """InterCode's: one trial, with the reward behind each command (StateFlow paper, A.3)."""
    prompt = load_waiting_prompt(benchmark, f"try-again-reward/{examples}")
    name = "try again, visible reward"
    program = partial(try_again_with_reward, turns=own_limit(name, benchmark, "turns"))
    return make_scripted(name, program, prompt, TRY_AGAIN)


def add_reflexion(
    name: str,
    actor: Program,
    prompts: tuple[Prompt, ...],
    benchmark: Benchmark,
    scope: str = "",
) -> SessionMethod:
    """Reflexion on top of an actor. prompts: the actor's, its own first."""
    reflect = load_waiting_prompt(benchmark, f"reflexion/{benchmark.name}")
    trials = own_limit(name, benchmark, "trials")
    program = partial(reflexion, actor=actor, reflect=reflect, trials=trials)
    return make_method(name, program, *prompts, reflect, scope=scope)


def make_reflexion(benchmark: Benchmark, examples: str, executor: str = SHARED) -> SessionMethod:
    """Trials with lessons between them (Shinn et al. 2023); raises ValueError for questions."""
    if benchmark.dialect.code:
        raise ValueError(
            f"on {examples} a trial is judged by the gold answer; the method that says so is "
            f"{GOLD_ANSWER!r}"
        )
    name, prompt = _named("reflexion", executor), _load_executor(benchmark, examples, executor)
    actor = _executor("reflexion", benchmark, **_own_rules(benchmark))
    return add_reflexion(name, actor, (prompt,), benchmark)


def make_reflexion_by_gold_answer(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Of questions: another trial where the answer is not the benchmark's (`Env.judge`)."""
    prompt = load_waiting_prompt(benchmark, f"nlep-react/{examples}")
    return add_reflexion(GOLD_ANSWER, _executor("reflexion", benchmark), (prompt,), benchmark)


def make_react_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    """The StateFlow paper's (section 4.2, Figure 6), on ReAct's own two examples of a type."""
    prompt = load_waiting_prompt(benchmark, f"react/{examples}")
    name = "react+reflexion"
    return add_reflexion(name, _react(name, benchmark), (prompt,), benchmark)


def make_thread_reflexion(benchmark: Benchmark, examples: str) -> SessionMethod:
    """THREAD as the actor of Reflexion; raises ValueError for questions."""
    if benchmark.dialect.code:
        raise ValueError(f"thread+reflexion is for tasks that are solved by acting, not {examples}")
    prompt = load_waiting_prompt(benchmark, examples)
    return add_reflexion("thread+reflexion", thread_program, (prompt,), benchmark, "exported")


def make_lats(benchmark: Benchmark, examples: str) -> SessionMethod:
    """A tree search over ReAct (Zhou et al. 2024); THREAD paper, Table 4."""
    value = load_waiting_prompt(benchmark, f"lats/{benchmark.name}-value")
    reflect = load_waiting_prompt(benchmark, f"reflexion/{benchmark.name}")
    program = partial(
        lats,
        value=value,
        reflect=reflect,
        iterations=own_limit("lats", benchmark, "iterations"),
        max_depth=own_limit("lats", benchmark, "steps"),
        start=benchmark.start,
    )
    prompt = load_waiting_prompt(benchmark, f"react/{examples}")
    return replace(make_method("lats", program, prompt, value, reflect), keep_cells=UNTIL_OVER)


# Plans


def make_plan_and_execute(
    benchmark: Benchmark, examples: str, executor: str = SHARED
) -> SessionMethod:
    """A plan that never changes, and the executor (ADaPT paper, section 4.2)."""
    planner = load_waiting_prompt(benchmark, f"plan_and_execute/{benchmark.name}")
    prompt = _load_executor(benchmark, examples, executor)
    program = partial(
        plan_and_execute,
        executor=prompt,
        iterations=own_limit("plan-and-execute", benchmark, "iterations"),
        start=benchmark.start,
        **_own_rules(benchmark),
        **_placeholders(benchmark),
        carry=benchmark.carry,
    )
    return make_method(_named("plan-and-execute", executor), program, planner, prompt)


def make_plan_and_solve(benchmark: Benchmark, examples: str) -> SessionMethod:
    """InterCode's: a plan, then its steps (StateFlow paper, section 4.1)."""
    prompt = load_waiting_prompt(benchmark, f"plan_and_solve/{examples}")
    program = partial(plan_and_solve, steps=own_limit("plan-and-solve", benchmark, "turns"))
    return make_scripted("plan-and-solve", program, prompt, PLAN_AND_SOLVE)


def make_adapt(
    benchmark: Benchmark, examples: str, executor: str = SHARED, max_depth: int | None = None
) -> SessionMethod:
    """max_depth: d_max; None is the paper's for the benchmark."""
    planner = load_waiting_prompt(benchmark, f"adapt/{benchmark.name}-planner")
    program = partial(
        adapt,
        planner=planner,
        max_depth=max_depth or own_limit("adapt", benchmark, "d_max"),
        iterations=own_limit("adapt", benchmark, "iterations"),
        start=benchmark.start,
        **_own_rules(benchmark),
        **_placeholders(benchmark),
        look=benchmark.look,
        carry=benchmark.carry,
    )
    name = f"adapt-d{max_depth}" if max_depth else _named("adapt", executor)
    prompt = _load_executor(benchmark, examples, executor)
    return make_method(name, program, prompt, planner)


def make_decomp(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Decomposed Prompting (Khot et al. 2023); THREAD paper, Tables 1 to 6."""
    path = f"decomp/{benchmark.name}"
    main = load_waiting_prompt(benchmark, path)
    handlers = {
        name: load_waiting_prompt(benchmark, f"{path}-{name}") for name in benchmark.handlers
    }
    iterations = own_limit("decomp", benchmark, "iterations")
    program = partial(decomp, handlers=handlers, iterations=iterations)
    return make_method("decomp", program, main, *handlers.values())


def make_tdag(benchmark: Benchmark, examples: str) -> SessionMethod:
    """Tasks decomposed anew, an agent for each (Wang et al. 2024); THREAD paper, Tables 3, 4."""
    generator = load_waiting_prompt(benchmark, f"tdag/{benchmark.name}-agent")
    executor = _load_executor(benchmark, examples)
    program = partial(
        tdag,
        generator=generator,
        executor=executor,
        subtasks=own_limit("tdag", benchmark, "subtasks"),
        iterations=own_limit("tdag", benchmark, "iterations"),
        start=benchmark.start,
        **_own_rules(benchmark),
    )
    main = load_waiting_prompt(benchmark, f"tdag/{benchmark.name}")
    return make_method("tdag", program, main, generator, executor)


def load_planners(benchmark: Benchmark) -> list[Prompt]:
    """The prompts of the planners of ADaPT and of Plan-and-Execute (`engines/by_prompt.py`).

    A benchmark need not have both: InterCode's has Plan & Solve in the place of the latter. Raises
    FileNotFoundError where it has none.
    """
    prompts, missing = list[Prompt](), list[FileNotFoundError]()
    for name in (f"adapt/{benchmark.name}-planner", f"plan_and_execute/{benchmark.name}"):
        try:
            prompts.append(load_waiting_prompt(benchmark, name))
        except FileNotFoundError as error:
            missing.append(error)
    if not prompts:
        raise missing[0]
    return prompts


def has_planner(method: SessionMethod, benchmark: Benchmark) -> bool:
    """Whether a method has a planner, which can be another model than the rest of it."""
    try:
        planners = {prompt.sha256 for prompt in load_planners(benchmark)}
    except FileNotFoundError:
        return False
    prompts = (method.prompt, *method.fixed.get("prompts", ()))
    return not planners.isdisjoint(prompt.sha256 for prompt in prompts)

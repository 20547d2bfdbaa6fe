"""What the trace of an episode tells of its method, for the row of results.

Programs are known by the name in the header of the trace, which is that of their function.
"""

from __future__ import annotations

from typing import Any

from thread_kit.methods.adapt import adapt
from thread_kit.methods.common import completed, until_verdict
from thread_kit.methods.plan_and_execute import plan_and_execute
from thread_kit.methods.react import react
from thread_kit.methods.stateflow import TAG, stateflow
from thread_kit.methods.try_again import try_again
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import Restarted


def is_out_of_actions(episode: Episode) -> bool:
    """Whether the last action was answered by an environment that had reached its limit."""
    return (last := episode.last_action) is not None and last[1].truncated


def count_trials(episode: Episode) -> int:
    """How often the task was begun; to bring it back to where it had been is no other trial."""
    restarts = [event for event in episode.events if isinstance(event, Restarted)]
    return 1 + sum(not event.restored for event in restarts)


def list_loop_limits(program: Any) -> dict[str, int]:
    """The limits of a method's own loop, by their names there: trials, iterations, turns.

    program: as `describe_program` writes it. Those of a program within begin with the name of that
    ("actor iterations").
    """
    limits = {}
    for name, value in program.items() if isinstance(program, dict) else ():
        if type(value) is int:
            limits[name] = value
        limits |= {f"{name} {own}": number for own, number in list_loop_limits(value).items()}
    return limits


def find_k_max(episode: Episode) -> int | None:
    """The deepest level of ADaPT that an episode has used (its section 6.3, Table 3); 1 of ReAct.

    None for other methods.
    """
    program = episode.header.get("program")
    facts = program if isinstance(program, dict) else {"name": program}
    if facts.get("name") not in (adapt.__name__, react.__name__):
        return None
    prompts = episode.header.get("prompts", {})
    planners = {sha for sha, prompt in prompts.items() if prompt["name"] == facts.get("planner")}
    own = (thread for thread in episode.threads.values() if thread.prompt not in planners)
    return 1 + max((thread.depth for thread in own), default=0)


JUDGING = {program.__name__ for program in (react, adapt, plan_and_execute, try_again)}
"""The programs whose executors judge themselves; of Reflexion it is its actor's."""


def claims_success(episode: Episode) -> bool | None:
    """What a method with executors finds of its own success (ADaPT paper, 3.1 and F).

    The last verdict in the main thread: AND and OR stop at the step that decides them. Where the
    environment has announced that it is won, nobody asks, and the thread ends with what it said.
    The reward is not looked at otherwise. None for methods without executors, and for executors
    that judge nothing, or whom nobody asks (`judges` and `is_asked` of `react`).
    """
    program = episode.header.get("program")
    while isinstance(program, dict):
        if program.get("judges") is False or program.get("is_asked") is False:
            return None
        program = program.get("actor") or program.get("name")
    if program not in JUDGING or episode.dialect.code:
        return None
    spans = episode.threads[0].sequence.spans if episode.threads else ()
    text = spans[-1].text.removesuffix(episode.dialect.end) if spans else ""
    if spans and spans[-1].provenance is Provenance.OBSERVED:
        return episode.threads[0].status.is_end and episode.solved
    return completed(until_verdict(text) or text)


def list_states(episode: Episode) -> list[str] | None:
    """The states that a machine went through (StateFlow paper, appendix A.2), in order.

    None for other methods. Of several trials they are the last one's.
    """
    programs = [episode.header.get("program")]
    programs += [program.get("actor") for program in programs if isinstance(program, dict)]
    if stateflow.__name__ not in [p.get("name") for p in programs if isinstance(p, dict)]:
        return None
    # The machine's threads have the main thread's prompt; what an agent goes on with is its own.
    main = episode.threads[0].prompt if episode.threads else ""
    for thread in reversed([t for t in episode.threads.values() if t.prompt == main]):
        told = [s.text for s in thread.sequence if s.provenance is Provenance.INSTRUCTION]
        if states := [tag[1] for text in told if (tag := TAG.match(text))]:
            return states
    return []

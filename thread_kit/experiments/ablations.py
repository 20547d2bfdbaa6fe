"""THREAD with a part taken away, by name: what each part is good for.

The first three are the THREAD paper's (E.2), the others this kit's own. Where examples would show
what cannot happen without the part, the method has a prompt of its own: the same task, played
without it.

On questions about data threads compute, with or without variables between them: there "no
variables" gives each thread an interpreter of its own, and all that passes between threads is text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from thread_kit.envs.benchmark import Benchmark
from thread_kit.exchange import as_observed, phi_full_sequence
from thread_kit.experiments.method import SessionMethod
from thread_kit.prompts import Prompt, load_prompt
from thread_kit.trace.episode import Episode


@dataclass(frozen=True, slots=True)
class Ablation:
    """What is changed of a session, in words and in parameters.

    fixed: parameters of `Session`.
    prompt: what is put behind the name of THREAD's prompt; "" is the same prompt.
    """

    about: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""


SEPARATE = "thread, separate prompt"

ABLATIONS: dict[str, Ablation] = {
    "thread, no variables": Ablation(
        "nothing is executed, so nothing is looked up, computed or handed over by name",
        {"scope": "none"},
        "-no-variables",
    ),
    "thread, whole sequence": Ablation(
        "phi gives a child all that its parent has written, and not only the last line",
        {"phi": phi_full_sequence},
        "-whole-sequence",
    ),
    SEPARATE: Ablation("the main thread reads examples of main threads, the others all others"),
    "thread, shared scope": Ablation(
        "all threads have the same variables: a child can overwrite what its parent goes on to use",
        {"scope": "shared"},
    ),
    "thread, as observed": Ablation(
        "observations keep their words, and no value is shown as a {name}",
        {"abstract": as_observed},
        "-as-observed",
    ),
    "thread, depth 2": Ablation("no thread may be more than two levels below", {"depth": 2}),
}


def load_ablation(name: str, benchmark: Benchmark, examples: str) -> SessionMethod:
    """An ablation with few-shot prompts.

    examples: the name of those that fit a task (`Env.examples`).
    Raises ValueError for a name that there is not, and where nobody has written its prompt.
    """
    ablation = _find(name)
    keeps_words = benchmark.dialect.code or benchmark.dialect.as_observed
    if keeps_words and "abstract" in ablation.fixed:
        raise ValueError(f"observations on {examples} keep their words: {name!r} is 'thread'")
    try:
        prompt = benchmark.load_prompt(f"{examples}{ablation.prompt}")
    except FileNotFoundError as error:
        raise ValueError(f"{name!r} is not played on {examples}: {error}") from error
    fixed = _fix(ablation, benchmark)
    if name == SEPARATE:
        fixed["main_prompt"], prompt = split_prompt(prompt)
    return SessionMethod(name, prompt, fixed)


def make_taught_ablation(name: str, benchmark: Benchmark) -> SessionMethod:
    """An ablation of a model that was taught THREAD and reads no examples.

    It was taught the whole, so what it loses is not what a model would lose that was shown
    examples. Raises ValueError for a name that there is not, and where the prompts are all that is
    changed.
    """
    ablation = _find(name)
    if name == SEPARATE:
        raise ValueError(f"{name!r} changes the few-shot prompts, and a taught model reads none")
    return SessionMethod(name, benchmark.no_examples, _fix(ablation, benchmark))


def split_prompt(prompt: Prompt) -> tuple[Prompt, Prompt]:
    """The examples of main threads, and those of the threads that they spawn."""
    listen = prompt.dialect.listen
    main = tuple(e for e in prompt.examples if not e.context.rstrip().endswith(listen))
    others = tuple(e for e in prompt.examples if e not in main)
    return (
        replace(prompt, name=f"{prompt.name} (main)", examples=main),
        replace(prompt, name=f"{prompt.name} (others)", examples=others),
    )


def adapt_to_prompts(episode: Episode, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of an episode that is played again from its start, with what goes with them.

    Where its threads read the examples of one few-shot prompt, and these have a form without what
    is taken away, they read that one. Where threads compute, "none" for a scope is "own".
    """
    changes = dict(changes)
    prompts = [p for p in episode.header.get("prompts", {}).values() if p["text"]]
    if len(prompts) == 1:
        for ablation in ABLATIONS.values():
            fits = ablation.prompt and ablation.fixed.items() <= changes.items()
            if fits and (prompt := _find_prompt(prompts[0]["name"] + ablation.prompt, episode)):
                changes |= {"prompt": prompt, "main_prompt": prompt}
                break
    if episode.dialect.code and changes.get("scope") == "none":
        changes["scope"] = "own"
    return changes


def _find_prompt(name: str, episode: Episode) -> Prompt | None:
    try:
        return load_prompt(name, episode.dialect)
    except FileNotFoundError:
        return None


def _fix(ablation: Ablation, benchmark: Benchmark) -> dict[str, Any]:
    """What is fixed of a session: where threads compute, each has its own variables, not none."""
    fixed = dict(ablation.fixed)
    if benchmark.dialect.code and fixed.get("scope") == "none":
        fixed["scope"] = "own"
    return fixed


def _find(name: str) -> Ablation:
    if name not in ABLATIONS:
        raise ValueError(f"there is no ablation {name!r}; known: {', '.join(ABLATIONS)}")
    return ABLATIONS[name]

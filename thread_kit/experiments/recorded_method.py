"""By which method a saved episode was played, found by what its header says of program and prompts.

A trace has the texts of its prompts, but no code: to go on from it, another method than THREAD has
to be made again as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.method_registry import TAUGHT, list_methods, load_method
from thread_kit.trace.events import plain
from thread_kit.trace.header import describe_program


def find_recorded_method(header: dict[str, Any], examples: str) -> SessionMethod:
    """The method that makes the same program with the same prompts.

    header: of a trace whose program is not THREAD's. examples: the name of the prompts that fit its
    task (`Env.examples`).
    Raises ValueError where there is none (any more).
    """
    program, prompts = header["program"], list(header.get("prompts", {}))
    for method in _list_candidates(examples):
        own = plain(describe_program(method.fixed.get("program")))
        shas = dict.fromkeys(p.sha256 for p in (method.prompt, *method.fixed.get("prompts", ())))
        if own == program and list(shas) == prompts:
            return method
    name = program.get("name") if isinstance(program, dict) else program
    raise ValueError(
        f"the episode was played by {name}, with prompts or settings that no method has now, so "
        "nothing can go on from it; choose the method, and press Run"
    )


def _list_candidates(examples: str) -> Iterator[SessionMethod]:
    for name in list_methods():
        for taught in (False, True):
            if taught and name not in TAUGHT:
                continue
            try:
                yield load_method(name, examples, taught=taught)
            except (ValueError, FileNotFoundError):  # not for this benchmark
                continue

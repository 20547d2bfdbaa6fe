"""Algorithms 1 and 2 of the THREAD paper, as a generator on one page.

    function THREAD(c, Y)
      while True do
        Y = Y + G(q + c + Y)
        if Y performs an action then       Y = Y + E(xi(Y))
        else if Y spawns a child then      Y = Y + psi(THREAD(phi(Y), []))
        else if Y ends the thread then     return Y

With the asynchronous threads of section 2.2 a spawn can also be Y = Y + {t1}: the name stands for
what psi of the child will give, and whoever instantiates it later waits for the child.

`thread` holds no model, no environment, no child and no clock: it yields what it wants (a request)
and is sent what came of it (a reply). Whoever drives it decides how: one after the other, many at
once, from a recording, or by a person. The same replies always lead to the same requests, which is
what makes replay, rewind and fork possible.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any

from thread_kit.code_lines import assigned, blocks, uses
from thread_kit.dialect import Dialect, Stop
from thread_kit.exchange import (
    Abstract,
    Known,
    Phi,
    Psi,
    Xi,
    coming_up,
    find_action,
    instantiate,
    references,
)
from thread_kit.requests import (
    Act,
    Await,
    Define,
    Execute,
    Executed,
    Finished,
    Generate,
    Generated,
    Observation,
    Request,
    Spawn,
    SpawnAsync,
)
from thread_kit.sequence import Provenance, Sequence, Span


def thread(
    *,
    phi: Phi,
    psi: Psi,
    xi: Xi,
    abstract: Abstract,
    dialect: Dialect,
    tokenize: Callable[[str], tuple[int, ...]],
    futures: Iterable[str] = (),
) -> Generator[Request, Any, Finished]:
    """One thread, from Y = [] to its end (THREAD paper, Algorithm 2; the scheduler keeps c).

    A call that stops for any other reason than a listen or a spawn mark ends the thread: a cut in
    the middle of a line is a truncation and never read as a spawn.

    A child that is not waited for (section 2.2) is a future: `{t1}` stands for it in Y, and what
    instantiates that name waits for it: phi, xi, a line of code, the thread's end. `futures` are
    the names of those that the thread inherits, as its parent has not instantiated them yet.
    """
    Y = Sequence()
    executed = 0
    printed: str | None = None
    error: str | None = None
    of_action: str | None = None
    lost: Mapping[str, str] = {}
    variables: Mapping[str, Any] = {}
    own: set[str] = set()
    inherited = tuple(futures)
    known, pending = list(inherited), list(inherited)

    def span(provenance: Provenance, text: str) -> Span:
        return Span(provenance, text, tokenize(text))

    def settle(names: Iterable[str], *, over: bool = False) -> Generator[Request, Any, None]:
        """Wait for futures: what psi gives, and the variables that it names, become variables.

        The names in the text are instantiated: the next child may bring up others of that name.
        """
        nonlocal variables, lost
        for name in names:
            child: Finished = yield Await(name)
            text = psi(child)
            _, named = coming_up(text, child, known)
            if over:  # nobody has asked for it by name, so it overwrites nothing
                named = {key: value for key, value in named.items() if key not in variables}
            pending.remove(name)
            reply: Executed = yield Define({**named, name: instantiate(text, child.variables)})
            variables, lost = reply.variables, reply.lost

    def instantiated(make: Callable[..., str]) -> Generator[Request, Any, str]:
        """What phi or xi makes of Y, once the futures that it names are there."""
        while names := [
            name for name in references(make(Y, variables, dialect)) if name in pending
        ]:
            yield from settle(names[:1])
        return make(Y, variables, dialect)

    while True:
        # Y = Y + G(q + c + Y)
        generated: Generated = yield Generate(Y)
        Y += generated.span

        # The lines that this call completed are run, each once: they define the variables.
        lines = own_code(Y, generated.stop, dialect)[executed:]
        executed += len(lines)
        for run in _between_waits(lines, pending):
            yield from settle(uses(run[0], pending) if run else ())
            reply: Executed = yield Execute(run)
            variables, lost = reply.variables, reply.lost
            printed = printed if reply.printed is None else reply.printed
            error = error or reply.error
            own |= assigned(run)

        if status := generated.ended:
            # It waits for its own children, so that nothing runs below a thread that is over.
            yield from settle([name for name in pending if name not in inherited], over=True)
            error = error or of_action
            return Finished(Y, status, variables, printed, tuple(known), error=error, lost=lost)

        if find_action(Y, dialect) is not None:
            # Y = Y + E(xi(Y))
            observation: str = yield Act((yield from instantiated(xi)))
            if isinstance(observation, Observation):  # who drives a thread by hand sends a text
                of_action = observation.error  # which the thread has seen, and may mend
            text = abstract(observation.strip(), Known(variables, own))
            Y += span(Provenance.OBSERVED, dialect.observed(text))
        elif generated.stop is Stop.SPAWN:
            # Y = Y + {t1}, which is psi(THREAD(phi(Y), [])) one day
            context = yield from instantiated(phi)
            name = _free_name({*variables, *known})
            yield SpawnAsync(context, name)
            known.append(name)
            pending.append(name)
            Y += span(Provenance.REFERENCE, dialect.closed(f"{{{name}}}"))
        else:
            # Y = Y + psi(THREAD(phi(Y), []))
            child: Finished = yield Spawn((yield from instantiated(phi)))
            text, named = coming_up(psi(child), child, known)
            yield Define(named)
            Y += span(Provenance.RETURNED, dialect.closed(text))


def _between_waits(lines: list[str], futures: Collection[str]) -> list[tuple[str, ...]]:
    """The lines, cut before each that has to wait for a future."""
    runs: list[tuple[str, ...]] = [()]
    for line in lines:
        if runs[-1] and uses(line, futures):
            runs.append(())
        runs[-1] += (line,)
    return runs


def _free_name(taken: Collection[str]) -> str:
    """t1, t2 ...: the first that means nothing yet, neither here nor above."""
    return next(name for name in map("t{}".format, itertools.count(1)) if name not in taken)


def own_code(Y: Sequence, stop: Stop, dialect: Dialect) -> list[str]:
    """The thread's own complete lines, without the end mark and without actions.

    In a dialect of code the lines of one statement are one. Where an action may have several lines,
    none below its mark is code.
    """
    over = stop in (Stop.END, Stop.END_OF_STREAM)
    in_runs = dialect.code or dialect.several_lines
    runs = Y.own_runs(complete=over) if in_runs else [Y.own_lines(complete=over)]
    code: list[str] = []
    for run in runs:
        lines = [line.removesuffix(dialect.end).removesuffix("\r") for line in run]
        if dialect.several_lines:
            lines = list(itertools.takewhile(lambda line: not dialect.is_action(line), lines))
        # A statement of several lines is whole, whatever one of them looks like.
        whole = blocks(lines) if dialect.code else lines
        code += [line for line in whole if line.strip() and not _is_action_line(line, dialect)]
    return code


def _is_action_line(line: str, dialect: Dialect) -> bool:
    return dialect.is_action(line) and "\n" not in line

"""Checks of what a session is given, before it begins."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from thread_kit.dialect import Dialect
from thread_kit.engines.engine import Engine
from thread_kit.envs.env import Env, is_whole
from thread_kit.prompts import Prompt
from thread_kit.sandbox.sandbox import Sandbox
from thread_kit.session.replay import Replay
from thread_kit.trace.header import LIMITS


def check_env(env: Any) -> None:
    """An environment is one, with all that it needs; raises ValueError with the remedy."""
    if isinstance(env, type) and issubclass(env, Env):
        raise ValueError(f"env={env!r} is a class; call it, with the task that is to be played")
    if not isinstance(env, Env):
        raise ValueError(
            f"env={env!r} is no environment; make one, tk.TextCraft('dev', 0), or have your own "
            "inherit from tk.Env"
        )
    lacks = [name for name in ("name", "task") if not hasattr(env, name)]
    if lacks:
        raise ValueError(
            f"{type(env).__name__} has no {' and no '.join(lacks)}; an environment has a name (of "
            "its benchmark) and a task (what tells it from others, a dictionary)"
        )
    if not isinstance(env.name, str):
        raise ValueError(f"{type(env).__name__}.name is {env.name!r:.80}; give a text")
    if not isinstance(env.dialect, Dialect):
        raise ValueError(
            f"{type(env).__name__}.dialect is {env.dialect!r:.80}; the marks of threads stand "
            "there (tk.QA, or nothing); give what it holds another name"
        )


def check_parts(
    engine: Any,
    env: Any,
    context: Any,
    prompts: Iterable[Any],
    dialect: Dialect | None,
    sandbox: Any,
) -> None:
    """The parts of a session are what they should be; raises ValueError with the remedy."""
    if not isinstance(engine, Engine):
        raise ValueError(f"engine={engine!r} is no engine; load one: tk.load_model(...)")
    if env is not None:
        check_env(env)
    if (env is None) == (context is None):
        raise ValueError("give either an environment or a context for the main thread")
    known = [prompt for prompt in prompts if prompt is not None]
    for prompt in known:
        if not isinstance(prompt, Prompt):
            raise ValueError(
                f"prompt={prompt!r:.80} is no prompt; load one, tk.load_prompt(...), or make one "
                "of a text: tk.parse_prompt(text)"
            )
    if dialect is not None and not isinstance(dialect, Dialect):
        raise ValueError(f"dialect={dialect!r} is no dialect; give tk.ASYNC, tk.QA or tk.QA_ASYNC")
    if sandbox is not None and not isinstance(sandbox, Sandbox):
        raise ValueError(f"sandbox={sandbox!r:.80} is no sandbox; make one: tk.BubblewrapSandbox()")
    dialects = {prompt.dialect for prompt in known if prompt.text}
    if len(dialects | ({dialect} if dialect else set())) > 1:
        raise ValueError(
            "the prompts and the session speak different dialects, so the examples would show "
            "other marks than those that stop a call; load them with the same dialect"
        )


def check_changes(
    *,
    texts: Mapping[str, Any],
    places: Mapping[str, Any],
    variables: Any,
    env: Any,
) -> None:
    """What a fork changes is of the kind that it should be; raises ValueError with the remedy.

    texts, places: by the names that `Session.fork` has for them; None is no change.
    """
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise ValueError(f"{name}={text!r:.80} is no text; give one")
    for name, place in places.items():
        if place is not None and (isinstance(place, bool) or not is_whole(place)):
            raise ValueError(f"{name}={place!r:.80} is no whole number; give one, from 0")
    if variables is not None and not isinstance(variables, Mapping):
        raise ValueError(f"variables={variables!r:.80} are no values by names; give {{'n': 3}}")
    if env is not None:
        check_env(env)


def check_replay(replay: Any) -> None:
    """Raises TypeError with the remedy for what is no Replay."""
    if replay is not None and not isinstance(replay, Replay):
        raise TypeError(
            f"replay={replay!r:.80} is no Replay; fork(episode, at, engine=...) makes one and goes "
            "on"
        )


def warn_of_two_teachers(model: Mapping[str, Any], prompts: Iterable[Prompt]) -> None:
    """Warn where a model that an adapter has taught is shown examples as well: it heeds neither."""
    shown = ", ".join(prompt.name for prompt in prompts if prompt.examples)
    if model.get("adapter") and shown:
        warnings.warn(
            f"the model is taught by the adapter {model['adapter'].get('file')}, and is shown the "
            f"examples of {shown} as well; load it with adapter=None, or give no prompt",
            stacklevel=3,
        )


def warn_of_no_teacher(model: Mapping[str, Any], env: str) -> None:
    """Warn where a local model is neither taught by an adapter nor shown an example of threads."""
    if "adapter" in model and not model["adapter"]:
        warnings.warn(
            "the model has no adapter and is shown no examples, so it does not know the language "
            f"of threads; give prompt=tk.find_benchmark({env!r}).load_prompt(env.examples)",
            stacklevel=3,
        )


EXCHANGED = {
    "phi": ("sequence", "variables", "dialect"),
    "psi": ("child",),
    "xi": ("sequence", "variables", "dialect"),
    "abstract": ("observation", "variables"),
}
"""What each function of the exchange is called with (`exchange.py`)."""


def check_exchange(exchange: Mapping[str, Any]) -> None:
    """Raises ValueError for what cannot be phi, psi, xi or abstract, where it is given.

    exchange: by name; other names than those of `EXCHANGED` are passed over.
    """
    for name, takes in EXCHANGED.items():
        function = exchange.get(name)
        if function is not None and not callable(function):
            raise ValueError(
                f"{name}={function!r:.80} is no function; give one, from thread_kit.exchange or "
                "your own"
            )
        if function is not None and not _takes(function, takes):
            raise ValueError(
                f"{name}={function!r:.80} does not take {', '.join(takes)}; give a function that "
                "does (docs/howto/own-phi-and-psi.md)"
            )


def _takes(function: Callable[..., Any], arguments: Collection[str]) -> bool:
    """Whether a function can be called with so many arguments, as far as it tells."""
    try:
        # Of a decorated one it is the decorator's function that is called.
        inspect.signature(function, follow_wrapped=False).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        pass  # one of C that does not tell
    return True


def check_program(
    program: Any, main_prompt: Any, prompts: Iterable[Any], exchange: Mapping[str, Any]
) -> None:
    """Prompts and functions are THREAD's or a program's, not both.

    Raises ValueError with the remedy.
    """
    if program is not None and not callable(program):
        raise ValueError(f"program={program!r} is no program; see thread_kit.methods")
    if program is not None and main_prompt is not None:
        raise ValueError(
            "main_prompt is for THREAD alone; a program has `prompt` for its main thread, and "
            "names the prompts of the others itself"
        )
    check_exchange(exchange)
    given = [name for name, function in exchange.items() if function is not None]
    if program is not None and given:
        raise ValueError(
            f"{', '.join(given)} would not be used: a program exchanges what it wants to; for "
            "THREAD's own leave program= out"
        )
    if program is None and list(prompts):
        raise ValueError("prompts are those of a program, and there is none; give program=...")


def check_futures(dialect: Dialect, scope: str) -> None:
    """Where children run beside their parent: variables of its own hold what they give.

    Raises ValueError with the remedy.
    """
    if dialect.spawn is None:
        return
    if scope in ("none", "own"):
        raise ValueError(
            f"a child spawned by {dialect.spawn!r} gives its text to a variable of its parent, and "
            f"scope={scope!r} has none; leave them on, or take a dialect without a spawn mark"
        )
    if scope == "shared":
        raise ValueError(
            f"children spawned by {dialect.spawn!r} run at the same time, and with scope='shared' "
            "it would depend on who is faster which of them writes a variable last; "
            "take scope='exported', or a dialect without a spawn mark"
        )


def check_numbers(numbers: Mapping[str, float | None]) -> None:
    """Budgets are positive, the rest is not negative, and what is counted is whole.

    Raises ValueError naming the first that is not so.
    """
    for name, number in numbers.items():
        if number is None and name in {*LIMITS, "actions"} - {"new_tokens"}:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(f"{name}={number!r} is no number; give one")
        if not abs(number) < 2**63:
            raise ValueError(f"{name}={number!r} is no number that a trace can hold")
        if name not in ("seconds", "temperature") and not isinstance(number, int):
            raise ValueError(f"{name}={number!r} is no whole number; give one")
        if name in LIMITS and name != "depth":
            if number <= 0:
                raise ValueError(f"{name}={number} leaves nothing to do; give a positive number")
        elif number < 0:
            raise ValueError(f"{name}={number} is negative; give 0 or more")

"""thread-kit: THREAD (recursive spawning of generation threads) on local llama.cpp models.

    import thread_kit as tk

    session = tk.Session(tk.load_model(), tk.TextCraft("dev", 47), prompt=tk.load_prompt(...))
    tk.watch(session)

The names below are imported when they are first used: a saved episode opens without llama.cpp, and
a command line starts without the notebook's libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thread_kit.bubblewrap import BubblewrapSandbox
    from thread_kit.dialect import ASYNC, QA, QA_ASYNC
    from thread_kit.engines.human import HumanEngine
    from thread_kit.engines.llama import LlamaEngine
    from thread_kit.engines.scripted import ScriptedEngine
    from thread_kit.engines.server import ServerEngine
    from thread_kit.engines.tape import TapeEngine
    from thread_kit.envs.alfworld import AlfWorld
    from thread_kit.envs.datacommons import DataCommonsQA
    from thread_kit.envs.mimic import IcuQA
    from thread_kit.envs.textcraft import TextCraft
    from thread_kit.models import MODELS, load_model
    from thread_kit.prompt_check import check_prompt
    from thread_kit.prompts import EMPTY, load_prompt, parse_prompt
    from thread_kit.resources import resource
    from thread_kit.rewind import fork
    from thread_kit.session import Session
    from thread_kit.side_by_side import together
    from thread_kit.trace import Episode, to_dataset
    from thread_kit.views.page import save_page
    from thread_kit.views.picture import save_picture
    from thread_kit.views.player import watch
    from thread_kit.views.plot import supplemental_work_figure, usage_figure
    from thread_kit.views.text import thread_text
    from thread_kit.worker import Worker

_HOMES = {
    "ASYNC": "dialect",
    "AlfWorld": "envs.alfworld",
    "BubblewrapSandbox": "bubblewrap",
    "DataCommonsQA": "envs.datacommons",
    "IcuQA": "envs.mimic",
    "MODELS": "models",
    "EMPTY": "prompts",
    "Episode": "trace",
    "HumanEngine": "engines.human",
    "LlamaEngine": "engines.llama",
    "QA": "dialect",
    "QA_ASYNC": "dialect",
    "ScriptedEngine": "engines.scripted",
    "ServerEngine": "engines.server",
    "Session": "session",
    "TapeEngine": "engines.tape",
    "TextCraft": "envs.textcraft",
    "Worker": "worker",
    "check_prompt": "prompt_check",
    "fork": "rewind",
    "load_model": "models",
    "load_prompt": "prompts",
    "parse_prompt": "prompts",
    "resource": "resources",
    "save_page": "views.page",
    "save_picture": "views.picture",
    "supplemental_work_figure": "views.plot",
    "thread_text": "views.text",
    "to_dataset": "trace",
    "together": "side_by_side",
    "usage_figure": "views.plot",
    "watch": "views.player",
}

__all__ = [
    "ASYNC",
    "EMPTY",
    "MODELS",
    "QA",
    "QA_ASYNC",
    "AlfWorld",
    "BubblewrapSandbox",
    "DataCommonsQA",
    "Episode",
    "HumanEngine",
    "IcuQA",
    "LlamaEngine",
    "ScriptedEngine",
    "ServerEngine",
    "Session",
    "TapeEngine",
    "TextCraft",
    "Worker",
    "check_prompt",
    "fork",
    "load_model",
    "load_prompt",
    "parse_prompt",
    "resource",
    "save_page",
    "save_picture",
    "supplemental_work_figure",
    "thread_text",
    "to_dataset",
    "together",
    "usage_figure",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thread_kit' has no attribute {name!r}")
    return getattr(import_module(f"thread_kit.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

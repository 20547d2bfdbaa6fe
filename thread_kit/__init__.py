"""thread-kit: THREAD (recursive spawning of generation threads) on local llama.cpp models.

    import thread_kit as tk

    session = tk.Session(tk.load_model(), tk.TextCraft("dev", 47), prompt=tk.load_prompt(...))
    tk.watch(session)

The names that `__init__.pyi` lists are imported when they are first used: a saved episode opens
without llama.cpp, and a command line starts without the notebook's libraries.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Methods that THREAD is compared with, one file each, as programs of the same session.

    from functools import partial
    from thread_kit.methods.react import react

    program = partial(react, iterations=60)
    tk.Session(engine, env, program=program, prompt=tk.load_prompt("react/textcraft"))

A method is a generator of the same requests that `thread.py` yields, so it has the same budgets,
the same trace and tree, the same costs, and can be rewound. All of them speak the marks of THREAD
(`=>` behind an action, `<=` behind what came back, `#END#`), whatever form their papers' prompts
had: they differ in what they do, and not in how it is written. `experiments/method_registry.py` has
them by name, with the prompts of each benchmark.
"""

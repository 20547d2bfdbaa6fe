"""Chaos: nothing that a model writes, and nothing that kills a process, ends more than it must.

    make chaos                            some minutes
    make chaos SEED=7 EPISODES=100000     as long as one likes

Each part is a module with a function `play(seed, count) -> Tally`; `__main__` runs them and prints
what was counted. Whatever did not hold is a finding, with the seed that brings it back. A short run
of every part is among the ordinary tests (`test_chaos.py`).
"""

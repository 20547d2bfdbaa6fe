"""Experiments: suites of episodes, statistics, the published numbers, figures.

    from thread_kit.lab.method import SessionMethod
    from thread_kit.lab.statistics import success
    from thread_kit.lab.suite import Suite

    suite = Suite("runs/a.jsonl", methods=[...], models={...}, environment=..., tasks=[...])
    success(suite.run().frame)

suite.py runs, results.py holds what came of it (a file of ledger.py), statistics.py says how sure
one can be, published.py quotes the papers, figures.py draws.
"""

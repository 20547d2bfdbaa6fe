"""Experiments: a method and a task in, a row a line out, and nothing lost when one is killed.

from thread_kit.analysis.statistics import success
from thread_kit.experiments.method import SessionMethod
from thread_kit.experiments.suite import Suite

suite = Suite("runs/a.jsonl", methods=[...], models={...}, environment=..., tasks=[...])
success(suite.run().frame)
"""

"""Sandboxes: state and code in, state and text out.

Model-written code runs here, never in our process.
"""

"""What runs inside the jail of `sandbox/bubblewrap.py`: all of the kit that it sees.

Nothing here may import other parts of the kit: inside the jail they do not exist.
"""

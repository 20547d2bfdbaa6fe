"""ALFWorld: household tasks in the real TextWorld engine, which runs in a process of its own."""

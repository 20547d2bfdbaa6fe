"""InterCode Bash: tasks in small file systems (NL2Bash), solved by commands in throw-away roots."""

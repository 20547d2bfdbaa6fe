"""The command line: words in, a session or a suite called."""

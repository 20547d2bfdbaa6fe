"""A session meets a program's requests with engine, sandbox and environment, and yields events."""

"""Traces: events in, an episode out. All that is shown of an episode is derived from its events."""

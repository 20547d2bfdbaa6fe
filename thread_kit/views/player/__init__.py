"""The player: a widget that shows an episode, and the one view that talks back to its session."""

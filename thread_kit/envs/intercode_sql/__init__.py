"""InterCode SQL: questions about databases (Spider), answered by queries in a real engine."""

"""ICU QA (THREAD paper, section 4.5): questions about stays in intensive care."""

"""DataCommons QA (THREAD paper, section 4.4): questions about open statistics."""

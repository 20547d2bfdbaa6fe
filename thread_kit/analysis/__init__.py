"""Analysis: rows of a suite in, tables and figures out, beside the published numbers."""

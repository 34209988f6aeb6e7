"""Models as files, without code."""

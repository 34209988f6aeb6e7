"""The report of a comparison: one HTML page that needs nothing else, and a matplotlib figure."""

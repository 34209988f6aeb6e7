"""Ways to choose rows that stand for all rows."""

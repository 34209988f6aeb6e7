"""The report of a comparison: one self-contained HTML page, or a matplotlib figure.

Charts are hand-made SVG, drawn once for wide and once for narrow pages so that text keeps its size.
The page's content security policy forbids loading anything and running any script but its own.
All text from the user is escaped in one place, ``text.escape``.
"""

"""A campaign of faults against gramian: ``make fuzz``, or ``python -m fuzz NAME`` for a part of it.

Each module has one question, a function ``run(scale, seed)`` that prints what it found and returns
the failures, and bounds for time and memory. A seed gives the same campaign again.
"""

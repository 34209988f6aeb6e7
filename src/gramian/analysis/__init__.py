"""Measure approximations: accuracy, comparisons, and reports that people read.

``accuracy`` estimates the error of an approximation, with an interval. ``comparison`` fits
approximations, the exact kernel and models without a kernel on a sample of the rows, and recommends
the fastest within the memory budget whose held-out score is within one standard error of the best
or, without a target, whose error is small enough. ``clusters`` scores clusters by the exact kernel.
``report`` reads a ``Comparison`` and draws it as one HTML page; it knows nothing of how the numbers
were measured.
"""

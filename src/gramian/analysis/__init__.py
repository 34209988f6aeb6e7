"""Measure approximations: accuracy, comparisons, and reports that people read.

``accuracy`` estimates the error of an approximation, with an interval. ``comparison`` fits
approximations on a sample of the rows and recommends one by a fixed rule: the least memory within
0.01 of the best score or, without scores, below 5 % error. Times play no part, so the advice is
the same every time. ``report`` reads a ``Comparison`` and draws it as one HTML page; it knows
nothing of how the numbers were measured.
"""

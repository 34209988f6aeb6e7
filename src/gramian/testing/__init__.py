"""The laws that every kernel, sampler, approximation, learner and kind of rows must obey.

Each ``check_`` function raises an ``AssertionError`` that says which law is broken. The package's
own tests run them over all that it exports; a class of your own is tested the same way:

>>> from gramian import RBF
>>> from gramian.testing import check_kernel
>>> check_kernel(RBF(gamma="median"))
"""

from gramian.testing.laws import (
    check_approximation,
    check_kernel,
    check_learner,
    check_memory,
    check_rows,
    check_sampler,
    example,
)

__all__ = [
    "check_approximation",
    "check_kernel",
    "check_learner",
    "check_memory",
    "check_rows",
    "check_sampler",
    "example",
]

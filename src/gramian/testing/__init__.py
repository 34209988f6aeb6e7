"""Laws that every kernel, sampler, approximation, learner and kind of rows must obey.

Each ``check_`` function raises an ``AssertionError`` that names the broken law. The package's own
tests apply them to everything it exports; test your own classes the same way:

>>> from gramian import RBF
>>> from gramian.testing import check_kernel
>>> check_kernel(RBF(gamma="median"))
"""

from gramian.testing.approximations import check_approximation
from gramian.testing.examples import example
from gramian.testing.kernels import check_kernel
from gramian.testing.learners import check_learner
from gramian.testing.memory import check_memory
from gramian.testing.rows import check_rows
from gramian.testing.samplers import check_sampler

__all__ = [
    "check_approximation",
    "check_kernel",
    "check_learner",
    "check_memory",
    "check_rows",
    "check_sampler",
    "example",
]

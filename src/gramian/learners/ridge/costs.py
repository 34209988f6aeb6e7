"""What ridge on features costs: by sums over the rows, or by iterating over kernel values."""

from __future__ import annotations

from math import log
from typing import NamedTuple

from gramian.backend import array_ops, numba_loops
from gramian.matrices.factors import Factors, keepable, projected
from gramian.rows import FeatureRows

# Costs in units of one operation of a float32 matrix product, about 0.01 ns on one core.
KERNEL_VALUE, COLUMN = 80, 1.5  # one kernel value, or another feature; and for each column of rows
STORE = 30  # writing one to new memory
PASS = 10  # one iteration over one entry of C, which is read from memory
PASS_TARGET = 7  # the same, for each target
SQUARES = 14  # products of the landmarks' matrices for the preconditioner, times m³
DOUBLE = 2  # float64 relative to float32
MOST_TIMES = 40  # rows of the preconditioner, as a multiple of the features: more change little
# For a preconditioner of r rows and TOLERANCE; fewer by this power of its rows.
ITERATIONS, EXPONENT, TOLERANCE = 120, 0.7, 1e-6
SURE = 0.7  # of the sums' costs; an iteration may take longer than expected


def streams(factors: Factors) -> bool:
    """Whether the factors are features in one part, without a core."""
    return len(factors.parts) == 1 and factors.core is None


def iteration_pays(
    factors: Factors, n_targets: int, room: int, *, precise: bool, tol: float = TOLERANCE
) -> bool:
    """Whether iterating over C should cost less than ZᵀZ and its Cholesky factor.

    ``room`` is the memory that C may take.
    """
    if not streams(factors):
        return False
    costs = Costs.of(factors, n_targets, precise=precise)
    n, m = factors.shape[0], costs.width
    times, iterations = costs.preconditioning(n, tol)
    cached = keepable(projected(factors) or factors, room, partly=True)
    # Other rows of C are recomputed in every pass.
    made = m * (STORE * cached + costs.value * (n + (n - cached) * iterations))
    passes = iterations * n * m * costs.passing
    sampled = times * costs.rank * costs.sampled_row
    if costs.on_gpu:  # where products of landmarks' matrices take little
        return sampled + made + passes < n * costs.row
    return sampled + SQUARES * m**3 + made + passes < SURE * n * costs.row


class Costs(NamedTuple):
    """What parts of both ways cost, for each row or entry of C."""

    width: int  # of C
    rank: int
    value: float  # an entry of C
    row: float  # a row in the normal equations, its values included
    sampled_row: float  # the same for the preconditioner, which P multiplies afterwards
    passing: float  # one iteration over an entry
    on_gpu: bool

    @classmethod
    def of(cls, factors: Factors, n_targets: int, *, precise: bool) -> Costs:
        r, values = factors.rank, projected(factors)
        C = values or factors
        m, source = C.rank, C.parts[0]
        wide = array_ops.itemsize(factors.dtype) == 8
        width, double = (DOUBLE if wide else 1), (DOUBLE if wide or precise else 1)
        value = 0.0
        if isinstance(source, FeatureRows):
            value = width * (KERNEL_VALUE + COLUMN * source.rows.shape[1])
        # In float32, P, a triangle, multiplies each row. Where that would round too much, C is
        # summed in float64, and P multiplies the sum, as it does for the preconditioner.
        early, late = double * ((m * r if values is not None else 0) + r * r), double * m * m
        products = late if precise and not wide else early
        sampled = early if wide or values is None else late
        example = factors.parts.example()
        if numba_loops.multiply(example, factors.shape[0] * m):
            double = 1  # loops convert C as they read it, so float64 takes little longer
        passing = max(width, double) * PASS + double * PASS_TARGET * n_targets
        on_gpu = array_ops.is_on_gpu(example)
        return cls(m, r, value, m * value + products, m * value + sampled, passing, on_gpu)

    def preconditioning(self, n: int, tol: float) -> tuple[float, float]:
        """Return rows of the preconditioner as a multiple of r, and the expected iterations.

        More rows save iterations; the multiple is where both together cost least. On a GPU
        iterations cost little.
        """
        r = self.rank
        iterations = ITERATIONS * max(log(tol) / log(TOLERANCE), 0.1)  # each divides the residual
        saved = n * self.width * self.passing / (r * self.sampled_row)
        times = (EXPONENT * iterations * saved) ** (1 / (1 + EXPONENT))
        times = max(min(times, MOST_TIMES, n / r / 4), 4.0)
        times = min(times, 2.0 if self.on_gpu else n / r, n / r)
        return times, iterations / times**EXPONENT

"""What a comparison measures of an approximation, the exact kernel, and models without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramian.approximations import Approximation
from gramian.backend.config import MemoryBudgetError
from gramian.matrices.factors import Factors

__all__ = ["EXACT", "Baseline", "Failure", "Measurement", "Reading", "evaluations", "reason"]

EXACT = "Exact"


@dataclass(frozen=True)
class Measurement:
    """The measurement of one approximation with one number of features.

    Attributes
    ----------
    name : str
    size : int
        The requested number of features; for the exact matrix, the number of rows.
    error, error_low, error_high : float
        ‖K - K̃‖ / ‖K‖ in the Frobenius norm: the mean over the repeats, and the ends of all their
        intervals.
    seconds : float
        Time to fit the measured rows, the fastest repeat: with a learner, to fit it and to predict
        the held-out rows; else to compute the features or the exact matrix.
    seconds_all : float
        The same for all rows of the data, extrapolated: features take time in proportion to the
        rows, the exact matrix to their square, and solving with it to their cube.
    nbytes : int
        Size of the factors of the measured rows.
    nbytes_all : int
        Size of the factors of all rows of the data.
    kernel_evaluations : int
        Number of kernel values computed by the fit and the features.
    score : float or None
        The score of the learner, of the repeat in the middle; see ``Comparison.score_name``.
    standard_error : float or None
        Of a score on held-out rows: how much it varies with the choice of these rows.
    note : str
        Warnings of the approximation.
    approximation : Approximation or None
        The unfitted approximation; None for the exact matrix.
    model : estimator or None
        The unfitted learner that was scored.
    """

    name: str
    size: int
    error: float
    error_low: float
    error_high: float
    seconds: float
    seconds_all: float
    nbytes: int
    nbytes_all: int
    kernel_evaluations: int
    score: float | None = None
    standard_error: float | None = None
    note: str = ""
    approximation: Approximation | None = field(default=None, compare=False, repr=False)
    model: Any = field(default=None, compare=False, repr=False)

    @property
    def is_exact(self) -> bool:
        return self.approximation is None


@dataclass(frozen=True)
class Baseline:
    """The measurement of a model without a kernel; the attributes are those of Measurement."""

    name: str
    seconds: float
    seconds_all: float
    score: float
    standard_error: float
    model: Any = field(compare=False, repr=False)


@dataclass(frozen=True)
class Reading:
    """How the rows and the target come from a file, for the code and the report.

    Attributes
    ----------
    imports : tuple of str
        Import lines that ``code`` needs.
    code : str
        Lines that read the file and, with a target, define y.
    prepare : str
        Lines that define X; with a target, they learn from the rows whose numbers are ``train``.
    steps : tuple of str
        What is done to the columns, one sentence each.
    """

    imports: tuple[str, ...]
    code: str
    prepare: str
    steps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """An approximation that could not be measured at these sizes, and the reason."""

    name: str
    sizes: tuple[int, ...]
    reason: str


def evaluations(factors: Factors) -> int:
    """Return the number of kernel values that features and blocks took."""
    inside = 0 if factors.local is None else int(np.sum(factors.local.groups.sizes**2))
    return factors.parts.evaluations + inside


def reason(error: Exception) -> str:
    """Say why something could not be measured."""
    said = str(error).strip() or type(error).__name__
    expected = isinstance(error, ValueError | TypeError | MemoryBudgetError)
    return said if expected else f"{type(error).__name__}: {said}"

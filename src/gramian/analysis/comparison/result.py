"""The result of a comparison: measurements, failures and advice."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramian.analysis.comparison import advice
from gramian.analysis.comparison.data import DataFacts
from gramian.analysis.comparison.source import Source
from gramian.analysis.comparison.structure import Structure
from gramian.analysis.report.text import percent
from gramian.approximations import Approximation
from gramian.backend import optional
from gramian.backend.config import format_bytes
from gramian.backend.wording import counted
from gramian.diagnostics.table import lines
from gramian.kernels import Kernel

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Failure", "Measurement"]

EXACT = "Exact"
ROUNDING = 1e-6  # smaller errors count as equal


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
        Time to fit and to compute the features of the measured rows: the fastest repeat.
    nbytes : int
        Size of the factors of the measured rows.
    nbytes_all : int
        Size of the factors of all rows of the data.
    kernel_evaluations : int
        Number of kernel values computed by the fit and the features.
    score : float or None
        The score of the learner, averaged over the repeats; see ``Comparison.score_name``.
    note : str
        Warnings of the approximation.
    approximation : Approximation or None
        The unfitted approximation; None for the exact matrix.
    """

    name: str
    size: int
    error: float
    error_low: float
    error_high: float
    seconds: float
    nbytes: int
    nbytes_all: int
    kernel_evaluations: int
    score: float | None = None
    note: str = ""
    approximation: Approximation | None = field(default=None, compare=False, repr=False)

    @property
    def is_exact(self) -> bool:
        return self.approximation is None


@dataclass(frozen=True)
class Failure:
    """An approximation that could not be measured at these sizes, and the reason."""

    name: str
    sizes: tuple[int, ...]
    reason: str


COLUMNS = (
    "name", "size", "error", "error_low", "error_high", "seconds", "nbytes", "nbytes_all",
    "kernel_evaluations", "score", "note",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of :func:`gramian.compare`: approximations of a kernel, measured on a data set.

    Attributes
    ----------
    results : list of Measurement
        In the order of measurement; the exact matrix, named "Exact", comes last if it is small
        enough.
    failures : list of Failure
        What could not be measured, and why.
    kernel : Kernel
        The kernel, with numbers in place of rules.
    score_name : str or None
        "accuracy" or "R²" on the held-out rows, or "explained scatter": the fraction of the
        variance in feature space that the clusters of kernel k-means explain.
    data : DataFacts
        Shape of the data, and how many rows were measured.
    structure : Structure
        Spectrum and blocks of the kernel matrix of a sample, and how they change with gamma.
    learner : estimator or None
        The learner that was scored.
    settings : dict
        The settings of the measurement.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import compare
    >>> comparison = compare(load_iris().data, approximations="nystroem uniform", sizes=[5, 20],
    ...                      random_state=0)
    >>> [(result.name, result.size) for result in comparison.results]
    [('Nyström uniform', 5), ('Nyström uniform', 20), ('Exact', 150)]
    >>> comparison.frontier[-1].size
    20
    """

    results: list[Measurement]
    failures: list[Failure]
    kernel: Kernel
    score_name: str | None
    data: DataFacts
    structure: Structure
    learner: Any
    settings: dict[str, Any]

    @property
    def approximations(self) -> list[Measurement]:
        """The results without the exact matrix."""
        return [result for result in self.results if not result.is_exact]

    @property
    def exact(self) -> Measurement | None:
        """The result of the exact matrix, if it was small enough to be measured."""
        return next((result for result in self.results if result.is_exact), None)

    @property
    def frontier(self) -> list[Measurement]:
        """The results that no other beats in both memory and error, sorted by memory."""
        return self.frontier_by("nbytes_all")

    def frontier_by(self, cost: str) -> list[Measurement]:
        """Return the frontier for another cost, an attribute such as "seconds"."""
        kept: list[Measurement] = []
        for result in sorted(self.approximations, key=lambda r: (getattr(r, cost), r.error)):
            if not kept or result.error < kept[-1].error > ROUNDING:
                kept.append(result)
        return kept

    @property
    def best(self) -> Measurement:
        """The recommended result."""
        return advice.best(self)

    @property
    def recommendation(self) -> str:
        """Which approximation to use, with its figures, in one sentence."""
        return advice.recommendation(self)

    @property
    def kernel_source(self) -> str:
        """The kernel as Python source, with numbers to six digits."""
        return Source().of(self.kernel)

    @property
    def matrix_bytes(self) -> int:
        """The size of the exact matrix of all rows."""
        return advice.matrix_bytes(self)

    @property
    def affordable(self) -> tuple[bool, str]:
        """Whether the exact matrix fits in the memory budget, and a sentence about it."""
        return advice.affordable(self)

    @property
    def code(self) -> str:
        """Python code that uses the recommendation on the rows X (and the target y)."""
        return advice.code(self)

    def to_frame(self) -> pandas.DataFrame:
        """Return the results as a pandas DataFrame, one row per result."""
        with optional.needed("pandas", "Building a DataFrame"):
            import pandas
        table = [[getattr(result, name) for name in COLUMNS] for result in self.results]
        return pandas.DataFrame(table, columns=list(COLUMNS))

    def plot(self) -> Figure:
        """Draw error against memory and time, and score against size, with matplotlib."""
        from gramian.analysis.report.figure import draw

        return draw(self)

    def report(self, path: Any, title: str | None = None) -> Path:
        """Write the report, one self-contained HTML file, and return its path.

        Missing folders are created. A failure leaves no partial file.
        """
        from gramian.analysis.report.page import write

        return write(self, path, title)

    def _repr_html_(self) -> str:
        from gramian.analysis.report.page import fragment

        return fragment(self)

    def __repr__(self) -> str:
        d = self.data
        shape = f"{counted(d.rows, 'row')}, {counted(d.columns, 'column')}"
        return f"<Comparison of {counted(len(self.results), 'result')} on {shape}>"

    def __str__(self) -> str:
        header = ["approximation", "size", "error", "seconds", "memory"]
        table = [_line(result) for result in self.results]
        if self.score_name is not None:
            header.append(self.score_name)
            table = [
                [*line, "" if r.score is None else f"{r.score:.4f}"]
                for line, r in zip(table, self.results, strict=True)
            ]
        failed = [f"{f.name} {', '.join(map(str, f.sizes))}: {f.reason}" for f in self.failures]
        return "\n".join([lines(header, table), "", self.recommendation, *failed])


def _line(result: Measurement) -> list[Any]:
    return [
        result.name,
        result.size,
        percent(result.error),
        f"{result.seconds:.3f}",
        format_bytes(result.nbytes_all),
    ]

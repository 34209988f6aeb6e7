"""What a comparison found: measurements, what failed, and what follows from them."""

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
ROUNDING = 1e-6  # less error than this is no better


@dataclass(frozen=True)
class Measurement:
    """One approximation with one number of features, measured.

    Attributes
    ----------
    name : str
    size : int
        The number of features that was asked for; of the exact matrix, its rows.
    error, error_low, error_high : float
        ‖K - K̃‖ / ‖K‖ in the Frobenius norm: the mean over the repeats, and the least and largest
        of their intervals.
    seconds : float
        Fit and features of the rows that were measured: the least of the repeats.
    nbytes : int
        What the factors of these rows take.
    nbytes_all : int
        What the factors of all rows of the data would take.
    kernel_evaluations : int
        Kernel values of the fit and of the features of these rows.
    score : float or None
        What a learner makes of it, see ``Comparison.score_name``: the mean of the repeats.
    note : str
        What the approximation warned of.
    approximation : Approximation or None
        It, not fitted; None for the exact matrix.
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
    """What could not be measured: an approximation, at these sizes, for this reason."""

    name: str
    sizes: tuple[int, ...]
    reason: str


COLUMNS = (
    "name", "size", "error", "error_low", "error_high", "seconds", "nbytes", "nbytes_all",
    "kernel_evaluations", "score", "note",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Comparison:
    """Approximations of one kernel on one data set, measured; :func:`gramian.compare` makes it.

    Attributes
    ----------
    results : list of Measurement
        In the order in which they were taken; the exact matrix, named "Exact", is the last where
        it is small enough.
    failures : list of Failure
        What could not be measured, with its reason.
    kernel : Kernel
        The kernel, its parameters in numbers.
    score_name : str or None
        "accuracy" or "R²" on rows held out, or "explained scatter": what part of the rows' scatter
        in the kernel's space the clusters of kernel k-means explain.
    data : DataFacts
        Rows and columns of the data, and how many of the rows were measured.
    structure : Structure
        Spectrum and blocks of the kernel matrix of some rows, and how they change with gamma.
    learner : estimator or None
        What gave the scores.
    settings : dict
        What it was measured with.

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
        """The exact matrix, where it was small enough to be measured."""
        return next((result for result in self.results if result.is_exact), None)

    @property
    def frontier(self) -> list[Measurement]:
        """The results that no other has both less memory and less error than, by memory."""
        return self.frontier_by("nbytes_all")

    def frontier_by(self, cost: str) -> list[Measurement]:
        """The frontier where the cost is another attribute of a result, such as "seconds"."""
        kept: list[Measurement] = []
        for result in sorted(self.approximations, key=lambda r: (getattr(r, cost), r.error)):
            if not kept or result.error < kept[-1].error > ROUNDING:
                kept.append(result)
        return kept

    @property
    def best(self) -> Measurement:
        """The one that is recommended."""
        return advice.best(self)

    @property
    def recommendation(self) -> str:
        """Which approximation to take, in one sentence with the numbers in it."""
        return advice.recommendation(self)

    @property
    def kernel_source(self) -> str:
        """The kernel as Python source, numbers to six digits."""
        return Source().of(self.kernel)

    @property
    def matrix_bytes(self) -> int:
        """What the exact matrix of all rows would take."""
        return advice.matrix_bytes(self)

    @property
    def affordable(self) -> tuple[bool, str]:
        """Whether that fits the memory budget, and a sentence that says so."""
        return advice.affordable(self)

    @property
    def code(self) -> str:
        """Python code that uses what is recommended on the rows X (and the target y)."""
        return advice.code(self)

    def to_frame(self) -> pandas.DataFrame:
        """The results as a pandas frame, one line for each."""
        with optional.needed("pandas", "Making a data frame"):
            import pandas
        table = [[getattr(result, name) for name in COLUMNS] for result in self.results]
        return pandas.DataFrame(table, columns=list(COLUMNS))

    def plot(self) -> Figure:
        """Error against memory and time, and the score against size, as a matplotlib figure."""
        from gramian.analysis.report.figure import draw

        return draw(self)

    def report(self, path: Any, title: str | None = None) -> Path:
        """Write the report, one HTML file that needs nothing else, and return its path.

        It is written whole or not at all. Folders that are missing are made.
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

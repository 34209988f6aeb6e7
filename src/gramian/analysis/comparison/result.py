"""The result of a comparison: measurements, failures and advice."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramian.analysis.comparison import advice, script, words
from gramian.analysis.comparison.data import DataFacts
from gramian.analysis.comparison.measurements import Baseline, Failure, Measurement, Reading
from gramian.analysis.comparison.source import Source
from gramian.analysis.comparison.structure import Structure
from gramian.analysis.report.text import percent
from gramian.backend import optional
from gramian.backend.config import format_bytes
from gramian.backend.wording import counted
from gramian.diagnostics.table import lines
from gramian.kernels import Kernel

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Baseline", "Comparison", "Failure", "Measurement", "Reading"]

ROUNDING = 1e-6  # smaller errors count as equal
COLUMNS = (
    "name", "size", "error", "error_low", "error_high", "seconds", "seconds_all", "nbytes",
    "nbytes_all", "kernel_evaluations", "score", "standard_error", "note",
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
        "accuracy" or "R²" on the held-out rows, or "share of variance": that of the variance in
        feature space that the clusters of kernel k-means explain.
    data : DataFacts
        Shape of the data, and how many rows were measured.
    structure : Structure
        Spectrum and blocks of the kernel matrix of a sample, and how they change with gamma.
    learner : estimator or None
        The learner that was scored.
    settings : dict
        The settings of the measurement.
    baselines : list of Baseline
        Models without a kernel, if there is a target.
    reading : Reading or None
        How X and y come from a file, if the comparison is of one.

    See Also
    --------
    compare : makes it.

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
    baselines: list[Baseline] = field(default_factory=list)
    reading: Reading | None = None

    @property
    def approximations(self) -> list[Measurement]:
        """The results without the exact matrix."""
        return [result for result in self.results if not result.is_exact]

    @property
    def others(self) -> list[Measurement | Baseline]:
        """The exact matrix and the baselines: what stands beside the approximations."""
        return [*([] if self.exact is None else [self.exact]), *self.baselines]

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
        """The recommended kernel: an approximation, or the exact matrix."""
        return advice.best(self)

    @property
    def winner(self) -> Measurement | Baseline:
        """What is recommended: ``best``, or a baseline that does as well."""
        return advice.winner(self)

    @property
    def recommendation(self) -> str:
        """What to use, and why, in a few sentences."""
        return words.recommendation(self)

    @property
    def kernel_source(self) -> str:
        """The kernel as Python source."""
        return Source().of(self.kernel)

    @property
    def matrix_bytes(self) -> int:
        """The size of the exact matrix of all rows."""
        return advice.matrix_bytes(self)

    @property
    def affordable(self) -> tuple[bool, str]:
        """Whether the exact matrix fits in the memory budget, and a sentence about it."""
        return words.affordable(self)

    @property
    def code(self) -> str:
        """A Python script that fits and scores the winner.

        It reads the file if the comparison is of one, else it uses X (and y).
        """
        return self.code_of(self.winner)

    def code_of(self, result: Measurement | Baseline) -> str:
        """Return the same script for another result."""
        return script.code(self, result)

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
        table += [[b.name, "", "", f"{b.seconds:.3f}", ""] for b in self.baselines]
        if self.score_name is not None:
            header.append(self.score_name)
            table = [
                [*line, "" if r.score is None else f"{r.score:.4f}"]
                for line, r in zip(table, [*self.approximations, *self.others], strict=True)
            ]
        failed = [
            f"{f.name} {', '.join(map(str, f.sizes))}".rstrip() + f": {f.reason}"
            for f in self.failures
        ]
        return "\n".join([lines(header, table), "", self.recommendation, *failed])


def _line(result: Measurement) -> list[Any]:
    return [
        result.name,
        result.size,
        percent(result.error),
        f"{result.seconds:.3f}",
        format_bytes(result.nbytes_all),
    ]

"""What a sampler is, and what it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.matrices.gram import Gram
from gramian.rows import Rows

__all__ = ["Landmarks", "Sampler"]


class Oracle(Protocol):
    """A matrix that is seen through its columns and its diagonal."""

    def columns(self, indices: Any) -> Array: ...

    def diag(self) -> Array: ...


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Points that stand for all rows.

    Attributes
    ----------
    points : array of shape (m, d), or of m objects
        The landmarks, as ``kernel.against`` takes them.
    indices : array of int or None
        Their row numbers, where they are rows of the data.
    probabilities : array of float or None
        The probability with which each was drawn, where they were drawn independently and with
        replacement: Nyström weighs them by 1 / sqrt(m p). None where that would mean nothing.

    Examples
    --------
    >>> from gramian import Nystroem
    >>> Nystroem(n_components=2, landmarks=[0, 2]).fit([[0.0], [1.0], [3.0]]).landmarks_.indices
    array([0, 2])
    """

    points: Array
    indices: np.ndarray | None = None
    probabilities: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self.points.shape[0])


class Sampler(BaseEstimator, ABC):
    """A way to choose landmarks, as a scikit-learn parameter object.

    It sees the kernel matrix only through a :class:`gramian.Gram`: its diagonal, chosen columns and
    blocks, the rows themselves where they are vectors. All chance comes from the generator.
    """

    names: ClassVar[tuple[str, ...]] = ()  # what users may type for it, as in landmarks="uniform"
    needs_target: ClassVar[bool] = False
    grows: ClassVar[bool] = False  # whether it implements ``grow``
    fixed: ClassVar[bool] = False  # whether it gives the same landmarks whatever m is
    spreads: ClassVar[bool] = True  # whether other processes may hold the rows

    @abstractmethod
    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        """At most m landmarks for the rows of ``gram``; fewer where the matrix has less rank."""

    def most_evaluations(self, n: int, m: int) -> int:
        """The kernel values that ``select`` takes at most."""
        return 2 * n * (m + 1) + m * m

    def most_landmarks(self, m: int) -> int:
        """How many landmarks ``select`` gives at most where m are asked for."""
        return m

    def select_bytes(self, rows: Rows, m: int) -> int:
        """What ``select`` takes in memory at most, beside blocks of rows.

        By default that of the landmarks, and a few numbers for each row.
        """
        return 2 * m * rows.row_bytes + 10 * 8 * rows.shape[0]

    def landmark_bytes(self, rows: Rows) -> int:
        """What a landmark takes in memory: by default as much as a row."""
        return rows.row_bytes

    def grow(self, gram: Gram, most: int, rng: np.random.Generator, tol: float) -> Landmarks:
        """Landmarks until the trace error of Nyström is at most ``tol``, or there are ``most``."""
        raise NotImplementedError(f"{type(self).__name__} does not grow.")


def dense_row_bytes(rows: Rows) -> int:
    """What a row takes as part of a dense array, whether the rows are sparse or not."""
    return rows.shape[1] * array_ops.itemsize(rows.dtype)


def from_rows(gram: Gram, indices: Any, probabilities: np.ndarray | None = None) -> Landmarks:
    """Landmarks that are rows of the data."""
    indices = np.asarray(indices, dtype=np.intp)
    return Landmarks(gram.points.take(indices), indices, probabilities)


def host_diagonal(gram: Oracle) -> np.ndarray:
    """The diagonal of K in float64 on the host, without the rounding below 0."""
    return np.maximum(array_ops.to_numpy(gram.diag()), 0.0, dtype=np.float64)

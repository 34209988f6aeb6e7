"""Sampler, the base class of all samplers, and Landmarks, which they select."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.matrices.gram import Gram
from gramian.rows import Rows

__all__ = ["Landmarks", "Sampler"]


class Oracle(Protocol):
    """A matrix that is accessed through its columns, blocks and diagonal."""

    def columns(self, indices: np.ndarray) -> Array: ...

    def block(self, i: np.ndarray, j: np.ndarray) -> Array: ...

    def diag(self) -> Array: ...


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Points that represent all rows.

    Attributes
    ----------
    points : array of shape (m, d), or of m objects
        The landmarks, as ``kernel.against`` takes them.
    indices : array of int or None
        Their row numbers, if they are rows of the data.
    probabilities : array of float or None
        The probability with which each was drawn, if they were drawn independently and with
        replacement: Nyström weights them by 1 / sqrt(m p). None for all other landmarks.

    See Also
    --------
    Sampler : chooses landmarks.
    Nystroem : uses them.

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

    It accesses the kernel matrix only through a :class:`gramian.Gram`: its diagonal, chosen columns
    and blocks, and the rows themselves if they are vectors. All randomness comes from ``rng``.

    See Also
    --------
    Landmarks : what a sampler returns.
    gramian.testing.check_sampler : tests a sampler class.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Gram, Greedy, Sampler
    >>> issubclass(Greedy, Sampler)
    True
    >>> gram = Gram("linear", [[1.0], [3.0], [2.0]])
    >>> Greedy().select(gram, 1, np.random.default_rng(0)).indices
    array([1])
    """

    names: ClassVar[tuple[str, ...]] = ()  # what users may type for it, as in landmarks="uniform"
    needs_target: ClassVar[bool] = False
    grows: ClassVar[bool] = False  # whether it implements ``grow``
    fixed: ClassVar[bool] = False  # whether the landmarks do not depend on m
    spreads: ClassVar[bool] = True  # whether it works on rows of a cluster

    @abstractmethod
    def select(
        self, gram: Gram, m: int, rng: np.random.Generator, y: np.ndarray | None = None
    ) -> Landmarks:
        """Select at most m landmarks; fewer if the matrix has a smaller rank."""

    def most_evaluations(self, n: int, m: int) -> int:
        """Return how many kernel values ``select`` evaluates at most."""
        return 2 * n * (m + 1) + m * m

    def most_landmarks(self, m: int) -> int:
        """Return how many landmarks ``select`` returns at most if m are requested."""
        return m

    def select_bytes(self, rows: Rows, m: int) -> int:
        """Return the memory that ``select`` takes at most, in addition to blocks of rows.

        By default, that of the landmarks and a few numbers per row.
        """
        return 2 * m * rows.row_bytes + 10 * 8 * rows.shape[0]

    def landmark_bytes(self, rows: Rows) -> int:
        """Return the memory that a landmark takes; by default as much as a row."""
        return rows.row_bytes

    def grow(self, gram: Gram, most: int, rng: np.random.Generator, tol: float) -> Landmarks:
        """Select landmarks until Nyström's trace error is at most ``tol``, but at most ``most``."""
        raise NotImplementedError(f"{type(self).__name__} does not grow.")


def dense_row_bytes(rows: Rows) -> int:
    """Return the memory of a row in a dense array, even if the rows are sparse."""
    return rows.shape[1] * array_ops.itemsize(rows.dtype)


def from_rows(gram: Gram, indices: ArrayLike, probabilities: np.ndarray | None = None) -> Landmarks:
    """Return the rows with these numbers as landmarks."""
    indices = np.asarray(indices, dtype=np.intp)
    return Landmarks(gram.points.take(indices), indices, probabilities)


def drawn_by_weight(gram: Gram, weights: np.ndarray, m: int, rng: np.random.Generator) -> Landmarks:
    """Draw m rows with replacement, with probability in proportion to their weights.

    ``weights`` has shape (n,). If all are 0, rows are drawn with equal probability.
    """
    total = float(weights.sum())
    if total <= 0:
        weights, total = np.ones(len(weights)), float(len(weights))
    probabilities = weights / total
    indices = rng.choice(len(probabilities), size=m, p=probabilities)
    return from_rows(gram, indices, probabilities[indices])


def rounding_limit(gram: Gram, diagonal: np.ndarray) -> float:
    """Return the value below which a part of the diagonal is rounding error."""
    return 1000 * array_ops.eps(gram.dtype) * float(diagonal.max())


def settled_diagonal(gram: Oracle) -> Array:
    """Return the diagonal of K in float64, shape (n,), where the rows are; a cluster's is gathered.

    Rounding below 0 is cut off.
    """
    diagonal = gathered(gram.diag())
    xp = array_ops.namespace(diagonal)
    # a copy, which callers may change
    return array_ops.clip(xp.astype(diagonal, xp.float64, copy=True), low=0.0)


def gathered(values: Array) -> Array:
    """Return values with one entry per row as they are, or on the host if they are lazy."""
    return array_ops.to_numpy(values) if array_ops.is_lazy(values) else values


def host_diagonal(gram: Oracle) -> np.ndarray:
    """Return the diagonal of K in float64 on the host, shape (n,); rounding below 0 is cut off."""
    return np.maximum(array_ops.to_numpy(gram.diag()), 0.0, dtype=np.float64)

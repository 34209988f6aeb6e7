"""Landmark samplers, by class and by name."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.names import by_name, unknown
from gramian.kernels import Precomputed
from gramian.matrices.gram import Gram
from gramian.rows import objects
from gramian.samplers.base import Landmarks, Sampler
from gramian.samplers.centroids import KMeansCentres, KMeansPlusPlus
from gramian.samplers.csi import CSI
from gramian.samplers.dpp import KDPP
from gramian.samplers.given import GivenIndices, GivenPoints
from gramian.samplers.leverage import BLESS, SQUEAK, LeverageScores, RecursiveLeverage
from gramian.samplers.pivoted import Greedy, RPCholesky, factor_bytes
from gramian.samplers.robust import RobustCentres
from gramian.samplers.uniform import ColumnNorm, Diagonal, Probabilities, Uniform

__all__ = [
    "BLESS",
    "CSI",
    "KDPP",
    "SQUEAK",
    "ColumnNorm",
    "Diagonal",
    "GivenIndices",
    "GivenPoints",
    "Greedy",
    "KMeansCentres",
    "KMeansPlusPlus",
    "Landmarks",
    "LeverageScores",
    "Probabilities",
    "RPCholesky",
    "RecursiveLeverage",
    "RobustCentres",
    "Sampler",
    "Uniform",
    "as_sampler",
    "sampler_names",
]

_BY_NAME: dict[str, type[Sampler]] = by_name(globals(), Sampler)


def sampler_names() -> list[str]:
    """Return the names of samplers, as in ``landmarks="rpcholesky"``.

    See Also
    --------
    as_sampler : makes a sampler from a name.

    Examples
    --------
    >>> from gramian import sampler_names
    >>> "rpcholesky" in sampler_names()
    True
    """
    return ["auto", *_BY_NAME]


def as_sampler(landmarks: str | Sampler | Array, gram: Gram, m: int = 1) -> Sampler:
    """Return a sampler for a name, points, row numbers or a sampler.

    "auto" uses :class:`RobustCentres` if rows are vectors, sparse or dense, and m dense ones take
    at most a sixteenth of the memory budget. Otherwise it uses randomly pivoted Cholesky, or
    uniform draws if the Cholesky factor for m landmarks takes more than half of the budget.

    Parameters
    ----------
    landmarks : str, Sampler or array
    gram : Gram
        The kernel matrix to choose landmarks of.
    m : int, default=1
        The number of landmarks.

    See Also
    --------
    sampler_names : the names it accepts.

    Examples
    --------
    >>> from gramian import Gram, as_sampler
    >>> as_sampler("auto", Gram("linear", [[1.0], [2.0]]))
    RobustCentres()
    """
    sampler = _as_sampler(landmarks, gram, m)
    if not sampler.spreads:
        gram.rows.place.check_whole(type(sampler).__name__)
    return sampler


def _as_sampler(landmarks: str | Sampler | Array, gram: Gram, m: int) -> Sampler:
    if isinstance(landmarks, Sampler):
        return landmarks
    if isinstance(landmarks, str):
        if landmarks == "auto":
            vectors = not isinstance(gram.kernel, Precomputed) and not gram.rows.are_objects
            if vectors and KMeansCentres.are_affordable(gram.rows, m):
                return RobustCentres()
            factor = factor_bytes(gram.rows, m)
            return RPCholesky() if factor <= config.memory_budget() // 2 else Uniform()
        if landmarks in _BY_NAME:
            return _BY_NAME[landmarks]()
        raise unknown("landmarks", landmarks, sampler_names())
    if isinstance(landmarks, type) and issubclass(landmarks, Sampler):
        raise TypeError(f"landmarks must be an object, not a class: write {landmarks.__name__}().")
    if gram.rows.are_objects:
        checked = objects.numbers_or_objects(landmarks, "landmarks")
        return GivenPoints(landmarks) if array_ops.is_objects(checked) else GivenIndices(checked)
    if np.ndim(landmarks) == 1 or getattr(landmarks, "ndim", 0) == 1:
        return GivenIndices(landmarks)
    if getattr(landmarks, "ndim", np.ndim(landmarks)) == 2:
        return GivenPoints(landmarks)
    raise TypeError(
        "landmarks must be a name such as 'kmeans', a sampler such as RPCholesky(), points of "
        f"shape (m, n_columns) or m row numbers; got {landmarks!r}."
    )

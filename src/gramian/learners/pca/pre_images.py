"""Pre-images: a kernel ridge regression from the scores of rows back to the rows."""

from __future__ import annotations

from math import isqrt, log
from typing import TypeAlias

import numpy as np

from gramian.approximations import Approximation, Nystroem
from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.threads import few_blas_threads
from gramian.backend.wording import counted
from gramian.kernels import RBF
from gramian.learners.ridge import KernelRidge
from gramian.matrices.gram import Gram
from gramian.rows import FeatureRows, Rows
from gramian.rows.files.rows import planned_rows

LEAST_LANDMARKS, MOST_LANDMARKS = 100, 1000
_KERNEL = RBF("median")  # of two rows' scores


class PreImages:
    """The regression on many rows, from sums over them in one pass.

    Parameters
    ----------
    approximation : Approximation
        The approximation of the kernel between two rows' scores.
    coefficients : array of shape (n_features, n_columns)
    """

    def __init__(self, approximation: Approximation, coefficients: Array) -> None:
        self.approximation = approximation
        self.coefficients = coefficients

    def predict(self, scores: Array) -> Array:
        return self.approximation.factor(scores).features_matmul(self.coefficients)

    @classmethod
    def learn(cls, rows: Rows, scores: FeatureRows, alpha: float) -> PreImages | KernelRidge:
        """Fit the exact regression if its matrix is small, otherwise one on Nyström features.

        ``scores`` are features of the rows themselves, or of as many rows in memory.
        """
        if _exactly(scores, rows):
            ridge = KernelRidge(alpha, _KERNEL, fit_intercept=False, random_state=0)
            return ridge.fit(scores.collect(), array_ops.dense(rows.collect()))
        nystroem = Nystroem(_KERNEL, _landmarks(*rows.shape))
        approximation = nystroem.fit_rows(scores, np.random.default_rng(0))
        (features,) = approximation.factor_rows(scores).parts
        assert isinstance(features, FeatureRows)
        to_scores, to_features = scores.features, features.features

        def part(x: Array, *stored: Array) -> tuple[Array, Array]:
            z = to_features(to_scores(*(stored or (x,))))
            turned = array_ops.namespace(z).matrix_transpose(z)
            return turned @ z, turned @ array_ops.astype(array_ops.dense(x), z.dtype)

        aligned = () if scores.rows is rows else (rows.place.values(scores.rows),)
        width = scores.shape[1] + 2 * features.shape[1] + 2 * rows.shape[1]
        inner, right = rows.sum(
            part,
            *aligned,
            row_bytes=scores.work_bytes + features.work_bytes + 8 * width,
            serial=scores.serial,
            label="pre-images",
        )
        inner, targets = (np.asarray(array_ops.to_numpy(each)) for each in (inner, right))
        with few_blas_threads(len(inner)):
            solve = linalg.shifted_solver(inner, np.full(rows.shape[1], alpha))
        return cls(approximation, array_ops.like(solve(targets), right))


class OneRow:
    """The pre-image of all scores if the rows do not vary in feature space: their mean.

    Parameters
    ----------
    row : array of shape (n_columns,)
    """

    def __init__(self, row: Array) -> None:
        self.row = row

    @classmethod
    def learn(cls, rows: Rows) -> OneRow:
        xp = rows.xp
        total = rows.sum(lambda x: xp.sum(array_ops.dense(x), axis=0, dtype=xp.float64))
        return cls(total / rows.shape[0])

    def predict(self, scores: Array) -> Array:
        count = np.zeros(np.shape(scores)[0], dtype=np.intp)
        return array_ops.take_rows(self.row[None, :], count)


Inverse: TypeAlias = PreImages | OneRow | KernelRidge


def pre_images_memory(rows: Rows, k: int) -> Amounts:
    """Return the memory of ``PreImages.learn`` for rows with k scores each."""
    n, d = rows.shape
    scores = planned_rows(n, k, np.dtype(np.float64), False)
    if _exactly(scores, rows):
        learned = KernelRidge(1.0, _KERNEL, fit_intercept=False, random_state=0)._estimate(
            scores, n_targets=d
        )
        inputs = {"rows": 8 * n * d, "scores": 2 * 8 * n * k}
        return {**inputs, "regression of pre-images": int(learned)}
    m = _landmarks(n, d)
    return {
        "sums of pre-images": _waiting() * m * (m + d),
        "landmarks of pre-images": 4 * 8 * m**2,
        "blocks": rows.walk_bytes(8 * (k + 2 * m + 2 * d)),
    }


def _exactly(scores: Rows, rows: Rows) -> bool:
    dense = 8 * rows.shape[0] * rows.shape[1]
    return Gram(_KERNEL, scores).fits() and dense <= config.memory_budget() // 4


def _waiting() -> int:
    """Return the bytes per number of a block's result: several blocks' wait to be added."""
    return 8 * (2 * config.n_threads() + 3)


def _landmarks(n: int, d: int) -> int:
    """Return the number of landmarks: √n·log n as in ridge, within limits and the memory budget.

    With m landmarks each block gives two matrices, of shapes (m, m) and (m, d).
    """
    waiting = _waiting()
    room = config.memory_budget() // 4 // waiting
    m = min(n, int(n**0.5 * log(n)), MOST_LANDMARKS, (isqrt(d * d + 4 * room) - d) // 2)
    m = max(m, min(n, LEAST_LANDMARKS))
    config.check_fits(
        waiting * m * (m + d),
        f"pre-images of {counted(d, 'column')}",
        "Set fit_inverse_transform=False",
    )
    return m

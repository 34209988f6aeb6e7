"""Newton directions that are as good as they need to be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MOST_PRODUCTS = 200
LITTLE = 0.25  # of what an iteration has gained
SOLVED = 0.1  # the residual of what may be the last step, relative to the gradient
TINY = np.finfo(float).tiny

Operator = Callable[[np.ndarray, np.ndarray], np.ndarray]


def conjugate_gradients(
    apply: Operator, B: np.ndarray, precondition: Operator, *, tol: float, least: np.ndarray
) -> tuple[np.ndarray, int]:
    """Solve A X = B roughly, column by column; return X and the number of products.

    Both operators get the numbers of the columns that are left: a column ends when its residual is
    within ``tol``, or when its last product has gained little. Conjugate gradients from 0 decrease
    the quadratic model by ½ BᵀX. If the last of k products gained less than a k-th of LITTLE of
    that, a new direction gains more (Nash and Sofer, 1990). A step that gains less than ``least``
    (columns,) may be the last one, so it is solved better.
    """
    X, used = np.zeros_like(B), np.flatnonzero(B.any(axis=0))
    if not len(used):
        return X, 0
    residual = B[:, used]
    direction = precondition(residual, used)
    rz = np.sum(residual * direction, axis=0)
    size, gained = np.linalg.norm(residual, axis=0), np.zeros(len(used))
    for products in range(1, MOST_PRODUCTS + 1):
        image = apply(direction, used)
        length = rz / np.maximum(np.sum(direction * image, axis=0), TINY)
        X[:, used] += length * direction
        residual = residual - length * image
        before, gained = gained, np.sum(B[:, used] * X[:, used], axis=0)
        share = np.where(gained > least[used], LITTLE, LITTLE / 10)
        sizes = np.linalg.norm(residual, axis=0)
        left = products * (gained - before) > share * gained
        left |= (gained <= least[used]) & (sizes > SOLVED * size)
        left &= sizes > tol * size
        if not left.any():
            break
        used, residual, direction = used[left], residual[:, left], direction[:, left]
        size, gained = size[left], gained[left]
        preconditioned = precondition(residual, used)
        rz, before = np.sum(residual * preconditioned, axis=0), rz[left]
        direction = preconditioned + rz / np.maximum(before, TINY) * direction
    return X, products

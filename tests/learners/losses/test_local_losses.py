"""Losses over a matrix that is exact inside blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian import (
    RBF,
    Exact,
    KernelHuberRegressor,
    KernelLogisticRegression,
    KernelOneClass,
    KernelSVR,
    Local,
)


@pytest.mark.parametrize(
    ("learner", "output"),
    [
        (KernelSVR, "predict"),
        (KernelHuberRegressor, "predict"),
        (KernelOneClass, "score_samples"),
        (KernelLogisticRegression, "predict_proba"),
    ],
)
def test_one_block_is_the_exact_kernel(learner, output, rng):
    X, new = rng.standard_normal((80, 3)), rng.standard_normal((9, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(float)
    found = [
        getattr(learner(kernel=kernel).fit(X, y), output)(new)
        for kernel in (Local(RBF(0.5), 1), Exact(RBF(0.5)))
    ]
    assert_allclose(*found, atol=1e-8 * np.abs(found[1]).max())

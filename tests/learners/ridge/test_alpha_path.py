"""Errors along a path of alphas, where rounding could decide them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian import RBF, KernelRidge


@pytest.mark.filterwarnings("ignore::gramian.PathWarning")  # the errors matter, not the best
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
def test_gcv_errors_of_fits_that_nearly_interpolate(intercept, copies):
    """What such a fit misses and what it leaves free both vanish; their ratio does not."""
    rng = np.random.default_rng(0)
    X, alphas, n = rng.standard_normal((40, 3)), [1e-9, 1e-7, 1e-5, 1e-2], 40
    means = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n)
    noise = rng.standard_normal((copies, n))
    noise -= noise.mean(axis=0)
    model = KernelRidge(("gcv", alphas), RBF(2.0), fit_intercept=intercept)
    model.fit(np.tile(X, (copies, 1)), (means + noise).ravel())
    for alpha, error in zip(model.path_.alphas, model.path_.errors, strict=True):
        # The fit of all rows is that of the means with a weight of `copies` each.
        A = np.linalg.inv(RBF(2.0)(X) + alpha / copies * np.eye(n))
        if intercept:
            A -= np.outer(A.sum(axis=0), A.sum(axis=0)) / A.sum()
        missed = alpha / copies * A @ means
        assert_allclose(
            error, n * (missed @ missed) / (alpha / copies * np.trace(A)) ** 2, rtol=1e-6
        )

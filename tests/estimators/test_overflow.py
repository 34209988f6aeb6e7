"""No estimator returns a number that is not finite."""

import numpy as np
import pytest

from gramian import (
    RBF,
    Exact,
    ExponentialDot,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    Linear,
    Nystroem,
    OnlineKernelKMeans,
)

ROWS = np.random.default_rng(0).standard_normal((60, 5))
LARGE = {
    "exponential": ((ROWS + 1e3).astype(np.float32), ExponentialDot()),
    "linear": (1e200 * ROWS, Linear()),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("around", [Exact, lambda kernel: Nystroem(kernel, 10)])
@pytest.mark.parametrize("learner", [KernelRidge, KernelKMeans, KernelPCA])
def test_a_kernel_that_overflows_is_named(learner, around, name):
    X, kernel = LARGE[name]
    with pytest.raises(ValueError, match=r"(Exponential|Linear).*not finite.*StandardScaler"):
        learner(kernel=around(kernel)).fit(X, X[:, 0] > 0)


def test_clusters_whose_number_is_unknown():
    X, kernel = LARGE["linear"]
    with pytest.raises(ValueError, match=r"Linear.*not finite"):
        OnlineKernelKMeans(kernel=Nystroem(kernel, 10)).fit(X)


@pytest.mark.parametrize("learner", [KernelRidge, KernelPCA])
@pytest.mark.parametrize("kernel", [Exact(Linear()), Nystroem(Linear(), 4, random_state=0)])
def test_new_rows_that_overflow(learner, kernel):
    model = learner(kernel=kernel).fit(ROWS, ROWS[:, 0])
    apply = model.predict if hasattr(model, "predict") else model.transform
    with pytest.raises(ValueError, match=r"Linear.*not finite"), np.errstate(all="ignore"):
        apply(np.full((3, 5), 1e308))


def test_features_that_overflow():
    model = Nystroem(Linear(), 4, random_state=0).fit(ROWS)
    with pytest.raises(ValueError, match=r"Linear.*not finite"), np.errstate(all="ignore"):
        model.transform(np.full((3, 5), 1e308))


def test_distances_that_overflow_are_infinite_and_their_kernel_values_0():
    X = 1e160 * ROWS
    with np.errstate(all="ignore"):
        K = RBF(1.0)(X)
    np.testing.assert_array_equal(K, np.eye(len(X)))

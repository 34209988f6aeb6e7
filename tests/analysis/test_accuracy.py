"""Intervals of sampled errors contain the error; the laws of relative_error itself are with the
approximations."""

import numpy as np
import pytest

from gramian import BKA, RBF, Nystroem, RandomFourier, relative_error
from gramian.analysis import accuracy

SEEDS = 40


def with_clump():
    """Rows of which a few, close together, are far from the others: they carry the error."""
    X = np.random.default_rng(0).standard_normal((1500, 3))
    X[:15] = 9 + 0.05 * X[:15]
    return X


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(accuracy, "SAMPLED_ROWS", 150)


def covered(approximation, X, norm):
    """How often the interval contains the exact error, and the median ratio of its ends."""
    exact = float(relative_error(approximation, X, norm, exact=True))
    errors = [
        relative_error(approximation, X, norm, exact=False, random_state=seed)
        for seed in range(SEEDS)
    ]
    ratio = np.median([error.high / error.low for error in errors])
    return np.mean([error.low <= exact <= error.high for error in errors]), ratio


@pytest.mark.slow
@pytest.mark.parametrize(
    "approximation",
    [
        # Landmarks that leave out the clump.
        Nystroem(RBF(0.05), landmarks=np.arange(20, 80)),
        Nystroem(RBF(0.5), 50, landmarks="uniform", random_state=0),
        BKA(RBF(0.5), 60, n_blocks=4, random_state=0),
        RandomFourier(RBF(0.5), 100, random_state=0),
    ],
)
def test_frobenius_intervals_cover(approximation):
    X = with_clump()
    share, ratio = covered(approximation.fit(X), X, "fro")
    assert share >= 0.85  # 95 % of 40, less three standard deviations
    assert ratio < 2


def test_a_uniform_sample_would_miss_the_clump(monkeypatch):
    X = with_clump()
    approximation = Nystroem(RBF(0.05), landmarks=np.arange(20, 80)).fit(X)
    monkeypatch.setattr(Nystroem, "below", False)
    assert covered(approximation, X, "fro")[0] < 0.85


@pytest.mark.slow
@pytest.mark.parametrize(
    "approximation",
    [Nystroem(RBF(0.5), 50, random_state=0), RandomFourier(RBF(0.5), 100, random_state=0)],
)
def test_spectral_bounds_contain_the_error(approximation):
    X = with_clump()
    share, ratio = covered(approximation.fit(X), X, "spectral")
    assert share >= 0.95
    assert 1 < ratio < 100


def test_tol_stops_where_the_error_is_reached():
    X = with_clump()
    loose, tight = (Nystroem(RBF(0.5), 10, tol=tol, random_state=0).fit(X) for tol in (0.1, 0.01))
    for model, tol in ((loose, 0.1), (tight, 0.01)):
        error = float(relative_error(model, X, "trace"))
        assert tol / 2 < error <= tol
    assert 10 < loose.n_components_ < tight.n_components_

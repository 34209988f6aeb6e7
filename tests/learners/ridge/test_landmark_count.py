"""The landmarks of the default approximation follow the effective dimension."""

import numpy as np

from gramian import RBF, Gram, KernelRidge, KernelRidgeClassifier, Nystroem
from gramian.backend.config import config_context
from gramian.learners.ridge import landmark_count
from gramian.learners.ridge.landmark_count import LandmarkCount, least_landmarks, most_landmarks


def clusters(n, count=150, seed=0):
    """Return rows in many small clusters, whose classes are drawn from 26: a slow spectrum."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.standard_normal((count, 10))
    member = rng.integers(count, size=n)
    return centres[member] + 0.5 * rng.standard_normal((n, 10)), member % 26


def one_hot(y):
    return (y[:, None] == np.unique(y)).astype(float)


def counted(X, Y, alphas=None, most=10**6, **known):
    rng = np.random.default_rng(0)
    return LandmarkCount(alphas, most, **known)(Gram(RBF(0.1), X), rng, Y)


def test_counts_lie_between_the_rate_and_a_multiple_and_do_not_raise_long_fits():
    for n in (2, 20, 9000, 10**5, 10**7):
        least, most = least_landmarks(n), most_landmarks(n)
        assert least <= most <= min(2 * least, n)
    assert most_landmarks(9000) == 2 * least_landmarks(9000)
    assert most_landmarks(10**5) == least_landmarks(10**5) == int(10**2.5 * np.log(10**5))


def test_smooth_targets_take_the_usual_count_and_many_clusters_more(monkeypatch):
    monkeypatch.setattr(landmark_count, "SAMPLED", 400)
    X, y = clusters(1500)
    line = np.linspace(0, 6, 1500)[:, None]
    usual = least_landmarks(1500)
    assert counted(line, np.sin(line[:, 0])) == usual
    assert counted(X, one_hot(y)) > 1.4 * usual
    assert counted(X, one_hot(y), most=usual + 7) == usual + 7
    assert counted(X, None) == usual
    assert counted(X[:150], one_hot(y)[:150]) == least_landmarks(150)  # too few for a sample


def test_the_count_is_that_of_the_dense_effective_dimension():
    X, y = clusters(300)
    alpha, weights = 0.3, np.random.default_rng(1).uniform(0.5, 2, 300)
    root = np.sqrt(weights)[:, None]
    values = np.linalg.eigvalsh(np.asarray(RBF(0.1)(X)) * root * root.T)
    dimension = np.sum(values / (values + alpha))
    found = counted(X, one_hot(y), np.array([alpha]), weights=weights)  # all rows are the sample
    assert found == round(least_landmarks(300) * dimension / (np.sqrt(300) * np.log(300)))


def test_of_several_alphas_the_best_counts():
    X, y = clusters(400)
    each = [counted(X, one_hot(y), np.array([alpha])) for alpha in (0.1, 1e3)]
    assert each[0] > each[1] == least_landmarks(400)
    assert counted(X, one_hot(y), np.array([0.1, 1e3])) == each[0]


def test_a_fit_uses_the_count():
    X, y = clusters(1500)
    with config_context(memory_budget="64MB"):  # too little for the exact matrix
        model = KernelRidgeClassifier(0.1, RBF(0.1), random_state=0).fit(X, y)
        smooth = KernelRidge(100.0, RBF(0.1), random_state=0).fit(X, X[:, 0])
    assert len(model.approximation_.landmarks_) == most_landmarks(1500)
    assert len(smooth.approximation_.landmarks_) == least_landmarks(1500)
    assert smooth.approximation_.n_components == least_landmarks(1500)


def test_a_given_approximation_is_left_alone():
    X, y = clusters(600)
    model = KernelRidgeClassifier(0.1, Nystroem(RBF(0.1), 30), random_state=0).fit(X, y)
    assert len(model.approximation_.landmarks_) == 30

"""Probabilities of the ridge classifier: scores of left-out rows, and what they become."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import gramian
from gramian import BKA, MEKA, RBF, KernelRidgeClassifier, Local, Nystroem, config_context
from gramian.learners.ridge import classifier
from gramian.learners.ridge.calibration import Calibration, sample_size

KERNEL = RBF(0.3)
KERNELS = {
    "exact": KERNEL,
    "Nyström": Nystroem(KERNEL, 20, random_state=0),
    "blocks": BKA(KERNEL, 24, n_blocks=3, random_state=0),
    "links": MEKA(KERNEL, 24, n_blocks=3, random_state=0),
    "local": Local(Nystroem(KERNEL, 15, random_state=0), 3, random_state=0),
}


def table(classes, n=90):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    noisy = X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.standard_normal(n)
    y = np.digitize(noisy, np.quantile(noisy, np.arange(1, classes) / classes))
    return X, y, rng.exponential(1.0, n)


def scores_of_left_out_rows(model, X, y, weights, monkeypatch):
    """Fit, and return the scores to which probabilities are fitted."""
    seen = []

    def fitted(scores, members, weights):
        seen.append(scores)
        return Calibration(1.0)

    monkeypatch.setattr(classifier.Calibration, "fitted", fitted)
    model.fit(X, y, weights)
    return seen[0]


@pytest.mark.parametrize(("weighted", "intercept"), [(False, True), (True, False), (True, True)])
@pytest.mark.parametrize("alpha", [0.2, ("loo", [0.2]), [0.2, 0.1, 0.2]])
@pytest.mark.parametrize("name", KERNELS)
def test_scores_are_those_of_fits_without_the_row(name, alpha, weighted, intercept, monkeypatch):
    X, y, weights = table(3)
    kernel = KERNELS[name] if name == "exact" else clone(KERNELS[name]).fit(X)
    model = KernelRidgeClassifier(alpha, kernel, fit_intercept=intercept, random_state=0)
    scores = scores_of_left_out_rows(model, X, y, weights if weighted else None, monkeypatch)
    assert scores.shape == (90, 3)
    w = weights if weighted else np.ones(90)
    for i in (0, 17, 60):
        without = clone(model).fit(X, y, np.where(np.arange(90) == i, 0.0, w))
        assert_allclose(scores[i], without.decision_function(X[i : i + 1])[0], atol=1e-6)


def test_an_iteration_over_features_estimates_leverage(monkeypatch):
    X, y, _ = table(3, 1000)
    fitted = clone(KERNELS["Nyström"]).fit(X)
    direct, iterative = (
        scores_of_left_out_rows(
            KernelRidgeClassifier(0.1, fitted, solver=solver, random_state=0),
            X, y, None, monkeypatch,
        )
        for solver in ("direct", "iterative")
    )  # fmt: skip
    seen = KernelRidgeClassifier(0.1, fitted).fit(X, y).decision_function(X)
    assert np.abs(iterative - direct).max() < 0.1 * np.abs(seen[: len(direct)] - direct).max()


@pytest.mark.parametrize(
    "params", [{"solver": "iterative"}, {"solver": "auto", "validation_fraction": 0.2}]
)
@pytest.mark.parametrize("name", ["exact", "links", "Nyström"])
def test_iterations(name, params):
    X, y, _ = table(2, 200)
    model = KernelRidgeClassifier(0.1, KERNELS[name], random_state=0, **params).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (200, 2)
    assert_allclose(p.sum(axis=1), 1.0)
    assert log_loss(y, p) < 0.6
    assert ((p[:, 1] > 0.5) == y).mean() > 0.75


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_calibrated(classes, tmp_path):
    X, y, _ = table(classes, 3000)
    model = KernelRidgeClassifier(0.1, Nystroem(KERNEL, 100, random_state=0)).fit(
        X[:1500], y[:1500]
    )
    p = model.predict_proba(X[1500:])
    assert_allclose(p.sum(axis=1), 1.0)
    sure = p.max(axis=1)
    right = p.argmax(axis=1) == y[1500:]
    assert (model.predict(X[1500:]) == p.argmax(axis=1)).all()
    assert abs(sure.mean() - right.mean()) < 0.03
    assert_allclose(model.predict_log_proba(X[:5]), np.log(model.predict_proba(X[:5])))
    gramian.save(model, tmp_path / "model")
    assert_allclose(
        gramian.load(tmp_path / "model").predict_proba(X[:9]), model.predict_proba(X[:9])
    )


def test_scores_of_seen_rows_would_be_too_sure():
    """With a small alpha, an exact fit meets its targets; left-out rows tell the truth."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    model = KernelRidgeClassifier(1e-3, RBF(0.05)).fit(X[:600], y[:600])
    left = log_loss(y[600:], model.predict_proba(X[600:]))
    seen = Calibration.fitted(
        model.decision_function(X[:600]), np.eye(10)[y[:600]], np.ones(600)
    ).probabilities(model.decision_function(X[600:]))
    assert 1.2 * left < log_loss(y[600:], seen)


def test_batches_have_no_probabilities():
    X, y, _ = table(2)
    model = KernelRidgeClassifier(0.1, KERNELS["Nyström"]).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(AttributeError, match="predict_proba") as raised:
        model.predict_proba(X)
    assert "after partial_fit: use fit" in str(raised.value.__cause__)
    assert hasattr(model.fit(X, y), "predict_proba")


def test_few_rows_are_left_out_of_many():
    assert sample_size(100, 1) == 100
    assert sample_size(4000, 1) == 1000
    assert sample_size(10**7, 3) == 1000
    assert sample_size(10**7, 10_000) == 400


def test_weights_count_rows():
    """Scores and labels of weighted rows are those of repeated ones; probabilities nearly so."""
    X, y, _ = table(3)
    counts = np.random.default_rng(1).integers(0, 3, len(X))
    model = KernelRidgeClassifier(0.1, KERNEL)
    weighted = clone(model).fit(X, y, counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-8)
    assert (weighted.predict(X) == repeated.predict(X)).all()


def test_very_many_classes_come_in_batches():
    """Targets of all rows and classes are too large, but sums over batches are small."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((300, 5))
    y = np.concatenate((np.arange(300), rng.integers(0, 300, 2700)))
    X = centres[y] + 0.1 * rng.standard_normal((3000, 5))
    kernel = Nystroem(RBF(0.5), 60, random_state=0).fit(X)
    whole = KernelRidgeClassifier(0.1, kernel).fit(X, y)
    assert whole.score(X, y) > 0.3  # chance is 0.003
    batches = KernelRidgeClassifier(0.1, kernel)
    with config_context(memory_budget="20MB"):
        with pytest.raises(gramian.MemoryBudgetError, match=r"Use KernelLogisticRegression.*batch"):
            KernelRidgeClassifier(0.1, kernel).fit(X, y)
        for part in np.array_split(np.arange(3000), 3):
            batches.partial_fit(X[part], y[part], classes=np.arange(300))
    assert_allclose(batches.coef_, whole.coef_, atol=1e-8)
    assert_allclose(batches.intercept_, whole.intercept_, atol=1e-8)


def test_few_classes_are_told_to_use_fewer_features():
    kernel = Nystroem(RBF(0.5), 1500, landmarks="uniform", random_state=0)
    refused = pytest.raises(gramian.MemoryBudgetError, match="Use fewer n_components")
    with config_context(memory_budget="20MB"), refused:
        KernelRidgeClassifier(0.1, kernel).fit(np.eye(2000, 5), np.arange(2000) % 2)

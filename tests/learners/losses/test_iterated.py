"""Steps that take passes over the rows: what the preconditioners of several classes are worth."""

import numpy as np
from numpy.testing import assert_allclose

from gramian import RBF, KernelLogisticRegression, Nystroem, config_context
from gramian.learners.losses import iterated
from gramian.learners.losses.classification import Multinomial
from gramian.learners.losses.walks import Walks


def rare_classes(rng):
    """Rows of six classes, of which some are rare."""
    y = rng.choice(6, 3000, p=[0.6, 0.3, 0.05, 0.03, 0.01, 0.01])
    y[:6] = np.arange(6)
    return rng.standard_normal((6, 4))[y] + 0.7 * rng.standard_normal((3000, 4)), y


def fitted(X, y, monkeypatch):
    """Return a model, and how many passes over all rows it took."""
    passes = []
    for name in ("evaluate", "curve"):
        walk = getattr(Walks, name)

        def counted(self, *args, walk=walk):
            passes.append(self.walked.shape[0] == len(X))
            return walk(self, *args)

        monkeypatch.setattr(Walks, name, counted)
    kernel = Nystroem(RBF(0.5), 60, random_state=0)
    model = KernelLogisticRegression(1e-3, kernel, random_state=0).fit(X, y)
    monkeypatch.undo()
    return model, sum(passes)


def test_rare_classes_take_fewer_passes_with_preconditioners_of_their_own(rng, monkeypatch):
    X, y = rare_classes(rng)
    own, few = fitted(X, y, monkeypatch)
    monkeypatch.setattr(iterated, "SEPARATE", 0.0)
    shared, many = fitted(X, y, monkeypatch)
    assert few < 0.7 * many
    assert_allclose(own.objective_, shared.objective_, rtol=3e-6)
    # The penalty is least where the scores of all classes have the mean 0.
    assert np.abs(own.coef_.mean(axis=1)).max() < 1e-6 * np.abs(own.coef_).max()


def test_scores_of_all_classes_that_change_alike_change_no_loss(rng):
    loss, f, y = Multinomial(3), rng.standard_normal((5, 3)), np.array([[0.0, 1, 2, 0, 1]]).T
    V = rng.standard_normal((5, 3))
    assert_allclose(loss.value(y, f + V), loss.value(y, f + loss.effective(V)), rtol=1e-12)
    assert_allclose(loss.effective(np.ones((4, 3))), 0.0, atol=1e-15)


def test_preconditioners_of_many_classes_fit_the_budget():
    model = KernelLogisticRegression(1.0, Nystroem("rbf", 300, random_state=0))
    estimates = []
    for budget in ("30MB", "1GB"):
        with config_context(memory_budget=budget):
            estimates.append(model.estimate_memory(5000, 5, dtype="float32", n_targets=20))
            assert estimates[-1].fits()
    one, each = (estimate.parts["preconditioner"] for estimate in estimates)
    assert each - one == 19 * 2 * 8 * 300**2

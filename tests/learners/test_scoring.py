"""Scores of supervised learners with tensors, on the GPU if there is one."""

import numpy as np
import pytest
from on_device import DEVICE, torch
from sklearn.metrics import accuracy_score, r2_score

from gramian import RBF, KernelRidge, KernelRidgeClassifier, KernelSVC, KernelSVR

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
VALUES = np.sin(X[:, 0])
CLASSES = (VALUES > 0).astype(int)
WEIGHTS = RNG.uniform(0.1, 2.0, 60)


@pytest.mark.parametrize(
    ("learner", "y", "metric"),
    [
        (KernelRidge(0.1, RBF(0.5)), VALUES, r2_score),
        (KernelSVR(0.1, RBF(0.5)), VALUES, r2_score),
        (KernelRidgeClassifier(10.0, RBF(0.1)), CLASSES, accuracy_score),
        (KernelSVC(10.0, RBF(0.1)), CLASSES, accuracy_score),
    ],
)
def test_tensors_are_scored_as_arrays_are(learner, y, metric):
    learner.fit(X, y)
    there = [torch.asarray(one, device=DEVICE) for one in (X, y, WEIGHTS)]
    model = type(learner)(**learner.get_params(deep=False)).fit(there[0], there[1])
    there[2].requires_grad_()  # NumPy refuses it, as it does tensors on a GPU
    expected = metric(y, learner.predict(X), sample_weight=WEIGHTS)
    assert model.score(there[0], there[1], there[2]) == pytest.approx(expected, abs=1e-9)
    assert learner.score(X, y) == pytest.approx(metric(y, learner.predict(X)), abs=1e-12)

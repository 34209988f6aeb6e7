"""Score a learner that uses an approximation: its predictions or its clusters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score

from gramian.analysis.comparison.data import Sample, are_classes
from gramian.backend import array_ops
from gramian.backend.checks import positive_integer
from gramian.backend.threads import few_blas_threads, one_blas_thread
from gramian.backend.wording import counted
from gramian.kernels import Kernel
from gramian.learners import KernelKMeans, KernelRidge, KernelRidgeClassifier
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows

# Choosing alpha decomposes the whole matrix. Above this many rows, the exact learner uses the alpha
# that was chosen with the most accurate approximation.
DECOMPOSED_ROWS = 1500


class Task(ABC):
    """A learner and its score."""

    learner: Any
    score_name: str
    centred: bool = False  # whether the mean is taken off the target
    codes: np.ndarray | None = None  # the target in numbers, for samplers that look at it

    @abstractmethod
    def score(self, approximation: Any, seed: int, error: float) -> float:
        """Score the learner with a fitted approximation, whose relative error is ``error``."""

    @abstractmethod
    def exact_score(self, kernel: Any) -> float:
        """Score the learner with the exact kernel; called after the approximations."""


def task_for(
    sample: Sample, kernel: Kernel, learner: Any, n_clusters: int | None, seed: int
) -> Task | None:
    if sample.target is None:
        if learner is not None:
            raise ValueError(
                f"learner={learner!r:.80} of compare needs a target: pass y. Without one, "
                "n_clusters gives the score of kernel k-means."
            )
        return None if n_clusters is None else Clusters(sample.rows, kernel, n_clusters, seed)
    if n_clusters is not None:
        raise ValueError(
            "compare scores either predictions of a target y or n_clusters clusters; got both. "
            "Omit one of them."
        )
    return Predictions(sample, learner)


class Predictions(Task):
    """Predictions on held-out rows: accuracy or R²."""

    def __init__(self, sample: Sample, learner: Any) -> None:
        assert sample.target is not None
        self.sample = sample
        self.centred = learner is None and not are_classes(sample.target)
        if learner is None:
            learner = KernelRidge("loo") if self.centred else KernelRidgeClassifier("loo")
        self.learner = _checked(learner)
        self.score_name = "accuracy" if is_classifier(learner) else "R²"
        self.offset = sample.target.mean(axis=0) if self.centred else None
        self.codes = _codes(sample.target) if is_classifier(learner) else sample.target
        self._alpha: tuple[float, Any] = (np.inf, None)  # that of the least error so far

    def score(self, approximation: Any, seed: int, error: float) -> float:
        with one_blas_thread():  # small systems, one after the other
            model, score = self._fitted(self.learner, approximation, seed)
        if hasattr(model, "alpha_") and error < self._alpha[0]:
            self._alpha = error, model.alpha_
        return score

    def exact_score(self, kernel: Any) -> float:
        learner, n = clone(self.learner), self.sample.rows.shape[0]
        chosen = isinstance(getattr(learner, "alpha", None), str | tuple)
        if chosen and n > DECOMPOSED_ROWS and self._alpha[1] is not None:
            learner.set_params(alpha=self._alpha[1])
        with few_blas_threads(n):
            return self._fitted(learner, kernel, 0)[1]

    def _fitted(self, learner: Any, kernel: Any, seed: int) -> tuple[Any, float]:
        model = clone(learner).set_params(kernel=kernel)
        if "random_state" in model.get_params(deep=False) and model.random_state is None:
            model.set_params(random_state=seed)
        sample, target = self.sample, self.sample.target
        model.fit(sample.rows, target if self.offset is None else target - self.offset)
        predicted = np.asarray(array_ops.to_numpy(model.predict(sample.new_rows)))
        if self.offset is not None:
            predicted = predicted + self.offset
        measure = accuracy_score if self.score_name == "accuracy" else r2_score
        return model, float(measure(sample.new_target, predicted))


def _checked(learner: Any) -> Any:
    predicts = is_classifier(learner) or is_regressor(learner)
    if isinstance(learner, type) or not predicts or "kernel" not in learner.get_params(deep=False):
        raise TypeError(
            "learner of compare must be a classifier or regressor with a parameter kernel, such as "
            f"KernelRidge(alpha=0.1); got {learner!r:.100}."
        )
    return learner


def _codes(labels: np.ndarray) -> np.ndarray:
    """Return one indicator column per class."""
    numbers = np.unique(labels, return_inverse=True)[1].ravel()
    return (numbers[:, None] == np.unique(numbers)).astype(np.float64)


class Clusters(Task):
    """Clusters of kernel k-means: the fraction of variance they explain, by the exact kernel."""

    score_name = "explained scatter"

    def __init__(self, rows: ArrayRows, kernel: Kernel, n_clusters: int, seed: int) -> None:
        count = positive_integer("compare", "n_clusters", n_clusters)
        if count > rows.shape[0]:
            raise ValueError(
                f"n_clusters={count} of compare exceeds the {counted(rows.shape[0], 'row')} "
                "measured."
            )
        self.learner = KernelKMeans(count, random_state=seed)
        self.rows = rows
        self.gram = Gram(kernel, rows).persist()
        ones = np.ones((rows.shape[0], 1))
        self.trace = self.gram.trace()
        self.scatter = self.trace - self._sum_of_squares(ones)

    def score(self, approximation: Any, seed: int, error: float = 0.0) -> float:
        model = clone(self.learner).set_params(kernel=approximation, random_state=seed)
        labels = np.asarray(array_ops.to_numpy(model.fit(self.rows).labels_))
        members = (labels[:, None] == np.unique(labels)).astype(np.float64)
        left = self.trace - self._sum_of_squares(members)
        return 1.0 - left / self.scatter if self.scatter > 0 else 0.0

    def exact_score(self, kernel: Any) -> float:
        return self.score(kernel, self.learner.random_state)

    def _sum_of_squares(self, members: np.ndarray) -> float:
        """Σ_c |C| ‖mean of C‖² in feature space, for the clusters in the columns."""
        V = members / np.sqrt(members.sum(axis=0))
        images = array_ops.to_numpy(self.gram.matmul(V))
        return float(np.sum(V * images))

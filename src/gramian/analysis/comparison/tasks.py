"""What is asked of an approximation: predictions of held-out rows, or clusters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold

from gramian.analysis.clusters import ClusterScore
from gramian.analysis.comparison.data import Sample, are_classes, codes
from gramian.backend import array_ops
from gramian.backend.checks import positive_integer
from gramian.backend.threads import few_blas_threads
from gramian.backend.wording import counted
from gramian.kernels import Kernel
from gramian.learners import KernelKMeans, KernelRidge, KernelRidgeClassifier
from gramian.learners.base import KernelLearner
from gramian.rows import ArrayRows

# Choosing alpha decomposes the whole matrix. Above this many rows, the exact learner uses the alpha
# that was chosen with the most accurate approximation.
DECOMPOSED_ROWS = 1500
FOLDS = 3
FOLDED_ROWS = 1500  # rows of the cross-validation


class Score(NamedTuple):
    value: float
    standard_error: float | None = None  # of a score on held-out rows


class Task(ABC):
    """A learner and its score."""

    learner: Any
    score_name: str
    fits_first = False  # whether the learner takes fitted approximations only
    codes: np.ndarray | None = None  # the target in numbers, for samplers that look at it

    @abstractmethod
    def model(self, kernel: Any, seed: int) -> Any:
        """Return the unfitted learner that uses a kernel or approximation."""

    @abstractmethod
    def score(self, model: Any) -> Score:
        """Fit a model to the rows and score it."""

    def exact_model(self, kernel: Any, like: Any) -> Any:
        """Return the learner for the exact kernel; ``like`` is the most accurate fitted model."""
        return self.model(kernel, 0)


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
    if learner is not None:
        return Predictions(sample, learner)
    if are_classes(sample.target):
        return Predictions(sample, KernelRidgeClassifier("loo"))
    return Predictions(sample, KernelRidge("loo"))


class Predictions(Task):
    """Predictions on held-out rows: accuracy or R²."""

    def __init__(self, sample: Sample, learner: Any) -> None:
        assert sample.target is not None
        self.sample = sample
        self.learner = _checked(learner)
        self.fits_first = not isinstance(learner, KernelLearner)
        self.score_name = "accuracy" if is_classifier(learner) else "R²"
        self.codes = codes(sample.target) if is_classifier(learner) else sample.target

    def model(self, kernel: Any, seed: int) -> Any:
        return self._around(self.learner, kernel, seed)

    def exact_model(self, kernel: Any, like: Any) -> Any:
        learner, n = clone(self.learner), self.sample.rows.shape[0]
        chosen = isinstance(getattr(learner, "alpha", None), str | tuple)
        if chosen and n > DECOMPOSED_ROWS and hasattr(like, "alpha_"):
            learner.set_params(alpha=float(f"{like.alpha_:.3g}"))
        return self._around(learner, kernel, 0)

    def _around(self, learner: Any, kernel: Any, seed: int) -> Any:
        model = clone(learner).set_params(kernel=kernel)
        if "random_state" in model.get_params(deep=False) and model.random_state is None:
            model.set_params(random_state=seed)
        return model

    def score(self, model: Any) -> Score:
        sample = self.sample
        with few_blas_threads(sample.rows.shape[0]):
            model.fit(sample.rows, sample.target)
            predicted = np.asarray(array_ops.to_numpy(model.predict(sample.new_rows)))
        return scored(self.score_name, sample.new_target, predicted)

    def folds(self, seed: int) -> list[Predictions]:
        """Return the same task on parts of the training rows, for choosing the kernel."""
        rows, target = self.sample.rows, self.sample.target
        assert target is not None
        some = np.random.default_rng(seed).permutation(rows.shape[0])[:FOLDED_ROWS]
        by_class = is_classifier(self.learner)
        if by_class and np.unique(target[some], return_counts=True)[1].min() < FOLDS:
            by_class = False
        folding = StratifiedKFold(FOLDS) if by_class else KFold(FOLDS)
        parts = [
            Sample(
                ArrayRows(rows.take(some[fit])),
                target[some[fit]],
                ArrayRows(rows.take(some[new])),
                target[some[new]],
            )
            for fit, new in folding.split(some, target[some] if by_class else None)
        ]
        return [Predictions(part, self.learner) for part in parts]


def scored(name: str, target: Any, predicted: np.ndarray) -> Score:
    """Return the accuracy or R² of predictions, with its standard error."""
    if name == "accuracy":
        value, n = float(accuracy_score(target, predicted)), len(target)
        share = (value * n + 1) / (n + 2)  # a row more of each kind: no score is certain
        return Score(value, float(np.sqrt(share * (1 - share) / n)))
    value = float(r2_score(target, predicted))
    target, predicted = (np.asarray(v, float).reshape(len(v), -1) for v in (target, predicted))
    missed, spread = (target - predicted) ** 2, (target - target.mean(axis=0)) ** 2
    total = spread.sum(axis=0)
    total[total == 0] = np.inf
    # R² is 1 minus a ratio of two sums over rows; this is what each row adds to its error.
    parts = (missed - missed.sum(axis=0) / total * spread) / total
    return Score(value, float(np.sqrt(np.sum(parts.mean(axis=1) ** 2))))


def _checked(learner: Any) -> Any:
    predicts = is_classifier(learner) or is_regressor(learner)
    if isinstance(learner, type) or not predicts or "kernel" not in learner.get_params(deep=False):
        raise TypeError(
            "learner of compare must be a classifier or regressor with a parameter kernel, such as "
            f"KernelRidge(alpha=0.1); got {learner!r:.100}."
        )
    return learner


class Clusters(Task):
    """Clusters of kernel k-means: the share of variance they explain, by the exact kernel."""

    score_name = "share of variance"

    def __init__(self, rows: ArrayRows, kernel: Kernel, n_clusters: int, seed: int) -> None:
        count = positive_integer("compare", "n_clusters", n_clusters)
        if count > rows.shape[0]:
            raise ValueError(
                f"n_clusters={count} of compare exceeds the {counted(rows.shape[0], 'row')} "
                "measured."
            )
        self.learner = KernelKMeans(count, random_state=seed)
        self.rows = rows
        self.share = ClusterScore(kernel, rows)

    def model(self, kernel: Any, seed: int) -> Any:
        return clone(self.learner).set_params(kernel=kernel, random_state=seed)

    def score(self, model: Any) -> Score:
        labels = model.fit(self.rows).labels_
        return Score(self.share(np.asarray(array_ops.to_numpy(labels))))

    def exact_model(self, kernel: Any, like: Any) -> Any:
        return self.model(kernel, self.learner.random_state)

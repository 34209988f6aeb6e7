"""Class labels, and the weights of classes, as classifiers read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.wording import shown
from gramian.learners.base import missing_target
from gramian.learners.strategy import Problem
from gramian.rows.reading import as_labels

MOST_ENCODED = 256  # classes that samplers see as one column each


def two_or_more(owner: object, classes: np.ndarray) -> np.ndarray:
    if len(classes) < 2:
        raise ValueError(
            f"{type(owner).__name__} needs rows of at least 2 classes; y holds only one class: "
            f"{listed(classes)}."
        )
    return classes


def listed(labels: np.ndarray) -> str:
    return ", ".join(map(shown, labels))


def class_labels(owner: object, y: Array | None) -> Array:
    if y is None:
        missing_target(owner)
    labels = as_labels(y)
    if array_ops.is_foreign(labels):
        return labels
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def codes(y: Array | None) -> np.ndarray | None:
    """Encode class labels as one-hot columns (n, n_classes), for samplers that use the target.

    For very many classes, all columns are the numbers of the classes: the shape states how many
    there are, without their memory.
    """
    if y is None:
        return None
    classes, numbers = np.unique(array_ops.to_numpy(y), return_inverse=True)
    numbers = numbers.reshape(-1, 1)
    if len(classes) > MOST_ENCODED:
        return np.broadcast_to(numbers.astype(np.float64), (len(numbers), len(classes)))
    return (numbers == np.arange(len(classes))).astype(np.float64)


def weighted_by_class(owner: Any, problem: Problem, labels: Array) -> Array | None:
    """Return the weights of a problem times those of ``owner.class_weight``, aligned with rows."""
    if owner.class_weight is None:
        return problem.weights
    labels = array_ops.to_numpy(labels)
    weights = np.ones(len(labels))
    if problem.weights is not None:
        weights = array_ops.to_numpy(problem.weights)
    weights = weights * _class_weights(owner.class_weight, labels, weights)
    rows = problem.rows
    return rows.place.align(weights, rows.xp.float64)


def _class_weights(class_weight: Any, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the class weight of each row (n,); in "balanced", weight 2 counts as two rows."""
    if class_weight != "balanced":
        return compute_sample_weight(class_weight, labels)
    numbers = np.unique(labels, return_inverse=True)[1]
    mass = np.bincount(numbers, weights=weights)
    return (weights.sum() / (np.count_nonzero(mass) * np.maximum(mass, 1e-300)))[numbers]


def class_of(scores: Array, classes: np.ndarray) -> Array:
    """Return the class with the largest score (n, n_classes); of two classes, by the sign (n,)."""
    xp = array_ops.namespace(scores)
    if scores.ndim == 1:
        return array_ops.look_up(classes, array_ops.astype(scores > 0, xp.int64))
    return array_ops.look_up(classes, xp.argmax(scores, axis=1))

"""Models without a kernel, which a kernel has to beat: are kernels worth it here?"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from threadpoolctl import threadpool_limits

from gramian.analysis.comparison.measurements import Baseline
from gramian.analysis.comparison.tasks import Predictions, scored
from gramian.backend import array_ops
from gramian.kernels import Kernel


class _Kind(NamedTuple):
    name: str
    classifier: Callable[[], Any]
    regressor: Callable[[], Any]


def _boosting(name: str) -> Any:
    from sklearn import ensemble  # takes long to import

    return getattr(ensemble, name)(random_state=0)


KINDS = (
    _Kind(
        "Gradient boosting",
        lambda: _boosting("HistGradientBoostingClassifier"),
        lambda: _boosting("HistGradientBoostingRegressor"),
    ),
    _Kind("Linear model", RidgeClassifierCV, RidgeCV),
    _Kind("Dummy", DummyClassifier, DummyRegressor),
)
NAMES = tuple(kind.name for kind in KINDS)


def can_be_measured(kernel: Kernel, task: Any) -> bool:
    """Whether there is a target, and rows that any model understands."""
    predicts = isinstance(task, Predictions)
    return predicts and not kernel.is_matrix and not task.sample.rows.are_objects


def measure(name: str, task: Predictions, growth: float) -> Baseline:
    """Fit a baseline to the training rows and score it; ``growth`` is of all rows to these."""
    kind = KINDS[NAMES.index(name)]
    sample = task.sample
    assert sample.new_rows is not None
    model = kind.classifier() if is_classifier(task.learner) else kind.regressor()
    rows, new = (_plain(part) for part in (sample.rows, sample.new_rows))
    start = perf_counter()
    with threadpool_limits(1):  # on a busy machine, threads wait for each other for a long time
        model.fit(rows, sample.target)
        predicted = np.asarray(model.predict(new))
    seconds = perf_counter() - start
    score = scored(task.score_name, sample.new_target, predicted)
    return Baseline(
        name=name,
        seconds=seconds,
        seconds_all=seconds * growth,
        score=score.value,
        standard_error=score.standard_error or 0.0,
        model=clone(model),
    )


def _plain(rows: Any) -> Any:
    data = rows.collect()
    return data if array_ops.issparse(data) else np.asarray(array_ops.to_numpy(data))

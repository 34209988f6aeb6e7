"""``tune``: the public function."""

from __future__ import annotations

from typing import Literal

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import assert_all_finite, check_consistent_length, check_X_y, column_or_1d

from gramian.backend import array_ops, config
from gramian.backend.checks import choice, is_real, positive
from gramian.backend.typing import ArrayLike
from gramian.estimators.base import generator
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.rows import ArrayRows, Rows, as_rows
from gramian.rows.reading import is_collection, is_path
from gramian.tuning.approximating import learner
from gramian.tuning.blocks import BlockTransformer, stays
from gramian.tuning.candidates import TRANSFORMS, Candidate, rounded
from gramian.tuning.search import Search
from gramian.tuning.source import code

__all__ = ["tune"]

MOST_CLASSES = 20  # whole numbers with more distinct values are regressed on


@config.one_budget()
def tune(
    X: RowsLike,
    y: ArrayLike,
    task: Literal["regress", "classify"] | None = None,
    *,
    time: float = 60.0,
    holdout: float = 0.15,
    random_state: RandomState = None,
) -> Pipeline:
    """Choose kernel, scales of columns, gamma and alpha for a target, and fit a pipeline.

    It tries three transforms of the columns (standard, quantiles to normal, ranks) with three
    families of kernels (Laplacian, RBF, Matérn) on some rows, lets the best learn scales
    (``scales="learn"``), and chooses gamma and alpha of the best again on all rows. These choices
    are by the leave-one-out error of kernel ridge. With more than 10,000 rows, or a matrix beyond
    the memory budget, scales are refined over landmarks, and rows that are put aside choose the
    number of landmarks and between :class:`Nystroem` and :class:`Local`. Rows that are held out
    from all of it give the score that is reported; the pipeline is then fitted to all rows.

    Parameters
    ----------
    X : array-like of shape (n, d), path, dask collection or Rows
        Numbers, without gaps. Rows of files, of a memory map and on dask stay where they are: at
        most 20,000 of them are taken into memory for the search, and fits walk over them as those
        of any learner do. The transform of columns is then a :class:`BlockTransformer`, which
        learns from at most 100,000 rows, so that the pipeline predicts such rows, too.
    y : array-like of shape (n,)
        Numbers or classes; with a path, those of the same rows. A dask array or series is computed.
    task : {"regress", "classify"}, optional
        By default, text and whole numbers with at most 20 distinct values are classes.
    time : float, default=60.0
        Seconds for the search. The fits of the pipeline come on top.
    holdout : float, default=0.15
        The fraction of rows held out for the score; 0 for no score.
    random_state : int, Generator or None, default=None

    Returns
    -------
    Pipeline
        A fitted scikit-learn pipeline with the further attributes ``search_`` (all that was tried,
        as columns: ``pandas.DataFrame(model.search_)``), ``score_`` (R² or accuracy on the rows
        held out; None without any), ``feature_importances_`` (of sum 1) and ``code_``, which makes
        the pipeline again.

    See Also
    --------
    RBF : ``gamma="loo"`` and ``scales="learn"`` of a single kernel.
    compare : approximations of one kernel.
    open_rows : rows of a file and its target.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import tune
    >>> X = np.random.default_rng(0).standard_normal((150, 3))
    >>> model = tune(X, np.sin(2 * X[:, 0]), random_state=0)
    >>> model.score_ > 0.95
    True
    >>> model.feature_importances_.argmax()
    np.int64(0)
    """
    y = np.asarray(y) if is_collection(y) else y
    classes = _is_classes(y, task)
    X, y = _read(X, y, numeric=not classes)
    seconds, part = positive("tune", "time", time), _fraction(holdout)
    rng = generator(random_state)
    train, held_out = _split(y, part, classes, rng)
    Y = (y[:, None] == np.unique(y)) if classes else y[:, None]
    search = Search(_some(X, train), np.asarray(Y[train], dtype=np.float64), classes, seconds, rng)
    best = search.run()
    seed = int(rng.integers(2**31))
    model = _pipeline(best, len(train), classes, seed, in_blocks=isinstance(X, Rows))
    score = None
    if len(held_out):
        alone = clone(model).fit(_some(X, train), y[train])
        score = float(alone.score(_some(X, held_out), y[held_out]))
    model.fit(X, y)
    model.score_ = score
    entries = [each.entry() for each in search.tried]
    model.search_ = {name: np.array([entry[name] for entry in entries]) for name in entries[0]}
    model.feature_importances_ = search.importances(best)
    model.code_ = code(model)
    return model


def _read(X: RowsLike, y: ArrayLike, numeric: bool) -> tuple[np.ndarray | Rows, np.ndarray]:
    """Return X as an array, or as rows if they stay where they are, and y as an array."""
    if not stays(X):
        return check_X_y(X, y, dtype=np.float64, ensure_min_samples=4, y_numeric=numeric)
    rows = as_rows(X, owner="tune", min_rows=4)
    if is_path(X) and isinstance(rows, ArrayRows):  # small enough to be read from it
        config.hold(rows.shape[0] * rows.row_bytes)
    if rows.are_objects or array_ops.issparse(rows.take([0])):
        what = "objects" if rows.are_objects else "sparse rows"
        raise ValueError(f"tune needs dense rows of numbers; got {what}. Fit a learner instead.")
    y = column_or_1d(y, dtype=np.float64 if numeric else None, warn=True)
    assert_all_finite(y, input_name="y")
    check_consistent_length(rows, y)
    return rows, y


def _some(X: np.ndarray | Rows, numbers: np.ndarray) -> np.ndarray | Rows:
    return X.choose(numbers) if isinstance(X, Rows) else X[numbers]


def _is_classes(y: ArrayLike, task: str | None) -> bool:
    if task is not None:
        return choice("tune", "task", task, ("regress", "classify")) == "classify"
    values = np.unique(np.asarray(y))
    if values.dtype.kind not in "iuf":
        return True
    return len(values) <= MOST_CLASSES and bool((values == np.floor(values)).all())


def _fraction(holdout: float) -> float:
    if not is_real(holdout) or not 0 <= holdout < 1:
        raise ValueError(f"holdout of tune must be a number from 0 to below 1; got {holdout!r}.")
    return float(holdout)


def _split(
    y: np.ndarray, part: float, classes: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rows to tune on and of those held out; each class is tuned on."""
    rows = np.arange(len(y))
    count = round(part * len(y))
    if not count or len(y) - count < 4:
        return rows, rows[:0]
    order = rng.permutation(len(y))
    if classes:  # a row of each class comes last, so it is not held out
        kept = order[np.unique(y[order], return_index=True)[1]]
        order = np.concatenate((order[~np.isin(order, kept)], kept))
        count = min(count, len(y) - len(kept))
    return np.sort(order[count:]), np.sort(order[:count])


def _pipeline(
    best: Candidate, quantiles: int, classes: bool, seed: int, in_blocks: bool
) -> Pipeline:
    """Return the pipeline of a candidate, not fitted."""
    alpha = rounded(best.trial.fit.alpha)
    kernel = best.rounded()
    if best.approximation is not None:
        alpha, kernel = "loo", best.approximation
    model = learner(classes)(alpha=alpha, kernel=kernel, random_state=seed)
    transform = TRANSFORMS[best.transform](quantiles)
    if in_blocks:
        transform = BlockTransformer(transform, random_state=seed)
    return make_pipeline(transform, model)

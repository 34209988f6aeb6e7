"""The laws of learners."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import scipy.sparse
from sklearn.base import clone

from gramian.backend.array_ops import Array
from gramian.learners.base import KernelLearner
from gramian.testing.comparing import (
    all_close,
    close,
    converter,
    failed_fit_changes_nothing,
    same_library,
    unchanged_by_blocks_and_threads,
)
from gramian.testing.examples import example_classes, example_rows


def check_learner(learner: KernelLearner, *, library: str | None = None) -> None:
    """Check a learner on clouds of rows with a target.

    The same seed gives the same result, whatever the blocks and threads. float32 rows give float32
    results that are close. Sparse and dense rows give the same. A failed fit changes nothing.

    With ``library``, check instead that this array library gives the same values as NumPy, in its
    own arrays.

    Parameters
    ----------
    learner : KernelLearner
        It is not changed.
    library : str, optional
        The name of an array library, such as "torch".

    See Also
    --------
    check_memory : its memory estimate.

    Examples
    --------
    >>> from gramian import KernelRidge
    >>> from gramian.testing import check_learner
    >>> check_learner(KernelRidge())
    """
    learner = clone(learner)
    if "random_state" in learner.get_params():
        learner.set_params(random_state=0)
    X = example_rows()
    y = example_classes(len(X))
    new = example_rows(seed=1)[:20]

    def outputs(convert: Callable[[np.ndarray], Array] = np.asarray) -> dict[str, Array]:
        fitted = clone(learner).fit(convert(X), y)
        names = ("predict", "transform", "decision_function")
        return {
            name: getattr(fitted, name)(convert(new)) for name in names if hasattr(fitted, name)
        }

    reference = outputs()
    assert reference, "a learner predicts or transforms"
    if library is not None:
        convert = converter(library)
        for name, result in outputs(convert).items():
            same_library(result, convert(X))
            close(f"{name}: NumPy and {library}", result, reference[name], 1e-6)
        return
    all_close("same seed, same result", outputs(), reference, 0.0)
    unchanged_by_blocks_and_threads(outputs, 1e-7)
    single = outputs(lambda a: np.asarray(a, dtype=np.float32))
    all_close("float32 is close to float64", single, reference, 2e-2)
    for name, result in single.items():
        if reference[name].dtype == np.float64 and not _is_label(result):
            assert result.dtype == np.float32, f"{name}: float32 rows give float32"
    all_close("sparse rows", outputs(scipy.sparse.csr_array), reference, 1e-6)
    fitted = clone(learner).fit(X, y)
    failed_fit_changes_nothing(fitted, lambda: fitted.fit(np.full_like(X, np.nan), y))
    again = pickle.loads(pickle.dumps(fitted))
    for name in reference:
        close(f"{name}: pickled", getattr(again, name)(new), getattr(fitted, name)(new), 0.0)


def _is_label(result: Array) -> bool:
    return np.asarray(result).dtype.kind not in "f"

"""The law of memory: a fit takes what ``estimate_memory`` says."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial

from sklearn.base import clone, is_classifier

import gramian
from gramian.approximations import Approximation
from gramian.backend.config import format_bytes
from gramian.backend.threads import one_blas_thread
from gramian.learners.base import KernelLearner
from gramian.testing.examples import example_classes, example_rows


@one_blas_thread()  # many small matrices
def check_memory(
    estimator: Approximation | KernelLearner,
    sizes: tuple[int, ...] = (500, 1500),
    budgets: tuple[str, ...] = ("1GB", "24MB"),
) -> None:
    """Check that ``estimate_memory`` of a learner or an approximation says what a fit takes.

    The memory of NumPy's arrays at the peak of a fit exceeds the estimate by at most a tenth plus a
    megabyte, and is at least a quarter of it, up to a few megabytes. A fit is refused if and only
    if its estimate exceeds the memory budget. Every size is tried with the first budget, the
    largest size with all of them.

    Parameters
    ----------
    estimator : Approximation or KernelLearner
        It is not changed.
    sizes : tuple of int, default=(500, 1500)
        Numbers of rows.
    budgets : tuple of str, default=("1GB", "24MB")
        Memory budgets.

    See Also
    --------
    check_learner : what a learner computes.
    check_approximation : what an approximation computes.

    Examples
    --------
    >>> from gramian import Nystroem
    >>> from gramian.testing import check_memory
    >>> check_memory(Nystroem("rbf", 20), sizes=(200,))
    """
    if "random_state" in estimator.get_params():
        estimator = clone(estimator).set_params(random_state=0)
    d, law = 20, f"{type(estimator).__name__}.estimate_memory"
    known = {"n_targets": len(set(example_classes(100)))} if is_classifier(estimator) else {}
    cases = [(n, budgets[0]) for n in sizes] + [(max(sizes), budget) for budget in budgets[1:]]
    for n, budget in cases:
        X, y = example_rows(n, d), example_classes(n)
        fresh = clone(estimator)
        with gramian.config_context(memory_budget=budget):
            need = fresh.estimate_memory(n, d, **known)
            fits, most = need.fits(), 1.1 * need + 2**20
            try:
                taken = _peak_growth(partial(fresh.fit, X, y))
                if taken > most:  # the first fit may import modules, which do not count
                    taken = _peak_growth(partial(fresh.fit, X, y))
            except gramian.MemoryBudgetError as error:
                assert not fits, f"{law}({n}, {d}) = {need}, yet it is refused: {error}"
                continue
        said = f"{law}({n}, {d}) = {need} of {budget}; the fit took {format_bytes(taken)}"
        assert fits, f"not refused: {said}"
        assert taken <= most, f"too little: {said}"
        assert need <= 4 * taken + 2**23, f"too much: {said}"


def _peak_growth(call: Callable[[], object]) -> int:
    """Return the bytes that arrays and objects grow by, at the peak of a call."""
    gc.collect()
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not running:
            tracemalloc.stop()

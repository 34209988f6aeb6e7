"""The laws of approximations."""

from __future__ import annotations

import pickle

import numpy as np
from sklearn.base import clone

from gramian.approximations import Approximation
from gramian.matrices.normal_equations import inner
from gramian.testing.comparing import (
    close,
    converter,
    failed_fit_changes_nothing,
    same_library,
    unchanged_by_blocks_and_threads,
)
from gramian.testing.examples import example_rows, example_target


def check_approximation(approximation: Approximation, *, library: str | None = None) -> None:
    """Check an approximation K̃ of the kernel matrix K.

    ``transform``, ``factor``, ``__call__`` and ``diag`` agree. K̃ is positive semi-definite, and
    K - K̃ too if the approximation says so. The same seed gives the same result, whatever the blocks
    and threads. float32 rows give float32 features that are close. A failed fit changes nothing.

    With ``library``, check instead that this array library gives the same values as NumPy.

    Parameters
    ----------
    approximation : Approximation
        It is not changed.
    library : str, optional
        The name of an array library, such as "torch".

    See Also
    --------
    check_memory : its memory estimate.

    Examples
    --------
    >>> from gramian import Nystroem
    >>> from gramian.testing import check_approximation
    >>> check_approximation(Nystroem("rbf", 20))
    """
    approximation = clone(approximation).set_params(random_state=0)
    X = example_rows(120)
    y = example_target(X)
    new = example_rows(seed=1)[:20]
    fitted = clone(approximation).fit(X, y)
    K = fitted.exact_kernel_(X)  # shape: (n, n)
    approximate = fitted(X)  # K̃; shape: (n, n)
    size = float(np.abs(K).max())
    if library is not None:
        convert = converter(library)
        theirs = clone(approximation).fit(convert(X), y)
        same_library(theirs(convert(X)), convert(X))
        close(f"NumPy and {library}", theirs(convert(X)), approximate, 1e-6 * size)
        products = theirs.transform(convert(new)) @ theirs.transform(convert(X)).T
        close(f"new rows on {library}", products, fitted(new, X), 1e-6 * size)
        return
    tolerance = 1e-9 * size * len(X)
    Z = fitted.transform(X)  # shape: (n, n_components_)
    assert Z.shape == (len(X), fitted.n_components_), "as many features as n_components_"
    close("K̃ = Z Zᵀ", approximate, Z @ Z.T, tolerance)
    close("diag", fitted.diag(X), np.diagonal(approximate), tolerance)
    close("K̃(X, Y)", fitted(new, X), fitted.transform(new) @ Z.T, tolerance)
    _check_factors(fitted, X, approximate, tolerance)
    if fitted.below:
        smallest = float(np.linalg.eigvalsh(K - approximate).min())
        assert smallest > -1e-7 * size * len(X), f"K̃ ≤ K: an eigenvalue of {smallest:.1e}"
    close("same seed, same result", clone(approximation).fit(X, y)(X), approximate, 0.0)
    unchanged_by_blocks_and_threads(lambda: clone(approximation).fit(X, y)(X), 1e-8 * size)
    single = clone(approximation).fit(X.astype(np.float32), y)
    assert single.transform(new.astype(np.float32)).dtype == np.float32, "float32 stays"
    close("float32 is close", single(X.astype(np.float32)), approximate, 2e-2 * size)
    names = list(fitted.get_feature_names_out())
    assert len(names) == fitted.n_components_, "a name for each feature"
    failed_fit_changes_nothing(fitted, lambda: fitted.fit(np.full_like(X, np.nan), y))
    again = pickle.loads(pickle.dumps(fitted))
    close("pickled", again.transform(new), fitted.transform(new), 0.0)


def _check_factors(
    fitted: Approximation, X: np.ndarray, approximate: np.ndarray, tolerance: float
) -> None:
    """Check that all operations of the factors Z and S are those of K̃ = Z S Zᵀ + D."""
    factors = fitted.factor(X)
    V = np.random.default_rng(0).standard_normal((len(X), 3))
    close("Factors.matmul", factors.matmul(V), approximate @ V, 10 * tolerance)
    Z = factors.coordinates(np.arange(len(X)))  # shape: (n, rank)
    S = np.eye(factors.rank) if factors.core is None else factors.core.dense()
    D = 0.0 if factors.local is None else factors.local.dense()
    close("K̃ = Z S Zᵀ + D", Z @ S @ Z.T + D, approximate, tolerance)
    close("inner", inner(factors), Z.T @ Z, 10 * tolerance)
    close("Factors.rmatmul", factors.rmatmul(V), Z.T @ V, 10 * tolerance)
    close("Factors.dense", factors.dense(), approximate, tolerance)
    close("Factors.columns", factors.columns([5, 3]), approximate[:, [5, 3]], tolerance)
    some = np.arange(0, len(X), 7)
    close("Factors.take", factors.take(some).dense(), approximate[np.ix_(some, some)], tolerance)
    close("kept factors", factors.persist().matmul(V), approximate @ V, 10 * tolerance)
    parts = sum(part.collect().nbytes for part in factors.parts)
    small = factors.parts.order_nbytes() + sum(
        0 if part is None else part.nbytes for part in (factors.core, factors.local)
    )
    assert fitted.nbytes_ == factors.nbytes == parts + small, "nbytes is what the factors take"

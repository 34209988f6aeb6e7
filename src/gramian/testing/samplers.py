"""The laws of landmark samplers."""

from __future__ import annotations

import numpy as np

from gramian.kernels import RBF, Kernel
from gramian.matrices.gram import Gram
from gramian.samplers import Landmarks, Sampler
from gramian.testing.comparing import close, converter, same_library
from gramian.testing.examples import example_rows, example_target


def check_sampler(sampler: Sampler, *, library: str | None = None) -> None:
    """Check a landmark sampler.

    It selects at most m landmarks. If it gives their row numbers, these are right. The same seed
    gives the same landmarks, from rows as from a precomputed matrix. It evaluates the kernel no
    more often than it states (about n·m times by default). More landmarks leave less error, and
    duplicate rows do no harm.

    With ``library``, check instead that this array library gives the same landmarks as NumPy.

    Parameters
    ----------
    sampler : Sampler
    library : str, optional
        The name of an array library, such as "torch".

    See Also
    --------
    gramian.Sampler : the base class of samplers.

    Examples
    --------
    >>> from gramian import RPCholesky
    >>> from gramian.testing import check_sampler
    >>> check_sampler(RPCholesky())
    """
    X = example_rows(200)
    y = example_target(X)
    kernel = RBF(gamma=0.1)

    def select(m: int, gram: Gram, seed: int = 0) -> Landmarks:
        return sampler.select(gram, m, np.random.default_rng(seed), y[: gram.shape[0]])

    reference = select(12, Gram(kernel, X))
    if library is not None:
        convert = converter(library)
        theirs = select(12, Gram(kernel, convert(X)))
        same_library(theirs.points, convert(X))
        close(f"NumPy and {library}", theirs.points, reference.points, 1e-8)
        return
    n = len(X)
    assert 1 <= len(reference) <= 12, f"at most m landmarks; got {len(reference)}"
    close("same seed, same landmarks", select(12, Gram(kernel, X)).points, reference.points, 0.0)
    if reference.indices is not None:
        close("points are rows", reference.points, X[reference.indices], 0.0)
        gram = Gram("precomputed", kernel(X))
        close("a precomputed matrix", select(12, gram).indices, reference.indices, 0.0)
    if reference.probabilities is not None:
        p = reference.probabilities
        assert p.shape == (len(reference),), "one probability for each landmark"
        assert ((p > 0) & (p <= 1)).all(), "probabilities of the selected rows are in (0, 1]"
    counting = Gram(kernel, X)
    select(12, counting)
    most = sampler.most_evaluations(n, 12)
    assert counting.evaluations <= most, f"{counting.evaluations} evaluations; it states {most}"
    K = kernel(X)

    def mean_error(m: int) -> float:
        runs = [select(m, Gram(kernel, X), seed) for seed in range(5)]
        return float(np.mean([_trace_error(kernel, X, K, run.points) for run in runs]))

    few, many = mean_error(5), mean_error(40)
    assert many < 0.7 * few, f"error falls with more landmarks: {few:.2g}, {many:.2g}"
    same = np.repeat(X[:4], 5, axis=0)
    repeated = select(12, Gram(kernel, same))
    close("duplicates", _trace_error(kernel, same, kernel(same), repeated.points), 0.0, 1.0)


def _trace_error(kernel: Kernel, X: np.ndarray, K: np.ndarray, points: np.ndarray) -> float:
    """The trace of K - C W⁺ Cᵀ, with C = k(X, points) and W = k(points, points)."""
    C = kernel(X, points)
    return float(np.trace(K) - np.trace(C @ np.linalg.pinv(kernel(points), hermitian=True) @ C.T))

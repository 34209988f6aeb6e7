"""The laws of kernels."""

from __future__ import annotations

import inspect
import pickle
from contextlib import nullcontext

import numpy as np
import scipy.sparse
from sklearn.base import clone

from gramian.backend.array_ops import Array
from gramian.kernels import Kernel, Linear, Precomputed
from gramian.kernels.base import ProfileKernel
from gramian.kernels.spectrum import Law
from gramian.matrices.gram import Gram
from gramian.testing.comparing import (
    close,
    converter,
    refuses,
    same_library,
    small_blocks,
    unchanged_by_blocks_and_threads,
)
from gramian.testing.examples import example_rows


def check_kernel(kernel: Kernel, X: Array | None = None, *, library: str | None = None) -> None:
    """Check a kernel on rows X (by default, rows that suit it) or on objects that it accepts.

    Its matrices are symmetric, and positive semi-definite unless it says otherwise. ``diag`` is
    their diagonal. All ways to compute entries agree, whatever the blocks and threads. float32 rows
    give a float32 matrix that is close to the float64 one. Sparse and dense rows give the same.
    Maclaurin coefficients, if there are any, add up to the kernel. Its program for a GPU, if
    ``kernel.gpu_form()`` is not None, computes its profile. The cosines of random frequencies from
    its spectrum, if it has one, average to the kernel.

    With ``library``, check instead that this array library gives the same values as NumPy.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d) or list of objects, optional
    library : str, optional
        The name of an array library, such as "torch".

    See Also
    --------
    gramian.Kernel : the base class of kernels.

    Examples
    --------
    >>> from gramian import RBF
    >>> from gramian.testing import check_kernel
    >>> check_kernel(RBF(0.5))
    """
    if X is None:
        X = example_rows(positive=not kernel.takes_negative)
        X = Linear()(X) if isinstance(kernel, Precomputed) else X
    objects = kernel.read(X).are_objects
    X = X if objects else np.asarray(X, dtype=np.float64)
    _check_parameters(kernel)
    kernel = clone(kernel).fit(X)
    K = kernel(X)  # shape: (n, n)
    size = float(np.abs(K).max())
    if library is not None:
        _check_library(kernel, X, K, size, library)
        return
    close("symmetry", K, K.T, 0.0)
    close("diag is the diagonal", kernel.diag(X), np.diagonal(K), 0.0)
    if kernel.psd:
        smallest = float(np.linalg.eigvalsh(K).min())
        assert smallest > -1e-10 * size * len(K), f"PSD: smallest eigenvalue is {smallest:.1e}"
    coefficients = kernel.maclaurin(512)
    if coefficients is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            series = np.polynomial.polynomial.polyval(Linear()(X), coefficients)
        close("the Maclaurin series is the kernel", series, K, 1e-7 * size)
    spectrum = kernel.spectrum()
    if spectrum is not None:
        averages = sum(_average_cosines(law, X[:10]) for law in spectrum)
        close("cosines of random frequencies", averages, K[:10, :10], 0.05 * size)
    form = kernel.gpu_form()
    if form is not None and isinstance(kernel, ProfileKernel):
        pairings = type(kernel).pairing(X, 1.0, 0.0)(X)
        expected = kernel._profile(kernel._scale() * pairings)
        close("the program for a GPU", form.values(pairings), expected, 1e-10 * size)
    _check_gram(kernel, X, K, 1e-11 * size * len(K))
    unchanged_by_blocks_and_threads(lambda: kernel(X), 1e-12 * size)
    close("pickled", pickle.loads(pickle.dumps(kernel))(X), K, 0.0)
    if not objects:
        _check_kinds_of_numbers(kernel, X, K, size)
    if not isinstance(kernel, Precomputed):
        close("blocks of K(X, Y)", kernel(X[:7], X[7:20]), K[:7, 7:20], 1e-11 * size)
    close("k + k = 2 k", (kernel + kernel)(X), (kernel * 2.0)(X), 1e-12 * size)


def _average_cosines(law: Law, X: np.ndarray) -> np.ndarray:
    """Return the kernel of a law of frequencies from 20,000 draws, to about 0.005 of its weight."""
    d = X.shape[1]
    u = np.random.default_rng(0).uniform(1e-9, 1.0, (20_000, law.coordinates(d)))
    phases = X @ law.frequencies(u, d, None).T
    features = np.hstack((np.cos(phases), np.sin(phases)))
    return law.weight * (features @ features.T) / len(u)


def _check_library(kernel: Kernel, X: np.ndarray, K: np.ndarray, size: float, library: str) -> None:
    convert = converter(library)
    theirs = clone(kernel).fit(convert(X))
    same_library(theirs(convert(X)), convert(X))
    close("NumPy and " + library, theirs(convert(X)), K, 1e-10 * size)
    V = np.random.default_rng(0).standard_normal((len(X), 3))
    product = Gram(theirs, convert(X)).matmul(convert(V))
    close(f"matmul on {library}", product, K @ V, 1e-9 * size * len(X))


def _check_parameters(kernel: Kernel) -> None:
    params = kernel.get_params(deep=False)
    copy = clone(kernel)
    assert type(copy) is type(kernel), "clone keeps the class"
    assert repr(copy) == repr(kernel), "clone keeps the parameters"
    assert set(params) == set(inspect.signature(type(kernel)).parameters), "get_params"


def _check_gram(kernel: Kernel, X: np.ndarray, K: np.ndarray, tolerance: float) -> None:
    gram = Gram(kernel, X)
    n = len(K)
    some, others = np.arange(0, n, 7), np.arange(0, n, 5)
    V = np.random.default_rng(0).standard_normal((n, 3))
    close("Gram.diag", gram.diag(), np.diagonal(K), 0.0)
    close("Gram.columns", gram.columns(some), K[:, some], tolerance)
    close("Gram.block", gram.block(some, others), K[np.ix_(some, others)], tolerance)
    close("Gram.dense", gram.dense(), K, tolerance)
    close("Gram.trace", gram.trace(), np.trace(K), tolerance)
    for blocks in (nullcontext, small_blocks):
        with blocks():
            close("Gram.matmul", gram.matmul(V), K @ V, 10 * tolerance)
            sides = Gram(kernel, X, kernel.points(gram.rows))
            close("matmul of two sides", sides.matmul(V), sides.dense() @ V, 10 * tolerance)


def _check_kinds_of_numbers(kernel: Kernel, X: np.ndarray, K: np.ndarray, size: float) -> None:
    single = X.astype(np.float32)
    assert kernel(single).dtype == np.float32, "float32 rows give a float32 matrix"
    close("float32 is close to float64", kernel(single), kernel(single.astype(float)), 1e-4 * size)
    if kernel.takes_sparse and not kernel.serial:
        close("sparse rows", kernel(scipy.sparse.csr_array(X)), K, 1e-10 * size)
    elif not kernel.takes_sparse:
        refuses(lambda: kernel(scipy.sparse.csr_array(X)), "sparse rows")

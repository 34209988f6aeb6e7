"""The shipped laws, over everything that the package exports."""

import inspect

import numpy as np
import pytest
import scipy.sparse

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    Exact,
    ExponentialDot,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Linear,
    Local,
    Matern,
    Nystroem,
    OnlineKernelKMeans,
    Polynomial,
    RationalQuadratic,
)
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner
from gramian.testing import check_kernel, check_learner, check_rows, example
from gramian.testing.comparing import LIBRARIES

EXPORTED = [getattr(gramian, name) for name in gramian.__all__]
CLASSES = [thing for thing in EXPORTED if inspect.isclass(thing)]
KERNELS = [example(cls) for cls in CLASSES if issubclass(cls, Kernel) and cls is not Kernel]
KERNELS += [
    RBF("median"),
    RBF(("percentile", 25)),
    RBF(bandwidth=3.0),
    Matern(nu=0.5),
    Matern(nu=2.5),
    Matern(nu=1.2),
    Polynomial(degree=4, coef0=0.5),
    2.0 * ExponentialDot() * Polynomial(2) + Linear(),
    RationalQuadratic(alpha=0.3),
    0.5 * RBF(0.1) * Linear() + Matern(0.2),
]
LOCAL = Local(Nystroem(RBF(0.1), 10, random_state=0), 3, random_state=0)
LEARNERS = [example(cls) for cls in CLASSES if issubclass(cls, KernelLearner)]
LEARNERS += [
    KernelRidge(0.1, solver="iterative"),
    KernelPCA(3, solver="iterative", tol=1e-12),
    KernelPCA(3, kernel="linear", fit_inverse_transform=True),
    KernelRidge(0.1, kernel=Nystroem(RBF(0.1), 20)),
    KernelRidge(0.1, kernel=MEKA(RBF(0.1), 30, n_blocks=3, random_state=0)),
    KernelKMeans(3, kernel=MEKA(RBF(0.1), 30, n_blocks=3, random_state=0)),
    KernelKMeans(
        3, kernel=Nystroem(RBF(0.1), 20, landmarks="uniform", random_state=0), batch_size=40
    ),
    OnlineKernelKMeans(expected_clusters=3),
    OnlineKernelKMeans(0.6, kernel=MEKA(RBF(0.1), 30, n_blocks=3, random_state=0)),
    KernelPCA(3, kernel=BKA(RBF(0.1), 30, n_blocks=3, random_state=0)),
    KernelRidge(0.1, kernel=LOCAL),
    KernelRidge(("loo", [0.1, 1.0]), kernel=LOCAL),
    KernelRidgeClassifier(0.1, kernel=Local(RBF(0.1), 3)),
    KernelKMeans(3, kernel=LOCAL),
    KernelPCA(3, kernel=LOCAL, tol=1e-12),
    OnlineKernelKMeans(expected_clusters=3, kernel=LOCAL),
    OnlineKernelKMeans(0.6, kernel=Exact(RBF(0.1))),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_on_other_arrays(kernel, library):
    pytest.importorskip(library)
    check_kernel(kernel, library=library)


@pytest.mark.parametrize("learner", LEARNERS)
def test_learner(learner):
    check_learner(learner)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("learner", LEARNERS)
def test_learner_on_other_arrays(learner, library):
    pytest.importorskip(library)
    check_learner(learner, library=library)


def rows_of_every_kind(tmp_path, X):
    import pandas

    np.save(tmp_path / "rows.npy", X)
    yield "numpy", X
    yield "fortran order", np.asfortranarray(X)
    yield "memmap", np.load(tmp_path / "rows.npy", mmap_mode="r")
    yield "csr_array", scipy.sparse.csr_array(X)
    yield "csr_matrix", scipy.sparse.csr_matrix(X)
    yield "csc", scipy.sparse.csc_array(X)
    yield "list", X.tolist()
    yield "pandas", pandas.DataFrame(X)


@pytest.mark.parametrize("n", [1, 7, 300])
def test_rows_of_every_kind(tmp_path, rng, n):
    X = rng.standard_normal((n, 4))
    for kind, data in rows_of_every_kind(tmp_path, X):
        rows = gramian.as_rows(data)
        if scipy.sparse.issparse(data):
            assert scipy.sparse.issparse(rows.collect()), kind
        check_rows(rows, X)


@pytest.mark.parametrize("n", [1, 7, 300])
def test_rows_of_polars(rng, n):
    polars = pytest.importorskip("polars")
    X = rng.standard_normal((n, 4))
    check_rows(gramian.as_rows(polars.DataFrame(X)), X)


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "bool", "float16"])
def test_rows_of_every_dtype(rng, dtype):
    X = rng.integers(0, 2, (40, 3)).astype(dtype)
    check_rows(gramian.as_rows(X), X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_features(rng, dtype):
    X = rng.standard_normal((60, 3)).astype(dtype)
    doubled = np.concatenate((X, X), axis=1)

    def features(x, out=None):
        return np.concatenate((x, x), axis=1)

    check_rows(gramian.FeatureRows(gramian.as_rows(X), features, 6, X.dtype), doubled)


@pytest.mark.parametrize("count", [1, 299, 700, 999])
def test_rows_partly_in_memory(rng, count):
    X = rng.standard_normal((1000, 3))
    doubled = np.concatenate((X, X), axis=1)

    def features(x, out=None):
        return np.concatenate((x, x), axis=1)

    rows = gramian.FeatureRows(gramian.as_rows(X), features, 6, X.dtype)
    kept, order = rows.persist_some(count)
    assert sorted(order) == list(range(1000))
    check_rows(kept, doubled[order])


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_of_other_arrays(rng, library):
    xp = pytest.importorskip(library)
    X = rng.standard_normal((50, 3))
    check_rows(gramian.as_rows(xp.asarray(X)), X)
    check_rows(gramian.as_rows(xp.asarray(X.astype(np.float32))), X.astype(np.float32))
    rows = gramian.FeatureRows(
        gramian.as_rows(xp.asarray(X)), lambda x, out=None: -x, 3, xp.float64
    )
    kept, order = rows.persist_some(20)
    check_rows(kept, -X[order])

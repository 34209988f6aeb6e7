"""Kernel PCA without centring: eigenvectors of the kernel matrix itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian
from gramian import MEKA, RBF, Exact, KernelPCA, Nystroem

KERNEL = RBF(0.3)


@pytest.fixture(name="X")
def rows(rng):
    return rng.standard_normal((120, 3)) + 1.0


def check(model, X, K, new):
    """Compare with the decomposition of K (n, n); ``new`` are its values with other rows."""
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1][:3], vectors[:, ::-1][:, :3]
    assert_allclose(model.eigenvalues_, values, rtol=1e-6)
    assert_allclose(model.explained_variance_, values / len(X), rtol=1e-6)
    scores = np.abs(vectors) * np.sqrt(values)
    assert_allclose(np.abs(model.transform(X)), scores, atol=1e-5)
    assert_allclose(np.abs(model.transform(X[:9] + 0.1)), np.abs(new @ vectors) / np.sqrt(values),
                    atol=1e-5)  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [{"solver": "direct"}, {"solver": "iterative"}, {"kernel": Exact(KERNEL)}],
    ids=str,
)
def test_the_exact_matrix(X, options):
    model = KernelPCA(3, **{"kernel": KERNEL, **options}, centred=False, random_state=0).fit(X)
    K = KERNEL(X)
    check(model, X, K, KERNEL(X[:9] + 0.1, X))
    assert_allclose(model.explained_variance_ratio_, model.eigenvalues_ / np.trace(K), rtol=1e-9)


@pytest.mark.parametrize(
    "approximation",
    [Nystroem(KERNEL, 30, random_state=0), MEKA(KERNEL, 30, n_blocks=3, random_state=0)],
    ids=str,
)
def test_factors_and_batches(X, approximation):
    approximation.fit(X)
    K, new = approximation(X), approximation(X[:9] + 0.1, X)
    model = KernelPCA(3, approximation, centred=False)
    check(model.fit(X), X, K, new)
    batches = KernelPCA(3, approximation, centred=False)
    for start in (0, 50, 51):
        stop = {0: 50, 50: 51, 51: 120}[start]
        batches.partial_fit(X[start:stop])
    assert_allclose(batches.eigenvalues_, model.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("kernel", [KERNEL, Nystroem(KERNEL, 60, random_state=0)], ids=str)
def test_pre_images_and_files(X, kernel, tmp_path):
    model = KernelPCA(20, kernel, centred=False, fit_inverse_transform=True, random_state=0).fit(X)
    scores = model.transform(X)
    assert np.abs(model.inverse_transform(scores) - X).mean() < 0.2 * X.std()
    gramian.save(model, tmp_path / "model")
    again = gramian.load(tmp_path / "model")
    assert again.centred is False
    assert_allclose(again.transform(X), scores, atol=1e-10)
    assert_allclose(again.inverse_transform(scores), model.inverse_transform(scores), atol=1e-10)

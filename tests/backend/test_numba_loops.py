"""Loops compiled by numba against their twins."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from gramian import RBF, Laplacian, RandomFourier
from gramian.backend import numba_loops

pytest.importorskip("numba", reason="numba is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(n=st.integers(1, 5), m=st.sampled_from([1, 3, 255, 256, 257, 600]), d=st.integers(1, 9))
def test_l1_distances_of_any_shape(dtype, n, m, d):
    rng = np.random.default_rng(n * m * d)
    x, y = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    out = np.full((n, m + 2), np.nan, dtype=dtype)
    loop = numba_loops.compiled(numba_loops._scaled_cityblock)
    loop(x, np.ascontiguousarray(y.T), dtype(-0.5), out[:, 1:-1])
    np.testing.assert_allclose(
        out[:, 1:-1], -0.5 * cdist(x, y, "cityblock"), rtol=20 * np.finfo(dtype).eps
    )
    assert np.isnan(out[:, [0, -1]]).all()  # nothing beside it was written


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_laplacian_kernel_is_the_same_with_and_without(dtype, rng, monkeypatch):
    X, Y = rng.normal(size=(2100, 7)).astype(dtype), rng.normal(size=(1301, 7)).astype(dtype)
    used = []
    loop = numba_loops.compiled(numba_loops._scaled_cityblock)
    monkeypatch.setattr(numba_loops, "compiled", lambda _: lambda *a: (used.append(1), loop(*a)))
    compiled = Laplacian(0.3)(X, Y)
    assert used
    monkeypatch.setattr(numba_loops, "is_available", lambda: False)
    np.testing.assert_allclose(compiled, Laplacian(0.3)(X, Y), rtol=30 * np.finfo(dtype).eps)


@pytest.mark.slow
@given(
    n=st.integers(1, 3),
    m=st.sampled_from([1, 3, 16, 31, 250]),
    odd=st.booleans(),
    largest=st.sampled_from([1e-30, 1e-3, 1.0, 100.0, numba_loops.LARGEST]),
)
def test_cosines_and_sines_of_any_shape_and_size(n, m, odd, largest):
    rng = np.random.default_rng(m)
    x = np.concatenate((rng.uniform(-largest, largest, (n, m - m // 3)), np.zeros((n, m // 3))), 1)
    x = x.astype(np.float32)
    scale = rng.random(m).astype(np.float32)
    out = np.full((n, 2 * m - odd), np.nan, dtype=np.float32)
    numba_loops.compiled(numba_loops._scaled_cosines_and_sines, contract=True)(x, scale, out)
    exact = np.concatenate((scale * np.cos(x.astype(float)), scale * np.sin(x.astype(float))), 1)
    np.testing.assert_allclose(out, exact[:, : 2 * m - odd], atol=6e-7)


@pytest.mark.slow
def test_fourier_features_are_the_same_with_and_without(rng, monkeypatch):
    X = rng.normal(size=(2100, 7)).astype(np.float32)
    X[2000] *= 1e6  # too far for the loop
    model = RandomFourier(RBF(0.3), 301, random_state=0).fit(X)
    used = []
    monkeypatch.setattr(numba_loops, "LEAST_FEATURES", 2100 * 301)
    loop = numba_loops.compiled(numba_loops._scaled_cosines_and_sines, contract=True)
    compiling = lambda *_, **__: lambda *a: (used.append(len(a[0])), loop(*a))  # noqa: E731
    monkeypatch.setattr(numba_loops, "compiled", compiling)
    compiled = model.transform(X)
    assert 0 < sum(used) < len(X)
    monkeypatch.setattr(numba_loops, "is_available", lambda: False)
    np.testing.assert_allclose(compiled, model.transform(X), atol=1e-7)


@pytest.mark.slow
def test_little_work_does_not_even_import_numba():
    code = "import sys; from gramian import Laplacian; Laplacian(1.0)([[0.0], [1.0]]); "
    code += "print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    n=st.integers(1, 20),
    m=st.integers(1, 9),
    t=st.integers(0, 3),
    given_columns=st.integers(0, 2),
    kinds=st.integers(1, 2),
)
def test_products_from_both_sides(dtype, n, m, t, given_columns, kinds):
    rng = np.random.default_rng(n * m)
    c, U, shift = rng.random((n, m)).astype(dtype), rng.normal(size=(m, t)), rng.normal(size=t)
    known, weights = rng.normal(size=(n, given_columns)), rng.random((n, kinds))
    image, total = numba_loops.both_sides(c, U, shift, known, weights)
    F = np.hstack((known, c.astype(np.float64) @ U - shift))
    F = np.hstack([F * w[:, None] for w in weights.T])
    np.testing.assert_allclose(image, c.astype(np.float64).T @ F, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(total, F.sum(axis=0, keepdims=True), rtol=1e-12, atol=1e-12)

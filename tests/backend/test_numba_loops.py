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
@given(n=st.integers(1, 7), m=st.sampled_from([1, 3, 255, 256, 257, 600]), d=st.integers(1, 9))
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
    used, find = [], numba_loops.cityblock
    monkeypatch.setattr(numba_loops, "cityblock", lambda *a: used.append(find(*a)) or used[-1])
    compiled = Laplacian(0.3)(X, Y)
    assert any(loop is not None for loop in used)
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
@pytest.mark.parametrize("working", [np.float32, np.float64])
@given(
    n=st.integers(1, 20),
    m=st.integers(1, 9),
    t=st.integers(0, 3),
    given_columns=st.integers(0, 2),
    kinds=st.integers(1, 2),
)
def test_products_from_both_sides(dtype, working, n, m, t, given_columns, kinds):
    rng = np.random.default_rng(n * m)
    c = rng.random((n, m)).astype(dtype)
    U, shift = rng.normal(size=(m, t)).astype(working), rng.normal(size=t).astype(working)
    known = rng.normal(size=(n, given_columns)).astype(working)
    weights = rng.random((n, kinds)).astype(working)
    image, total = numba_loops.both_sides(c, U, shift, known, weights)
    assert image.dtype == working and total.dtype == np.float64
    F = np.hstack((known, c.astype(np.float64) @ U - shift))
    F = np.hstack([F * w[:, None] for w in weights.T])
    close = {"rtol": 1e-12, "atol": 1e-12 if working == np.float64 else 1e-4}
    np.testing.assert_allclose(image, c.astype(np.float64).T @ F, **close)
    np.testing.assert_allclose(total, F.sum(axis=0, keepdims=True), **close)


def test_exponentials_are_accurate_on_any_machine():
    x = np.linspace([-85], [85], 20_001, axis=1).astype(np.float32)
    expected = np.exp(x.astype(np.float64))
    numba_loops.compiled(numba_loops._exponential, contract=True, nans=True)(x, x.shape[1])
    np.testing.assert_allclose(x, expected, rtol=3 * np.finfo(np.float32).eps)


class TestExponentials:
    """In the last digit they are NumPy's, so that it never matters which of the two ran."""

    SPECIAL = np.nan, np.inf, -np.inf, 0.0, -0.0, 88.7228, 88.7229, -103.97, -103.98, -87.4, 1e-45

    @pytest.fixture(autouse=True)
    def another_is_in_use(self):
        numba_loops.compiled(numba_loops._scaled_cityblock)
        if numba_loops._exponentials() is None:
            pytest.skip("NumPy rounds exponentials in another way on this machine")

    def compare(self, x):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            expected = np.exp(x)
        assert numba_loops.exponentials(x)
        np.testing.assert_array_equal(x.view(np.int32), expected.view(np.int32))

    def test_special_numbers(self):
        x = np.zeros((300, 100), np.float32)
        x[:, : len(self.SPECIAL)] = self.SPECIAL
        self.compare(x)

    @pytest.mark.slow
    def test_one_in_97_of_all_numbers(self):
        numbers = np.arange(0, 1 << 32, 97, dtype=np.uint32).view(np.float32)
        self.compare(numbers[~np.isnan(numbers)].reshape(1, -1))

    @pytest.mark.parametrize("columns", [slice(0, 100), slice(7, 100), slice(0, 99)])
    def test_part_of_wider_rows(self, columns, rng):
        whole = rng.normal(size=(300, 120)).astype(np.float32)
        before, part = whole.copy(), whole[:, columns]
        expected = np.exp(part)
        assert numba_loops.exponentials(part)
        np.testing.assert_array_equal(part, expected)
        part[...] = before[:, columns]
        np.testing.assert_array_equal(whole, before)  # nothing beside it was written

    def test_others_are_left_to_numpy(self, rng):
        x = rng.normal(size=(300, 100)).astype(np.float32)
        for other in (x.T, x[:, ::2], x[::-1], x[:5], x.astype(np.float64), x[0]):
            before = other.copy()
            assert not numba_loops.exponentials(other)
            np.testing.assert_array_equal(other, before)

    def test_kernel_values_do_not_wait_for_numba(self):
        code = """
import sys
import numpy as np
from gramian import RBF
X = np.ones((400, 3), np.float32)
before = RBF(0.5)(X, X[:200] + 0.1)
assert "numba" not in sys.modules
from gramian.backend import numba_loops
numba_loops.compiled(numba_loops._scaled_cityblock)
assert numba_loops.exponentials(np.zeros((400, 200), np.float32))
assert np.array_equal(RBF(0.5)(X, X[:200] + 0.1), before)
"""
        subprocess.run([sys.executable, "-c", code], check=True)

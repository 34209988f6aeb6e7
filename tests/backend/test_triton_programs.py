"""Products by Triton's programs against float64: on a GPU, or by Triton's interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import gramian
from gramian import RBF, Exponential, Laplacian, Matern

pytest.importorskip("triton", reason="triton is not installed")

from on_device import DEVICE, assert_close, assert_equal, host, tensor, torch

from gramian.backend import triton_nearest, triton_programs

pytestmark = pytest.mark.interpreter

KERNELS = [
    RBF(0.3),
    Laplacian(0.2),
    Matern(0.3, nu=1.5),
    Matern(0.3, nu=2.5),
    Matern(0.3, nu=0.5),
    Exponential(0.3),
    gramian.RationalQuadratic(0.3, alpha=1.7),
    gramian.Cauchy(0.3),
    gramian.Linear(),
    gramian.Polynomial(degree=3, gamma=0.2),
    gramian.Sigmoid(gamma=0.2, coef0=0.1),
    gramian.ExponentialDot(0.1),
]


def fused(kernel, points, tolerance=1.0):
    return triton_programs.FusedKernel(kernel.gpu_form(), tensor(points), tolerance)


def rows(rng, n, d):
    return rng.normal(size=(n, d)).astype(np.float32)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_profile(kernel, rng):
    X, Y, V = rows(rng, 70, 6), rows(rng, 90, 6), rows(rng, 90, 3)
    K = kernel(X.astype(float), Y.astype(float))
    scale = np.abs(K) @ np.abs(V)
    product = fused(kernel, Y).times(tensor(X), tensor(V))
    assert np.max(np.abs(host(product) - K @ V) / scale) < 2e-6
    U = rows(rng, 70, 2)
    back = fused(kernel, Y).transposed_times(tensor(X), tensor(U))
    assert np.max(np.abs(host(back) - K.T @ U) / (np.abs(K.T) @ np.abs(U))) < 2e-6


@settings(max_examples=12)
@given(
    n=st.sampled_from([1, 2, 129]),
    m=st.sampled_from([1, 65]),
    d=st.sampled_from([1, 17, 65, 130]),
    t=st.sampled_from([0, 1, 17, 129]),
    kernel=st.sampled_from([RBF(0.01), Laplacian(0.01)]),
)
def test_any_shape(n, m, d, t, kernel):
    rng = np.random.default_rng(n + m + d + t)
    X, Y, V = rows(rng, n, d), rows(rng, m, d), rows(rng, m, t)
    product = host(fused(kernel, Y).times(tensor(X), tensor(V)))
    K = kernel(X.astype(float), Y.astype(float))
    assert product.shape == (n, t)
    assert np.all(np.abs(product - K @ V) <= 2e-6 * (K @ np.abs(V)) + 1e-30)


def test_sums_in_float64_of_values_in_float32(rng):
    X, Y = rows(rng, 70, 5), rows(rng, 90, 5)
    V = rng.normal(size=(90, 40)) * 1e8  # sums cancel
    V -= V.mean(axis=0)
    own = fused(RBF(1e-3), Y)
    values = own.times(tensor(X), torch.eye(90, dtype=torch.float64, device=DEVICE))
    product = own.times(tensor(X), tensor(V))
    assert_close(product, values @ tensor(V), rtol=1e-9, atol=1e-3)
    U = rng.normal(size=(70, 2))
    back = own.transposed_times(tensor(X), tensor(U))
    assert_close(back, values.T @ tensor(U), atol=1e-5)


def test_long_sums_are_split(rng, monkeypatch):
    monkeypatch.setattr(triton_programs, "TERMS", 64)
    X, Y, U = rows(rng, 200, 4), rows(rng, 5, 4), rows(rng, 200, 2)
    back = fused(RBF(0.3), Y).transposed_times(tensor(X), tensor(U))
    assert_close(back, RBF(0.3)(X, Y).T @ U, rtol=1e-4, atol=1e-4)


def test_a_huge_gamma_leaves_what_coincides(rng):
    X = rows(rng, 40, 3)
    V = rows(rng, 40, 1)
    product = fused(RBF(1e5), X, tolerance=np.inf).times(tensor(X), tensor(V))
    assert np.isfinite(host(product)).all()
    assert fused(RBF(1e5), X, 2e-5).times(tensor(X), tensor(V)) is None


def test_rows_far_from_the_origin_lose_nothing(rng):
    X, V = rows(rng, 50, 3), rows(rng, 50, 2)
    near = fused(RBF(0.5), X).times(tensor(X), tensor(V))
    far = X.astype(float) + 4096.0
    moved = far.astype(np.float32)
    exact = RBF(0.5)(moved.astype(float)) @ V
    product = fused(RBF(0.5), moved).times(tensor(moved), tensor(V))
    assert_close(product, exact, atol=1e-5)
    assert near.shape == product.shape


def test_tf32_is_followed_where_torch_is_told_so(rng, monkeypatch):
    assert triton_programs._precision() == "tf32x3"
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert triton_programs._precision() == "tf32"
    finally:
        torch.set_float32_matmul_precision(before)


@settings(max_examples=15)
@given(
    n=st.sampled_from([0, 1, 65, 300]),
    r=st.sampled_from([1, 64, 70]),
    k=st.sampled_from([1, 5, 17]),
    half=st.booleans(),
)
def test_a_pass_of_lloyds(n, r, k, half):
    rng = np.random.default_rng(n + r + k)
    z, C, offset = rows(rng, n, r), rows(rng, r, k), rows(rng, 1, k)[0]
    z = z.astype(np.float16) if half else z
    weights, old = rng.random(n), rng.integers(-1, k, n)
    labels = tensor(old.copy())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton_programs, "LLOYD_PROGRAMS", 3)  # several tiles for each
        gain, masses, count = triton_programs.lloyd_pass(
            *map(tensor, (z, C, offset, weights)), labels
        )
    z = z.astype(float)
    new = np.argmin(z @ C + offset, axis=1)
    assert_equal(labels, new)
    assert_close(masses, np.bincount(new, weights, k))
    assert int(count) == np.count_nonzero(new != old)
    arrives, leaves = (each[:, None] == np.arange(k) for each in (new, old))
    signed = (arrives.astype(float) - leaves) * weights[:, None]
    assert_close(gain, signed.T @ z, atol=1e-5 if half else 1e-13)


@settings(max_examples=10)
@given(
    n=st.sampled_from([0, 1, 129]),
    r=st.sampled_from([1, 40]),
    k=st.sampled_from([1, 16, 50]),
    turned=st.booleans(),
    half=st.booleans(),
)
def test_the_nearest_of_more_centres_than_a_tile_has(n, r, k, turned, half):
    rng = np.random.default_rng(n + r + k)
    z, C, offset = rows(rng, n, r), rows(rng, r, k), rows(rng, 1, k)[0]
    C[:, k // 2], offset[k // 2] = C[:, 0], offset[0]  # of equal ones the first counts
    z = z.astype(np.float16 if half else np.float32)
    left = tensor(z.T.copy()).T if turned else tensor(z)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton_nearest, "MOST_CENTRES", 16)
        labels, least = triton_nearest.nearest_centres(left, tensor(C), tensor(offset))
    values = z.astype(float) @ C + offset
    assert_equal(labels, np.argmin(values, axis=1))
    assert_close(least, values.min(axis=1), rtol=1e-5, atol=1e-5)


def test_a_gpu_with_less_memory_gets_a_smaller_tile():
    tile, tried = {"ROWS": 128, "POINTS": 64, "num_stages": 2}, []

    def launch(**chosen):
        tried.append(chosen)
        if chosen["POINTS"] * chosen["num_stages"] > 32:
            raise triton_programs.OutOfResources(262_400, 232_448, "shared memory")

    triton_programs._with_less_memory(launch, tile)
    assert tried[0] == tile
    assert tried[-1] == {"ROWS": 128, "POINTS": 32, "num_stages": 1}


class TestUsedByTheLibrary:
    """As on a GPU, but for the interpreter."""

    @pytest.fixture(autouse=True)
    def on_host(self, monkeypatch):
        monkeypatch.setattr(gramian.backend.array_ops.libraries, "TRITON_ON_HOST", True)
        self.calls = []
        run = triton_programs.FusedKernel._run
        monkeypatch.setattr(
            triton_programs.FusedKernel,
            "_run",
            lambda *a, **k: (self.calls.append(1), run(*a, **k))[1],
        )

    @pytest.mark.parametrize("symmetric", [True, False])
    def test_gram_products(self, symmetric, rng):
        X, Y = rows(rng, 150, 5), rows(rng, 60, 5)
        V = rows(rng, 150 if symmetric else 60, 3)
        other = None if symmetric else tensor(Y)
        product = gramian.Gram(RBF(0.3), tensor(X), other).matmul(tensor(V))
        exact = RBF(0.3)(X.astype(float), None if symmetric else Y.astype(float)) @ V
        assert self.calls
        assert_close(product, exact, rtol=1e-4, atol=1e-5)

    def test_what_float32_cannot_serve_is_left_to_the_tiles(self, rng):
        X = rows(rng, 80, 3) * 1000
        V = rows(rng, 80, 2)
        product = gramian.Gram(RBF(1.0), tensor(X)).matmul(tensor(V))
        assert not self.calls
        assert_close(product, RBF(1.0)(X.astype(float)) @ V, rtol=1e-5)

    @pytest.mark.parametrize("count", [10, 70])
    def test_few_features_by_a_dense_projection(self, count, rng):
        X = rows(rng, 150, 5)
        sketch = gramian.KernelJL(RBF(0.3), count, n_samples=60, random_state=0)
        found = sketch.fit(tensor(X)).transform(tensor(X))
        assert self.calls
        plain = sketch.fit_transform(X.astype(float))
        assert_close(found, plain, atol=1e-5 * np.abs(plain).max())

    @pytest.mark.parametrize("targets", [2, 80])
    def test_features_times_few_columns(self, targets, rng, monkeypatch):
        monkeypatch.setattr(gramian.rows.features, "MOST_FUSED", 10)
        X, W = rows(rng, 400, 5), rng.normal(size=(320, targets))
        fitted = gramian.Nystroem(RBF(3.0), landmarks=np.arange(320)).fit(tensor(X))
        factors = fitted.factor(tensor(X))
        product = host(factors.features_matmul(tensor(W)))
        assert bool(self.calls) == (targets == 2)
        Z = host(factors.parts[0].collect()).astype(float)
        np.testing.assert_allclose(product, Z @ W, atol=1e-3)

    @pytest.mark.parametrize("weighted", [True, False])
    def test_kernel_k_means(self, weighted, rng, monkeypatch):
        X = rows(rng, 700, 4) + 4 * rng.integers(3, size=(700, 1)).astype(np.float32)
        weights = rng.random(700) if weighted else None
        passes, one = [], triton_programs.lloyd_pass
        monkeypatch.setattr(
            triton_programs, "lloyd_pass", lambda *a: (passes.append(1), one(*a))[1]
        )
        model = gramian.KernelKMeans(
            3, kernel=gramian.Nystroem(RBF(0.1), 20), n_init=1, random_state=0
        )
        found = model.fit(tensor(X), sample_weight=weights).labels_
        assert passes
        plain = model.fit(X, sample_weight=weights)
        assert_equal(found, plain.labels_)

    def test_many_clusters_in_tiles_of_centres(self, rng, monkeypatch):
        monkeypatch.setattr(triton_nearest, "MOST_CENTRES", 16)
        monkeypatch.setattr(triton_programs, "MOST_CENTRES", 4)
        monkeypatch.setattr(gramian.learners.kmeans.passes, "COPIED", 64)
        X = rng.normal(size=(20, 4)).astype(np.float32)[np.arange(400) % 20] * 5
        X += 0.1 * rows(rng, 400, 4)
        model = gramian.KernelKMeans(
            20, kernel=gramian.RandomFourier(RBF(0.1), 30, random_state=0), random_state=0
        )
        found, plain = model.fit(tensor(X)), clone(model).fit(X)
        assert_equal(found.labels_, plain.labels_)
        assert found.inertia_ == pytest.approx(plain.inertia_, rel=1e-4)

    def test_clusters_that_open_one_after_the_other(self, rng):
        X = rng.normal(size=(6, 4)).astype(np.float32)[rng.integers(6, size=300)] * 5
        X += 0.1 * rows(rng, 300, 4)
        kernel = gramian.RandomFourier(RBF(0.1), 30, random_state=0)
        model = gramian.OnlineKernelKMeans(threshold=0.8, kernel=kernel, random_state=0)
        found, plain = model.fit(tensor(X)), clone(model).fit(X)
        assert_equal(found.labels_, plain.labels_)
        np.testing.assert_allclose(found.objective_history_, plain.objective_history_, rtol=1e-4)

    def test_features_in_half_precision_are_read_as_they_are(self, rng, monkeypatch):
        X = rows(rng, 700, 4) + 4 * rng.integers(3, size=(700, 1)).astype(np.float32)
        seen, one = set(), triton_programs.lloyd_pass
        monkeypatch.setattr(
            triton_programs, "lloyd_pass", lambda z, *a: (seen.add(z.dtype), one(z, *a))[1]
        )
        model = gramian.KernelKMeans(
            3, kernel=gramian.Nystroem(RBF(0.1), 20), n_init=1, half_precision=True, random_state=0
        )
        found = model.fit(tensor(X)).labels_
        assert torch.float16 in seen
        assert_equal(found, model.fit(X).labels_)

    @pytest.mark.parametrize("weighted", [True, False])
    def test_kernel_ridge_without_kernel_values(self, weighted, rng):
        X = rows(rng, 900, 4)
        y = np.sin(X[:, 0]) + X[:, 1] ** 2
        weights = 0.5 + rng.random(900) if weighted else None
        kernel = gramian.Nystroem(RBF(0.2), 40, random_state=0)
        model = gramian.KernelRidge(
            1.0, kernel=kernel, solver="iterative", tol=1e-6, random_state=0
        )
        plain = model.fit(X, y, sample_weight=weights).predict(X)
        self.calls.clear()
        fitted = model.fit(tensor(X), tensor(y), sample_weight=weights)
        assert len(self.calls) > model.n_iter_
        assert_close(fitted.predict(tensor(X)), plain, atol=2e-3)

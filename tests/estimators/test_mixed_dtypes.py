"""Rows in float32 beside numbers in float64: torch multiplies none with the other, NumPy does."""

import numpy as np
import pytest

import gramian
from gramian import RBF, FunctionKernel, KernelRidge, Laplacian, Nystroem
from gramian.learners.ridge import passes

torch = pytest.importorskip("torch", reason="torch is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def single(X):
    return torch.as_tensor(np.asarray(X, dtype=np.float32))


def double(X):
    return torch.as_tensor(np.asarray(X, dtype=np.float64))


class TestIterationWithoutKernelValues:
    """Where a GPU's programs refuse rows, since float32 would not do, values are made after all."""

    @pytest.fixture(autouse=True)
    def on_host(self, monkeypatch):
        pytest.importorskip("triton", reason="triton is not installed")
        monkeypatch.setattr(gramian.backend.array_ops.libraries, "TRITON_ON_HOST", True)

    @pytest.fixture
    def data(self, rng):
        X = rng.normal(size=(900, 4)).astype(np.float32)
        X[7] = 200.0  # far enough to be refused
        return X, np.sin(X[:, 0]) + np.minimum(X[:, 1] ** 2, 4)

    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize(("alpha", "dtype"), [(1e-6, torch.float64), (1.0, torch.float32)])
    def test_products_in_the_dtype_of_the_other_side(
        self, weighted, alpha, dtype, data, rng, monkeypatch
    ):
        X, y = data
        seen, times = set(), passes.FusedValues.times

        def noted(self, U):
            seen.add(U.dtype)
            assert self.source.fused.times(self.x, U) is None
            return times(self, U)

        monkeypatch.setattr(passes.FusedValues, "times", noted)
        # Features in float64, which a small alpha needs, would have no such program.
        monkeypatch.setattr(Nystroem, "in_double", lambda self, rows: None)
        weights = 0.5 + rng.random(900) if weighted else None
        kernel = Nystroem(RBF(0.02), 60, landmarks="kmeans", random_state=0)
        model = KernelRidge(alpha, kernel=kernel, solver="iterative", random_state=0)
        plain = model.fit(X, y, sample_weight=weights).predict(X)
        model.fit(single(X), double(y), sample_weight=weights)
        assert seen == {dtype}
        np.testing.assert_allclose(model.predict(single(X)), plain, atol=0.1)

    def test_some_rows_at_a_time(self, data, monkeypatch):
        """Not all kernel values at once: those of 900 rows take 1.8 MB in float64."""
        X, y = data
        rows, values = [], gramian.approximations.nystroem.ProjectedKernel.values

        def noted(self, x, out=None):
            rows.append(x.shape[0])
            return values(self, x, out)

        monkeypatch.setattr(gramian.approximations.nystroem.ProjectedKernel, "values", noted)
        kernel = Nystroem(RBF(0.02), 250, landmarks="uniform", random_state=0)
        model = KernelRidge(1.0, kernel=kernel, solver="iterative", max_iter=3, random_state=0)
        with gramian.config_context(memory_budget="8MB"), pytest.warns(Warning):
            model.fit(single(X).to(DEVICE), double(y).to(DEVICE))
        assert max(rows) < 900


@pytest.mark.parametrize("first, second", [(single, double), (double, single)])
class TestNewRows:
    def test_l1_distances(self, first, second, rng):
        X = rng.normal(size=(20, 3))
        expected = Laplacian(0.3)(X, X[:7])
        np.testing.assert_allclose(
            Laplacian(0.3)(first(X), second(X[:7])), expected, rtol=1e-5, atol=1e-6
        )

    def test_functions_get_one_dtype(self, first, second, rng):
        X = rng.normal(size=(20, 3))
        kernel = FunctionKernel(lambda x, y: x @ y.T)
        np.testing.assert_allclose(kernel(first(X), second(X[:7])), X @ X[:7].T, atol=1e-5)

    def test_clusters(self, first, second, rng):
        X = rng.normal(size=(60, 3))
        kernel = Nystroem(Laplacian(0.3), 10, random_state=0)
        model = gramian.KernelKMeans(3, kernel=kernel, n_init=1, random_state=0).fit(first(X))
        assert model.risk(second(X)) == pytest.approx(model.risk(first(X)), rel=1e-5)


def test_features_as_sums_over_landmarks(rng):
    X = rng.normal(size=(40, 3))
    nystroem = Nystroem(RBF(0.3), 10, random_state=0).fit(single(X))
    features = nystroem.transform(single(X))
    kernel = RBF(0.3)(X, nystroem.landmarks_.points.numpy())
    products = kernel @ nystroem.on_landmarks(features).numpy()
    np.testing.assert_allclose(products, nystroem(single(X)), atol=1e-3)

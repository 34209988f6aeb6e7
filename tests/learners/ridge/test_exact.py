"""Kernel ridge on the exact matrix: when it is factorised, and what an iteration keeps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian
from gramian import RBF, Exact, Gram, KernelRidge, Nystroem
from gramian.backend import array_ops
from gramian.learners.ridge.exact import MOST_FACTORISED, _preconditioner, nystroem_factor

KERNEL = RBF(0.5)


def table(n, t=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, np.sin(X @ rng.standard_normal((3, t))) + 0.1 * rng.standard_normal((n, t))


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Let every choice for GPUs be made for torch on the CPU; returns torch."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(array_ops, "is_on_gpu", lambda x: isinstance(x, torch.Tensor))
    return torch


def test_a_matrix_is_factorised_while_the_budget_allows_it(monkeypatch):
    monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 0)
    n = 3000
    model = KernelRidge(0.1, Exact(KERNEL))
    square = 8 * n**2
    with gramian.config_context(memory_budget=2 * square):
        need = model.estimate_memory(n, 3)
        assert need.parts["kernel matrix"] == square and "preconditioner" not in need.parts
    with gramian.config_context(memory_budget=square):
        need = model.estimate_memory(n, 3)
        assert "preconditioner" in need.parts and need <= square
        with pytest.raises(gramian.MemoryBudgetError, match="kernel matrix 72 MB"):
            KernelRidge(0.1, Exact(KERNEL), solver="direct").fit(*table(n))


def test_the_same_solution_beyond_what_is_kept_by_default(monkeypatch):
    X, Y = table(200)
    expected = KernelRidge(0.1, KERNEL).fit(X, Y).dual_coef_
    monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 0)
    model = KernelRidge(0.1, Exact(KERNEL)).fit(X, Y)
    assert model.n_iter_ == 1 and len(model.residuals_) == 0
    assert_allclose(model.dual_coef_, expected, rtol=1e-12)


def test_a_factor_follows_an_iteration_that_takes_too_long(monkeypatch):
    X, Y = table(300)
    expected = {alpha: KernelRidge(alpha, KERNEL).fit(X, Y).predict(X) for alpha in (10.0, 1e-6)}
    monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 0)
    monkeypatch.setattr("gramian.learners.ridge.exact.ROWS_PER_ITERATION", 10)
    monkeypatch.setattr("gramian.learners.ridge.exact.preconditioner_rank", lambda n: 40)
    easy, hard = (
        KernelRidge(alpha, Exact(KERNEL), tol=1e-8, random_state=0).fit(X, Y) for alpha in expected
    )
    assert 1 < easy.n_iter_ <= 30 and len(easy.residuals_) == easy.n_iter_
    assert hard.n_iter_ == 1 and len(hard.residuals_) == 0
    for model, values in zip((easy, hard), expected.values(), strict=True):
        assert_allclose(model.predict(X), values, atol=1e-6)


def test_preconditioner(rng):
    F, V, alphas = (rng.standard_normal(shape) for shape in ((30, 5), (30, 3), 3))
    alphas = np.abs(alphas)
    expected = [
        np.linalg.solve(F @ F.T + a * np.eye(30), v) for a, v in zip(alphas, V.T, strict=True)
    ]
    assert_allclose(_preconditioner(F, alphas)(V), np.transpose(expected), atol=1e-12)
    tiny = _preconditioner(F, np.full(3, 1e-300))(V)  # as good as rounding allows
    assert np.isfinite(tiny).all() and ((tiny * V).sum(axis=0) > 0).all()


def test_nystroem_factor(rng):
    X = rng.standard_normal((40, 2))
    numbers = np.array([3, 7, 7 + 1, 20, 33])
    C = KERNEL(X)[:, numbers]
    F = nystroem_factor(Gram(KERNEL, X), numbers)
    assert_allclose(F @ F.T, C @ np.linalg.solve(C[numbers], C.T), atol=1e-12)
    equal = np.concatenate((X, X))  # singular: what is added to the diagonal makes it definite
    F = nystroem_factor(Gram(KERNEL, equal), np.arange(80))
    assert_allclose(F @ F.T, KERNEL(equal), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_on_a_gpu_an_iteration_keeps_the_matrix(as_on_a_gpu, monkeypatch, weighted):
    monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 0)
    X, Y = map(as_on_a_gpu.as_tensor, table(120))
    weights = as_on_a_gpu.linspace(0.1, 2.0, 120, dtype=X.dtype) if weighted else None
    model = KernelRidge([0.1, 1.0], Exact(KERNEL), solver="iterative", tol=1e-8, random_state=0)
    stored, dense = [], Gram.dense
    monkeypatch.setattr(Gram, "dense", lambda gram: stored.append(gram) or dense(gram))
    iterated = model.fit(X, Y, weights)
    assert len(stored) == 1 and iterated.n_iter_ > 1
    direct = KernelRidge([0.1, 1.0], Exact(KERNEL)).fit(X, Y, weights)
    assert_allclose(iterated.predict(X).numpy(), direct.predict(X).numpy(), atol=1e-7)
    with gramian.config_context(memory_budget=8 * 120**2):
        again = model.fit(X, Y, weights)
    assert len(stored) == 2  # of the direct solution
    assert_allclose(again.predict(X).numpy(), direct.predict(X).numpy(), atol=1e-7)


def test_on_a_gpu_many_rows_are_not_factorised(as_on_a_gpu, monkeypatch):
    X, Y = map(as_on_a_gpu.as_tensor, table(300))
    assert MOST_FACTORISED > 300
    monkeypatch.setattr("gramian.learners.ridge.exact.MOST_FACTORISED", 200)
    monkeypatch.setattr("gramian.learners.ridge.exact.GPU_ROWS_PER_ITERATION", 3)
    assert KernelRidge(0.1, Exact(KERNEL), random_state=0).fit(X, Y).n_iter_ > 1


@pytest.mark.parametrize("alpha", [0.1, "loo", "gcv"])
def test_on_a_gpu_features_are_decomposed_there(as_on_a_gpu, alpha):
    X, Y = table(200)
    kernel = Nystroem(KERNEL, 30, landmarks="uniform", random_state=0)
    expected = KernelRidge(alpha, kernel).fit(X, Y)
    tensors = [as_on_a_gpu.as_tensor(a) for a in (X, Y)]
    found = KernelRidge(alpha, kernel).fit(*tensors)
    assert_allclose(found.alpha_, expected.alpha_, rtol=1e-6)
    assert_allclose(found.predict(tensors[0]).numpy(), expected.predict(X), atol=1e-8)


def test_rows_of_many_columns_are_factorised_at_once(monkeypatch):
    """Kernel values that take long are not computed for iterations that may be in vain."""
    X, Y = table(300)
    wide = np.hstack([X, np.zeros((300, 3000))])
    monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 0)
    monkeypatch.setattr("gramian.learners.ridge.exact.ROWS_PER_ITERATION", 10)
    narrow, many = (KernelRidge(10.0, Exact(KERNEL), random_state=0).fit(Z, Y) for Z in (X, wide))
    assert len(narrow.residuals_) > 1 and len(many.residuals_) == 0
    assert_allclose(many.dual_coef_, narrow.dual_coef_, atol=1e-5)

"""Ridge on a matrix that is exact inside blocks, against dense systems in float64."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import clone

import gramian
from gramian import (
    RBF,
    Exact,
    KernelRidge,
    KernelRidgeClassifier,
    Local,
    MemoryBudgetError,
    Nystroem,
    config_context,
)
from gramian.learners.ridge import block_systems, classifier
from gramian.matrices import block_diagonal
from gramian.matrices.block_diagonal import BlockDiagonal
from gramian.matrices.block_rows import Batch
from gramian.testing import check_learner, check_memory

KERNEL = RBF(0.3)
INNER = [KERNEL, Nystroem(KERNEL, 20, random_state=0)]
N = 120


@pytest.fixture(name="X")
def rows(rng):
    return rng.standard_normal((N, 4))


@pytest.fixture(name="Y")
def targets(X):
    return np.column_stack((np.sin(X[:, 0]), X[:, 1] * X[:, 2], X[:, 3] > 0))


def weights_of(kind):
    if kind is None:
        return None
    weights = np.random.default_rng(1).uniform(0.2, 3.0, N)
    if kind == "zeros":
        weights[::5] = 0.0
    return weights


def fitted(inner, X, **changes):
    return Local(inner, 5, random_state=0, **changes).fit(X)


def dense_errors(K, Y, weights, alpha, by):
    """Mean squared errors of leaving out each row, by fits without it; or those of GCV."""
    w = np.ones(len(K)) if weights is None else weights
    used = np.flatnonzero(w)
    K, Y, w = K[np.ix_(used, used)], Y[used], w[used]
    if by == "gcv":
        root = np.sqrt(w)[:, None]
        A = root * K * root.T
        hat = A @ np.linalg.inv(A + alpha * np.eye(len(A)))
        missed = root * Y - hat @ (root * Y)
        return (missed**2).sum(axis=0) / w.sum() / (1 - np.trace(hat) / len(A)) ** 2
    total = np.zeros(Y.shape[1])
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        system = K[np.ix_(rest, rest)] + alpha * np.diag(1 / w[rest])
        total += w[i] * (Y[i] - K[i, rest] @ np.linalg.solve(system, Y[rest])) ** 2
    return total / w.sum()


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("kind", [None, "positive", "zeros"])
@pytest.mark.parametrize("alpha", [0.1, [0.1, 3.0, 0.1]])
def test_coefficients_and_predictions(X, Y, rng, inner, kind, alpha):
    local, new, weights = fitted(inner, X), rng.standard_normal((40, 4)), weights_of(kind)
    model = KernelRidge(alpha, kernel=local, fit_intercept=False).fit(X, Y, sample_weight=weights)
    K, root = local(X), np.sqrt(np.ones(N) if weights is None else weights)[:, None]
    A = root * K * root.T
    for j, each in enumerate(np.broadcast_to(alpha, 3)):
        dual = root[:, 0] * np.linalg.solve(A + each * np.eye(N), root[:, 0] * Y[:, j])
        assert_allclose(model.dual_coef_[:, j], dual, atol=1e-8)
        assert_allclose(model.predict(new)[:, j], local(new, X) @ dual, atol=1e-8)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("kind", [None, "positive", "zeros"])
@pytest.mark.parametrize("by", ["loo", "gcv"])
def test_errors_of_left_out_rows(X, Y, inner, kind, by):
    local, weights, alphas = fitted(inner, X), weights_of(kind), [3.0, 0.1, 0.003]
    model = KernelRidge((by, alphas), kernel=local, fit_intercept=False)
    model.fit(X, Y, sample_weight=weights)
    K = local(X)
    expected = [dense_errors(K, Y, weights, alpha, by) for alpha in alphas]
    assert_allclose(model.path_.errors, expected, rtol=1e-8)
    assert_allclose(model.alpha_, np.array(alphas)[np.argmin(expected, axis=0)])
    again = clone(model).set_params(alpha=model.alpha_).fit(X, Y, sample_weight=weights)
    assert_allclose(model.dual_coef_, again.dual_coef_, atol=1e-10)


@pytest.mark.parametrize("rule", ["loo", "gcv"])
def test_the_search_finds_the_best_of_its_neighbours(X, Y, rule):
    model = KernelRidge(rule, kernel=fitted(INNER[1], X)).fit(X, Y[:, 0])
    best = int(model.path_.errors.argmin())
    assert model.alpha_ == model.path_.alphas[best]
    assert len(model.path_.alphas) < 8
    near = (rule, model.alpha_ * 10 ** np.linspace(-2, 2, 17))
    fine = clone(model).set_params(alpha=near).fit(X, Y[:, 0])
    assert model.path_.errors[best] <= 1.03 * fine.path_.errors.min()


@pytest.mark.parametrize("inner", INNER)
def test_one_block_is_the_exact_fit(X, Y, rng, inner):
    new = rng.standard_normal((30, 4))
    local = KernelRidge(0.1, kernel=Local(inner, 1)).fit(X, Y)
    exact = KernelRidge(0.1, kernel=Exact(KERNEL)).fit(X, Y)
    assert_allclose(local.predict(new), exact.predict(new), atol=1e-8)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("alpha", [0.1, ("loo", [0.1, 1.0])])
def test_blocks_are_computed_again_where_they_are_not_kept(X, Y, inner, alpha, monkeypatch):
    kept = KernelRidge(alpha, kernel=fitted(inner, X)).fit(X, Y)
    monkeypatch.setattr(block_systems, "keeps", lambda system: False)
    again = KernelRidge(alpha, kernel=fitted(inner, X)).fit(X, Y)
    assert_allclose(again.dual_coef_, kept.dual_coef_, atol=1e-10)


@pytest.mark.parametrize("inner", INNER)
def test_an_iteration_gives_the_same(X, Y, inner):
    direct = KernelRidge(0.1, kernel=fitted(inner, X)).fit(X, Y)
    iterated = KernelRidge(0.1, kernel=fitted(inner, X), solver="iterative", tol=1e-12).fit(X, Y)
    assert iterated.n_iter_ > 0
    assert_allclose(iterated.dual_coef_, direct.dual_coef_, atol=1e-7)


@pytest.mark.parametrize("inner", INNER)
def test_float32_and_sparse_rows(X, Y, inner):
    double = KernelRidge(0.1, kernel=fitted(inner, X)).fit(X, Y)
    low = X.astype(np.float32)
    single = KernelRidge(0.1, kernel=fitted(inner, low)).fit(low, Y)
    assert single.predict(low).dtype == np.float32
    assert_allclose(single.predict(low), double.predict(X), atol=1e-3)
    sparse = scipy.sparse.csr_array(X)
    model = KernelRidge(0.1, kernel=fitted(inner, sparse)).fit(sparse, Y)
    assert_allclose(model.predict(sparse), double.predict(X), atol=1e-8)


def test_small_alphas_need_float64(rng):
    X, y = (0.1 * rng.standard_normal((200, 2))).astype(np.float32), rng.standard_normal(200)
    local = Local(RBF(1.0), 2, random_state=0).fit(X)
    dual = KernelRidge(1e-3, kernel=local, fit_intercept=False).fit(X, y).dual_coef_
    K = RBF(1.0)(X.astype(np.float64)) * (local.labels_[:, None] == local.labels_)
    expected = np.linalg.solve(K + 1e-3 * np.eye(200), y)
    assert_allclose(dual, expected, atol=1e-6 * np.abs(expected).max())


def test_classes(X, rng):
    y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.5, "far", "near")
    model = KernelRidgeClassifier("loo", kernel=Local(INNER[1], 5, random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.95
    assert set(model.predict(rng.standard_normal((9, 4)))) <= {"far", "near"}


def test_batches_are_refused(X, Y):
    with pytest.raises(ValueError, match="partial_fit of KernelRidge needs features"):
        KernelRidge(0.1, kernel=Local(KERNEL, 3)).partial_fit(X, Y)


def test_models_come_back(X, Y, tmp_path):
    model = KernelRidge(0.1, kernel=Local(INNER[1], 5, random_state=0)).fit(X, Y)
    gramian.save(model, tmp_path / "model.gram")
    again = gramian.load(tmp_path / "model.gram")
    assert_allclose(again.predict(X), model.predict(X), atol=1e-12)


def test_threads_and_blocks_of_rows_do_not_change_results(X, Y):
    results = []
    for threads in (1, 3):
        with config_context(n_threads=threads):
            results.append(KernelRidge(0.1, kernel=fitted(INNER[1], X)).fit(X, Y).dual_coef_)
    assert (results[0] == results[1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("inner", [KERNEL, Nystroem("rbf", 20)])
def test_laws(inner):
    check_learner(KernelRidge(0.1, kernel=Local(inner, 4)))
    check_learner(KernelRidgeClassifier(0.1, kernel=Local(inner, 4)))


@pytest.mark.usefixtures("few_objects")
@pytest.mark.slow
@pytest.mark.parametrize("inner", [KERNEL, Nystroem(KERNEL, 40)])
@pytest.mark.parametrize("alpha", [0.1, ("loo", [0.1, 1.0])])
@pytest.mark.parametrize("blocks", ["auto", 6])
def test_memory(inner, alpha, blocks):
    check_memory(KernelRidge(alpha, kernel=Local(inner, blocks)))


def test_a_fit_that_exceeds_the_budget_is_refused(rng):
    X = rng.standard_normal((3000, 2))
    with config_context(memory_budget="17MB"), pytest.raises(MemoryBudgetError, match="blocks"):
        KernelRidge(0.1, kernel=Local(KERNEL, 1)).fit(X, X[:, 0])


@pytest.mark.parametrize("weighted", [None, "zeros"])
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("alpha", [0.1, ("loo", [0.01, 0.1]), ("gcv", [0.01, 0.1])])
def test_blocks_computed_together_give_the_same(X, Y, inner, alpha, weighted, monkeypatch):
    torch, w = pytest.importorskip("torch"), weights_of(weighted)
    one_by_one = KernelRidge(alpha, kernel=fitted(inner, X)).fit(X, Y, w)
    monkeypatch.setattr(BlockDiagonal, "_stacks", True)
    monkeypatch.setattr(block_diagonal, "UNEVEN", 3.0)
    tensors, sizes = torch.asarray(X), []
    padded = Batch.padded
    monkeypatch.setattr(
        Batch, "padded", lambda self, *args: sizes.append(len(self.spans)) or padded(self, *args)
    )
    together = KernelRidge(alpha, kernel=fitted(inner, tensors))
    together.fit(tensors, torch.asarray(Y), None if w is None else torch.asarray(w))
    assert_allclose(together.predict(tensors), one_by_one.predict(X), rtol=1e-8, atol=1e-8)
    assert_allclose(together.alpha_, one_by_one.alpha_)
    assert max(sizes) > 1


@pytest.mark.parametrize("inner", INNER)
def test_probabilities_need_the_diagonal_of_few_rows_only(X, inner, monkeypatch):
    y = X[:, 0] > 0
    model = KernelRidgeClassifier(0.1, fitted(inner, X))
    few = np.arange(0, N, 7)
    monkeypatch.setattr(classifier, "sampled_rows", lambda *args: few)
    some = clone(model).fit(X, y).predict_proba(X)
    monkeypatch.setattr(
        block_systems.Blocks,
        "_diagonal",
        lambda self, batch, found: found.inverse_diagonal(),
    )
    assert_allclose(some, clone(model).fit(X, y).predict_proba(X))


def test_a_block_without_rows_changes_nothing(X, Y, capfd):
    """Rows find the nearest centre of a fitted partition, and a block may get none."""
    local, near = fitted(KERNEL, X), X[:60] * 0.01
    model = KernelRidge(("loo", [0.1, 1.0]), local).fit(near, Y[:60])
    assert (local.factor(near).local.groups.sizes == 0).any()
    expected = KernelRidge(("loo", [0.1, 1.0]), kernel="precomputed")
    expected.fit(local(near), Y[:60])
    assert_allclose(model.dual_coef_, expected.dual_coef_, atol=1e-8)
    assert capfd.readouterr() == ("", "")

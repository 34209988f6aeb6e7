"""Bad input gets an error that says what was expected, what came, and what to do."""

import numpy as np
import pandas
import pytest
import scipy.sparse

import gramian
from gramian import (
    RBF,
    Chi2,
    Gram,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Matern,
    MemoryBudgetError,
    Polynomial,
    as_kernel,
)

LEARNERS = [KernelRidge(), KernelRidgeClassifier(), KernelKMeans(3), KernelPCA()]
X = np.random.default_rng(0).standard_normal((30, 4))
y = np.arange(30) % 3


def with_entry(value):
    bad = X.copy()
    bad[17, 2] = value
    return bad


BAD_ROWS = [
    (with_entry(np.nan), r"contains NaN or infinity.*row 17, column 2.*SimpleImputer"),
    (with_entry(np.inf), r"contains NaN or infinity.*row 17, column 2"),
    (with_entry(np.nan).astype(np.float32), r"contains NaN or infinity.*row 17"),
    (scipy.sparse.csr_array(with_entry(np.nan)), r"contains NaN or infinity.*row 17, column 2"),
    (np.empty((0, 4)), r"0 sample\(s\)"),
    (np.empty((30, 0)), r"0 feature\(s\)"),
    (X[:1], r"1 sample\(s\).*minimum of 2 is required by Kernel"),
    (X[0], "(?s)Expected 2D array.*Reshape"),
    (X + 1j, "Complex data not supported"),
    (
        pandas.DataFrame({"size": [1.0, 2.0], "city": ["a", "b"]}),
        r"must be numeric.*'city'\. Encode them.*or drop them",
    ),
    (np.array([["1", "x"], ["2", "y"]], dtype=object), "must be numeric.*: 1"),
]


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS, ids=[m[:25] for _, m in BAD_ROWS])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: type(m).__name__)
def test_rows(learner, rows, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(rows, y[: rows.shape[0]])


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: type(m).__name__)
def test_polars_rows(learner):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"size": [1.0, 2.0], "city": ["a", "b"]})
    test_rows(learner, frame, "must be numeric.*'city'")


def test_torch_rows():
    torch = pytest.importorskip("torch")
    for rows, message in [
        (torch.asarray(with_entry(np.nan)), "NaN or infinity.*row 17, column 2"),
        (torch.asarray(X[0]), "Expected a 2D array"),
        (torch.asarray(X + 1j), "Complex data not supported"),
        (torch.asarray(X[:1]), r"1 sample\(s\).*minimum of 2 is required by KernelPCA"),
    ]:
        with pytest.raises(ValueError, match=message):
            KernelPCA().fit(rows)


def test_gradients_do_not_pass():
    torch = pytest.importorskip("torch")
    rows = torch.asarray(X).requires_grad_()
    assert not KernelPCA().fit_transform(rows).requires_grad


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: type(m).__name__)
def test_width_at_predict(learner):
    learner.fit(X, y)
    method = learner.transform if isinstance(learner, KernelPCA) else learner.predict
    with pytest.raises(ValueError, match=r"X has 3 features, but Kernel.* is expecting 4 features"):
        method(X[:, :3])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (RBF(gamma=-1.0), "gamma of RBF must be a positive number; got -1.0"),
        (RBF(gamma=0), "gamma of RBF must be a positive number; got 0"),
        (RBF(gamma=np.inf), "gamma of RBF must be a positive number; got inf"),
        (RBF(gamma="medain"), r"'scale', 'median', 'mean' or \('percentile', q\); got 'medain'"),
        (RBF(gamma=("percentile", 200)), r"number in \(0, 100\]"),
        (Polynomial(gamma="median"), "positive number or 'scale'; got 'median'"),
        (RBF(gamma=1.0, bandwidth=2.0), "gamma or bandwidth, not both.*Leave one of them out"),
        (Laplacian(bandwidth=-2.0), "bandwidth of Laplacian must be a positive number; got -2.0"),
        (Matern(nu=0), "nu of Matern must be a positive number; got 0"),
        (Polynomial(degree=2.5), "degree of Polynomial must be a positive integer; got 2.5"),
        (Polynomial(coef0="a"), "coef0 of Polynomial must be a number; got 'a'"),
        ("rfb", "Unknown kernel 'rfb'. Did you mean 'rbf'.*The names are: "),
        ("Gaussian-ish", "Unknown kernel 'Gaussian-ish'. The names are: "),
        (Chi2(), "without negative numbers"),
    ],
)
@pytest.mark.parametrize("learner", [KernelRidge, KernelKMeans, KernelPCA])
def test_kernels(learner, kernel, message):
    with pytest.raises(ValueError, match=message):
        learner(kernel=kernel).fit(X, y)


def test_kernel_of_a_wrong_type():
    with pytest.raises(TypeError, match=r"a name such as 'rbf'.*got 3"):
        KernelRidge(kernel=3).fit(X, y)
    with pytest.raises(TypeError, match=r"not a class: write RBF\(\)"):
        KernelRidge(kernel=RBF).fit(X, y)


def test_a_rule_without_data():
    with pytest.raises(gramian.kernels.gamma.NotFittedError, match=r"Call kernel.fit\(X\) first"):
        RBF("median")(X)


def test_sparse_rows_where_the_kernel_has_no_use_for_them():
    with pytest.raises(ValueError, match=r"Chi2 does not take sparse rows.*X.toarray\(\)"):
        KernelRidge(kernel="chi2").fit(scipy.sparse.csr_array(np.abs(X)), y)


def test_equal_rows_have_no_median_distance():
    with pytest.raises(ValueError, match=r"all sampled rows are the same. Set gamma to a number"):
        KernelPCA(kernel=RBF("median")).fit(np.ones((20, 3)))


@pytest.mark.parametrize("alpha", [0, -1.0, np.nan, [1.0, 0.0], "small", None, [[1.0]]])
def test_alpha(alpha):
    with pytest.raises(ValueError, match="alpha of KernelRidge must be positive"):
        KernelRidge(alpha).fit(X, np.column_stack((y, y)))


def test_alpha_for_another_number_of_targets():
    with pytest.raises(ValueError, match=r"alpha has 3 numbers, but y has 1 target"):
        KernelRidge([1.0, 2.0, 3.0]).fit(X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelKMeans(31), "n_samples=30 should be >= n_clusters=31"),
        (KernelKMeans(0), "n_clusters of KernelKMeans must be a positive integer; got 0"),
        (KernelKMeans(2, n_init=0), "n_init of KernelKMeans must be a positive integer"),
        (KernelKMeans(2, max_iter=-1), "max_iter of KernelKMeans must be a positive integer"),
        (KernelKMeans(2, tol=-1), "tol of KernelKMeans must be a number, at least 0"),
        (KernelKMeans(2, init="far"), "init of KernelKMeans must be one of 'k-means\\+\\+'"),
        (
            KernelKMeans(2, init=X[:3]),
            r"2 points of shape \(2, 4\).*got an array of shape \(3, 4\)",
        ),
        (KernelKMeans(2, init=[0, 99]), "row numbers must be from 0 to 29; got 0 to 99"),
        (KernelPCA(0), "n_components of KernelPCA must be a positive integer"),
        (KernelPCA(None, solver="iterative"), "needs the whole matrix"),
        (KernelPCA(2, solver="arpack"), "solver of KernelPCA must be one of 'auto', 'direct'"),
        (KernelRidge(solver="cg"), "solver of KernelRidge must be one of"),
        (KernelRidge(solver="iterative", tol="x"), "tol of KernelRidge must be a number"),
    ],
)
def test_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize("learner", [KernelRidge, KernelRidgeClassifier, KernelKMeans])
def test_sample_weights(learner):
    for weights, message in [
        (np.ones(29), r"each of the 30 rows; got shape \(29,\)"),
        (-np.ones(30), "not negative"),
        (np.full(30, np.nan), "finite"),
        (np.zeros(30), "zero for every row"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner().fit(X, y, sample_weight=weights)


def test_targets():
    with pytest.raises(ValueError, match="requires y to be passed"):
        KernelRidge().fit(X, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidge().fit(X, y[:20])
    with pytest.raises(ValueError, match="y contains NaN"):
        KernelRidge().fit(X, np.where(y > 1, np.nan, y))
    with pytest.raises(ValueError, match="dim 3"):
        KernelRidge().fit(X, np.zeros((30, 2, 2)))
    with pytest.raises(ValueError, match="only one class"):
        KernelRidgeClassifier().fit(X, np.zeros(30))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelRidgeClassifier().fit(X, y[:20])


def test_precomputed_matrices():
    K = RBF(0.1)(X)
    for matrix, message in [
        (K[:, :20], r"must be square.*got shape \(30, 20\)"),
        (K + np.triu(np.ones((30, 30)), 1), r"must be symmetric.*\(K \+ K.T\) / 2"),
        (scipy.sparse.csr_array(np.triu(K)), "must be symmetric"),
    ]:
        for learner in (KernelRidge, KernelKMeans, KernelPCA):
            with pytest.raises(ValueError, match=message):
                learner(kernel="precomputed").fit(matrix, y)
    model = KernelRidge(kernel="precomputed").fit(K, y)
    with pytest.raises(ValueError, match="20 features, but KernelRidge is expecting 30"):
        model.predict(K[:5, :20])
    with pytest.raises(TypeError, match="cannot be called on two sets of rows"):
        as_kernel("precomputed")(K, K)
    with pytest.raises(ValueError, match="rows that are vectors"):
        KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(K)


@pytest.mark.parametrize(
    "function", [lambda x, y: 1.0, lambda x, y: x @ x.T, lambda x, y: np.zeros(len(x))]
)
def test_a_function_that_returns_the_wrong_shape(function):
    with pytest.raises(ValueError, match=r"one value for each pair.*got shape.*pairwise=True"):
        as_kernel(function)(X, X[:7])


def test_a_function_that_fails_is_not_hidden():
    def broken(x, y):
        raise RuntimeError("my kernel is broken")

    with pytest.raises(RuntimeError, match="my kernel is broken"):
        KernelRidge(kernel=broken).fit(X, y)


def test_rows_and_columns_of_different_width():
    with pytest.raises(ValueError, match="same number of columns; got 4 and 3"):
        RBF(1.0)(X, X[:, :3])


def test_a_budget_too_small_for_one_block():
    with gramian.config_context(memory_budget=100):
        for call in (
            lambda: KernelRidge().fit(X, y),
            lambda: KernelKMeans(3).fit(X),
            lambda: KernelPCA().fit(X),
            lambda: Gram(RBF(1.0), X).matmul(X),
        ):
            with pytest.raises(
                MemoryBudgetError, match=r"raise the budget with gramian.set_config"
            ):
                call()


def test_a_matrix_of_rows_of_different_lengths():
    with pytest.raises(ValueError, match="same number of features; got 2 and 4"):
        gramian.Gram(gramian.RBF(1.0), np.ones((3, 2)), np.ones((3, 4)))

"""scikit-learn's own checks, and agreement with its exact methods."""

import numpy as np
import pytest
import sklearn.decomposition
import sklearn.kernel_ridge
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import (
    CRAFT,
    RBF,
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelKMeans,
    KernelLogisticRegression,
    KernelOneClass,
    KernelPCA,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    KernelSVR,
    Laplacian,
    Local,
    Matern,
    Nystroem,
    OnlineKernelKMeans,
    Polynomial,
    RandomFourier,
    RandomMaclaurin,
    TensorSketch,
)

REPEATED_ROWS = (
    "first centres are drawn at random, so weighted and repeated rows start from different ones; "
    "with given centres they agree (test_kmeans_weights_count_rows)"
)


ORDER_OF_ROWS = (
    "far rows open clusters in their order, which the check changes; in one order weighted and "
    "repeated rows agree (test_weights_count_rows)"
)
LEFT_OUT_ROWS = (
    "probabilities are calibrated on left-out rows: one of weight 2 is left out as a whole, two "
    "equal ones one by one; scores and labels agree (test_weights_count_rows)"
)


def expected_failures(estimator):
    reasons = {
        KernelKMeans: REPEATED_ROWS,
        OnlineKernelKMeans: ORDER_OF_ROWS,
        KernelRidgeClassifier: LEFT_OUT_ROWS,
    }
    if type(estimator) not in reasons:
        return {}
    return dict.fromkeys(
        (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        reasons[type(estimator)],
    )


@parametrize_with_checks(
    [
        KernelRidge(),
        KernelRidgeClassifier(),
        KernelExpectileRegressor(),
        KernelKMeans(n_clusters=3),
        OnlineKernelKMeans(),
        KernelPCA(),
        RandomFourier(n_components=20),
        RandomMaclaurin(),
        TensorSketch(),
        CRAFT(),
        Local(),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([KernelLogisticRegression(tol=1e-12), KernelPoissonRegressor()])
def test_estimator_checks_of_other_losses(estimator, check):
    check(estimator)


OF_RESULTS = {
    "check_class_weight_classifiers",
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_clustering",
    "check_estimators_dtypes",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_sample_weight_equivalence_on_dense_data",
    "check_transformer_general",
}


def some_checks(estimators, keep):
    """Those of scikit-learn's checks whose names are kept."""
    every = parametrize_with_checks(estimators, expected_failed_checks=expected_failures)
    names, cases = every.args
    some = [case for case in cases if keep(getattr(case, "values", case)[1].func.__name__)]
    return pytest.mark.parametrize(names, some, **every.kwargs)


@pytest.mark.slow
@some_checks(
    [
        KernelRidge(1.0, solver="iterative", tol=1e-12),
        KernelSVC(),
        KernelSVR(),
        KernelHuberRegressor(alpha=10.0, tol=1e-12),
        KernelQuantileRegressor(),
        KernelOneClass(),
        KernelKMeans(n_clusters=3, batch_size=20),
        KernelPCA(fit_inverse_transform=True),
        KernelPCA(solver="iterative"),
    ],
    keep=lambda name: name != "check_estimator_sparse_matrix",  # there is one of sparse arrays
)
def test_estimator_checks_of_others(estimator, check):
    check(estimator)


@pytest.mark.slow
@some_checks(
    [
        KernelRidgeClassifier(class_weight="balanced"),
        KernelLogisticRegression(class_weight="balanced"),
        KernelSVC(loss="squared_hinge"),
        OnlineKernelKMeans(threshold=0.8, max_clusters=4),
        RandomFourier(Matern(), 15, frequencies="sobol"),
        Local(Nystroem("rbf", 5), 2),
    ],
    keep=lambda name: name in OF_RESULTS,
)
def test_estimator_checks_of_results(estimator, check):
    """For classes that pass all checks with other options."""
    check(estimator)


PAIRS = [
    (RBF(gamma=0.05), {"kernel": "rbf", "gamma": 0.05}),
    (Laplacian(gamma=0.02), {"kernel": "laplacian", "gamma": 0.02}),
    (Polynomial(2, gamma=0.01, coef0=1.0), {"kernel": "poly", "degree": 2, "gamma": 0.01}),
    ("precomputed", {"kernel": "precomputed"}),
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:500] / 4.0, y[:500].astype(float)


def on(kernel, X, Y):
    """Rows as they are, or the kernel matrix for a precomputed kernel."""
    return pairwise_kernels(X, Y, metric="rbf", gamma=0.05) if kernel == "precomputed" else X


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_ridge_is_sklearns(digits, ours, theirs):
    X, y = digits
    Y = np.column_stack((y, np.sin(y)))
    train, new = on(ours, X[:400], X[:400]), on(ours, X[400:], X[:400])
    weights = np.linspace(0.5, 2.0, 400)
    for target, alpha, weight in [
        (y, 0.3, None),
        (Y, 0.3, None),
        (Y, [0.1, 10.0], None),
        (Y, 0.3, weights),
    ]:
        model = KernelRidge(alpha, kernel=ours, fit_intercept=False)
        model.fit(train, target[:400], sample_weight=weight)
        reference = sklearn.kernel_ridge.KernelRidge(alpha=alpha, **theirs)
        reference.fit(train, target[:400], sample_weight=weight)
        expected = reference.predict(new)
        assert_allclose(model.predict(new), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
        assert_allclose(
            model.dual_coef_,
            reference.dual_coef_,
            rtol=1e-8,
            atol=1e-8 * np.abs(reference.dual_coef_).max(),
        )


@pytest.mark.parametrize("solver", ["direct", "iterative"])
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_pca_is_sklearns(digits, ours, theirs, solver):
    X, _ = digits
    train, new = on(ours, X[:400], X[:400]), on(ours, X[400:], X[:400])
    model = KernelPCA(5, kernel=ours, solver=solver, tol=1e-13, random_state=0).fit(train)
    their_train, their_new = train, new
    if theirs["kernel"] == "laplacian":  # scikit-learn's class lacks it, its functions do not
        their_train = laplacian_kernel(train, gamma=theirs["gamma"])
        their_new = laplacian_kernel(new, train, gamma=theirs["gamma"])
        theirs = {"kernel": "precomputed"}
    reference = sklearn.decomposition.KernelPCA(5, eigen_solver="dense", **theirs)
    expected = reference.fit_transform(their_train)
    close = {"rtol": 1e-8, "atol": 1e-8 * np.abs(expected).max()}
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-8)
    assert_allclose(model.transform(new), reference.transform(their_new), **close)
    assert_allclose(model.fit_transform(train), expected, **close)


def test_pca_of_all_components_is_sklearns(digits):
    X = digits[0][:80]
    ours = KernelPCA(None, kernel=RBF(0.05)).fit(X)
    theirs = sklearn.decomposition.KernelPCA(None, kernel="rbf", gamma=0.05).fit(X)
    assert ours.transform(X).shape == (80, 79)  # centring takes one away
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_[:79], rtol=1e-8)
    assert_allclose(ours.explained_variance_ratio_.sum(), 1.0)


def test_linear_kmeans_is_sklearns(digits):
    X = digits[0] + 0.01 * np.random.default_rng(0).random(digits[0].shape)  # whole numbers tie
    for k in (2, 10):
        for seed in range(3):
            seeds = np.random.default_rng(seed).choice(len(X), k, replace=False)
            theirs = KMeans(k, init=X[seeds], n_init=1, tol=0, max_iter=500).fit(X)
            for init in (X[seeds], seeds):
                ours = KernelKMeans(k, kernel="linear", init=init, tol=0, max_iter=500).fit(X)
                assert_allclose(ours.inertia_, theirs.inertia_, rtol=1e-8)
                assert (ours.labels_ == theirs.labels_).all()


def test_grid_search_through_a_pipeline():
    X, y = load_diabetes(return_X_y=True)
    gammas = [0.001, 0.01, 0.1]

    def search(ridge, **grid):
        return GridSearchCV(make_pipeline(StandardScaler(), ridge), grid, cv=3).fit(X, y)

    theirs = search(
        sklearn.kernel_ridge.KernelRidge(alpha=0.1, kernel="rbf"), kernelridge__gamma=gammas
    )
    for kernel in (RBF(), "rbf"):
        ridge = KernelRidge(0.1, kernel=kernel, fit_intercept=False)
        ours = search(ridge, kernelridge__kernel__gamma=gammas)
        assert_allclose(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-8
        )
        assert list(ours.best_params_.values()) == list(theirs.best_params_.values())


def test_cross_validation_cuts_a_precomputed_matrix_both_ways():
    X, y = load_iris(return_X_y=True)
    K = RBF(0.5)(X)
    both = [
        GridSearchCV(KernelRidgeClassifier(kernel=kernel), {"alpha": [0.1, 1.0]}).fit(data, y)
        for kernel, data in (("precomputed", K), (RBF(0.5), X))
    ]
    assert_allclose(*(search.cv_results_["mean_test_score"] for search in both))


def test_column_names_reach_the_output():
    frame = load_iris(as_frame=True).data
    pca = KernelPCA(2).set_output(transform="pandas").fit(frame)
    assert list(pca.feature_names_in_) == list(frame.columns)
    assert list(pca.transform(frame).columns) == ["kernelpca0", "kernelpca1"]
    with pytest.raises(ValueError, match="feature names"):
        pca.transform(frame.rename(columns={frame.columns[0]: "other"}))

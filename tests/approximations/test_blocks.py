"""BKA and MEKA, against dense formulas; learners on factors in blocks."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    BlockCore,
    Factors,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Nystroem,
    Polynomial,
    relative_error,
)
from gramian.approximations.blocks import partition
from gramian.approximations.blocks.links import link_matrix
from gramian.approximations.blocks.ranks import in_proportion
from gramian.experiments import reference
from gramian.matrices.normal_equations import inner, normal_equations

KERNEL = RBF(8.0)


def moons(n=300, seed=0):
    return make_moons(n, noise=0.1, random_state=seed)


@pytest.fixture(name="X")
def rows_of_moons():
    return moons()[0]


@pytest.mark.slow
@parametrize_with_checks(
    [
        BKA(n_components=8, n_blocks=1),  # the checks set n_components=1
        MEKA(n_components=8, n_blocks=1),
        KernelPCA(kernel=MEKA(n_components=8, n_blocks=2)),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


# Exactness


@pytest.mark.parametrize("kernel", [RBF(2.0), Laplacian(1.0)])
def test_all_links_and_full_ranks_give_the_matrix(X, kernel):
    approximation = MEKA(kernel, 300, n_blocks=4, random_state=0).fit(X)
    K = kernel(X)
    assert np.linalg.norm(approximation(X) - K) < 1e-4 * np.linalg.norm(K)


def test_full_ranks_of_a_rough_kernel_are_exact():
    # Here no direction is lost to rounding: a well-conditioned matrix.
    X = np.random.default_rng(0).standard_normal((120, 3))
    kernel = Laplacian(2.0)
    approximation = MEKA(kernel, 120, n_blocks=3, random_state=0).fit(X)
    np.testing.assert_allclose(approximation(X), kernel(X), atol=1e-10)


def test_bka_is_the_matrix_on_its_blocks_and_0_between(X):
    kernel = Laplacian(2.0)
    approximation = BKA(kernel, 300, n_blocks=4, random_state=0).fit(X)
    same = approximation.labels_[:, None] == approximation.labels_
    np.testing.assert_allclose(approximation(X), np.where(same, kernel(X), 0.0), atol=1e-10)


@pytest.mark.parametrize("rank", [5, 12])
def test_one_block_is_nystroem(X, rank):
    # Few enough rows that all of them are looked at when the best of the rank is chosen.
    X = X[: 6 * rank + 20]
    meka = MEKA(KERNEL, rank, n_blocks=1, random_state=0).fit(X)
    landmarks = meka.landmarks_[0].points
    nystroem = Nystroem(KERNEL, len(landmarks), landmarks=landmarks, rank=rank).fit(X)
    np.testing.assert_allclose(meka(X), nystroem(X), atol=1e-9)
    new = moons(50, seed=1)[0]
    np.testing.assert_allclose(meka(new, X), nystroem(new, X), atol=1e-9)


@pytest.mark.parametrize("how", [{"link_distance": 0.0}, {"link_fraction": 1.0}])
def test_meka_without_links_is_bka(X, how):
    meka = MEKA(KERNEL, 60, n_blocks=5, random_state=0, **how).fit(X)
    bka = BKA(KERNEL, 60, n_blocks=5, random_state=0).fit(X)
    np.testing.assert_array_equal(meka(X), bka(X))


def dense_parts(meka, X):
    """Z and S multiplied out by hand, from the maps of the blocks and the core."""
    labels = partition.nearest(gramian.as_rows(X), meka.centres_)
    blocks, edges = meka._bases, np.cumsum([0, *meka.ranks_])
    Z = np.zeros((len(X), edges[-1]))
    for i, (x, s) in enumerate(zip(X, labels, strict=True)):
        basis = blocks[s].map
        Z[i, edges[s] : edges[s + 1]] = (KERNEL(x[None], basis.points) @ basis.projection)[0]
    return Z, meka._core.dense()


def test_new_rows_follow_the_dense_formula(X):
    meka = MEKA(KERNEL, 60, n_blocks=5, random_state=0).fit(X)
    new = moons(40, seed=3)[0]
    Z, S = dense_parts(meka, X)
    Z_new, _ = dense_parts(meka, new)
    np.testing.assert_allclose(meka(new, X), Z_new @ S @ Z.T, atol=1e-10)
    np.testing.assert_allclose(meka(X), Z @ S @ Z.T, atol=1e-10)
    F, F_new = meka.transform(X), meka.transform(new)
    np.testing.assert_allclose(F_new @ F.T, Z_new @ S @ Z.T, atol=1e-7)


@pytest.mark.parametrize("dropped", [None, 0.2, 0.8])
@pytest.mark.parametrize("columns", [1024, 70])  # of a piece: all points, or those of a block
def test_links_are_the_least_squares_fit(X, monkeypatch, dropped, columns):
    caught = {}
    monkeypatch.setattr("gramian.approximations.blocks.links.STRIP_COLUMNS", columns)

    def spy(gram, bases, linked, original=link_matrix):
        caught.update(bases=bases, linked=linked, S=original(gram, bases, linked))
        return caught["S"]

    monkeypatch.setattr("gramian.approximations.blocks.meka.link_matrix", spy)
    MEKA(KERNEL, 30, n_blocks=6, psd=None, link_fraction=dropped, random_state=0).fit(X)
    bases, linked, S = caught["bases"], caught["linked"], caught["S"]
    assert linked.sum() == round((1 - (dropped or 0)) * 15) * 2
    features = [basis.map.features(basis.points) for basis in bases]
    edges = np.cumsum([0, *(basis.rank for basis in bases)])
    spans = [slice(*edges[i : i + 2]) for i in range(len(bases))]
    expected = np.eye(edges[-1])
    for s, t in np.argwhere(linked):
        K = KERNEL(bases[s].points, bases[t].points)
        half = np.linalg.lstsq(features[t], K.T, rcond=None)[0]
        expected[spans[s], spans[t]] = np.linalg.lstsq(features[s], half.T, rcond=None)[0]
    np.testing.assert_allclose(S, expected, atol=1e-8)
    for basis in bases:
        landmarks = basis.map.points
        np.testing.assert_array_equal(basis.points[: len(landmarks)], landmarks)


# Positive semi-definiteness


def indefinite(X, **how):
    # Few rows to fit links on, and few links: the spectrum reaches below 0.
    return MEKA(RBF(2.0), 40, n_blocks=6, link_fraction=0.4, random_state=0, **how).fit(X)


def test_clip_gives_the_nearest_psd_matrix(X):
    plain, clipped = indefinite(X, psd=None)(X), indefinite(X, psd="clip")(X)
    values, vectors = np.linalg.eigh(plain)
    assert values[0] < -1e-3 * values[-1]
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(clipped, nearest, atol=1e-8)


def test_clip_is_near_the_nearest_psd_matrix_of_rows_that_it_did_not_see():
    X = moons(1500)[0]
    # Blocks of very different sizes: rows of a sample count for more in a large one.
    blocks = np.searchsorted(np.quantile(X[:, 0], [0.07, 0.2, 0.5]), X[:, 0])
    plain, clipped = (
        MEKA(
            RBF(2.0), 24, n_blocks=4, partition=blocks, link_fraction=0.7, psd=psd, random_state=0
        ).fit(X)(X)
        for psd in (None, "clip")
    )
    values, vectors = np.linalg.eigh(plain)
    assert values[0] < -1e-3 * values[-1]
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    least = np.linalg.norm(nearest - plain)
    assert least < np.linalg.norm(clipped - plain) < 1.01 * least
    assert np.linalg.eigvalsh(clipped)[0] > -1e-10 * values[-1]


def test_shift_raises_the_spectrum_until_it_is_psd(X):
    plain, shifted = indefinite(X, psd=None)(X), indefinite(X, psd="shift")
    values = np.linalg.eigvalsh(plain)
    rank = shifted.n_components_
    raised = np.linalg.eigvalsh(shifted(X))
    assert raised[0] > -1e-10 * raised[-1]
    np.testing.assert_allclose(raised[-1], values[-1] - values[0], rtol=1e-8)
    # The shift is by the same amount for every direction in the span, and 0 outside it.
    trace = values.sum() - rank * values[0]
    np.testing.assert_allclose(raised.sum(), trace, rtol=1e-8)


def test_an_indefinite_one_has_factors_but_no_features(X):
    approximation = indefinite(X, psd=None)
    assert approximation.factor(X).dense().shape == (300, 300)
    with pytest.raises(ValueError, match=r"indefinite.*psd='clip'"):
        approximation.transform(X)
    with pytest.raises(ValueError, match=r"not positive definite.*psd='clip'"):
        KernelRidge(1e-6, kernel=approximation).fit(X, X[:, 0])
    model = KernelRidge(50.0, kernel=approximation, fit_intercept=False).fit(
        X, X[:, 0]
    )  # alpha makes it definite
    K = approximation(X)
    expected = K @ np.linalg.solve(K + 50.0 * np.eye(300), X[:, 0])
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-8)


# Learners on (Z, S)

MODELS = [
    MEKA(KERNEL, 60, n_blocks=5, random_state=0),
    MEKA(KERNEL, 60, n_blocks=5, link_fraction=0.3, random_state=1),
    BKA(KERNEL, 60, n_blocks=5, random_state=0),
]


@pytest.mark.parametrize("approximation", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_solves_the_dense_system(approximation, weighted, rng):
    X, new = moons()[0], moons(60, seed=4)[0]
    Y = np.stack((np.sin(X[:, 0]), X[:, 1]), axis=1)
    weights = rng.integers(0, 3, 300).astype(float) if weighted else None
    model = KernelRidge([0.1, 2.0], kernel=approximation, fit_intercept=False).fit(
        X, Y, sample_weight=weights
    )
    K, K_new = model.approximation_(X), model.approximation_(new, X)
    w = np.ones(300) if weights is None else weights
    for j, alpha in enumerate((0.1, 2.0)):
        dual = np.linalg.solve(w[:, None] * K + alpha * np.eye(300), w * Y[:, j])
        np.testing.assert_allclose(model.predict(new)[:, j], K_new @ dual, atol=1e-8)


def test_ridge_iterates_where_the_core_is_large(monkeypatch):
    X, y = moons()
    approximation = MEKA(KERNEL, 80, n_blocks=6, random_state=0)
    direct = KernelRidge(0.05, kernel=approximation).fit(X, y)
    monkeypatch.setattr("gramian.learners.ridge.blockwise.LARGE_CORE", 10)
    iterative = KernelRidge(0.05, kernel=approximation, tol=1e-10).fit(X, y)
    assert direct.n_iter_ == 1 < iterative.n_iter_
    np.testing.assert_allclose(iterative.predict(X), direct.predict(X), atol=1e-7)
    alphas = KernelRidge([0.05, 3.0], kernel=approximation, tol=1e-10).fit(X, np.c_[y, y])
    np.testing.assert_allclose(alphas.predict(X)[:, 0], direct.predict(X), atol=1e-7)


@pytest.mark.parametrize("approximation", MODELS)
def test_pca_is_that_of_the_dense_matrix(approximation):
    X, new = moons()[0], moons(60, seed=4)[0]
    pca = KernelPCA(6, kernel=approximation).fit(X)
    K, K_new = pca.approximation_(X), pca.approximation_(new, X)
    dense = KernelPCA(6, kernel="precomputed").fit(K)
    np.testing.assert_allclose(pca.eigenvalues_, dense.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(
        np.abs(pca.transform(new)), np.abs(dense.transform(K_new)), atol=1e-6
    )
    own = dense.eigenvalues_[0] / dense.explained_variance_ratio_[0]
    total = max(len(X) - K.mean() * len(X), own)  # of the kernel itself, where that is more
    np.testing.assert_allclose(pca.explained_variance_ratio_, dense.eigenvalues_ / total, rtol=1e-6)


@pytest.mark.parametrize("approximation", MODELS)
def test_k_means_is_that_of_the_dense_features(approximation, rng):
    X, new = moons()[0], moons(60, seed=4)[0]
    weights = rng.integers(0, 3, 300).astype(float)
    seeds = rng.choice(np.flatnonzero(weights), size=4, replace=False)
    fitted = approximation.fit(X)
    model = KernelKMeans(4, kernel=fitted, init=seeds, tol=0.0).fit(X, sample_weight=weights)
    F = fitted.transform(X)
    reference = KMeans(4, init=F[seeds], n_init=1, tol=0.0, algorithm="lloyd")
    reference.fit(F, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_[weights > 0], reference.labels_[weights > 0])
    np.testing.assert_allclose(model.inertia_, reference.inertia_, rtol=1e-8)
    np.testing.assert_allclose(
        model.transform(new), reference.transform(fitted.transform(new)), atol=1e-6
    )
    np.testing.assert_array_equal(model.predict(new), reference.predict(fitted.transform(new)))


def test_an_empty_cluster_takes_the_farthest_row(X):
    fitted = MEKA(KERNEL, 60, n_blocks=5, random_state=0).fit(X)
    model = KernelKMeans(3, kernel=fitted, init=[0, 0, 0]).fit(X)
    assert len(np.unique(model.labels_)) == 3


def test_classifier_on_blocks():
    X, y = moons(600)
    model = KernelRidgeClassifier(0.1, kernel=MEKA(KERNEL, 80, n_blocks=8, random_state=0))
    assert model.fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.95


# Blocks, ranks, partitions


def test_memory_is_that_of_each_row_in_its_own_block():
    X = moons(2000)[0].astype(np.float32)
    meka = MEKA(KERNEL, 200, n_blocks=10, random_state=0).fit(X)
    numbers = int(meka.block_sizes_ @ meka.ranks_)
    factors = meka.factor(X).persist()
    kept = sum(part.collect().nbytes for part in factors.parts)
    assert kept == 4 * numbers
    assert meka.nbytes_ == kept + meka._core.nbytes + 4 * 2000
    assert meka.nbytes_ < 0.25 * meka.transform(X).nbytes
    assert meka._core.nbytes < 0.6 * 4 * 200**2  # one of the two triangles


def test_a_budget_too_small_for_dense_features_names_the_way_out():
    X = moons(2000)[0]
    meka = MEKA(KERNEL, 200, n_blocks=10, random_state=0).fit(X)
    with gramian.config_context(memory_budget="1MB"):
        with pytest.raises(gramian.MemoryBudgetError, match=r"200 features of 2000 rows.*factor"):
            meka.transform(X)
        product = meka.factor(X).matmul(np.ones(2000))
    np.testing.assert_allclose(product, meka(X) @ np.ones(2000), rtol=1e-9)


@pytest.mark.parametrize("ranks", ["spectrum", "size", "equal"])
def test_ranks_add_up_to_the_total(X, ranks):
    for total in (7, 40, 123, 299):
        meka = MEKA(Laplacian(3.0), total, n_blocks=7, ranks=ranks, random_state=0).fit(X)
        assert meka.n_components_ == meka.ranks_.sum() == total
        assert (meka.ranks_ <= meka.block_sizes_).all()
        assert meka.ranks_.min() >= 1


def test_ranks_follow_the_spectra():
    # One wide cloud, and one that is nearly a point.
    rng = np.random.default_rng(0)
    X = np.concatenate((rng.standard_normal((200, 2)), 10 + 0.01 * rng.standard_normal((200, 2))))
    labels = np.repeat([0, 1], 200)
    ranks = BKA(RBF(2.0), 20, partition=labels, random_state=0).fit(X).ranks_
    assert ranks[0] == 19
    assert ranks[1] == 1
    equal = BKA(RBF(2.0), 20, partition=labels, ranks="equal", random_state=0).fit(X)
    assert list(equal.ranks_) == [10, 10]


def test_in_proportion():
    sizes = np.array([100, 50, 3, 1])
    assert list(in_proportion(sizes, sizes, 77)) == [50, 25, 1, 1]
    assert list(in_proportion(np.ones(4), sizes, 20)) == [8, 8, 3, 1]
    assert list(in_proportion(sizes, sizes, 1000)) == [100, 50, 3, 1]
    assert list(in_proportion(sizes, np.array([0, 4, 3, 0]), 5, least=0)) == [
        0,
        4,
        1,
        0,
    ]


def test_given_labels_are_kept_for_the_training_rows(rng):
    X = rng.standard_normal((200, 3))
    labels = np.where(X[:, 0] > 0, "right", "left")  # not what centres would say
    labels[:20] = "left"
    bka = BKA(Laplacian(1.0), 200, partition=labels, random_state=0).fit(X)
    K = Laplacian(1.0)(X)
    same = labels[:, None] == labels
    np.testing.assert_allclose(bka(X), np.where(same, K, 0), atol=1e-10)
    moved = X.copy()
    moved[7] += 1e-3  # no longer those rows: each goes to the nearest centre
    told = partition.nearest(gramian.as_rows(moved), bka.centres_)
    np.testing.assert_array_equal(bka._labels(gramian.as_rows(moved)), told)
    assert (told != bka.labels_).any()


@pytest.mark.slow
def test_partition_by_k_means_has_the_least_error():
    X = moons(600)[0]
    errors = {}
    for kind in ("kmeans", "spectral", "random"):
        models = [
            BKA(RBF(3.0), 60, n_blocks=6, partition=kind, random_state=seed).fit(X)
            for seed in range(3)
        ]
        errors[kind] = np.mean([float(relative_error(model, X)) for model in models])
    assert errors["kmeans"] < 1.2 * errors["spectral"]
    assert errors["kmeans"] < 0.8 * errors["random"]


@pytest.mark.parametrize("seed", range(5))
def test_another_pass_of_k_means_would_change_the_blocks_little(seed):
    X = np.random.default_rng(0).uniform(size=(1500, 1))  # takes many passes
    labels = BKA(RBF(1.0), 50, n_blocks=10, random_state=seed).fit(X).labels_
    assert reference.further_pass(X, np.asarray(labels)) < 5e-4


def test_links_that_are_left_out(X):
    kernel = RBF(1.0)

    def links(**how):
        fitted = MEKA(kernel, 60, n_blocks=5, random_state=0, psd=None, **how).fit(X)
        assert fitted._core.n_links == np.triu(fitted.links_, 1).sum()
        return fitted

    everything = links()
    assert np.triu(everything.links_, 1).sum() == 10
    assert np.triu(links(link_fraction=0.3).links_, 1).sum() == 7
    centres = everything.centres_
    likeness = kernel(centres)
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_array_equal(links(link_threshold=0.2).links_, (likeness > 0.2) & off)
    apart = np.sqrt(((centres[:, None] - centres) ** 2).sum(axis=2))
    np.testing.assert_array_equal(links(link_distance=1.0).links_, (apart <= 1.0) & off)
    few = links(link_threshold=0.2)
    assert few._core.nbytes < everything._core.nbytes
    between = few.labels_[:, None], few.labels_
    dropped = ~few.links_[between] & (between[0] != between[1])
    assert (few(X)[dropped] == 0).all()
    assert float(relative_error(few, X)) > float(relative_error(everything, X))


@pytest.mark.slow
def test_error_falls_with_the_rank():
    X = moons(1000)[0]
    errors = [
        float(relative_error(MEKA(RBF(20.0), r, n_blocks=8, random_state=0).fit(X), X))
        for r in (40, 80, 160, 320)
    ]
    assert all(b < 0.7 * a for a, b in pairwise(errors))


def test_sparse_rows_give_what_dense_ones_do(rng):
    X = rng.standard_normal((200, 6)) * (rng.random((200, 6)) < 0.5)
    dense = MEKA(RBF(0.3), 60, n_blocks=4, random_state=0).fit(X)
    sparse = MEKA(RBF(0.3), 60, n_blocks=4, random_state=0).fit(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse(scipy.sparse.csr_array(X)), dense(X), atol=1e-8)


def test_duplicated_rows_cost_rank_and_nothing_else(rng):
    X = np.repeat(rng.standard_normal((30, 2)), 10, axis=0)
    meka = MEKA(RBF(1.0), 100, n_blocks=3, random_state=0).fit(X)
    assert meka.n_components_ <= 30
    assert float(relative_error(meka, X)) < 1e-6


# Bad input


@pytest.mark.parametrize("cls", [BKA, MEKA])
def test_bad_input(cls, X):
    def fit(*args, **kwargs):
        return cls(*args, random_state=0, **kwargs).fit(X)

    with pytest.raises(ValueError, match="n_blocks=400 exceeds the 300 rows"):
        fit(n_components=500, n_blocks=400)
    with pytest.raises(ValueError, match=r"n_components=5 is the total rank of 10 blocks"):
        fit(n_components=5)
    with pytest.raises(ValueError, match="one for each of the 300 rows; got shape"):
        fit(partition=[0, 1, 2])
    with pytest.raises(ValueError, match=r"partition of .* must be one of"):
        fit(partition="kmean")
    with pytest.raises(ValueError, match=r"ranks of .* must be one of"):
        fit(ranks="all")
    with pytest.raises(ValueError, match="name of a sampler"):
        fit(landmarks=[1, 2, 3])
    with pytest.raises(ValueError, match=r"precomputed matrix\. Use Nystroem"):
        cls("precomputed").fit(KERNEL(X))
    with pytest.raises(ValueError, match=r"got objects\. Use Nystroem"):
        cls(lambda x, y: np.ones((len(x), len(y)))).fit(list("abcdefghijkl"))
    with pytest.warns(gramian.ApproximationWarning, match="stationary kernels"):
        cls(Polynomial(2, 0.1), 20, n_blocks=2).fit(X)


def test_bad_links(X):
    for how, message in [
        ({"link_threshold": 0.1, "link_distance": 2.0}, "two ways to leave out links"),
        ({"link_fraction": 1.5}, "from 0 to 1"),
        ({"link_distance": -1.0}, "not below 0"),
        ({"link_threshold": "0.1"}, "not below 0"),
        ({"psd": "project"}, "psd of MEKA must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            MEKA(KERNEL, 30, n_blocks=3, **how).fit(X)


def test_tiny_blocks_are_merged_with_a_note(rng):
    X = np.concatenate((rng.standard_normal((300, 2)), [[30.0, 30.0], [30.1, 30.0]]))
    labels = np.r_[np.zeros(150), np.ones(150), 2, 3].astype(int)
    with pytest.warns(gramian.ApproximationWarning, match=r"fewer than 5 rows .*2 of 4"):
        bka = BKA(KERNEL, 20, partition=labels, random_state=0).fit(X)
    assert len(bka.block_sizes_) == 2
    same = np.repeat(rng.standard_normal((2, 2)), 50, axis=0)
    with pytest.warns(gramian.ApproximationWarning, match=r"fewer than 5 rows .*3 of 5"):
        MEKA(KERNEL, 10, n_blocks=5, random_state=0).fit(same)


def test_no_warning_for_usual_data(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MEKA(KERNEL, 40, n_blocks=8, random_state=0).fit(X)


# Factors and cores by themselves


def test_block_core_is_the_matrix_that_was_given(rng):
    S = rng.standard_normal((9, 9))
    S = S + S.T
    links = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    core = BlockCore(S, [2, 3, 4], links)
    expected = S.copy()
    expected[:2, 5:] = expected[5:, :2] = 0
    np.testing.assert_array_equal(core.dense(), expected)
    W = rng.standard_normal((9, 4))
    np.testing.assert_allclose(core.matmul(W), expected @ W, atol=1e-13)
    np.testing.assert_array_equal(core.block(1), S[2:5, 2:5])
    assert core.n_links == 2
    assert core.nbytes == 8 * (4 + 9 + 16 + 6 + 12)


def test_factors_in_parts(rng):
    parts = [rng.standard_normal((n, r)) for n, r in ((5, 2), (0, 3), (7, 1))]
    order = rng.permutation(12)
    S = rng.standard_normal((6, 6))
    factors = Factors([gramian.ArrayRows(Z) for Z in parts], BlockCore(S + S.T, [2, 3, 1]), order)
    Z = np.zeros((12, 6))
    Z[order] = scipy.linalg.block_diag(*parts)
    K = Z @ (S + S.T) @ Z.T
    V = rng.standard_normal((12, 2))
    np.testing.assert_allclose(factors.dense(), K, atol=1e-12)
    np.testing.assert_allclose(factors.matmul(V), K @ V, atol=1e-12)
    np.testing.assert_allclose(factors.diagonal(), np.diagonal(K), atol=1e-12)
    np.testing.assert_allclose(inner(factors), Z.T @ Z, atol=1e-12)
    np.testing.assert_allclose(factors.columns([3, 4]), K[:, [3, 4]], atol=1e-12)
    np.testing.assert_allclose(factors.coordinates([0, 11]), Z[[0, 11]], atol=1e-12)
    blocks, right = normal_equations(factors, V, np.arange(12.0))
    np.testing.assert_allclose(right, Z.T @ (np.arange(12.0)[:, None] * V), atol=1e-12)
    weighted = Z.T @ (np.arange(12.0)[:, None] * Z)
    np.testing.assert_allclose(scipy.linalg.block_diag(*blocks), weighted, atol=1e-12)

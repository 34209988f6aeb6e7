"""DP-means in the kernel's space, and landmarks of a stream."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score

from gramian import (
    MEKA,
    RBF,
    SQUEAK,
    Exact,
    FunctionKernel,
    Gram,
    Linear,
    Local,
    MemoryBudgetError,
    Nystroem,
    OnlineKernelKMeans,
    RandomFourier,
    config_context,
)
from gramian.backend import array_ops
from gramian.testing.comparing import LIBRARIES


@pytest.fixture(name="X", scope="module")
def digits():
    return load_digits().data[:600] / 16.0


def dp_means(K, threshold, weights, most, passes=100):
    """The passes of ``fit`` row by row, on a dense matrix; a centre is a row of weights.

    Rows first meet the centres of the pass before; those that are too far meet the ones that opened
    in this pass, one row after the other.
    """
    n = len(K)
    V, labels, history = weights[None, :] / weights.sum(), np.full(n, -1), []
    for _ in range(passes):
        squared = np.diagonal(K) + np.einsum("ij,jk,ik->i", V, K, V)[:, None] - 2 * V @ K
        new, nearest, opened = squared.argmin(axis=0), squared.min(axis=0), []
        for i in range(n):
            if nearest[i] <= threshold**2 or not weights[i]:
                continue
            fresh = [K[i, i] + K[j, j] - 2 * K[i, j] for j in opened]
            if fresh and min(fresh) < nearest[i]:
                new[i], nearest[i] = len(V) + int(np.argmin(fresh)), min(fresh)
            if nearest[i] > threshold**2 and len(V) + len(opened) < most:
                new[i], nearest[i] = len(V) + len(opened), 0.0
                opened.append(i)
        members = (new == np.arange(len(V) + len(opened))[:, None]) * weights
        kept = members.sum(axis=1) > 0
        V = members[kept] / members[kept].sum(axis=1)[:, None]
        history.append(weights @ nearest + threshold**2 * len(V))
        if (new == labels).all() and not opened and kept.all():
            break
        labels = (np.cumsum(kept) - 1)[new]
    return labels, history


class TestFit:
    @pytest.mark.parametrize(
        "approximation",
        [Nystroem(RBF(0.05), 40, random_state=0), MEKA(RBF(0.05), 60, n_blocks=3, random_state=0)],
        ids=["Nystroem", "MEKA"],
    )
    @pytest.mark.parametrize("most", [None, 4])
    def test_row_by_row(self, X, approximation, most):
        weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
        model = OnlineKernelKMeans(0.6, kernel=approximation, max_clusters=most)
        model.fit(X, sample_weight=weights)
        K = model.approximation_(X)
        labels, history = dp_means(K, 0.6, weights, most or len(X))
        counted = weights > 0
        assert model.n_clusters_ == labels[counted].max() + 1
        assert model.n_clusters_ > 6 if most is None else model.n_clusters_ == 4
        assert (model.labels_[counted] == labels[counted]).all()
        assert_allclose(model.objective_history_, history, rtol=1e-8)
        assert_allclose(model.counts_, np.bincount(labels, weights=weights))
        assert (model.predict(X) == model.labels_).all()
        assert_allclose(-model.score(X, sample_weight=weights), model.inertia_, rtol=1e-8)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "kernel",
        [Exact(RBF(0.05)), Local(Nystroem(RBF(0.05), 40, random_state=0), 5, random_state=0)],
        ids=["Exact", "Local"],
    )
    @pytest.mark.parametrize("most", [None, 4])
    @pytest.mark.parametrize("chunk", [7, 1024])
    def test_row_by_row_without_features(self, X, kernel, most, chunk, monkeypatch):
        monkeypatch.setattr("gramian.learners.kmeans.dp_means.CHUNK", chunk)
        weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
        model = OnlineKernelKMeans(0.6, kernel=kernel, max_clusters=most, random_state=0)
        model.fit(X, sample_weight=weights)
        K = RBF(0.05)(X) if model.approximation_ is None else model.approximation_(X)
        labels, history = dp_means(K, 0.6, weights, most or len(X))
        counted = weights > 0
        assert model.n_clusters_ == labels[counted].max() + 1
        assert (model.labels_[counted] == labels[counted]).all()
        assert_allclose(model.objective_history_, history, rtol=1e-8)
        assert_allclose(model.counts_, np.bincount(labels, weights=weights))
        assert (model.predict(X) == model.labels_).all()
        assert_allclose(-model.score(X, sample_weight=weights), model.inertia_, rtol=1e-8)

    @pytest.mark.parametrize("expected", [3, 8])
    def test_features_of_all_rows_give_what_the_matrix_gives(self, X, expected):
        """Also the threshold; Nyström with all rows as landmarks is exact."""
        kernels = Exact(RBF(0.05)), Nystroem(RBF(0.05), 600, landmarks=np.arange(600))
        exact, featured = (
            OnlineKernelKMeans(kernel=kernel, expected_clusters=expected, random_state=0).fit(X)
            for kernel in kernels
        )
        assert_allclose(exact.threshold_, featured.threshold_, rtol=1e-6)
        assert (exact.labels_ == featured.labels_).all()
        assert_allclose(exact.transform(X), featured.transform(X), atol=1e-4)
        assert exact.centre_coefficients_.shape == (600, exact.n_clusters_)
        assert not hasattr(exact, "centres_")

    @pytest.mark.slow
    def test_many_clusters_without_features_are_refused(self):
        X = np.random.default_rng(0).standard_normal((3000, 3))
        model = OnlineKernelKMeans(1e-6, kernel=Exact(RBF(1.0)))
        with (
            config_context(memory_budget="100MB"),
            pytest.raises(MemoryBudgetError, match="larger threshold"),
        ):
            model.fit(X)

    @pytest.mark.parametrize("kernel", [Exact("rbf"), Local("rbf", 2)])
    def test_streams_need_features(self, X, kernel):
        with pytest.raises(ValueError, match="partial_fit of OnlineKernelKMeans needs features"):
            OnlineKernelKMeans(0.6, kernel=kernel).partial_fit(X)
        fitted = OnlineKernelKMeans(0.6, kernel=kernel, random_state=0).fit(X[:50])
        with pytest.raises(ValueError, match="needs features"):
            fitted.partial_fit(X)

    def test_the_objective_never_rises(self, X):
        for threshold in (0.4, 0.5, 0.6):
            model = OnlineKernelKMeans(threshold, kernel=RBF(0.05), random_state=0).fit(X)
            assert len(model.objective_history_) == model.n_iter_ > 2
            assert (np.diff(model.objective_history_) <= 1e-9).all()
            assert model.transform(X).min(axis=1).max() <= threshold * (1 + 1e-9)
            penalty = threshold**2 * model.n_clusters_
            assert_allclose(model.objective_history_[-1], model.inertia_ + penalty)

    def test_the_order_of_opening_does_not_depend_on_pieces(self, X, monkeypatch):
        model = OnlineKernelKMeans(0.6, kernel=RBF(0.05), random_state=0)
        together = clone(model).fit(X)
        monkeypatch.setattr("gramian.learners.kmeans.dp_means.CHUNK", 7)
        apart = clone(model).fit(X)
        assert together.n_clusters_ == apart.n_clusters_ > 20
        assert (together.labels_ == apart.labels_).all()

    def test_expected_clusters(self):
        for k in (2, 4, 7):
            X, y = make_blobs(1000, centers=20.0 * np.eye(k), cluster_std=0.5, random_state=k)
            model = OnlineKernelKMeans(kernel=RBF(0.01), expected_clusters=k, random_state=0)
            assert model.fit(X).n_clusters_ == k
            assert adjusted_rand_score(y, model.labels_) == 1.0

    def test_the_threshold_is_that_of_farthest_first(self, X):
        model = OnlineKernelKMeans(kernel=RBF(0.05), expected_clusters=5, random_state=2).fit(X)
        Z = model.approximation_.transform(X)
        taken = [Z.mean(axis=0)]
        reached = []
        for _ in range(6):
            distances = np.min([np.linalg.norm(Z - t, axis=1) for t in taken], axis=0)
            taken.append(Z[distances.argmax()])
            reached.append(distances.max())
        assert reached[4] > 1.01 * reached[5]
        assert_allclose(model.threshold_, (reached[4] + reached[5]) / 2)

    def test_rows_that_coincide(self):
        X = np.repeat([[0.0], [3.0]], 10, axis=0)
        model = OnlineKernelKMeans(kernel=RBF(1.0), random_state=0).fit(X)
        assert model.n_clusters_ == 2
        assert OnlineKernelKMeans(kernel=RBF(1.0)).fit(np.ones((5, 1))).n_clusters_ == 1

    def test_weights_count_rows(self, X):
        counts = np.random.default_rng(1).integers(0, 3, 200)
        approximation = Nystroem(RBF(0.05), 50, random_state=0).fit(X)
        weighted, repeated = (
            OnlineKernelKMeans(0.6, kernel=approximation).fit(rows, sample_weight=w)
            for rows, w in ((X[:200], counts), (np.repeat(X[:200], counts, axis=0), None))
        )
        assert weighted.n_clusters_ == repeated.n_clusters_ > 10
        assert_allclose(weighted.centres_, repeated.centres_, atol=1e-10)
        assert_allclose(weighted.counts_, repeated.counts_)


class TestStream:
    def test_by_hand(self):
        """In the plane, where the features of a linear kernel are coordinates."""
        kernel = Nystroem(Linear(), 2, landmarks=np.eye(2))
        model = OnlineKernelKMeans(3.0, kernel=kernel)
        model.partial_fit([[0.0, 0.0], [2.0, 0.0]])
        assert model.n_clusters_ == 1
        # (5, 0) is 4 from the centre (1, 0): it opens. (6, 0) is nearer to it than to the old one,
        # (3, 0) is not too far from the old one and stays there, as (1, 3) does.
        model.partial_fit([[5.0, 0.0], [6.0, 0.0], [3.0, 0.0], [1.0, 3.0], [1.0, 9.0]])
        assert list(model.labels_) == [1, 1, 0, 0, 2]
        assert_allclose(model.counts_, [4, 2, 1])
        assert_allclose(model.inertia_, 0 + 1 + 4 + 9 + 0)
        assert model.n_clusters_ == 3
        norms = model.transform([[0.0, 0.0]])[0]
        assert_allclose(norms, [np.hypot(1.5, 0.75), 5.5, np.hypot(1.0, 9.0)])
        before = model.centres_
        model.partial_fit([[1.0, 9.5]], sample_weight=[3.0])
        assert_allclose(model.transform([[0.0, 0.0]])[0, 2], np.hypot(1.0, 9.375))
        assert_allclose(model.centres_[:2], before[:2])
        assert_allclose(model.counts_, [4, 2, 4])

    def test_the_first_batch_is_fitted(self, X):
        model = OnlineKernelKMeans(0.6, kernel=RBF(0.05), random_state=0)
        first, fitted = clone(model).partial_fit(X), clone(model).fit(X)
        assert (first.labels_ == fitted.labels_).all()
        assert first.threshold_ == fitted.threshold_ == 0.6

    def test_it_follows_what_is_new(self, rng):
        """Features that cover all places tell a new cloud from the old ones."""
        kernel = RandomFourier(RBF(0.5), 200, random_state=0)
        model = OnlineKernelKMeans(0.6, kernel=kernel, random_state=0)
        places = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])
        for count in (2, 3, 4):
            drawn = rng.integers(0, count, 300)
            model.partial_fit(places[drawn] + 0.1 * rng.standard_normal((300, 2)))
            assert model.n_clusters_ == count
        assert len(np.unique(model.predict(places))) == 4
        assert model.counts_.sum() == 900

    def test_room_for_no_more(self, X):
        model = OnlineKernelKMeans(0.3, kernel=RBF(0.05), max_clusters=5, random_state=0)
        for batch in np.array_split(X, 3):
            assert model.partial_fit(batch).n_clusters_ == 5
        assert model.counts_.sum() == len(X)

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_other_arrays(self, X, library):
        xp = pytest.importorskip(library)
        models = [OnlineKernelKMeans(0.65, kernel=RBF(0.05), random_state=0) for _ in range(2)]
        for batch in (X[:200], X[200:300]):
            models[0].partial_fit(batch)
            models[1].partial_fit(xp.asarray(batch))
            assert_allclose(array_ops.to_numpy(models[1].labels_), models[0].labels_)
        assert type(models[1].counts_) is type(xp.asarray(X))
        assert_allclose(array_ops.to_numpy(models[1].centres_), models[0].centres_, atol=1e-6)

    def test_objects(self):
        words = ["kernel", "colonel", "lonely", "matrix", "tricks", "strict"]
        kernel = FunctionKernel(lambda a, b: len(set(a) & set(b)) / 6.0, pairwise=True)
        model = OnlineKernelKMeans(0.6, kernel=kernel, random_state=0).partial_fit(words)
        assert model.n_clusters_ == 4
        assert model.labels_[1] == model.labels_[2]  # colonel, lonely
        assert model.labels_[4] == model.labels_[5]  # tricks, strict
        assert model.partial_fit(["zzz"]).labels_.shape == (1,)

    def test_bad_input(self, X):
        for parameters, error in (
            ({"threshold": 0.0}, "threshold of OnlineKernelKMeans must be a positive number"),
            ({"expected_clusters": 0}, "expected_clusters of"),
            ({"max_clusters": 1.5}, "max_clusters of"),
        ):
            with pytest.raises(ValueError, match=error):
                OnlineKernelKMeans(**parameters).fit(X)
        model = OnlineKernelKMeans(0.6).partial_fit(X[:50])
        before = dict(vars(model))
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(np.full((3, 64), np.nan))
        assert all(vars(model)[name] is value for name, value in before.items())


class TestSqueakOfAStream:
    KERNEL = RBF(0.05)

    def test_it_is_select_in_pieces(self, X):
        sampler = SQUEAK(block_size=50)
        chosen = sampler.select(Gram(self.KERNEL, X), 30, np.random.default_rng(0))
        for sizes in ([600], [100, 200, 300], [50] * 12):
            batches = np.split(X, np.cumsum(sizes)[:-1])
            landmarks = sampler.stream(batches, self.KERNEL, 30, np.random.default_rng(0))
            assert_allclose(landmarks.points, chosen.points, atol=0)
            assert landmarks.indices is None

    @pytest.mark.slow
    def test_blocks_that_do_not_fit_are_as_good(self, X):
        def left(points):
            C, W = self.KERNEL(X, points), self.KERNEL(points)
            return len(X) - np.trace(C @ np.linalg.pinv(W, hermitian=True) @ C.T)

        errors = {"stream": [], "select": [], "first rows": [left(X[:40])]}
        for seed in range(5):
            batches = (X[start : start + 70] for start in range(0, 600, 70))
            drawn = SQUEAK().stream(batches, self.KERNEL, 40, np.random.default_rng(seed))
            errors["stream"].append(left(drawn.points))
            chosen = SQUEAK().select(Gram(self.KERNEL, X), 40, np.random.default_rng(seed))
            errors["select"].append(left(chosen.points))
        means = {name: np.mean(each) for name, each in errors.items()}
        assert means["stream"] < 1.03 * means["select"]
        assert means["stream"] < 0.97 * means["first rows"]

    @pytest.mark.parametrize("kind", ["sparse", *LIBRARIES])
    def test_other_arrays(self, X, kind):
        sparse = kind == "sparse"
        convert = scipy.sparse.csr_array if sparse else pytest.importorskip(kind).asarray
        batches = np.array_split(X, 4)
        ours = SQUEAK().stream(batches, self.KERNEL, 20, np.random.default_rng(0))
        given = [convert(batch) for batch in batches]
        theirs = SQUEAK().stream(given, self.KERNEL, 20, np.random.default_rng(0))
        assert type(theirs.points) is type(given[0])
        assert_allclose(array_ops.to_numpy(theirs.points), ours.points)

    def test_landmarks_for_a_stream_of_clusters(self, X):
        batches = np.array_split(X, 6)
        landmarks = SQUEAK().stream(batches, self.KERNEL, 40, np.random.default_rng(0))
        approximation = Nystroem(self.KERNEL, 40, landmarks=landmarks.points).fit(batches[0])
        model = OnlineKernelKMeans(0.7, kernel=approximation)
        for batch in batches:
            model.partial_fit(batch)
        assert model.counts_.sum() == len(X)

    def test_objects(self):
        words = [["kernel", "colonel"], ["lonely", "matrix"], ["tricks", "strict"]]
        kernel = FunctionKernel(lambda a, b: len(set(a) & set(b)), pairwise=True)
        landmarks = SQUEAK().stream(words, kernel, 3, np.random.default_rng(0))
        assert set(landmarks.points) < {word for batch in words for word in batch}

    def test_bad_input(self, X):
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match="at least one batch"):
            SQUEAK().stream([], self.KERNEL, 5, rng)
        with pytest.raises(ValueError, match="m of SQUEAK must be a positive integer"):
            SQUEAK().stream([X], self.KERNEL, 0, rng)
        with pytest.raises(ValueError, match="a precomputed matrix has only"):
            SQUEAK().stream([self.KERNEL(X)], "precomputed", 5, rng)

"""Kernels of objects that are no rows of numbers: strings, sets, lists of different lengths."""

import operator
import pickle
import threading
import time
from collections import Counter

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

from gramian import (
    RBF,
    ArrayRows,
    FunctionKernel,
    GivenPoints,
    Gram,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Linear,
    Nystroem,
    as_rows,
    config_context,
    relative_error,
    sampler_names,
)
from gramian.testing import check_kernel
from gramian.testing.comparing import small_blocks


def pairs_of_letters(a, b):
    """The spectrum kernel of strings: how often they share a pair of letters."""
    first, second = (Counter(word[i : i + 2] for i in range(len(word) - 1)) for word in (a, b))
    return sum(count * second[pair] for pair, count in first.items())


def jaccard(a, b):
    return len(a & b) / len(a | b)


def aligned(a, b):
    """A kernel of sequences of any length: how near their numbers are, place by place."""
    shorter = min(len(a), len(b))
    return float(np.exp(-((np.subtract(a[:shorter], b[:shorter]) / 3) ** 2)).sum())


def in_blocks(function):
    """The same as a function of two lists."""

    def of_blocks(X, Y):
        assert isinstance(X, list) and isinstance(Y, list)
        return [[function(a, b) for b in Y] for a in X]

    return of_blocks


def make_words(n, seed=0):
    rng = np.random.default_rng(seed)
    sounds = ["ka", "ki", "ta", "to", "no", "mu", "ro", "ho"]
    others = ["sh", "el", "or", "an", "th", "ing", "ost", "ed"]
    return ["".join(rng.choice(others if i % 2 else sounds, rng.integers(2, 7))) for i in range(n)]


WORDS, NEW_WORDS = make_words(60), make_words(20, seed=1)
SETS = [frozenset(word) for word in make_words(60, seed=2)]
NEW_SETS = [frozenset(word) for word in make_words(20, seed=3)]
RAGGED = [[float(ord(c)) for c in word] for word in WORDS]
NEW_RAGGED = [[float(ord(c)) for c in word] for word in NEW_WORDS]
Y = np.arange(60) % 2
KINDS = {
    "strings": (pairs_of_letters, WORDS, NEW_WORDS),
    "sets": (jaccard, SETS, NEW_SETS),
    "ragged lists": (aligned, RAGGED, NEW_RAGGED),
}
SPECTRUM = FunctionKernel(pairs_of_letters, pairwise=True)


def table(function, X, Z):
    return np.array([[function(a, b) for b in Z] for a in X], dtype=float)


@pytest.fixture(params=KINDS, ids=str)
def kind(request):
    """Objects, new ones, the kernel in both forms, and the two matrices."""
    function, X, new = KINDS[request.param]
    kernels = FunctionKernel(function, pairwise=True), FunctionKernel(in_blocks(function))
    return X, new, kernels, table(function, X, X), table(function, new, X)


@pytest.mark.slow
def test_laws(kind):
    X, _, kernels, _, _ = kind
    check_kernel(kernels[0], X)


def test_matrices(kind):
    X, new, kernels, K, K_new = kind
    V = np.random.default_rng(0).standard_normal((len(X), 3))
    some = [5, 2, 40]
    for kernel in kernels:
        assert_allclose(kernel(X), K, atol=1e-12)
        assert_allclose(kernel(new, X), K_new, atol=1e-12)
        assert_allclose(kernel.diag(X), K.diagonal(), atol=1e-12)
        for context in (config_context, small_blocks):
            with context():
                gram = Gram(kernel, X)
                assert gram.dtype == np.float64
                assert_allclose(gram.matmul(V), K @ V, atol=1e-9)
                assert_allclose(gram.columns(some), K[:, some], atol=1e-12)
                assert_allclose(gram.block(some, [2, 3]), K[np.ix_(some, [2, 3])], atol=1e-12)
                assert_allclose(Gram(kernel, new, X).matmul(V), K_new @ V, atol=1e-9)


def test_a_bare_function_takes_lists():
    model = KernelRidge(kernel=in_blocks(pairs_of_letters)).fit(WORDS, Y)
    expected = KernelRidge(kernel=SPECTRUM).fit(WORDS, Y).predict(NEW_WORDS)
    assert_allclose(model.predict(NEW_WORDS), expected, atol=1e-12)


def test_the_diagonal_of_a_function_of_two_costs_one_call_each():
    calls = []
    kernel = FunctionKernel(lambda a, b: calls.append((a, b)) or 1.0, pairwise=True)
    kernel.diag(WORDS)
    assert calls == list(zip(WORDS, WORDS, strict=True))


def test_composed_kernels():
    letters = FunctionKernel(lambda a, b: len(set(a) & set(b)), pairwise=True)
    kernel = 0.5 * SPECTRUM + SPECTRUM * letters
    assert kernel.takes_objects and not (SPECTRUM + RBF(1.0)).takes_objects
    K = SPECTRUM(WORDS)
    assert_allclose(kernel(WORDS), 0.5 * K + K * letters(WORDS))
    model = KernelPCA(2, kernel=kernel).fit(WORDS)
    assert model.transform(NEW_WORDS).shape == (20, 2)
    with pytest.raises(ValueError, match="Expected 2D array"):
        (SPECTRUM + RBF(1.0))(WORDS)


LEARNERS = [
    KernelRidge(0.1),
    KernelRidge(0.1, solver="iterative", tol=1e-13),
    KernelRidgeClassifier(0.1, class_weight="balanced"),
    KernelKMeans(4, random_state=0),
    KernelKMeans(3, init=[4, 7, 30]),
    KernelPCA(3, solver="direct"),
    KernelPCA(2, solver="iterative", tol=1e-13, random_state=0),
]


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_do_what_they_do_with_the_matrix(kind, learner):
    X, new, kernels, K, K_new = kind
    reference = clone(learner).set_params(kernel="precomputed").fit(K, Y)
    for kernel in kernels:
        model = clone(learner).set_params(kernel=kernel).fit(X, Y)
        assert not hasattr(model, "n_features_in_")
        for name in ("predict", "decision_function"):
            if hasattr(model, name):
                result = getattr(model, name)(new)
                assert_allclose(result, getattr(reference, name)(K_new), atol=1e-10, rtol=1e-9)
        if isinstance(model, KernelPCA):
            assert_allclose(model.transform(new), reference.transform(K_new), atol=1e-9)
        if isinstance(model, KernelKMeans):
            assert_allclose(model.inertia_, reference.inertia_, rtol=1e-10)
            assert_allclose(model.risk(X), reference.inertia_ / len(X), rtol=1e-9)
            assert (model.transform(new).argmin(axis=1) == model.predict(new)).all()


@pytest.mark.parametrize("learner", LEARNERS)
def test_fitted_learners_are_pickled(learner):
    model = clone(learner).set_params(kernel=SPECTRUM).fit(WORDS, Y)
    again = pickle.loads(pickle.dumps(model))
    name = "predict" if hasattr(model, "predict") else "transform"
    assert (getattr(again, name)(NEW_WORDS) == getattr(model, name)(NEW_WORDS)).all()


@pytest.mark.slow
def test_weights_count_objects():
    weights = 1.0 + np.arange(60) % 3
    repeated = [word for word, w in zip(WORDS, weights, strict=True) for _ in range(int(w))]
    targets = np.repeat(Y, weights.astype(int))
    for approximate in (SPECTRUM, Nystroem(SPECTRUM, 20, landmarks=WORDS[:20])):
        weighted = KernelRidge(1.0, approximate).fit(WORDS, Y, sample_weight=weights)
        plain = KernelRidge(1.0, approximate).fit(repeated, targets)
        assert_allclose(weighted.predict(NEW_WORDS), plain.predict(NEW_WORDS), atol=1e-8)
        first = KernelKMeans(2, kernel=approximate, init=[WORDS[0], WORDS[1]])
        weighted, plain = clone(first).fit(WORDS, sample_weight=weights), first.fit(repeated)
        assert_allclose(weighted.inertia_, plain.inertia_, rtol=1e-9)


@pytest.mark.slow
def test_first_centres_may_be_objects():
    for kernel in (SPECTRUM, Nystroem(SPECTRUM, 40, random_state=0)):
        by_number = KernelKMeans(3, kernel=kernel, init=[3, 8, 20], random_state=0).fit(WORDS)
        words = [WORDS[i] for i in (3, 8, 20)]
        by_object = KernelKMeans(3, kernel=kernel, init=words, random_state=0).fit(WORDS)
        assert (by_number.labels_ == by_object.labels_).all()
    with pytest.raises(ValueError, match=r"2 objects, or 2 row numbers; got.*\(3,\)"):
        KernelKMeans(2, kernel=SPECTRUM, init=words).fit(WORDS)
    with pytest.raises(ValueError, match="from 0 to 59; got 0 to 60"):
        KernelKMeans(2, kernel=SPECTRUM, init=[0, 60]).fit(WORDS)


class TestNystroem:
    def test_equals_nystroem_on_the_matrix(self, kind):
        X, new, kernels, K, K_new = kind
        landmarks = [3, 17, 20, 44, 51, 59]
        reference = Nystroem("precomputed", 6, landmarks=landmarks).fit(K)
        for kernel in kernels:
            for given in (landmarks, [X[i] for i in landmarks]):
                fitted = Nystroem(kernel, 6, landmarks=given).fit(X)
                assert fitted.n_components_ == reference.n_components_
                assert_allclose(fitted.transform(X), reference.transform(K), atol=1e-10)
                assert_allclose(fitted.transform(new), reference.transform(K_new), atol=1e-10)
                assert_allclose(fitted(new, X), reference.transform(K_new) @ fitted.transform(X).T)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", sorted(set(sampler_names()) - {"kmeans", "robust-kmeans"}))
    def test_samplers_choose_what_they_choose_of_the_matrix(self, kind, name):
        X, _, kernels, K, _ = kind
        fitted = Nystroem(kernels[0], 12, landmarks=name, random_state=0).fit(X, Y)
        reference = Nystroem("precomputed", 12, landmarks=name, random_state=0).fit(K, Y)
        assert (fitted.landmarks_.indices == reference.landmarks_.indices).all()
        assert fitted.landmarks_.points[3] == X[fitted.landmarks_.indices[3]]
        for norm in ("fro", "trace", "spectral"):
            ours, theirs = relative_error(fitted, X, norm), relative_error(reference, K, norm)
            assert_allclose(float(ours), float(theirs), rtol=1e-6, atol=1e-9)
            assert 0 < ours < 1

    def test_centres_of_objects_there_are_none(self):
        with pytest.raises(ValueError, match=r"vectors; got objects\. Use landmarks='rpcholesky'"):
            Nystroem(SPECTRUM, 5, landmarks="kmeans").fit(WORDS)

    def test_given_landmarks_are_checked(self):
        gram, rng = Gram(SPECTRUM, WORDS), np.random.default_rng(0)
        assert list(GivenPoints(["kata", "shel"]).select(gram, 2, rng).points) == ["kata", "shel"]
        with pytest.raises(ValueError, match=r"landmarks.*of type int"):
            Nystroem(SPECTRUM, 5, landmarks=3).fit(WORDS)
        with pytest.raises(ValueError, match="from 0 to 59"):
            Nystroem(SPECTRUM, 2, landmarks=[0, 60]).fit(WORDS)

    def test_tolerance(self):
        for name in ("auto", "uniform"):
            fitted = Nystroem(SPECTRUM, 4, landmarks=name, tol=0.05, random_state=0).fit(WORDS)
            assert relative_error(fitted, WORDS, norm="trace") <= 0.05
            assert fitted.n_components_ < 60

    @pytest.mark.parametrize("learner", [*(LEARNERS[i] for i in (0, 2, 4)), KernelPCA(3)])
    def test_learners(self, learner):
        approximation = Nystroem(SPECTRUM, 25, random_state=0)
        indices = approximation.fit(WORDS).landmarks_.indices
        on_matrix = Nystroem("precomputed", 25, landmarks=indices)
        reference = clone(learner).set_params(kernel=on_matrix).fit(SPECTRUM(WORDS), Y)
        for kernel in (approximation, clone(approximation)):  # fitted, and not
            model = clone(learner).set_params(kernel=kernel).fit(WORDS, Y)
            name = "predict" if hasattr(model, "predict") else "transform"
            expected = getattr(reference, name)(SPECTRUM(NEW_WORDS, WORDS))
            assert_allclose(getattr(model, name)(NEW_WORDS), expected, atol=1e-8)
            again = pickle.loads(pickle.dumps(model))
            assert_allclose(getattr(again, name)(NEW_WORDS), expected, atol=1e-8)

    @pytest.mark.slow
    def test_stands_for_a_bare_kernel_on_many_objects(self):
        words = make_words(200, seed=5)
        kernel = SPECTRUM + FunctionKernel(operator.eq, pairwise=True)
        with config_context(memory_budget="900kB"):
            for learner in (KernelKMeans(2), KernelRidgeClassifier(), KernelPCA(2)):
                model = learner.set_params(kernel=kernel, random_state=0)
                model.fit(words, np.arange(200) % 2)
                assert isinstance(model.approximation_, Nystroem)
                assert model.approximation_.landmarks_.indices is not None
        assert KernelRidgeClassifier(kernel=SPECTRUM).fit(WORDS, Y).score(WORDS, Y) == 1.0

    def test_a_function_is_never_called_from_two_threads(self):
        busy, most = set(), []

        def watched(X, Z):
            busy.add(threading.get_ident())
            time.sleep(0.001)
            most.append(len(busy))
            busy.remove(threading.get_ident())
            return np.ones((len(X), len(Z)))

        with config_context(n_threads=4), small_blocks():
            fitted = Nystroem(watched, 1, landmarks=[0]).fit(WORDS)
            fitted.transform(WORDS)
            KernelRidge(kernel=fitted).fit(WORDS, Y).predict(NEW_WORDS)
        assert len(most) > 20 and max(most) == 1


class TestScikitLearn:
    @pytest.mark.slow
    def test_cross_validation(self):
        nystroem = Nystroem(SPECTRUM, 20, random_state=0)
        ridge = KernelRidgeClassifier(kernel=nystroem)
        kinds = WORDS, np.array(WORDS), np.array(WORDS, dtype=object), pandas.Series(WORDS)
        for model, X in [
            *((ridge, X) for X in kinds),
            (KernelRidgeClassifier(kernel=SPECTRUM), WORDS),
            (make_pipeline(nystroem, KernelRidgeClassifier()), WORDS),
        ]:
            assert (cross_val_score(model, X, Y, cv=3) > 0.9).all()

    def test_grid_search(self):
        grid = {
            "alpha": [0.1, 1.0],
            "kernel__kernel__function": [pairs_of_letters, lambda a, b: 1.0],
        }
        ridge = KernelRidgeClassifier(kernel=Nystroem(SPECTRUM, 1, random_state=0))
        search = GridSearchCV(ridge, grid, cv=3).fit(WORDS, Y)
        assert search.best_params_["kernel__kernel__function"] is pairs_of_letters
        assert search.predict(NEW_WORDS).shape == (20,)

    def test_frames_out(self):
        pca = KernelPCA(2, kernel=SPECTRUM).set_output(transform="pandas").fit(WORDS)
        assert list(pca.transform(NEW_WORDS).columns) == ["kernelpca0", "kernelpca1"]

    def test_another_fit_forgets_the_columns_of_the_last(self):
        X = np.random.default_rng(0).standard_normal((60, 3))
        numbers = pandas.DataFrame(X, columns=["a", "b", "c"])
        for model in (KernelPCA(2, kernel=cosine_or_length), Nystroem(cosine_or_length, 5)):
            model.fit(numbers)
            assert model.n_features_in_ == 3 and list(model.feature_names_in_) == ["a", "b", "c"]
            model.fit(WORDS)
            assert not hasattr(model, "n_features_in_") and not hasattr(model, "feature_names_in_")
            assert model.transform(NEW_WORDS).shape[0] == 20
            model.fit(numbers)
            with pytest.raises(ValueError, match="Expected 2D array"):
                model.transform(NEW_WORDS)


def cosine_or_length(X, Z):
    if isinstance(X, list):
        return np.outer([len(x) for x in X], [len(z) for z in Z]) + table(pairs_of_letters, X, Z)
    return X @ Z.T


SEEN = FunctionKernel(lambda a, b: 0.0, pairwise=True)  # reads anything


class TestWhatIsAnObject:
    @pytest.mark.parametrize(
        ("X", "first"),
        [
            (["ab", "cd"], "ab"),
            (("ab", "cd"), "ab"),
            (np.array(["ab", "cd"]), "ab"),
            (np.array([1, 2], dtype=object), 1),
            (pandas.Series(["ab", None]), "ab"),
            ([{1, 2}, {3}], {1, 2}),
            ([{"a": 1}, {}], {"a": 1}),
            ([[1.0, 2.0], [3.0]], [1.0, 2.0]),
            ([("title", "x" * 9), ("other", "")], ("title", "x" * 9)),
            ([[1.0, "a"], [2.0, "b"]], [1.0, "a"]),
            ([None, "a"], None),
            ([3, "a"], 3),
            ([range(2), range(2)], range(2)),
        ],
    )
    def test_objects(self, X, first):
        rows = SEEN.read(X)
        assert rows.are_objects and rows.shape == (2, 1) and rows.dtype == np.float64
        assert rows.take([0])[0] == first
        assert type(rows.take([0])[0]) in (type(first), np.str_)
        assert SEEN(X).shape == (2, 2)

    @pytest.mark.parametrize(
        "X",
        [
            pandas.DataFrame({"size": [1.0, 2.0], "city": ["a", "b"]}),
            np.array([[1.0, "a"], [2.0, "b"]], dtype=object),
        ],
        ids=lambda X: type(X).__module__,
    )
    def test_rows_of_a_frame_with_text(self, X):
        rows = SEEN.read(X)
        assert rows.shape == (2, 1)
        assert [list(row) for row in rows.collect()] == [[1.0, "a"], [2.0, "b"]]

    def test_the_columns_of_a_frame_with_text_keep_their_names(self):
        frame = pandas.DataFrame({"size": np.arange(60.0), "word": WORDS})
        kernel = FunctionKernel(lambda a, b: pairs_of_letters(a[1], b[1]), pairwise=True)
        for model in (KernelRidge(kernel=kernel), KernelRidge(kernel=Nystroem(kernel, 20))):
            model.fit(frame, Y).predict(frame)
            with pytest.raises(ValueError, match="feature names"):
                model.predict(frame[["word", "size"]])

    def test_arrays_of_more_dimensions(self):
        X = np.random.default_rng(0).standard_normal((4, 3, 2))
        kernel = FunctionKernel(lambda a, b: np.sum(a * b), pairwise=True)
        assert kernel.read(X).are_objects
        assert_allclose(kernel(X), kernel(list(X)))
        assert_allclose(kernel(X), Linear()(X.reshape(4, 6)))

    @pytest.mark.parametrize(
        "X",
        [
            [[1.0, 2.0], [3.0, 4.0]],
            [(1, True), (3, 4)],
            [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
            [pandas.Series([1.0, 2.0]), pandas.Series([3.0, 4.0])],
            np.array([[1, 2], [3, 4]], dtype=object),
            pandas.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}),
        ],
        ids=lambda X: type(X).__module__,
    )
    def test_tables_of_numbers(self, X):
        rows = SEEN.read(X)
        assert not rows.are_objects and rows.shape == (2, 2)
        assert rows.collect().dtype == np.float64

    def test_polars(self):
        polars = pytest.importorskip("polars")
        self.test_objects(polars.Series(["ab", "cd"]), "ab")
        frame = polars.DataFrame({"size": [1.0, 2.0], "city": ["a", "b"]})
        self.test_rows_of_a_frame_with_text(frame)
        self.test_tables_of_numbers(polars.DataFrame({"a": [1, 3], "b": [2.0, 4.0]}))

    def test_new_rows_are_read_as_those_of_the_fit(self):
        """Lists that happen to be equally long stay lists where those of the fit were."""
        kernel = FunctionKernel(aligned, pairwise=True)
        equal = [x[:4] for x in RAGGED[:6]]
        assert not kernel.read(equal).are_objects
        seen = []

        def watched(X, Z):
            seen.extend(type(x) for x in (*X, *Z))
            return table(aligned, X, Z)

        fitted = Nystroem(watched, 10, random_state=0).fit(RAGGED)
        models = [fitted, KernelPCA(kernel=watched), KernelPCA(kernel=Nystroem(watched, 10))]
        for model in models:
            model.fit(RAGGED).transform(equal)
        KernelPCA(1, kernel=fitted).fit(equal).transform(equal)
        FunctionKernel(watched)(RAGGED, equal)
        Gram(watched, RAGGED, equal).dense()
        assert set(seen) == {list}
        with pytest.raises(ValueError, match="inhomogeneous"):
            KernelPCA(1, kernel=kernel).fit(equal).transform(RAGGED)

    def test_folds_of_an_array_of_objects(self):
        lists = np.empty(60, dtype=object)
        lists[:] = RAGGED
        lists[:48] = [x[:4] for x in RAGGED[:48]]  # all of the last training fold
        predicted = cross_val_predict(
            KernelRidge(kernel=FunctionKernel(aligned, pairwise=True)), lists, Y
        )
        assert predicted.shape == (60,)

    def test_rows_are_walked_as_any(self):
        rows = as_rows(WORDS, objects=True)
        assert repr(rows) == "ArrayRows(shape=(60, 1), dtype=object)"
        assert rows.persist() is rows
        assert list(rows.collect()) == WORDS
        assert list(rows.take([4, 2])) == [WORDS[4], WORDS[2]]
        lengths = [len(word) for word in WORDS]
        numbers = np.arange(60)
        with config_context(n_threads=3), small_blocks():
            found = rows.map(lambda x, i, out: np.array([len(w) for w in x]) + i, numbers)
            total = rows.sum(lambda x: np.asarray(sum(map(len, x))), start=30)
        assert (found == lengths + numbers).all() and found.dtype == np.float64
        assert total == sum(lengths[30:])


class TestErrors:
    @pytest.mark.parametrize("X", [WORDS, RAGGED, SETS], ids=["strings", "ragged", "sets"])
    def test_kernels_of_numbers_say_what_they_said(self, X):
        """scikit-learn's own message, with a hint."""
        with pytest.raises(ValueError, match=r"Expected 2D array|inhomogeneous") as caught:
            KernelPCA(kernel="rbf").fit(X)
        assert "FunctionKernel(function, pairwise=True)" in caught.value.__notes__[0]
        with pytest.raises(ValueError, match=r"RBF needs rows of numbers; got objects.*Function"):
            Gram(RBF(1.0), ArrayRows(np.fromiter(X, dtype=object)))
        with pytest.raises(ValueError, match="needs rows of numbers; got objects"):
            Gram(SPECTRUM + Linear(), as_rows(X, objects=True))

    @pytest.mark.parametrize("X", ["kernel", b"kernel", {"a": 1}, {"a", "b"}, 3, None])
    def test_a_single_object(self, X):
        with pytest.raises(ValueError, match=r"Expected a list of objects for X.*in a list"):
            SPECTRUM(X)

    def test_too_few(self):
        for X in ([], np.array([], dtype=object), pandas.Series([], dtype=str)):
            with pytest.raises(ValueError, match=r"X with 0 sample\(s\).*required by FunctionK"):
                SPECTRUM(X)
        with pytest.raises(ValueError, match=r"X with 1 sample\(s\).*2 is required by KernelPCA"):
            KernelPCA(kernel=SPECTRUM).fit(["one"])
        with pytest.raises(ValueError, match=r"0 sample\(s\).*1 is required by KernelPCA"):
            KernelPCA(kernel=SPECTRUM).fit(WORDS).transform([])

    def test_a_column_of_numbers_is_still_asked_for_its_shape(self):
        for X in ([1.0, 2.0], np.arange(4.0), pandas.Series([1.0, 2.0])):
            with pytest.raises(ValueError, match=r"Reshape your data|Expected a 2-dim"):
                SPECTRUM(X)

    def test_functions_of_the_wrong_shape(self):
        for function in (pairs_of_letters, lambda a, b: np.ones(3)):
            kernel = FunctionKernel(lambda X, Z, f=function: f(X[0], Z[0]))
            with pytest.raises(ValueError, match=r"each pair of rows.*\(60, 20\).*pairwise=True"):
                kernel(WORDS, NEW_WORDS)

    def test_numbers_of_targets(self):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            KernelRidge(kernel=SPECTRUM).fit(WORDS, Y[:50])
        with pytest.raises(ValueError, match="each of the 60 rows"):
            KernelRidge(kernel=SPECTRUM).fit(WORDS, Y, sample_weight=np.ones(3))

    def test_no_way_back_to_objects(self):
        with pytest.raises(ValueError, match="rows that are vectors; got objects"):
            KernelPCA(kernel=SPECTRUM, fit_inverse_transform=True).fit(WORDS)

    def test_a_function_that_fails_is_not_hidden(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            FunctionKernel(jaccard, pairwise=True)(WORDS)

    def test_tags_stay(self):
        tags = KernelRidge(kernel=SPECTRUM).__sklearn_tags__().input_tags
        assert not tags.pairwise and not tags.positive_only
        assert KernelRidge(kernel=Nystroem("chi2")).__sklearn_tags__().input_tags.positive_only

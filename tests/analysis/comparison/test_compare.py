"""compare: what it measures, what it says, and what it refuses."""

import re
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris, make_blobs
from sklearn.metrics import accuracy_score

import gramian
from gramian import (
    BKA,
    RBF,
    FunctionKernel,
    KernelRidge,
    KernelRidgeClassifier,
    Linear,
    Local,
    Matern,
    Nystroem,
    Polynomial,
    RandomFourier,
    compare,
    relative_error,
)
from gramian.analysis.clusters import explained_variance
from gramian.analysis.comparison import Measurement, data
from gramian.analysis.comparison.catalogue import chosen
from gramian.analysis.comparison.source import Source
from gramian.analysis.comparison.structure import RIDGE, fixed
from gramian.analysis.comparison.tasks import Clusters
from gramian.approximations import Approximation
from gramian.rows import ArrayRows
from gramian.theory import effective_dimension

X, Y = load_iris(return_X_y=True)
QUICK = {"approximations": ["nystroem uniform", "MEKA"], "sizes": [10, 30], "random_state": 0,
         "baselines": False}  # fmt: skip


@pytest.fixture(scope="module")
def comparison():
    return compare(X, repeats=2, **QUICK)


@pytest.fixture(scope="module")
def scored():
    return compare(X, Y, repeats=1, **QUICK)


def without_times(comparison):
    return [replace(result, seconds=0.0, seconds_all=0.0) for result in comparison.results]


@pytest.mark.slow
def test_errors_are_those_of_the_approximations(comparison):
    for result in comparison.approximations:
        errors = []
        for seed in (0, 1):
            model = clone(result.approximation).set_params(random_state=seed).fit(X)
            errors.append(float(relative_error(model, X)))
        assert result.error == pytest.approx(np.mean(errors), rel=1e-9)
        assert result.error_low == pytest.approx(min(errors), rel=1e-9)
        assert result.error_high == pytest.approx(max(errors), rel=1e-9)
        assert result.nbytes == result.nbytes_all == clone(result.approximation).fit(X).nbytes_


def test_kernel_values_of_fit_and_features_are_counted(comparison):
    uniform = [r for r in comparison.results if r.name == "Nyström uniform"]
    assert [r.kernel_evaluations for r in uniform] == [m * m + len(X) * m for m in (10, 30)]
    assert comparison.exact.kernel_evaluations == len(X) ** 2
    meka = next(r for r in comparison.results if r.name == "MEKA")
    model = clone(meka.approximation).fit(X)  # the repeat in the middle
    of_features = sum(
        size * len(landmarks)
        for size, landmarks in zip(model.block_sizes_, model.landmarks_, strict=True)
    )
    # Landmarks that say nothing new, as rows that are there twice, are not looked at again.
    counted = model.factor(X).parts.evaluations
    assert 0.9 * of_features < counted <= of_features
    assert meka.kernel_evaluations == model.evaluations_ + counted
    assert model.evaluations_ > sum(len(landmarks) ** 2 for landmarks in model.landmarks_)
    model = BKA(RBF(1.0), 10, n_blocks=2, ranks="equal", random_state=0).fit(X)
    expected = 0
    for n in model.block_sizes_:  # landmarks with themselves, and with twice as many other rows
        m = min(n, 3 * 5 + 10)
        expected += m * (m + m + min(2 * m, n - m))
    assert model.evaluations_ == expected
    fourier = compare(X, approximations="random fourier", sizes=[10], repeats=1).results[0]
    assert fourier.kernel_evaluations == 0


@pytest.mark.slow
def test_the_exact_matrix_comes_last_and_has_no_error(comparison):
    exact = comparison.results[-1]
    assert exact is comparison.exact
    assert (exact.name, exact.size, exact.error, exact.nbytes) == ("Exact", 150, 0.0, 8 * 150**2)


@pytest.mark.slow
def test_a_seed_gives_the_same_results(scored):
    assert without_times(compare(X, Y, repeats=1, **QUICK)) == without_times(scored)
    other = compare(X, Y, repeats=1, **{**QUICK, "random_state": 1})
    assert without_times(other) != without_times(scored)
    generators = [compare(X, **{**QUICK, "random_state": np.random.default_rng(3)}, repeats=1)
                  for _ in range(2)]  # fmt: skip
    assert without_times(generators[0]) == without_times(generators[1])


def test_scores_are_those_of_rows_held_out(scored):
    kernel = scored.kernel
    sample = data.draw(kernel, data.read(kernel, X, Y, 4000, 0))
    assert (scored.data.measured, scored.data.held_out) == (113, 37)
    seen = {tuple(row) for row in sample.rows.data}
    for result in scored.approximations:
        approximation = clone(result.approximation).fit(sample.rows.data)
        model = KernelRidgeClassifier("loo", approximation, random_state=0)
        model.fit(sample.rows.data, sample.target)
        predicted = model.predict(sample.new_rows.data)
        assert result.score == accuracy_score(sample.new_target, predicted)
        assert 0 < result.standard_error < 0.1
    # A quarter of each class, and no row on both sides but for rows that are there twice.
    assert set(np.bincount(sample.new_target)) <= {12, 13}
    assert sum(tuple(row) in seen for row in sample.new_rows.data) <= 1


@pytest.mark.slow
def test_regression_is_known_by_its_target_whatever_its_mean():
    X, y = load_diabetes(return_X_y=True)
    found = compare(X, y + 1e4, approximations="nystroem k-means", sizes=[50], repeats=1,
                    random_state=0)  # fmt: skip
    assert found.score_name == "R²"
    assert 0.2 < found.results[0].score < found.exact.score + 0.1 < 0.7


@pytest.mark.parametrize(
    ("target", "classes"),
    [
        (np.array(["a", "b"] * 20), True),
        (np.array([True, False] * 20), True),
        (np.array([-1.0, 1.0] * 20), True),
        (np.arange(40), False),
        (np.linspace(0, 1, 40), False),
        (np.ones((40, 2)), False),
    ],
)
def test_what_is_a_class(target, classes):
    assert data.are_classes(target) is classes


@pytest.mark.slow
def test_a_learner_of_ones_own():
    learner = KernelRidge(alpha=0.1)
    found = compare(X, Y, learner=learner, repeats=1, **QUICK)
    assert found.score_name == "R²"  # though the target holds classes
    assert "alpha" in repr(found.learner) and learner.kernel == "rbf"
    with pytest.raises(TypeError, match="classifier or regressor with a parameter kernel"):
        compare(X, Y, learner=KMeans())
    with pytest.raises(ValueError, match="needs a target"):
        compare(X, learner=learner)
    with pytest.raises(ValueError, match="got both"):
        compare(X, Y, n_clusters=3)


@pytest.mark.slow
def test_explained_variance_is_that_of_kmeans_for_a_linear_kernel():
    points, _ = make_blobs(300, centers=4, random_state=0)
    plain = KMeans(4, n_init=10, random_state=0).fit(points)
    scatter = np.sum((points - points.mean(axis=0)) ** 2)
    expected = pytest.approx(1 - plain.inertia_ / scatter, rel=1e-6)
    assert explained_variance(points, plain.labels_, "linear") == expected
    task = Clusters(ArrayRows(points), Linear(), 4, 0)
    approximation = Nystroem(Linear(), 2, landmarks="rpcholesky", random_state=0)
    assert task.score(task.model(approximation, 0)).value == expected
    found = compare(X, n_clusters=3, repeats=1, **QUICK)
    assert found.score_name == "share of variance"
    assert all(0 < result.score < 1 for result in found.results)


@pytest.mark.slow
def test_many_rows_are_sampled_and_memory_is_that_of_all():
    points = np.random.default_rng(0).standard_normal((3000, 3)).astype(np.float32)
    found = compare(points, max_rows=500, sizes=[50], repeats=1, random_state=0,
                    approximations=["nystroem uniform", "meka"])  # fmt: skip
    assert (found.data.rows, found.data.measured) == (3000, 500)
    nystroem, meka, exact = found.results
    assert (nystroem.nbytes, nystroem.nbytes_all) == (4 * 500 * 50, 4 * 3000 * 50)
    assert exact.nbytes_all == 4 * 3000**2
    of_all = clone(meka.approximation).fit(points).nbytes_
    assert meka.nbytes_all == pytest.approx(of_all, rel=0.1)  # the core does not grow with the rows


@pytest.mark.slow
def test_errors_of_many_rows_have_intervals(monkeypatch):
    monkeypatch.setattr("gramian.analysis.comparison.measure.ALL_PAIRS", 500)
    monkeypatch.setattr("gramian.analysis.accuracy.SAMPLED_ROWS", 500)
    points = np.random.default_rng(0).standard_normal((700, 3))
    found = compare(points, sizes=[20], repeats=1, approximations="nystroem uniform")
    result = found.results[0]
    assert result.error_low < result.error < result.error_high
    exact = relative_error(clone(result.approximation).fit(points), points, exact=True)
    assert result.error_low * 0.8 < exact.value < result.error_high * 1.2


@pytest.mark.slow
def test_what_refuses_is_listed_and_the_others_go_on():
    found = compare(X, sizes=[5, 20], repeats=1, approximations=["MEKA", "nystroem uniform"])
    (failure,) = found.failures
    assert (failure.name, failure.sizes) == ("MEKA", (5,))
    assert "total rank of 10 blocks" in failure.reason
    assert [(r.name, r.size) for r in found.approximations] == [
        ("Nyström uniform", 5), ("MEKA", 20), ("Nyström uniform", 20)]  # fmt: skip
    assert failure.reason in str(found)
    with pytest.raises(ValueError, match=r"No approximation could be measured.*shift-invariant"):
        compare(X, kernel="linear", approximations=[RandomFourier()], sizes=[5])


class Broken(Approximation):
    """An approximation that fails in a way that nobody thought of."""

    def __init__(self, kernel="rbf", n_components=10, *, random_state=None):
        self.kernel, self.n_components, self.random_state = kernel, n_components, random_state

    def _fit(self, gram, rng, y, plan):
        raise ZeroDivisionError("by zero")


def test_what_fails_is_listed_too():
    found = compare(X, sizes=[5], approximations=[Broken(), "nystroem uniform"], repeats=1)
    assert found.failures[0].reason == "ZeroDivisionError: by zero"


def test_interrupts_pass_and_the_callback_has_what_was_measured():
    taken = []

    def callback(result):
        taken.append(result)
        if len(taken) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(X, callback=callback, repeats=1, **QUICK)
    assert [result.size for result in taken] == [10, 10]
    taken.clear()
    found = compare(X, callback=lambda result: taken.append(result), repeats=1, **QUICK)
    assert taken == found.results


def test_what_approximations_warn_of_becomes_a_note():
    twice = np.repeat(np.arange(20.0)[:, None], 4, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare(twice, sizes=[30], approximations="nystroem rpcholesky", kernel=RBF(1.0))
    assert "the rows have no more distinct ones" in found.results[0].note


def test_which_approximations_serve_which_kernel():
    def names(kernel, rows=X):
        rows = kernel.read(rows, objects=None)
        return [method.name for method in chosen(None, kernel, rows)]

    nystroem = ["Nyström uniform", "Nyström k-means", "Nyström RPCholesky"]
    assert names(RBF(1.0)) == [*nystroem, "MEKA", "BKA", "Random Fourier"]
    assert names(RBF(1.0), np.ones((1000, 2)))[-1] == "Random Fourier"
    assert names(RBF(1.0), np.ones((1001, 2)))[-1] == "Local"  # with more than one block
    series = ["TensorSketch", "CRAFT", "Random Maclaurin"]
    assert names(Polynomial(gamma=1.0)) == [*nystroem, *series]
    words = FunctionKernel(lambda a, b: float(a == b), pairwise=True)
    assert names(words, ["a", "b"]) == ["Nyström uniform", "Nyström RPCholesky"]
    rows = ArrayRows(X)
    (orthogonal,) = chosen("random fourier", RBF(1.0), rows)
    (independent,) = chosen("random fourier", gramian.Laplacian(1.0), rows)
    assert orthogonal.approximation.frequencies == "orthogonal"
    assert independent.approximation.frequencies == "iid"  # the only unbiased ones of the two


@pytest.mark.parametrize("name", ["Nyström k-means", "nystroem-kmeans", "NYSTROM K MEANS"])
def test_names_may_be_written_as_they_are_typed(name):
    assert chosen(name, RBF(1.0), ArrayRows(X))[0].approximation.landmarks == "kmeans"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"approximations": "nystrum"}, "Unknown approximation 'nystrum'"),
        ({"approximations": []}, "at least one"),
        ({"approximations": [Nystroem(), Nystroem()]}, "twice. Name them"),
        ({"sizes": []}, "at least one number"),
        ({"sizes": [0]}, "positive integer"),
        ({"repeats": 0}, "positive integer"),
        ({"n_clusters": 1000}, "exceeds the 150 rows"),
        ({"y": Y[:10]}, "one entry per row, 150 rows"),
        ({"y": np.full(150, np.nan)}, "NaN or infinity"),
        ({"kernel": "rfb"}, "Did you mean 'rbf'"),
    ],
)
def test_wrong_arguments_are_told(wrong, message):
    with pytest.raises(ValueError, match=message):
        compare(X, **wrong)


def test_an_approximation_around_another_one():
    """The size is that of the features; blocks count in time, memory and kernel values."""
    around = Local(Nystroem("laplacian"), n_blocks=3)
    found = compare(X, kernel=RBF(1.0), approximations={"both": around}, sizes=[5, 20], repeats=1,
                    random_state=0)  # fmt: skip
    few, many = found.approximations
    assert few.approximation.kernel.kernel == found.kernel and not few.is_exact
    assert (few.size, few.approximation.kernel.n_components) == (5, 5)
    assert many.error < few.error < 0.5 and few.nbytes > 8 * 150**2 / 3
    assert few.kernel_evaluations > 150**2 / 3


def test_wrong_approximations_are_told():
    with pytest.raises(TypeError, match="names or Approximations"):
        compare(X, approximations=[Local()])
    with pytest.raises(TypeError, match="names or Approximations"):
        compare(X, approximations=[RBF()])
    with pytest.raises(ValueError, match="too few"):
        compare(X[:5], Y[:5])


measurements = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=12
).map(
    lambda pairs: [
        Measurement(f"{i}", i, error / 100, 0, 0, 0.0, 0.0, size, size, 0, approximation=Nystroem())
        for i, (size, error) in enumerate(pairs)
    ]
)


@given(measurements)
def test_the_frontier_is_what_nothing_beats(results):
    found = replace(_BASE, results=results, score_name=None)
    kept = found.frontier
    for result in results:
        beaten = any(
            other.nbytes_all <= result.nbytes_all
            and other.error <= result.error
            and (other.nbytes_all, other.error) != (result.nbytes_all, result.error)
            for other in results
        )
        same = any((k.nbytes_all, k.error) == (result.nbytes_all, result.error) for k in kept)
        assert same is not beaten


_BASE = compare(X, approximations="nystroem uniform", sizes=[5], repeats=1, random_state=0)


def test_source_of_estimators():
    def shared(a, b):
        return 1.0

    source = Source()
    kernel = 0.5 * RBF(0.1) + FunctionKernel(shared, pairwise=True)
    assert "FunctionKernel(shared, True)" in source.of(Nystroem(kernel, 7, landmarks="greedy"))
    assert source.unknown == {"shared"}
    assert "from gramian import RBF, FunctionKernel, Nystroem" in source.header()
    names = {"shared": shared}
    points = np.array([[0.0], [1.0]])
    text = source.of(Nystroem(RBF(0.123456789), landmarks=points))
    assert "RBF(0.123456789)" in text and "100" in text
    exec(source.header(), names)
    np.testing.assert_array_equal(eval(text, names).landmarks, points)


def test_rules_become_numbers_once_on_all_rows():
    kernel = (RBF("median") * 2.0 + RBF(bandwidth=2.0)).fit(X)
    numbers = fixed(kernel)
    assert numbers.left.kernel.gamma == float(f"{kernel.left.kernel.gamma_:.6g}")
    assert (numbers.right.gamma, numbers.right.bandwidth) == (0.125, None)
    np.testing.assert_allclose(numbers(X), kernel(X), rtol=1e-4)
    found = compare(X, kernel=RBF("median"), sizes=[5], approximations="nystroem uniform",
                    max_rows=50, repeats=1, random_state=0)  # fmt: skip
    assert found.kernel.gamma == pytest.approx(RBF("median").fit(X, random_state=0).gamma_, 1e-5)
    assert found.settings["gamma"] == "from the rule 'median'"
    found = compare(X, Y, kernel=RBF("median"), sizes=[5], approximations="nystroem uniform",
                    max_rows=50, repeats=1, random_state=0, baselines=False)  # fmt: skip
    held_out = data.read(found.kernel, X, Y, 50, 0).split.test
    assert len(held_out) == 12
    known = np.delete(X, held_out, axis=0)
    assert found.kernel.gamma == pytest.approx(
        RBF("median").fit(known, random_state=0).gamma_, 1e-5
    )


def test_structure_of_the_matrix(comparison):
    found, K = comparison.structure, comparison.kernel(X)
    assert found.rows == 150
    np.testing.assert_allclose(found.eigenvalues.sum(), 1.0)
    dimension = effective_dimension(K, ridge=RIDGE * np.trace(K))
    assert found.effective_dimension == pytest.approx(dimension, rel=1e-9)
    # The picture is the matrix in another order, in which blocks lie together.
    assert found.picture.shape == K.shape
    np.testing.assert_allclose(np.sort(found.picture.ravel()), np.sort(K.ravel()), atol=1e-12)
    edges = np.concatenate(([0], np.cumsum(found.blocks)))
    inside = sum(np.sum(found.picture[a:b, a:b] ** 2) for a, b in pairwise(edges))
    assert found.within == pytest.approx(inside / np.sum(K**2), rel=1e-9)
    assert found.within > found.by_chance + 0.05
    own = next(view for view in found.gammas if view.factor == 1.0)
    assert own.effective_dimension == pytest.approx(found.effective_dimension)
    assert [view.factor for view in found.gammas] == [0.25, 0.5, 1.0, 2.0, 4.0]
    dimensions = [view.effective_dimension for view in found.gammas]
    assert dimensions == sorted(dimensions)
    model = Nystroem(comparison.kernel, own.size, random_state=0).fit(X)
    assert own.error == pytest.approx(float(relative_error(model, X)))


@pytest.mark.slow
def test_a_matrix_of_kernel_values_is_split_on_both_sides():
    K = RBF(0.5)(X)
    found = compare(K, Y, kernel="precomputed", sizes=[20], repeats=1, random_state=0)
    assert found.baselines == []
    direct = compare(X, Y, kernel=RBF(0.5), sizes=[20], repeats=1, random_state=0,
                     approximations=["nystroem uniform", "nystroem rpcholesky"])  # fmt: skip
    assert [r.name for r in found.results] == [r.name for r in direct.results]
    for one, other in zip(found.results, direct.results, strict=True):
        assert one.score == other.score
        assert one.error == pytest.approx(other.error, abs=1e-9)
    assert not found.structure.gammas


@pytest.mark.slow
def test_words_and_sparse_rows():
    words = ["kernel", "colonel", "lonely", "matrix", "tricks", "strict"] * 5
    kernel = FunctionKernel(lambda a, b: float(len(set(a) & set(b))), pairwise=True)
    assert compare(words, kernel=kernel, sizes=[4], repeats=1).data.kind == "objects"
    sparse = pytest.importorskip("scipy.sparse").random_array((80, 9), density=0.3, rng=0)
    found = compare(sparse.tocsr(), sizes=[10], repeats=1, n_clusters=2)
    assert "Nyström k-means" not in [result.name for result in found.results]


def test_rows_of_torch():
    torch = pytest.importorskip("torch")
    found = compare(torch.tensor(X), torch.tensor(Y), repeats=1, **QUICK)
    plain = compare(X, Y, repeats=1, **QUICK)
    for one, other in zip(found.results, plain.results, strict=True):
        assert one.error == pytest.approx(other.error, rel=1e-6)
        assert one.score == pytest.approx(other.score, abs=0.03)


@pytest.mark.slow
def test_frame_and_text(scored):
    pytest.importorskip("pandas")
    frame = scored.to_frame()
    assert list(frame["name"]) == [result.name for result in scored.results]
    assert frame["score"].iloc[-1] == scored.exact.score
    text = str(scored)
    assert scored.recommendation in text
    assert len(re.findall("MEKA", text)) >= 2
    assert "150 rows" in repr(scored)


@pytest.mark.slow
def test_picture_of_matplotlib(scored, comparison, tmp_path):
    pytest.importorskip("matplotlib")
    figure = scored.plot()
    assert [ax.get_ylabel() for ax in figure.axes] == ["relative error"] * 2 + ["accuracy"]
    assert len(comparison.plot().axes) == 2
    figure.savefig(tmp_path / "plot.png")


def test_what_can_be_afforded(comparison):
    fits, said = comparison.affordable
    assert fits and "180 kB" in said
    little = replace(comparison, settings={**comparison.settings, "memory budget": 1000})
    fits, said = little.affordable
    assert not fits and "would take 180 kB; the memory budget is 1 kB" in said


# Kernels that learn from the target.


def uneven(n=160):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, 3)) * [1.0, 30.0, 1.0]
    return rows, np.sin(2 * rows[:, 0]) + 0.1 * rng.standard_normal(n)


FEW = {"approximations": ["nystroem uniform"], "sizes": [20], "repeats": 1, "random_state": 0,
       "baselines": False}  # fmt: skip


@pytest.mark.slow
def test_the_kernel_can_be_tuned():
    rows, y = uneven()
    tuned, plain = (compare(rows, y, kernel=kernel, **FEW) for kernel in ("tune", "rbf"))
    assert tuned.kernel.scales.argmax() == 0 and tuned.best.score > 0.9 > plain.best.score
    assert "as tune does in up to 30 s, from the training rows" in tuned.settings["gamma"]
    space = {"X": rows, "y": y}
    exec(tuned.code, space)
    assert space["model"].score(space["X_test"], space["y_test"]) == pytest.approx(tuned.best.score)


def test_a_tuned_kernel_does_not_see_held_out_rows():
    rows, y = uneven()
    (train, test, _) = data.split(len(rows), y, 4000, 0)
    other = y.copy()
    other[test] = 0.0
    kernels = [data.tuned(data.Data(ArrayRows(rows), each, data.Split(train, test)), 30.0, 0)
               for each in (y, other)]  # fmt: skip
    np.testing.assert_array_equal(kernels[0].scales, kernels[1].scales)
    assert kernels[0].gamma == kernels[1].gamma


def test_a_tuned_kernel_needs_a_target_and_numbers():
    with pytest.raises(ValueError, match="kernel='tune' of compare needs a target: pass y"):
        compare(X, kernel="tune")
    with pytest.raises(ValueError, match="needs dense rows of numbers"):
        compare(scipy.sparse.csr_array(X), Y, kernel="tune")
    with pytest.raises(ValueError, match="time of compare is for kernel='tune'; got time=5 with"):
        compare(X, Y, time=5)
    with pytest.raises(ValueError, match="time of compare must be a positive number"):
        compare(X, Y, kernel="tune", time=0)


def test_the_time_of_a_tuned_kernel_is_kept(monkeypatch):
    given = []
    monkeypatch.setattr(data, "tuned_kernel", lambda X, Y, classes, seconds, rng:
                        given.append(seconds) or RBF(1.0))  # fmt: skip
    rows, y = uneven()
    assert "in up to 2 s" in compare(rows, y, kernel="tune", time=2, **FEW).settings["gamma"]
    assert given == [2.0]


@pytest.mark.slow
def test_parameters_that_learn_are_learned_from_rows_that_are_not_held_out():
    rows, y = uneven()
    found = compare(rows, y, kernel=RBF(scales="learn"), **FEW)
    assert "learned from the training rows by leave-one-out" in found.settings["gamma"]
    assert found.kernel.scales.argmax() == 0 and "scales=" in found.code
    chosen = compare(rows, np.where(y > 0, "up", "down"), kernel=Matern("loo", nu="loo"), **FEW)
    assert chosen.kernel.nu in (0.5, 1.5, 2.5) and chosen.kernel.gamma > 0

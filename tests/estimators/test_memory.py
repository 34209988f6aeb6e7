"""What a fit says that it takes in memory, and what it takes."""

import inspect
import pickle

import numpy as np
import pytest

import gramian
from gramian import (
    BKA,
    CRAFT,
    MEKA,
    RBF,
    Exact,
    ExponentialDot,
    KernelHuberRegressor,
    KernelJL,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelRidge,
    KernelRidgeClassifier,
    KernelSVC,
    MemoryBudgetError,
    MemoryEstimate,
    Nystroem,
    OnlineKernelKMeans,
    Polynomial,
    RandomFourier,
    RandomMaclaurin,
    TensorSketch,
    config_context,
    sampler_names,
)
from gramian.approximations import Approximation
from gramian.backend.memory import LEAST_BUDGET
from gramian.learners.base import KernelLearner
from gramian.learners.losses.base import LossLearner
from gramian.testing import check_memory, example

pytestmark = pytest.mark.usefixtures("few_objects")

CLASSES = [getattr(gramian, name) for name in gramian.__all__]
CLASSES = [cls for cls in CLASSES if inspect.isclass(cls)]
ESTIMATORS = [
    example(cls)
    for cls in CLASSES
    if issubclass(cls, Approximation | KernelLearner) and cls is not Approximation
]
ESTIMATORS += [Nystroem(RBF(0.05), 100, landmarks=name) for name in sampler_names()]
ESTIMATORS += [
    Nystroem(RBF("median"), 400, rank=20),
    Nystroem(RBF(0.05), 400, rank=20, truncation="core", landmarks="uniform"),
    RandomFourier(RBF(0.05), 2000, frequencies="orthogonal"),
    KernelJL(RBF(0.05), 200, n_samples=400),
    RandomMaclaurin(Polynomial(3), 500),
    TensorSketch(ExponentialDot(), 500),
    CRAFT(Polynomial(3), 200, up="maclaurin"),
    BKA(RBF(0.05), 200, n_blocks=4, partition="random"),
    MEKA(RBF(0.05), 300, n_blocks=5),
    KernelKMeans(3, kernel=Nystroem(RBF(0.05), 300)),
    KernelKMeans(3, kernel=Nystroem(RBF(0.05), 100), batch_size=500),
    KernelKMeans(5, kernel=MEKA(RBF(0.05), 200, n_blocks=5)),
    KernelKMeans(3, kernel=Exact(RBF(0.05))),
    OnlineKernelKMeans(0.9, kernel=RandomFourier(RBF(0.05), 300)),
    KernelRidge(1.0, kernel=Nystroem(RBF(0.05), 300)),
    KernelRidge(1.0, kernel=Nystroem(RBF(0.05), 300), solver="iterative"),
    KernelRidge("loo", kernel=Nystroem(RBF(0.05), 300)),
    KernelRidge("gcv", kernel=RBF(0.05)),
    KernelRidge(1.0, kernel=Exact(RBF(0.05)), solver="iterative"),
    KernelRidge(1.0, kernel=MEKA(RBF(0.05), 200, n_blocks=5)),
    KernelRidgeClassifier(1.0, kernel=BKA(RBF(0.05), 200, n_blocks=5)),
    KernelLogisticRegression(kernel=Nystroem(RBF(0.05), 300)),
    KernelLogisticRegression(kernel=MEKA(RBF(0.05), 200, n_blocks=5)),
    KernelSVC(kernel=Nystroem(RBF(0.05), 200), tol=1e-2),
    KernelQuantileRegressor(kernel=BKA(RBF(0.05), 200, n_blocks=5), quantile=[0.1, 0.9], tol=1e-2),
    KernelHuberRegressor(kernel=MEKA(RBF(0.05), 200, n_blocks=5)),
    KernelPoissonRegressor(kernel=RandomFourier(RBF(0.05), 1500)),
    KernelPCA(5, kernel=Nystroem(RBF(0.05), 300)),
    KernelPCA(100, kernel=RBF(0.05)),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_law(estimator):
    if isinstance(estimator, LossLearner):
        estimator.set_params(max_iter=3)  # more of them take time, but no more memory
    check_memory(estimator)


class TestEstimates:
    def test_they_are_numbers_that_say_what_for(self):
        need = MemoryEstimate({"blocks": 1500, "features": 2_000_000, "labels": 0})
        assert need == 2_001_500
        assert need.parts == {"features": 2_000_000, "blocks": 1500}
        assert str(need) == repr(need) == "2 MB: features 2 MB, blocks 1.5 kB"
        again = pickle.loads(pickle.dumps(need))
        assert (again, again.parts) == (need, need.parts)
        assert str(MemoryEstimate({})) == "0 B"

    def test_the_step_that_takes_most(self):
        need = MemoryEstimate.peak([{"a": 5, "b": 1}, {"c": 4}])
        assert (need, need.parts) == (6, {"a": 5, "b": 1})

    def test_what_does_not_fit_is_computed_anew(self):
        model = KernelKMeans(3, kernel=Nystroem(RBF(0.1), 100))
        with config_context(memory_budget="90MB", n_threads=2):
            few, more, most = (model.estimate_memory(n, 10) for n in (10**4, 10**5, 10**6))
        assert few.parts["features"] == 10**4 * 100 * 8
        kept = next(name for name in more.parts if name.startswith("features of"))
        assert 0.6 * 8e7 < more.parts[kept] < 8e7
        assert few < more <= 9e7
        assert most <= 9e7

    def test_half_of_it_in_float32(self):
        model = KernelPCA(2, kernel=Nystroem(RBF(0.1), 100, landmarks="uniform"))
        double, single = (model.estimate_memory(10**4, 10, dtype=t) for t in ("f8", "f4"))
        assert double.parts["features"] == 2 * single.parts["features"]
        assert model.estimate_memory(10**4, 10, dtype="uint8") == single

    def test_files(self):
        model = KernelRidge(kernel=Nystroem(RBF(0.1), 50))
        with config_context(memory_budget="100MB"):
            small, large = (model.estimate_memory(n, 100, on_disk=True) for n in (10**4, 10**6))
        assert small.parts["rows"] == 8e6  # a path of so few is read at once
        assert "rows" not in large.parts

    def test_targets(self):
        model = KernelRidge(kernel=Nystroem(RBF(0.1), 50))
        one, ten = (model.estimate_memory(10**6, 5, n_targets=t) for t in (1, 10))
        assert ten - one > 8 * 9 * 10**6

    def test_a_fitted_approximation_is_there_already(self, rng):
        X = rng.standard_normal((500, 4))
        fresh = Nystroem(RBF(0.1), 200, landmarks="uniform", random_state=0)
        model = KernelRidge(kernel=fresh)
        assert "landmarks" in model.estimate_memory(10**5, 4).parts
        assert "landmarks" not in KernelRidge(kernel=fresh.fit(X)).estimate_memory(10**5, 4).parts

    @pytest.mark.parametrize(("n", "d"), [(0, 5), (10, -1), (2.5, 3), ("many", 2)])
    def test_wrong_numbers(self, n, d):
        with pytest.raises(ValueError, match="of estimate_memory must be a positive integer"):
            KernelKMeans().estimate_memory(n, d)

    def test_they_take_no_memory(self):
        need = KernelKMeans(8).estimate_memory(10**10, 10**4)
        assert need > 10**9


class TestRefusals:
    def test_before_anything_is_computed(self, rng, monkeypatch):
        X = rng.standard_normal((3000, 5))

        def never(*arguments):
            raise AssertionError("it was begun")

        monkeypatch.setattr(RBF, "against", never)
        model = KernelRidge(kernel=Nystroem(RBF(0.1), 2000))
        with config_context(memory_budget="50MB"):
            need = model.estimate_memory(3000, 5)
            message = r"budget of 50 MB does not allow a fit of KernelRidge to rows of shape "
            message += r"\(3000, 5\), which needs .*MB: .*fewer n_components, or raise the budget"
            with pytest.raises(MemoryBudgetError, match=message):
                model.fit(X, X[:, 0])
        assert need > 5e7

    @pytest.mark.slow
    def test_a_bare_kernel_takes_as_many_landmarks_as_fit(self, rng):
        X = rng.standard_normal((20_000, 3))
        model = KernelRidge(kernel=RBF(1.0), random_state=0)
        with config_context(memory_budget="30MB"):
            assert model.estimate_memory(20_000, 3) <= 30e6
            model.fit(X, X[:, 0])
        assert 100 <= len(model.approximation_.landmarks_) < 20_000**0.5 * np.log(20_000) - 1

    @pytest.mark.parametrize("kind", ["sparse", "dense"])
    def test_wide_rows_without_room_for_centres_or_pivots(self, kind, rng):
        """200 centres take 3.2 MB as a dense array, the factor of the pivots 6.4 MB."""
        import scipy.sparse

        X = scipy.sparse.random_array((4000, 2000), density=0.001, rng=rng, format="csr")
        X = X if kind == "sparse" else X.toarray()
        chosen = {}
        for budget in ("500MB", "50MB", "9MB"):
            with config_context(memory_budget=budget):
                gram = gramian.Gram("linear", X)
                chosen[budget] = type(gramian.as_sampler("auto", gram, 200)).__name__
        assert chosen == {"500MB": "RobustCentres", "50MB": "RPCholesky", "9MB": "Uniform"}

    def test_clusters_without_end(self, rng):
        X = rng.standard_normal((8000, 5))
        model = OnlineKernelKMeans(1e-6, kernel=Nystroem(RBF(1.0), 100, random_state=0))
        with (
            config_context(memory_budget="17MB"),
            pytest.raises(MemoryBudgetError, match=r"or more clusters.*larger threshold"),
        ):
            model.fit(X)

    def test_small_fits_never_are(self, rng):
        X = rng.standard_normal((300, 5))
        with config_context(memory_budget="100kB"):
            model = KernelKMeans(3, kernel=Nystroem(RBF(0.1), 50), random_state=0)
            assert 1e5 < model.estimate_memory(300, 5) < LEAST_BUDGET
            model.fit(X)


def test_one_budget_for_a_call():
    """What is free when a fit begins, whatever it takes itself."""
    from gramian.backend import config

    with config_context(memory_budget="10MB"), config.one_budget():
        config.hold(4_000_000)
        assert config.memory_budget() == 6_000_000
        with config.one_budget():
            config.hold(10**9)
            assert config.memory_budget() == 1
        assert config.memory_budget() == 6_000_000

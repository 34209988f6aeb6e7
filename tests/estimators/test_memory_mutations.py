"""Every formula of memory is needed: set to zero, it makes a fit exceed its estimate.

Strategies and samplers are found by introspection; a new one needs a case here, large enough for
its own formula to matter.
"""

import inspect

import numpy as np
import pytest
from sklearn.base import is_classifier

import gramian
from gramian import (
    BKA,
    RBF,
    Exact,
    GivenIndices,
    GivenPoints,
    Gram,
    KernelKMeans,
    KernelLogisticRegression,
    KernelPCA,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVR,
    Local,
    Nystroem,
    OnlineKernelKMeans,
    RandomFourier,
    config_context,
)
from gramian.kernels.tiles import tile_columns
from gramian.learners.base import KernelLearner
from gramian.samplers import Sampler
from gramian.testing.examples import example, example_rows
from gramian.testing.memory import _peak_growth

pytestmark = pytest.mark.usefixtures("few_objects")

EXPORTED = [getattr(gramian, name) for name in gramian.__all__]
CLASSES = [cls for cls in EXPORTED if inspect.isclass(cls)]
LEARNERS = [cls for cls in CLASSES if issubclass(cls, KernelLearner)]
STRATEGIES = {type(each).__name__: type(each) for cls in LEARNERS for each in cls.strategies}
SAMPLERS = {cls.__name__: cls for cls in CLASSES if issubclass(cls, Sampler) and cls is not Sampler}

MATRIX = Exact(RBF(0.05))
FEATURES = RandomFourier(RBF(0.05), 600, random_state=0)
LOCAL = Local(Nystroem(RBF(0.05), 50, random_state=0), 2, random_state=0)
BLOCKS = BKA(RBF(0.05), 2000, n_blocks=10, ranks="equal", random_state=0)

# For each strategy a learner that runs it, and the number of rows. Approximations are fitted
# before: what their own fit takes is not to hide the strategy's.
RUNS = {
    "LocalPath": (KernelRidge("loo", LOCAL), 1500),
    "LocalDirect": (KernelRidge(1.0, LOCAL), 1500),
    "LocalNewton": (KernelPoissonRegressor(1.0, LOCAL), 1500),
    "ExactSearch": (KernelRidge("loo", MATRIX), 1200),
    "ExactPath": (KernelRidge(("gcv", [0.1, 1.0, 10.0]), MATRIX), 800),
    "Sampled": (KernelRidge("loo", MATRIX, solver="iterative"), 1200),
    "ExactDirect": (KernelRidge(1.0, MATRIX, solver="direct"), 1200),
    "ExactIterative": (KernelRidge(1.0, MATRIX, solver="iterative"), 1500),
    "FactoredPath": (KernelRidge("loo", FEATURES), 2000),
    "Streamed": (KernelRidge(1.0, FEATURES, solver="iterative"), 4000),
    "Blockwise": (KernelRidge(1.0, BLOCKS, solver="iterative"), 4000),
    "Factored": (KernelRidge(1.0, FEATURES, solver="direct"), 2000),
    "ExactNewton": (KernelPoissonRegressor(1.0, MATRIX), 800),
    "ExactFeatures": (KernelLogisticRegression(1.0, MATRIX), 800),
    "Iterated": (KernelPoissonRegressor(1.0, FEATURES), 4000),
    "SupportVectors": (KernelSVR(1.0, FEATURES, tol=0.1), 2000),
    "InteriorPoints": (KernelQuantileRegressor(1.0, FEATURES, tol=0.1), 2000),
    "Summed": (KernelSVR(("loo", [1.0]), FEATURES, tol=0.1), 2000),
    "ExactLloyd": (KernelKMeans(8, kernel=MATRIX), 1500),
    "MiniBatches": (KernelKMeans(3, kernel=FEATURES, batch_size=500), 4000),
    "FeaturedLloyd": (KernelKMeans(3, kernel=FEATURES), 4000),
    "ExactDPMeans": (OnlineKernelKMeans(0.9, kernel=MATRIX, max_clusters=5), 1500),
    "DPMeans": (OnlineKernelKMeans(0.9, kernel=FEATURES, max_clusters=5), 4000),
    "Decomposed": (KernelPCA(100, kernel=MATRIX, solver="direct"), 1200),
    "Krylov": (KernelPCA(5, kernel=MATRIX, solver="iterative"), 2000),
    "FromMoments": (KernelPCA(5, kernel=FEATURES), 4000),
}


@pytest.fixture(autouse=True)
def settings():
    with config_context(memory_budget="400MB", n_threads=1):
        yield


def stated(learner, n):
    known = {"n_targets": 3} if is_classifier(learner) else {}
    return learner.estimate_memory(n, 20, **known)


def taken_and_stated(learner, n):
    X, y = example_rows(n, 20), np.arange(n) % 3 + (0 if is_classifier(learner) else 0.5)
    kernel = learner.kernel
    if hasattr(kernel, "fit"):
        with config_context(memory_budget="2GB"):
            kernel.fit(X, y)
    learner.set_params(random_state=0)
    learner.fit(X[:200], y[:200])  # what a first fit imports is no part of it
    return _peak_growth(lambda: learner.fit(X, y)), stated(learner, n)


def is_enough(taken, stated):
    return taken <= 1.1 * stated + 2**20


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_memory_of_a_strategy(name, monkeypatch):
    assert name in RUNS, f"{name} is new: add a fit to RUNS that runs it"
    cls, ran = STRATEGIES[name], []
    solve = cls.solve
    monkeypatch.setattr(cls, "solve", lambda *a: (ran.append(name), solve(*a))[1])
    taken, need = taken_and_stated(*RUNS[name])
    assert ran, f"the fit does not run {name}"
    assert is_enough(taken, need), f"{name}: {taken} of {need}"
    monkeypatch.setattr(cls, "memory", lambda self, problem: [])
    need = stated(*RUNS[name])
    assert not is_enough(taken, need), f"{name} takes {taken}; without its formula {need}"


# For each sampler the rows, columns and landmarks with which its own formula matters.
CHOICES = {
    "Uniform": (1_500_000, 1, 40_000),
    "Diagonal": (1_000_000, 1, 100),
    "ColumnNorm": (100_000, 2, 50),
    "Probabilities": (1_000_000, 1, 100),
    "KMeansCentres": (20_000, 100, 500),
    "RobustCentres": (20_000, 100, 500),
    "KMeansPlusPlus": (100_000, 1, 70),
    "RPCholesky": (20_000, 3, 100),
    "Greedy": (20_000, 3, 60),
    "KDPP": (20_000, 3, 100),
    "CSI": (20_000, 3, 30),
    "LeverageScores": (1000, 3, 100),
    "RecursiveLeverage": (5000, 3, 600),
    "BLESS": (5000, 3, 600),
    "SQUEAK": (2000, 3, 400),
    "GivenIndices": (60_000, 20, 50_000),
    "GivenPoints": (60_000, 20, 50_000),
}


def sampler_and_gram(name):
    n, d, m = CHOICES[name]
    given = {
        "Probabilities": {"probabilities": np.full(n, 1 / n)},
        "GivenIndices": {"indices": np.arange(m)},
        "GivenPoints": {"points": example_rows(m, d).astype(np.float32)},
    }
    cls = SAMPLERS[name]
    sampler = cls(**given[name]) if name in given else example(cls)
    return sampler, Gram(RBF(0.05), example_rows(n, d)), m


def taken_by_select(sampler, gram, m):
    y = np.arange(gram.shape[0]) % 3 + 0.5

    def select(m):
        sampler.select(Gram(gram.kernel, gram.rows), m, np.random.default_rng(0), y)

    if not isinstance(sampler, GivenIndices | GivenPoints):  # these take all of theirs
        select(min(m, 20))  # what a first choice imports is no part of it
    return _peak_growth(lambda: select(m))


def stated_of_select(sampler, gram, m):
    """As a plan of Nystroem has it: what the sampler says, and blocks of kernel values."""
    tile = min(m, tile_columns(gram.rows.place.reference))
    return sampler.select_bytes(gram.rows, m) + gram.rows.walk_bytes(2 * 8 * tile)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_memory_of_a_sampler(name, monkeypatch):
    assert name in CHOICES, f"{name} is new: add sizes to CHOICES with which its memory matters"
    sampler, gram, m = sampler_and_gram(name)
    taken = taken_by_select(sampler, gram, m)
    stated = stated_of_select(sampler, gram, m)
    assert is_enough(taken, stated), f"{name}: {taken} of {stated}"
    if "select_bytes" in vars(type(sampler)):
        default = Sampler.select_bytes(sampler, gram.rows, m)
        monkeypatch.setattr(type(sampler), "select_bytes", lambda self, rows, m: default)
        stated = stated_of_select(sampler, gram, m)
        assert not is_enough(taken, stated), f"{name}: {taken}; with the default {stated}"
    monkeypatch.setattr(type(sampler), "select_bytes", lambda self, rows, m: 0)
    stated = stated_of_select(sampler, gram, m)
    assert not is_enough(taken, stated), f"{name}: {taken}; with nothing {stated}"


@pytest.mark.parametrize("name", SAMPLERS)
def test_nystroem_states_the_memory_of_its_sampler(name, monkeypatch):
    sampler, gram, m = sampler_and_gram(name)
    n, d = gram.rows.shape
    monkeypatch.setattr(type(sampler), "select_bytes", lambda self, rows, m: 10**9)
    assert Nystroem(RBF(0.05), m, landmarks=sampler).estimate_memory(n, d) > 10**9

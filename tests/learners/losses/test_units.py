"""The size of targets, which decides neither convergence nor the choice of alpha."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian import (
    RBF,
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelQuantileRegressor,
    KernelSVR,
    Local,
    Nystroem,
)
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.regression import EpsilonInsensitive, Expectile, Huber, Poisson
from gramian.learners.losses.units import unit_of

KERNEL = RBF(0.5)
LEARNERS = [
    (KernelSVR, 1, {"epsilon": 0.05}),
    (KernelHuberRegressor, 1, {}),
    (KernelQuantileRegressor, 1, {"quantile": [0.2, 0.8]}),
    (KernelExpectileRegressor, 2, {"level": 0.7}),
]
NAMES = [cls.__name__ for cls, _, _ in LEARNERS]
KERNELS = [KERNEL, Nystroem(KERNEL, 15, random_state=0), Local(KERNEL, 10, random_state=0)]


def example(n=120):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize(("cls", "degree", "options"), LEARNERS, ids=NAMES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_targets_in_another_unit(cls, degree, options, kernel, unit):
    X, y = example()
    measured = dict(options)
    if "epsilon" in options:
        measured["epsilon"] = options["epsilon"] * unit
    one = cls(0.25, kernel, random_state=0, **options).fit(X, y)
    other = cls(0.25 * unit ** (degree - 2), kernel, random_state=0, **measured)
    other.fit(X, unit * y)
    assert_array_equal(other.predict(X) / unit, one.predict(X))
    assert_array_equal(np.asarray(other.objective_) / unit**degree, one.objective_)
    if cls is KernelHuberRegressor:
        assert other.scale_ / unit == one.scale_


@pytest.mark.parametrize(("cls", "degree", "options"), LEARNERS, ids=NAMES)
def test_alpha_is_chosen_in_that_unit(cls, degree, options):
    X, y = example(60)
    unit, measured = 2.0**30, dict(options)
    if "epsilon" in options:
        measured["epsilon"] = options["epsilon"] * unit
    one = cls("loo", KERNEL, **options).fit(X, y)
    other = cls("loo", KERNEL, **measured).fit(X, unit * y)
    factor = unit ** (degree - 2)
    assert other.alpha_ == factor * one.alpha_
    assert_array_equal(other.path_.alphas, factor * one.path_.alphas)
    assert_allclose(other.path_.errors, unit**degree * one.path_.errors, rtol=1e-12)
    # Alphas that are passed are those of the targets as they are.
    grid = ("loo", list(other.path_.alphas[:2]))
    assert_array_equal(
        cls(grid, KERNEL, **measured).fit(X, unit * y).path_.alphas, other.path_.alphas[:2]
    )


@pytest.mark.parametrize(("cls", "degree", "options"), LEARNERS, ids=NAMES)
@pytest.mark.parametrize("constant", [0.0, 1.0, 1e-290, -1e6])
def test_constant_targets(cls, degree, options, constant):
    X, _ = example(40)
    model = cls(1.0, KERNEL, **options).fit(X, np.full(40, constant))
    allowed = options.get("epsilon", 0.0) + 1e-6 * abs(constant) + 1e-8
    assert (np.abs(model.predict(X) - constant) <= allowed).all()


@pytest.mark.parametrize(
    "loss", [Huber(1.35).begun(0.7), EpsilonInsensitive(0.4), Expectile([0.3])]
)
@given(seed=st.integers(0, 1000), exponent=st.integers(-30, 30))
@settings(max_examples=20)
def test_the_degree_of_a_loss(loss: Loss, seed, exponent):
    unit, rng = 2.0**exponent, np.random.default_rng(seed)
    y, f = rng.standard_normal((8, 1)), rng.standard_normal((8, 1))
    value = loss.in_unit(1 / unit).value(unit * y, unit * f)
    assert_allclose(value, unit**loss.degree * loss.value(y, f), rtol=1e-12)


def test_units_are_powers_of_two_near_the_spread():
    loss = Expectile([0.5])
    assert unit_of(loss, 1.5, 0.0) == 1.0
    assert unit_of(loss, 3e-5, 7.0) == 2.0**-16
    assert unit_of(loss, 1e-9, 1000.0) == 1.0  # constant targets, but for rounding
    assert unit_of(loss, 1e-300, 0.0) == 2.0**-500
    assert unit_of(EpsilonInsensitive(0.3), 1e-9, 0.0) == 0.25  # smaller errors do not count
    assert unit_of(Poisson(), 100.0, 50.0) == 1.0  # counts have no unit

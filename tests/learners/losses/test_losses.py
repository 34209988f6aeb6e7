"""Each loss by itself: its derivatives, its link, and what smoothing may add."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gramian.learners.losses.classification import (
    Hinge,
    Logistic,
    Multinomial,
    Novelty,
    SquaredHinge,
)
from gramian.learners.losses.loss import Refining
from gramian.learners.losses.regression import (
    EpsilonInsensitive,
    Expectile,
    Huber,
    Poisson,
    Quantile,
)

CLASSES = [
    Logistic(),
    Multinomial(3),
    SquaredHinge(1),
    SquaredHinge(3),
    Hinge(1).with_width(0.5),
    Hinge(3).with_width(0.5),
]
NUMBERS = [
    Huber(1.35).begun(0.7),
    Quantile([0.1, 0.5, 0.9]).with_width(0.3),
    EpsilonInsensitive(0.4).with_width(0.3),
    Expectile([0.2, 0.9]),
    Poisson(),
    Novelty().with_width(0.3),
]
LOSSES = CLASSES + NUMBERS


def example(loss, seed, rows=6):
    rng = np.random.default_rng(seed)
    f = 1.5 * rng.standard_normal((rows, loss.outputs))
    if loss in NUMBERS:
        return np.abs(rng.standard_normal((rows, 1))), f
    return rng.integers(0, max(loss.outputs, 2), (rows, 1)).astype(float), f


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@given(seed=st.integers(0, 1000))
def test_derivatives_are_those_of_the_value(loss, seed):
    y, f = example(loss, seed)
    step = 1e-6
    for k in range(loss.outputs):
        e = np.zeros_like(f)
        e[:, k] = step
        ahead, behind = loss.value(y, f + e), loss.value(y, f - e)
        slope = (ahead - behind).sum(axis=1) / (2 * step)
        assert_allclose(loss.gradient(y, f)[:, k], slope, atol=1e-5)
        change = (loss.gradient(y, f + e) - loss.gradient(y, f - e)) / (2 * step)
        near_kink = isinstance(loss, Huber | SquaredHinge | Expectile)
        kept = np.abs(change[:, k] - loss.curvature(y, f)[:, k]) < 1e-4
        assert kept.all() or (near_kink and kept.mean() > 0.5)
        if not near_kink:
            assert_allclose(loss.curve(y, f, e / step), change, atol=1e-4)
    assert (loss.curvature(y, f) >= 0).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("loss", LOSSES)
def test_values_and_gradients_together(loss, order):
    y, f = example(loss, 3, rows=40)
    f = np.asarray(30.0 * f, order=order)
    value, gradient = loss.value_and_gradient(y, f)
    assert_allclose(value, loss.value(y, f), rtol=1e-12, atol=1e-12)
    assert_allclose(gradient, loss.gradient(y, f), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_root_of_the_curvature(loss):
    y, f = example(loss, 0)
    u = np.random.default_rng(1).standard_normal(f.shape)
    root = loss.root(y, f)
    assert_allclose(root.times(root.transposed_times(u)), loss.curve(y, f, u), atol=1e-12)


@given(seed=st.integers(0, 1000), width=st.floats(1e-3, 2.0))
def test_what_smoothing_adds_is_bounded(seed, width):
    for loss in (Hinge(1), Quantile([0.3]), EpsilonInsensitive(0.2)):
        y, f = example(loss, seed)
        smooth = loss.with_width(width)
        added = smooth.value(y, f) - loss.value(y, f)
        pieces = len(loss.pieces(y, f))
        assert (added >= 0).all()
        assert (added <= pieces * width * np.log(2) + 1e-12).all()
        gap = smooth.statistics(y, f)
        assert (gap >= -1e-12).all()
        assert (gap <= 0.2785 * pieces * width).all()


def test_links_and_first_intercepts():
    far = Logistic().inverse_link(np.array([[0.0], [800.0], [-800.0]]))
    assert_allclose(far[:, 0], [0.5, 1.0, 0.0], atol=1e-200)
    p = Multinomial(3).inverse_link(np.array([[1000.0, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    assert_allclose(p, [[1, 0, 0], [1 / 3] * 3])
    shares = np.array([0.2, 0.5, 0.3])
    loss = Multinomial(3)
    assert_allclose(loss.inverse_link(loss.start(shares)[None, :])[0], shares)
    assert_allclose(Logistic().inverse_link(Logistic().start(np.array([0.3, 0.7]))), 0.7)
    assert_allclose(Poisson().inverse_link(Poisson().start(np.array([3.0]))), 3.0)


def test_a_kinked_loss_becomes_narrower_until_the_gap_is_small():
    loss = Hinge(1).begun(1.0)
    narrower = loss.refined(Refining(np.array([1.0]), np.array([10.0]), 5.0, 1e-3))
    assert narrower.width < loss.width
    assert loss.refined(Refining(np.array([1.0]), np.array([10.0]), 5.0, 0.2)) is None


def test_some_of_the_outputs():
    y, f = example(Hinge(3), 0)
    for loss in (Hinge(3).with_width(0.1), SquaredHinge(3), Quantile([0.1, 0.5, 0.9])):
        both = loss.of([0, 2])
        assert both.outputs == 2
        assert_allclose(both.value(y, f[:, [0, 2]]), loss.value(y, f)[:, [0, 2]])

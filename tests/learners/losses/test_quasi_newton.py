"""Quasi-Newton steps on quadratic functions, where everything is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.learners.losses.newton import Evaluation
from gramian.learners.losses.quasi_newton import Course


def quadratics(rng, outputs, coupled):
    """A matrix H for each output, a preconditioner near H⁻¹, and an evaluation of ½ xᵀHx."""
    size = 12
    roots = rng.standard_normal((outputs, size, 3 * size))
    H = roots @ roots.transpose(0, 2, 1)
    near = roots[:, :, : 2 * size] @ roots[:, :, : 2 * size].transpose(0, 2, 1) * 1.5

    def evaluate(x):
        gradient = np.einsum("kij,jk->ik", H, x)
        values = 0.5 * np.sum(x * gradient, axis=None if coupled else 0, keepdims=coupled)
        return Evaluation(x, values.reshape(-1), gradient, np.zeros(outputs))

    def precondition(R):
        return np.column_stack([np.linalg.solve(near[k], R[:, k]) for k in range(outputs)])

    return evaluate, precondition, rng.standard_normal((size, outputs))


def slopes_of(here, direction, coupled):
    slopes = -np.sum(here.gradient * direction, axis=None if coupled else 0, keepdims=coupled)
    return slopes.reshape(-1)


@pytest.mark.parametrize(("outputs", "coupled"), [(1, False), (3, False), (3, True)])
def test_the_steps_converge_and_know_how_much_is_left(rng, outputs, coupled):
    evaluate, precondition, x = quadratics(rng, outputs, coupled)
    course = Course(coupled=coupled)
    for _ in range(25):
        here = evaluate(x)
        direction = -course.inverse_times(here, precondition)
        left = course.left(here, direction, slopes_of(here, direction, coupled))
        assert course.is_fast
        x = x + direction
        assert (evaluate(x).values <= left / 2).all()  # the minimum is 0
    assert (evaluate(x).values < 1e-8).all()


def test_the_last_change_of_the_gradient_comes_from_the_last_step(rng):
    evaluate, precondition, x = quadratics(rng, 2, False)
    course, points = Course(coupled=False), []
    for _ in range(3):
        points.append(evaluate(x))
        direction = -course.inverse_times(points[-1], precondition)
        course.left(points[-1], direction, np.ones(2))
        x = x + 0.5 * direction
    step, change = (
        getattr(points[-1], name) - getattr(points[-2], name) for name in ("point", "gradient")
    )
    there = points[-1]._replace(gradient=change)
    assert_allclose(course.inverse_times(there, precondition), step, rtol=1e-9)


def test_short_steps_may_leave_more(rng):
    """A preconditioner that is far too large along a step may be right along others."""
    evaluate, precondition, x = quadratics(rng, 1, False)

    def left_with(size):
        course, point = Course(coupled=False), x
        for shorter in (size, 1.0):
            here = evaluate(point)
            direction = -course.inverse_times(here, lambda R: size * precondition(R))
            left = course.left(here, direction, np.ones(1))
            point = point + direction / shorter
        return left[0]

    assert left_with(1e4) > 50 * left_with(1.0)


def test_steps_that_are_refused_or_gain_nothing_are_slow(rng):
    evaluate, precondition, x = quadratics(rng, 1, False)
    refused, idle = Course(coupled=False), Course(coupled=False)
    for i in range(8):
        here = evaluate(x)
        direction = -refused.inverse_times(here, precondition)
        refused.left(here, direction, np.array([0.1**i]))
        idle.left(here, direction, np.ones(1))
        x = x + 1e-3 * direction
    assert not refused.is_fast
    assert not idle.is_fast

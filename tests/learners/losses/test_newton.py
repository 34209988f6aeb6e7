"""The line search, and what follows where it finds nothing."""

import numpy as np
import pytest

from gramian.learners.losses.classification import Logistic
from gramian.learners.losses.newton import Evaluation, Space, minimise


class Parabola(Space):
    """1 + x², with directions that lead upwards until their method changes."""

    rounding, weight = 1e-15, 1.0

    def __init__(self, others):
        self.loss, self.others, self.is_wrong = Logistic(), others, True

    def start(self):
        return np.array([[3.0], [0.0]])

    def evaluate(self, point):
        value, gradient = 1.0 + np.sum(point**2, axis=0), 2.0 * point
        return Evaluation(point, value, gradient, np.zeros(1))

    def direction(self, here, wanted):
        step = 0.1 * here.point if self.is_wrong else -here.point
        return step, np.sum(here.gradient**2, axis=0)

    def along(self, here, direction, lengths):
        return np.stack([self.evaluate(here.point + s * direction).values for s in lengths])

    def changes_method(self):
        changed, self.is_wrong = self.is_wrong and self.others, not self.others
        return changed


@pytest.mark.parametrize(("others", "value"), [(True, 1.0), (False, 10.0)])
def test_a_direction_that_gains_nothing_changes_the_method(others, value):
    assert minimise(Parabola(others), tol=1e-9, max_iter=20).values == pytest.approx(value)

"""Programs for a GPU from the profiles of kernels, without a GPU."""

import numpy as np
import pytest

from gramian import (
    RBF,
    Cauchy,
    Chi2,
    Cosine,
    Exponential,
    ExponentialDot,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from gramian.kernels.gpu_form import traced_form

KERNELS = [
    RBF(0.3), Laplacian(0.2), Exponential(0.3), Cauchy(0.3), Linear(), ExponentialDot(0.1),
    Matern(0.3, nu=0.5), Matern(0.3, nu=1.5), Matern(0.3, nu=2.5),
    RationalQuadratic(0.3, alpha=1.7), RationalQuadratic(0.3, alpha=3),
    Polynomial(degree=7, gamma=0.2, coef0=0.5), Sigmoid(gamma=0.2, coef0=0.1),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_program_computes_the_profile(kernel):
    pairings = np.linspace(0.0, 9.0, 50)
    expected = kernel._profile(kernel._scale() * pairings)
    np.testing.assert_allclose(kernel.gpu_form().values(pairings), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kernel", [Matern(0.3, nu=1.2), Cosine(), Chi2(0.1), RBF(0.1) + Linear()])
def test_others_have_none(kernel):
    assert kernel.gpu_form() is None


def test_another_parameter_is_no_other_program():
    one, other = (
        RationalQuadratic(0.3, alpha=1.7).gpu_form(),
        RationalQuadratic(0.3, 0.4).gpu_form(),
    )
    assert one.profile == other.profile
    assert one.numbers[0] == -1.7
    assert other.numbers[0] == -0.4
    degrees = Polynomial(2, 1.0).gpu_form(), Polynomial(3, 1.0).gpu_form()
    assert degrees[0].profile != degrees[1].profile


def form(profile):
    return traced_form("squared", 1.0, profile)


def test_values_change_in_place_as_arrays_do():
    def profile(u):
        same = u
        before = u + 1.0
        u *= 2.0
        np.exp(u, out=u)
        return same * before

    u = np.linspace(0.0, 1.0, 9)
    np.testing.assert_allclose(form(profile).values(u), np.exp(2 * u) * (u + 1))


def test_more_numbers_than_a_program_is_given():
    def profile(u):
        return ((((u + 0.1) * 0.2 + 0.3) * 0.4 + 0.5) * 0.1) ** -2 - 0.5

    u = np.linspace(0.0, 1.0, 9)
    made = form(profile)
    assert made.numbers == (0.1, 0.2, 0.3, 0.4)
    np.testing.assert_allclose(made.values(u), profile(u))


@pytest.mark.parametrize(
    "profile",
    [
        lambda u: np.where(u > 0, u, 0.0),
        lambda u: u if u else -u,
        lambda u: u[:, 0],
        lambda u: u + np.ones(3),
        lambda u: u * np.inf,
        lambda u: 2.0**u,
        lambda u: np.add.reduce(u),
        lambda u: np.arctan(u),
        lambda u: float(u),
        lambda u: 1.0,
    ],
)
def test_what_a_gpu_cannot_follow(profile):
    assert form(profile) is None

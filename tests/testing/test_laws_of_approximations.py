"""The shipped laws, over the exported samplers and approximations."""

import inspect

import pytest

import gramian
from gramian import (
    BKA,
    CRAFT,
    MEKA,
    RBF,
    Cauchy,
    ExponentialDot,
    KernelJL,
    Laplacian,
    Linear,
    Local,
    Matern,
    Nystroem,
    Polynomial,
    RandomFourier,
    RandomMaclaurin,
    Sampler,
    TensorSketch,
    sampler_names,
)
from gramian.approximations import Approximation
from gramian.testing import check_approximation, check_sampler, example
from gramian.testing.comparing import LIBRARIES

CLASSES = [getattr(gramian, name) for name in gramian.__all__]
CLASSES = [cls for cls in CLASSES if inspect.isclass(cls)]
SAMPLERS = [example(cls) for cls in CLASSES if issubclass(cls, Sampler) and cls is not Sampler]
GIVEN = (gramian.GivenIndices, gramian.GivenPoints, gramian.Probabilities)  # for certain rows only
FREE = [sampler for sampler in SAMPLERS if not isinstance(sampler, GIVEN)]
FREE += [gramian.Uniform(replace=True)]
APPROXIMATIONS = [
    example(cls) for cls in CLASSES if issubclass(cls, Approximation) and cls is not Approximation
]
APPROXIMATIONS += [Nystroem(RBF(0.1), 30, landmarks=name) for name in sampler_names()]
APPROXIMATIONS += [
    Nystroem(Matern("median"), "sqrt", landmarks="uniform"),
    Nystroem(Polynomial(2, 0.1), 40),
    Nystroem(RBF(0.1), 30, rank=10, landmarks="rpcholesky"),
    Nystroem(RBF(0.1), 30, rank=10, truncation="core", landmarks="uniform"),
    Nystroem(RBF(0.1), 5, tol=0.05),
    RandomFourier(RBF("median"), 30, frequencies="orthogonal"),
    RandomFourier(Laplacian(0.1), 31, frequencies="sobol"),
    RandomFourier(Matern(nu=0.8), 30, frequencies="halton"),
    RandomFourier((RBF(0.1) + 0.5 * Cauchy(0.2)) * Matern(0.1), 41, frequencies="orthogonal"),
    RandomFourier(2.0 * Laplacian(0.1) + RBF(0.1), 1),
]
APPROXIMATIONS += [
    BKA(RBF(0.1), 30, n_blocks=3),
    MEKA(RBF(0.1), 30, n_blocks=3),
    MEKA(RBF(0.1), 30, n_blocks=3, psd=None),
    MEKA(RBF(0.1), 30, n_blocks=3, psd="shift", ranks="size"),
    MEKA(Laplacian(0.1), 40, n_blocks=4, link_fraction=0.3, ranks="equal"),
    MEKA(RBF(0.1), 30, n_blocks=3, partition="spectral", landmarks="kmeans"),
    MEKA(RBF(0.1), 30, n_blocks=3, partition="random", landmarks="rpcholesky"),
    Local(RBF(0.1), 3),
    Local(Nystroem(RBF(0.1), 20), 3, partition="kmeans"),
    KernelJL(RBF(0.1), 20, n_samples=30),
    KernelJL(Polynomial(2, 0.1), 20, n_samples=50, centred=False),
    RandomMaclaurin(ExponentialDot(), 60),
    RandomMaclaurin(Polynomial(7), 41, keep_linear=True),
    RandomMaclaurin("linear", 20, keep_linear=True),
    TensorSketch(2.0 * ExponentialDot() * Linear() + Polynomial(2), 77),
    TensorSketch(Polynomial(10, coef0=0.0), 103),
    CRAFT(ExponentialDot(), 33),
    CRAFT(Polynomial(7), 30, up="maclaurin", expansion=4),
    CRAFT("linear", 1),
]


@pytest.mark.parametrize("sampler", FREE)
def test_sampler(sampler):
    check_sampler(sampler)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)
def test_sampler_on_other_arrays(sampler, library):
    pytest.importorskip(library)
    check_sampler(sampler, library=library)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_approximation(approximation):
    check_approximation(approximation)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_approximation_on_other_arrays(approximation, library):
    pytest.importorskip(library)
    check_approximation(approximation, library=library)

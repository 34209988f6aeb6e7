"""Samplers, approximations and kernels on rows of dask."""

import numpy as np
import pytest
from dask_examples import APPROXIMATIONS, KERNEL, QUIET, D, N, X, Y, da, spread
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import gramian
from gramian import (
    RBF,
    SQUEAK,
    Gram,
    KernelPCA,
    Laplacian,
    Nystroem,
)

pytestmark = QUIET


class TestSamplers:
    ALONE = ("csi", "leverage")  # these need whole columns, or all of the matrix
    CUT = ("squeak",)  # merges what the parts give

    @pytest.mark.parametrize("landmarks", sorted({*gramian.sampler_names()} - {*ALONE, *CUT}))
    def test_the_same_rows_are_chosen(self, landmarks):
        model = Nystroem(KERNEL, 12, landmarks=landmarks, random_state=5)
        here, there = clone(model).fit(X[:500]), clone(model).fit(spread(X[:500], 130))
        assert_allclose(there.landmarks_.points, here.landmarks_.points, atol=1e-12)
        assert there.evaluations_ == here.evaluations_

    @pytest.mark.parametrize("landmarks", ALONE)
    def test_those_that_cannot_say_so(self, landmarks):
        model = Nystroem(KERNEL, 12, landmarks=landmarks)
        with pytest.raises(ValueError, match=r"one process.*rpcholesky"):
            model.fit(spread(X), spread(Y))

    @pytest.mark.slow
    def test_dictionaries_are_merged(self, scheduler):
        rows = X[:1400].copy()
        far = [3, 500, 1100]  # whatever the cut, their scores are near 1
        rows[far] = 100.0 * np.eye(D)[:3]
        model = Nystroem(KERNEL, 60, landmarks=SQUEAK(ridge=0.5), random_state=0)
        for chunk in (1400, 400, 90):
            there = clone(model).fit(spread(rows, chunk))
            indices = there.landmarks_.indices
            assert len(indices) == len(set(indices)) == 60
            assert set(far) <= set(indices)
            assert_array_equal(there.landmarks_.points, rows[indices])
        error = gramian.relative_error(clone(model).fit(spread(X, 400)), X)
        plain = gramian.relative_error(clone(model).fit(X), X)
        assert float(error) < 1.5 * float(plain)


@pytest.mark.slow
def test_errors_of_approximations():
    model = Nystroem(KERNEL, 12, random_state=0).fit(X)
    for norm in ("fro", "trace", "spectral"):
        here = gramian.relative_error(model, X[:500], norm)
        assert float(gramian.relative_error(model, spread(X[:500], 130), norm)) == pytest.approx(
            float(here), rel=1e-6
        )
    sampled = gramian.relative_error(model, spread(X), exact=False)
    assert float(sampled) == pytest.approx(float(gramian.relative_error(model, X, exact=False)))


def test_kernels_and_matrices():
    some = X[:40]
    lazy = KERNEL(spread(X), some)
    assert isinstance(lazy, da.Array)
    assert_allclose(lazy, KERNEL(X, some), atol=1e-12)
    gram, V = Gram(KERNEL, spread(X)), np.ones((N, 2))
    assert_allclose(gram.matmul(V), Gram(KERNEL, X).matmul(V), atol=1e-8)
    assert_allclose(gram.columns([3, 1000]), Gram(KERNEL, X).columns([3, 1000]), atol=1e-12)
    for name in ("nystroem", "meka"):
        model = clone(APPROXIMATIONS[name]).fit(X)
        assert_allclose(model(spread(X), some), model(X, some), atol=1e-10)


def test_other_kernels_reach_the_workers(client):
    model = KernelPCA(2, kernel=Nystroem(Laplacian(0.1) + 0.5 * RBF("median"), 20, random_state=0))
    assert_allclose(clone(model).fit(spread(X)).transform(X), clone(model).fit(X).transform(X))


@pytest.mark.parametrize("kernel", [gramian.RBF(0.1) + gramian.Linear(), KERNEL * gramian.Linear()])
def test_composed_kernels(kernel):
    """The diagonal of one part is a constant in this process, that of the other is lazy."""
    options = {"landmarks": "kmeans++", "random_state": 0}
    rows = da.from_array(X[:90], chunks=(40, -1))
    lazy = gramian.Nystroem(kernel, 10, **options).fit(rows)
    here = gramian.Nystroem(kernel, 10, **options).fit(X[:90])
    assert_allclose(lazy.transform(X[:5]), here.transform(X[:5]), atol=1e-8)

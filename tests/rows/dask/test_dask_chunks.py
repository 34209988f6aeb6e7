"""Chunks of a dask array that are not as long as the array says, or not there."""

import pytest
from dask_examples import QUIET, da, dask
from sklearn.base import clone

import gramian

pytestmark = QUIET


class TestChunksThatAreNotAsDeclared:
    """X and y would no longer match, or rows would be missing, without a word."""

    @staticmethod
    def short(array, missing=1):
        pieces = [dask.delayed(array[i * 50 : (i + 1) * 50 - missing * (i == 2)]) for i in range(4)]
        shape = (50, *array.shape[1:])
        return da.concatenate([da.from_delayed(p, shape, dtype=array.dtype) for p in pieces])

    @pytest.mark.parametrize("missing", [1, -1])
    @pytest.mark.parametrize(
        "model",
        [
            gramian.KernelRidge(0.1, kernel=gramian.Nystroem(gramian.RBF(0.2), 10)),
            gramian.KernelRidge(
                0.1, kernel=gramian.RandomFourier(gramian.RBF(0.2), 10, random_state=0)
            ),
            gramian.KernelRidgeClassifier(
                0.1, kernel=gramian.BKA(gramian.RBF(0.2), 10, n_blocks=2)
            ),
            gramian.KernelKMeans(3, kernel=gramian.Nystroem(gramian.RBF(0.2), 10)),
            gramian.KernelPCA(2, kernel=gramian.Nystroem(gramian.RBF(0.2), 10)),
            gramian.OnlineKernelKMeans(0.5, kernel=gramian.Nystroem(gramian.RBF(0.2), 10)),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_every_learner_says_so(self, rng, model, missing):
        X = rng.standard_normal((201, 3))
        y = (X[:200, 0] > 0).astype(float)
        targets = da.from_array(y, chunks=50)
        with pytest.raises(ValueError, match=r"rows 100 to 149 has (49|51) rows, but .* says 50"):
            clone(model).fit(self.short(X, missing), targets)
        if isinstance(model, gramian.KernelRidge):
            whole = da.from_array(X[:200], chunks=(50, 3))
            with pytest.raises(ValueError, match=r"rows 100 to 149 has 49 rows"):
                clone(model).fit(whole, self.short(y, 1))

    def test_unknown_chunks_without_rows(self, rng):
        X = da.from_array(rng.standard_normal((100, 3)), chunks=(50, 3))
        for model in (gramian.KernelKMeans(2), gramian.KernelPCA(2)):
            with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\)"):
                model.fit(X[X[:, 0] > 100])

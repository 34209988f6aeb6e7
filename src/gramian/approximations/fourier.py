"""Random Fourier features of shift-invariant kernels."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from gramian.approximations.base import Approximation, Plan
from gramian.approximations.spectra import OTHERS, draw, halton_bytes, laws
from gramian.backend import array_ops, numba_loops
from gramian.backend.array_ops import Array, DType
from gramian.backend.checks import choice, positive_integer
from gramian.backend.threads import one_blas_thread
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.kernels import Kernel, tiles
from gramian.kernels.base import overflows
from gramian.kernels.spectrum import Law
from gramian.matrices.gram import Gram
from gramian.rows import Rows

__all__ = ["RandomFourier"]

CENTRE_ROWS = 100


class RandomFourier(Approximation):
    """Random Fourier features of shift-invariant kernels (Rahimi and Recht 2007).

    K̃(x, y) is the mean of k(0) cos(wᵀ(x - y)) over random frequencies w. Features are cosines and
    sines of wᵀx, equally many, so that K̃(x, x) = k(0). If their number is odd, one frequency has
    only a cosine, with a random phase. K̃ is unbiased: its expectation is K, for any number of
    features.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        A shift-invariant kernel: :class:`RBF`, :class:`Laplacian`, :class:`Exponential`,
        :class:`Matern`, :class:`RationalQuadratic`, :class:`Cauchy`, and sums, products and
        scalings of these. ``kernel__gamma`` sets its parameters.
    n_components : int, default=100
        The number of features, two per frequency.
    frequencies : {"iid", "orthogonal", "halton", "sobol"}, default="iid"
        How to draw frequencies. "iid": independently. "orthogonal": in blocks of orthogonal
        directions, one for each column (Yu et al. 2016); for kernels of the Euclidean distance.
        "halton", "sobol": from a scrambled sequence that fills space evenly (Yang et al. 2014).
        The error of "iid" falls with the square root of n_components, for any rows. The others take
        longer to fit and have less error: orthogonal directions for all rows, the sequences for
        rows with few columns; with a hundred columns or more they gain nothing.
    random_state : int, Generator or None, default=None

    Attributes
    ----------
    frequencies_ : array of shape (n_columns, n_components / 2, rounded up)
        The frequencies, in columns.
    n_components_ : int
        The number of features.
    nbytes_ : int
        The memory of the training rows' features.
    kernel_ : Kernel
        The kernel in use, with its parameters fitted.

    Notes
    -----
    The fit computes no kernel values and reads at most 100 rows. Their mean is subtracted from all
    rows, which changes no kernel value but keeps the phases wᵀx small enough for float32. For a sum
    of kernels, the frequencies are divided among its terms by their weights k(0).

    See Also
    --------
    Nystroem : usually less error at equal size.
    TensorSketch : random features of dot-product kernels.

    References
    ----------
    - A. Rahimi and B. Recht, Random features for large-scale kernel machines, NIPS 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian import RBF, RandomFourier, relative_error
    >>> X = load_digits().data / 16
    >>> approximation = RandomFourier(RBF(0.05), 2000, random_state=0).fit(X)
    >>> approximation.transform(X).shape
    (1797, 2000)
    >>> float(relative_error(approximation, X)) < 0.1
    True
    """

    compared: ClassVar = {"Random Fourier": {"frequencies": "orthogonal"}}
    unbiased = True

    def __init__(
        self,
        kernel: str | Kernel = "rbf",
        n_components: int = 100,
        *,
        frequencies: str = "iid",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.frequencies = frequencies
        self.random_state = random_state

    def serves(self, kernel: Kernel, rows: Rows) -> bool:
        return kernel.spectrum() is not None

    def adapted(self, kernel: Kernel) -> RandomFourier:
        """Use orthogonal frequencies if K̃ stays unbiased, else independent ones."""
        spectrum = kernel.spectrum()
        if spectrum is None:
            return self
        radial = all(law.is_radial for law in spectrum)
        return clone(self).set_params(frequencies="orthogonal" if radial else "iid")

    @one_blas_thread()
    def _fit(self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: Plan) -> int:
        n = positive_integer(self, "n_components", self.n_components)
        kinds = ("iid", "orthogonal", "halton", "sobol")
        kind = choice(self, "frequencies", self.frequencies, kinds)
        terms = laws(gram.kernel)
        if kind == "orthogonal" and not all(law.is_radial for law in terms):
            raise ValueError(
                "frequencies='orthogonal' needs kernels of the Euclidean distance; the frequencies "
                f"of {gram.kernel!r} prefer some directions, so orthogonal ones would be biased. "
                "Use 'iid', 'halton' or 'sobol'."
            )
        d, count, odd = gram.rows.shape[1], (n + 1) // 2, n % 2
        drawn, scales = [], []
        for law, share, weight in _shares(terms, count, rng):
            drawn.append(draw(law, share, d, kind, rng))
            count -= share
            pairs = share - (0.5 if odd and count == 0 else 0.0)  # the odd feature is half a pair
            scales.append(np.full(share, np.sqrt(weight / pairs)))
        scale = np.concatenate(scales)
        example = gram.rows.take([0])
        W = np.ascontiguousarray(np.concatenate(drawn).T)
        self._in_float64 = W, scale, _centre(gram.rows)
        self._phase = rng.uniform(0, 2 * np.pi) if odd else 0.0
        self._round(example, gram.dtype)
        return n

    def _round(self, example: Array, dtype: DType) -> None:
        """Set the map in this precision."""
        W, scale, centre = self._in_float64
        self.frequencies_ = array_ops.like(W, example, dtype)
        self._scale = array_ops.like(scale, example, dtype)
        self._centre = array_ops.like(centre, example, dtype)
        self._turns = self._find_turns() if array_ops.issparse(example) else None

    def _find_turns(self) -> Array:
        """Return the phases of the centre, for sparse rows, which are not shifted.

        Whole turns are left out: they would cost digits.
        """
        W = self.frequencies_
        turns = self._in_float64[2] @ array_ops.host_float64(W)
        return array_ops.like(np.remainder(turns, 2 * np.pi), W, W.dtype)

    def in_double(self, rows: Rows) -> RandomFourier | None:
        if not self._single:
            return None
        double = copy(self)
        double._single = False
        double._round(rows.place.reference, rows.xp.float64)
        return double

    @one_blas_thread()  # setting the limit once takes less than for each step
    def fit_transform(self, X: RowsLike, y: Array | None = None, **params: Any) -> Array:
        return super().fit_transform(X, y, **params)

    def _features_of(self, rows: Rows) -> Callable[..., Array]:
        many = rows.shape[0] * self.n_components_ >= numba_loops.LEAST_FEATURES
        return partial(self._features, many=many)

    def _features(self, x: Array, out: Array | None = None, *, many: bool = False) -> Array:
        """Return the features of a block, by a compiled loop if there are many blocks."""
        W, scale = self.frequencies_, self._scale
        xp, n, (d, count) = array_ops.namespace(W), x.shape[0], W.shape
        if out is None:
            out = array_ops.empty((n, self.n_components_), W, W.dtype)
        # Phases, and shifted rows: later cosines are where these were.
        memory = tiles.scratch(1, n * (count + max(d, count)), W, W.dtype)[0, :]
        phases = xp.reshape(memory[: n * count], (n, count))
        work = xp.reshape(memory[n * count : 2 * n * count], (n, count))
        if array_ops.issparse(x):
            array_ops.matmul(array_ops.astype(x, W.dtype), W, phases)
            if self._turns is None:  # the training rows were dense
                self._turns = self._find_turns()
            phases -= self._turns
        else:
            moved = xp.reshape(memory[n * count : n * (count + d)], (n, d))
            array_ops.matmul(array_ops.subtract(x, self._centre, moved), W, phases)
        # A sum of squares takes a third as long as a sum. It may overflow where no phase does.
        with np.errstate(over="ignore", invalid="ignore"):
            squares = array_ops.row_norms(xp.reshape(phases, (1, n * count)))
            if not array_ops.all_finite(squares):
                array_ops.finite(phases, partial(overflows, self.kernel_))
        if self._phase:
            phases[:, -1] += self._phase
        loop = None
        if many:
            loop = numba_loops.cosines_and_sines(out, sqrt(float(squares[0])) + 2 * np.pi)
        if loop is None:
            array_ops.cosines_and_sines(phases, work, scale, out)
        else:
            loop(phases, scale, out)
        return out

    def _finite(self, values: Array) -> Array:
        """Return the features: their phases were finite."""
        return values

    def _work_bytes(self) -> int:
        d, count = self.frequencies_.shape
        return _work(d, count, array_ops.itemsize(self.frequencies_.dtype))

    def _plan(self, rows: Rows) -> Plan:
        n = positive_integer(self, "n_components", self.n_components)
        d, item, count = rows.shape[1], array_ops.itemsize(rows.dtype), (n + 1) // 2
        # Uniform numbers, their transforms, and the frequencies in float64. The number of points of
        # a sequence is a power of 2; orthogonal directions come in blocks of at most d.
        step = {"frequencies": 8 * d * (8 * count + CENTRE_ROWS)}
        if self.frequencies == "orthogonal":
            step["directions"] = 3 * 8 * d * min(d, count)
        if self.frequencies == "halton":
            step[f"a Halton sequence of {d} coordinates"] = halton_bytes(d)
        factors = self._planned(rows, n, _work(d, count, item))
        return Plan(self, rows, factors, {"frequencies": d * count * (item + 8)}, [step])

    def advice(self) -> str:
        return OTHERS if self.frequencies == "halton" else super().advice()


def _work(d: int, count: int, item: int) -> int:
    # The product with sparse rows is computed in new memory, then copied.
    return (max(d, count) + count) * item


def _shares(terms: list[Law], count: int, rng: np.random.Generator) -> list[tuple[Law, int, float]]:
    """Return how many frequencies each term of a sum gets, and their total weight.

    A term gets its share of k(0), but at least one; if there are more terms than frequencies, terms
    are drawn at random. In both cases the expectation has every term with its weight.
    """
    if len(terms) == 1:
        return [(terms[0], count, terms[0].weight)]
    terms = sorted(terms, key=lambda law: law.weight)
    weights = np.array([law.weight for law in terms])
    parts = weights / weights.sum()
    if len(terms) > count:
        chosen = rng.choice(len(terms), size=count, p=parts)
        return [(terms[i], 1, float(weights.sum()) / count) for i in chosen]
    edges = np.rint(np.append(0.0, np.cumsum(parts)) * (count - len(terms))).astype(int)
    more = np.diff(edges).tolist()
    return [(law, 1 + extra, law.weight) for law, extra in zip(terms, more, strict=True)]


def _centre(rows: Rows) -> np.ndarray:
    """Return the mean (d,) of some rows, rounded to their dtype."""
    n = rows.shape[0]
    count = min(n, CENTRE_ROWS)
    some = rows.take(np.arange(count) * (n - 1) // max(count - 1, 1))
    some = some if array_ops.issparse(some) else array_ops.to_numpy(some)
    mean = np.asarray(some.astype(np.float64).mean(axis=0)).ravel()
    return mean.astype(some.dtype).astype(np.float64)

"""One pass over the rows with a small dictionary: SQUEAK (Calandriello et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, checks
from gramian.backend.array_ops import Array, DType
from gramian.kernels import Kernel
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows, Rows
from gramian.samplers.base import Landmarks
from gramian.samplers.leverage.base import LeverageSampler
from gramian.samplers.leverage.scores import (
    Pair,
    covered_dimension,
    draw,
    resolution,
    scores_from_factor,
    scores_from_spectrum,
    spectrum,
)

ABOUT = 0.03  # the effective dimension may differ from the wanted one by this share
PRECISE = 1000  # times the machine epsilon and the trace: a ridge above it loses few digits
TRIALS = 4  # ridges that a block tries before it computes its spectrum


class SQUEAK(LeverageSampler):
    """One pass over the rows, in their order, with a dictionary of m rows that is updated.

    Calandriello, Lazaric and Valko, "Distributed adaptive sampling for kernel matrix approximation"
    (2017). Each block of rows joins the dictionary, the leverage scores of both are estimated from
    both, and m rows survive. In the end each row survives with a probability in proportion to its
    score. The kernel is evaluated only within dictionary and block: n (m + block_size) values. It
    takes O(n (m + block_size)³ / block_size) flops, which is O(n m²) for blocks of about m rows,
    and O((m + block_size)²) memory in addition to the diagonal.

    If the rows are on a cluster, each worker passes over its own, and the dictionaries are merged:
    the landmarks then depend on how the rows are divided.

    Parameters
    ----------
    ridge : float, optional
        A positive number. By default, it is chosen for each block so that the effective dimension
        of the rows so far is m / (2 log m), within 3 %.
    block_size : int, optional
        The number of rows that join at a time; by default m.

    See Also
    --------
    BLESS : needs the rows more than once.
    RecursiveLeverage : needs the rows more than once.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RBF, Gram
    >>> from gramian import SQUEAK
    >>> gram = Gram(RBF(1.0), np.r_[[[9.0]], [[-9.0]], np.zeros((98, 1))])
    >>> landmarks = SQUEAK(block_size=20).select(gram, 10, np.random.default_rng(0))
    >>> sorted(set(landmarks.indices) & {0, 1})
    [0, 1]
    """

    names = ("squeak",)

    def __init__(self, ridge: float | None = None, block_size: int | None = None) -> None:
        super().__init__(ridge)
        self.block_size = block_size

    def _check_numbers(self) -> None:
        super()._check_numbers()
        if self.block_size is not None:
            checks.positive_integer(self, "block_size", self.block_size)

    def most_evaluations(self, n: int, m: int) -> int:
        return n * (1 + m + (self.block_size or m))

    def select_bytes(self, rows: Rows, m: int) -> int:
        return super().select_bytes(rows, m + (self.block_size or m))

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        found = None if gram.kernel.is_matrix else self._merged(gram, m, rng)
        rows, passing = found or self._passed(gram, m, rng)
        return rows, passing.scores

    def _passed(self, gram: Gram, m: int, rng: np.random.Generator) -> tuple[np.ndarray, _Passing]:
        """Return row numbers and the dictionary after the last block has joined."""
        n, step = gram.shape[0], self.block_size or m
        rows, passing = np.arange(0), _Passing()
        for start in range(0, n, step):
            rows = rows[passing.survivors(m, rng)]
            block = np.arange(start, min(start + step, n))
            rows = np.append(rows, block)
            passing.join(array_ops.to_numpy(gram.block(block, rows)), self, m, gram.dtype)
        return rows, passing

    def _merged(
        self, gram: Gram, m: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, _Passing] | None:
        """Like ``_passed``, from one dictionary for each part of the rows, which are merged.

        None if one process has all rows.
        """

        def prepare() -> Callable[[Rows, int], _Part]:
            return partial(_of_part, self, gram.kernel, m, int(rng.integers(2**63)))

        parts = gram.rows.place.by_parts(gram.rows, prepare, serial=gram.kernel.serial)
        if parts is None:
            return None
        numbers, passing = np.arange(0), _Passing()
        for part in parts:
            survivors = passing.survivors(m, rng)
            evaluations = passing.join_points(
                gram.kernel, survivors, part.points, self, m, gram.dtype, part.weights
            )
            numbers = np.append(numbers[survivors], part.numbers)
            gram.evaluations += part.evaluations + evaluations
        return numbers, passing

    def stream(
        self,
        batches: Iterable[Array],
        kernel: str | Kernel | Callable[..., Array],
        m: int,
        rng: np.random.Generator,
    ) -> Landmarks:
        """Select at most m landmarks from rows in batches, each of which is read once.

        They are the landmarks that ``select`` finds in all rows with the same blocks, but without
        row numbers: pass the points to Nyström, ``Nystroem(kernel, landmarks=landmarks.points)``.
        Batches are cut into blocks of ``block_size`` rows, by default m.

        Parameters
        ----------
        batches : iterable of arrays of shape (rows, n_columns), or of lists of objects
            All of one kind.
        kernel : str, Kernel or callable
            Its parameters are numbers, or already fitted.
        m : int
        rng : Generator

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import RBF, SQUEAK
        >>> batches = [[[9.0], [-9.0]], np.zeros((49, 1)), np.zeros((49, 1))]
        >>> landmarks = SQUEAK().stream(batches, RBF(1.0), 10, np.random.default_rng(0))
        >>> sorted(set(landmarks.points.ravel().tolist()))
        [-9.0, 0.0, 9.0]
        """
        self._check_numbers()
        step = self.block_size or checks.positive_integer(self, "m", m)
        passing = _Passing()
        for batch in batches:
            rows = (gram := Gram(kernel, batch)).rows
            if gram.kernel.is_matrix:
                raise ValueError(
                    "SQUEAK.stream needs kernel values between rows of different batches; a "
                    "precomputed matrix has only those of its own rows."
                )
            for start in range(0, gram.shape[0], step):
                survivors = passing.survivors(m, rng)
                block = rows.take(range(start, min(start + step, gram.shape[0])))
                passing.join_points(gram.kernel, survivors, block, self, m, gram.dtype)
        if passing.points is None:
            raise ValueError("SQUEAK.stream needs at least one batch; got none.")
        return Landmarks(array_ops.take_rows(passing.points, passing.survivors(m, rng)))


class _Passing:
    """The dictionary of SQUEAK while rows pass by: its matrix, weights and leverage scores."""

    def __init__(self) -> None:
        self.K, self.weights, self.scores = np.empty((0, 0)), np.ones(0), np.ones(0)
        self.ridge = 0.0  # of the last block, relative to the trace; 0 before the first
        self._memory = np.empty((0, 0, 0))  # of weighted matrices: new pages take long
        self.points: Array | None = None  # of the rows in K, if they joined by ``join_points``

    def survivors(self, m: int, rng: np.random.Generator) -> np.ndarray:
        """Keep m rows by their scores; returns their positions in the dictionary so far."""
        drawn, probabilities = draw(self.scores, m, rng)
        self.K, self.weights = self.K[np.ix_(drawn, drawn)], self.weights[drawn] / probabilities
        return drawn

    def join(
        self,
        fresh: np.ndarray,
        sampler: SQUEAK,
        m: int,
        dtype: DType,
        weights: np.ndarray | None = None,
    ) -> None:
        """Add rows, given by their kernel values with the dictionary and with themselves.

        ``fresh`` has shape (rows, dictionary + rows). The rows have weight 1, or the weights that
        they had in the dictionary they come from.
        """
        before, size = len(self.K), fresh.shape[1]
        K = np.empty((size, size), dtype=fresh.dtype)
        K[:before, :before], K[:before, before:] = self.K, fresh[:, :before].T
        K[before:] = fresh
        self.K = K
        weights = np.ones(len(fresh)) if weights is None else weights
        self.weights = np.append(self.weights, weights)
        # The exact scores of the weighted matrix are the estimated scores over the probability
        # that each row had so far: exactly the weights by which survivors must be drawn.
        root = np.sqrt(self.weights).astype(K.dtype)
        if self._memory.shape[1] != size or self._memory.dtype != K.dtype:
            self._memory = np.empty((2, size, size), dtype=K.dtype)
        weighted = np.multiply(root[:, None], K, out=self._memory[0])
        weighted *= root
        self._score(weighted, sampler, m, dtype)

    def _score(self, K: np.ndarray, sampler: SQUEAK, m: int, dtype: DType) -> None:
        """Compute the scores of the weighted matrix K, with the last block's ridge if it suits.

        A Cholesky factor takes a sixth of the time of a spectrum, and half of that in float32,
        which serves while the ridge is far above its rounding errors. The ridge that is wanted
        grows with the trace; the effective dimension falls by some power of it.
        """
        diagonal, size = K.diagonal().astype(np.float64), covered_dimension(m)
        trace, power = float(diagonal.sum()) or 1.0, 0.5
        floor = resolution(diagonal, dtype)
        ridge, before, step = self.ridge * trace, 0.0, 0.0
        for _ in range(TRIALS if ridge > 0 else 0):
            ridge = max(ridge if sampler.ridge is None else sampler.ridge, floor)
            if ridge > PRECISE * array_ops.eps(K.dtype) * trace:
                scores = scores_from_factor(K, ridge, self._memory[1])
            else:
                scores = scores_from_factor(K.astype(np.float64), ridge)
            if scores is None:
                break
            excess = float(np.log(max(scores.sum(), 1e-300) / size))
            small = ridge == floor and excess < 0
            if sampler.ridge is not None or small or abs(excess) < ABOUT:
                self.scores, self.ridge = scores, ridge / trace
                return
            if step:
                power = min(max((before - excess) / step, 0.1), 2.0)
            before, step = excess, excess / power
            ridge *= np.exp(step)
        values, vectors = spectrum(K.astype(np.float64))
        ridge = sampler._ridge(values, m, dtype)
        self.scores, self.ridge = scores_from_spectrum(values, vectors, ridge), ridge / trace

    def join_points(
        self,
        kernel: Kernel,
        survivors: np.ndarray,
        fresh: Array,
        sampler: SQUEAK,
        m: int,
        dtype: DType,
        weights: np.ndarray | None = None,
    ) -> int:
        """Add rows, given by their points, to the survivors; returns the kernel evaluations."""
        before = array_ops.span(fresh, 0, 0)
        if self.points is not None:
            before = array_ops.take_rows(self.points, survivors)
        self.points = array_ops.concat_rows([before, fresh])
        both, numbers = Gram(kernel, ArrayRows(self.points)), np.arange(self.points.shape[0])
        block = both.block(numbers[len(survivors) :], numbers)
        self.join(array_ops.to_numpy(block), sampler, m, dtype, weights)
        return both.evaluations


class _Part(NamedTuple):
    """The dictionary of one part of the rows."""

    numbers: np.ndarray
    points: Array
    weights: np.ndarray
    evaluations: int


def _of_part(sampler: SQUEAK, kernel: Kernel, m: int, seed: int, rows: Rows, first: int) -> _Part:
    """Find the dictionary of one part of the rows; its first row has the number ``first``."""
    gram, rng = Gram(kernel, rows), np.random.default_rng([seed, first])
    numbers, passing = sampler._passed(gram, m, rng)
    numbers = numbers[passing.survivors(m, rng)]
    return _Part(first + numbers, rows.take(numbers), passing.weights, gram.evaluations)

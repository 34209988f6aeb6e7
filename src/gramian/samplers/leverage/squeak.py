"""One pass over the rows with a small dictionary: SQUEAK (Calandriello et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from gramian.backend import array_ops, checks, config
from gramian.backend.array_ops import Array, DType
from gramian.backend.threads import in_order
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

FIRST = 0.25  # trace over effective dimension: the ridge that a first block tries
ABOUT = 0.03  # the effective dimension may differ from the wanted one by this share
PRECISE = 1000  # times the machine epsilon and the trace: a ridge above it loses few digits
TRIALS = 6  # ridges that a block tries before it computes its spectrum
PART = 8  # times m: the rows of a part, which has a dictionary of its own


class SQUEAK(LeverageSampler):
    """One pass over the rows, in their order, with a dictionary of m rows that is updated.

    Calandriello, Lazaric and Valko, "Distributed adaptive sampling for kernel matrix approximation"
    (2017). Each block of rows joins the dictionary, the leverage scores of both are estimated from
    both, and m rows survive. In the end each row survives with a probability in proportion to its
    score. The kernel is evaluated only within dictionary and block: about n (m + block_size)
    values. It takes O(n (m + block_size)³ / block_size) flops, the fewest with blocks of m / 2
    rows, and O((m + block_size)²) memory for each thread, in addition to the diagonal.

    Threads pass over parts of about 8 m rows each, whose dictionaries are merged in order, as in
    the paper's distributed form. If the rows are on a cluster, the parts are those of its workers:
    the landmarks then depend on how the rows are divided.

    Parameters
    ----------
    ridge : float, optional
        A positive number. By default, it is chosen for each block so that the effective dimension
        of the rows so far is m / (2 log m), within 3 %.
    block_size : int, optional
        The number of rows that join at a time; by default m / 2.

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
        step, part = self._step(m), self._part(m)
        # Merging takes m² values for each part but the first; no dictionary meets a first block.
        return n * (2 + m + step) + (-(-n // part) - 1) * m * m - n // part * m * step

    def select_bytes(self, rows: Rows, m: int) -> int:
        size, workers = m + self._step(m), config.n_threads()
        read = min(rows.shape[0], (workers + 1) * self._part(m)) * rows.row_bytes
        return super().select_bytes(rows, size) + workers * 4 * 8 * size**2 + read

    def _step(self, m: int) -> int:
        return self.block_size or max(m // 2, 1)

    def _part(self, m: int) -> int:
        """Return the number of rows of a part, which has whole blocks."""
        step = self._step(m)
        return -(-PART * m // step) * step

    def _scored(self, gram: Gram, m: int, rng: np.random.Generator) -> Pair:
        numbers, merged = np.arange(0), _Passing()
        for part in self._parts(gram, m, rng):
            if part.passing.points is None:
                survivors = merged.survivors(m, rng)
                across = array_ops.to_numpy(gram.block(part.numbers, numbers[survivors]))
                merged.add(across, part.passing, self, m)
            else:
                survivors = merged.merge(part.passing, gram.kernel, self, m, rng)
                gram.evaluations += part.evaluations
            numbers = np.append(numbers[survivors], part.numbers)
        gram.evaluations += merged.evaluations
        return numbers, merged.scores

    def _parts(self, gram: Gram, m: int, rng: np.random.Generator) -> Iterable[_Part]:
        """Return the dictionaries of parts of the rows, in order."""
        seed, size = int(rng.integers(2**63)), self._part(m)
        starts = range(0, gram.shape[0], size)
        if gram.kernel.is_matrix:
            ends = [min(start + size, gram.shape[0]) for start in starts]
            return map(partial(_of_matrix, self, gram, m, seed), starts, ends)
        operation = partial(_of_rows, self, gram.kernel, m, seed)
        serial = gram.kernel.serial
        parts = gram.rows.place.by_parts(gram.rows, lambda: operation, serial=serial)
        return parts or _in_threads(operation, gram.points, starts, serial)

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
        Batches are cut into blocks of ``block_size`` rows, by default m / 2.

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
        step = self._step(checks.positive_integer(self, "m", m))
        seed, seen, merged = int(rng.integers(2**63)), 0, _Passing()
        part, own = _Passing(), np.random.default_rng([seed, 0])
        for batch in batches:
            rows = (gram := Gram(kernel, batch)).rows
            if gram.kernel.is_matrix:
                raise ValueError(
                    "SQUEAK.stream needs kernel values between rows of different batches; a "
                    "precomputed matrix has only those of its own rows."
                )
            for start in range(0, gram.shape[0], step):
                if seen and seen % self._part(m) == 0:
                    merged.merge(part.final(m, own), gram.kernel, self, m, rng)
                    part, own = _Passing(), np.random.default_rng([seed, seen])
                block = rows.take(range(start, min(start + step, gram.shape[0])))
                part.join_points(gram.kernel, block, self, m, own)
                seen += step
        if part.points is None:
            raise ValueError("SQUEAK.stream needs at least one batch; got none.")
        merged.merge(part.final(m, own), gram.kernel, self, m, rng)
        return Landmarks(array_ops.take_rows(merged.points, merged.survivors(m, rng)))


class _Passing:
    """The dictionary of SQUEAK while rows pass by: its matrix, weights and leverage scores."""

    def __init__(self) -> None:
        self.K, self.weights, self.scores = np.empty((0, 0)), np.ones(0), np.ones(0)
        self.ridge = 0.0  # of the last block, relative to the trace; 0 before the first
        self.power = 0.5  # by which the effective dimension falls with the ridge
        self._memory = np.empty((0, 0, 0))  # of weighted matrices: new pages take long
        self.points: Array | None = None  # of the rows in K, if they joined by their points
        self.evaluations = 0  # by ``join_points`` and ``merge``

    def survivors(self, m: int, rng: np.random.Generator) -> np.ndarray:
        """Keep m rows by their scores; returns their positions in the dictionary so far."""
        drawn, probabilities = draw(self.scores, m, rng)
        self.K, self.weights = self.K[np.ix_(drawn, drawn)], self.weights[drawn] / probabilities
        return drawn

    def join(
        self,
        across: np.ndarray,
        own: np.ndarray,
        sampler: SQUEAK,
        m: int,
        weights: np.ndarray | None = None,
    ) -> None:
        """Add rows, given by their kernel values with the dictionary and with themselves.

        Shapes: across (rows, dictionary), own (rows, rows). The rows have weight 1, or the weights
        that they had in the dictionary they come from.
        """
        before, size = len(self.K), len(self.K) + len(own)
        K = np.empty((size, size), dtype=own.dtype)
        K[:before, :before], K[:before, before:] = self.K, across.T
        K[before:, :before], K[before:, before:] = across, own
        self.K = K
        weights = np.ones(len(own)) if weights is None else weights
        self.weights = np.append(self.weights, weights)
        # The exact scores of the weighted matrix are the estimated scores over the probability
        # that each row had so far: exactly the weights by which survivors must be drawn.
        root = np.sqrt(self.weights).astype(K.dtype)
        if self._memory.shape[1] != size or self._memory.dtype != K.dtype:
            self._memory = np.empty((2, size, size), dtype=K.dtype)
        weighted = np.multiply(root[:, None], K, out=self._memory[0])
        weighted *= root
        self._score(weighted, sampler, m, K.dtype)

    def _score(self, K: np.ndarray, sampler: SQUEAK, m: int, dtype: DType) -> None:
        """Compute the scores of the weighted matrix K, with the last block's ridge if it suits.

        A Cholesky factor takes a sixth of the time of a spectrum, and half of that in float32,
        which serves while the ridge is far above its rounding errors. The ridge that is wanted
        grows with the trace; the effective dimension falls by some power of it.
        """
        diagonal, size = K.diagonal().astype(np.float64), covered_dimension(m)
        trace = float(diagonal.sum()) or 1.0
        floor = resolution(diagonal, dtype)
        ridge, before, step = (self.ridge or FIRST / size) * trace, 0.0, 0.0
        for _ in range(TRIALS):
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
                self.power = min(max((before - excess) / step, 0.1), 2.0)
            before, step = excess, excess / self.power
            ridge *= np.exp(step)
        values, vectors = spectrum(K.astype(np.float64))
        ridge = sampler._ridge(values, m, dtype)
        self.scores, self.ridge = scores_from_spectrum(values, vectors, ridge), ridge / trace

    def join_points(
        self, kernel: Kernel, fresh: Array, sampler: SQUEAK, m: int, rng: np.random.Generator
    ) -> None:
        """Add rows, given by their points, to the survivors."""
        survivors = self.survivors(m, rng)
        both, numbers = self._with(survivors, fresh, kernel)
        block = array_ops.to_numpy(both.block(numbers[len(survivors) :], numbers))
        self.join(block[:, : len(survivors)], block[:, len(survivors) :], sampler, m)

    def merge(
        self, other: _Passing, kernel: Kernel, sampler: SQUEAK, m: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Add another dictionary to the survivors; returns the positions of these."""
        survivors = self.survivors(m, rng)
        both, numbers = self._with(survivors, other.points, kernel)
        across = both.block(numbers[len(survivors) :], numbers[: len(survivors)])
        self.evaluations += both.evaluations
        self.add(array_ops.to_numpy(across), other, sampler, m)
        return survivors

    def add(self, across: np.ndarray, other: _Passing, sampler: SQUEAK, m: int) -> None:
        """Add another dictionary, given its kernel values with this one."""
        self.ridge, self.power = self.ridge or other.ridge, other.power
        self.join(across, other.K, sampler, m, other.weights)

    def _with(self, survivors: np.ndarray, fresh: Array, kernel: Kernel) -> tuple[Gram, np.ndarray]:
        """Let the points be those of survivors and fresh rows; returns their matrix and numbers."""
        before = array_ops.span(fresh, 0, 0)
        if self.points is not None:
            before = array_ops.take_rows(self.points, survivors)
        self.points = array_ops.concat_rows([before, fresh])
        return Gram(kernel, ArrayRows(self.points)), np.arange(self.points.shape[0])

    def final(self, m: int, rng: np.random.Generator) -> _Passing:
        """Return this dictionary with the points of its last survivors."""
        self.points = array_ops.take_rows(self.points, self.survivors(m, rng))
        return self


class _Part(NamedTuple):
    """The dictionary of one part of the rows."""

    numbers: np.ndarray
    passing: _Passing
    evaluations: int


def _of_rows(sampler: SQUEAK, kernel: Kernel, m: int, seed: int, rows: Rows, first: int) -> _Part:
    """Find the dictionary of one part of the rows; its first row has the number ``first``."""
    gram, rng = Gram(kernel, rows), np.random.default_rng([seed, first])
    numbers, passing = _passed(sampler, gram, m, rng, 0, gram.shape[0])
    passing.points, passing._memory = rows.take(numbers), np.empty((0, 0, 0))
    return _Part(first + numbers, passing, gram.evaluations)


def _of_matrix(sampler: SQUEAK, gram: Gram, m: int, seed: int, start: int, stop: int) -> _Part:
    """Find the dictionary of rows start to stop of a precomputed matrix."""
    rng = np.random.default_rng([seed, start])
    return _Part(*_passed(sampler, gram, m, rng, start, stop), 0)


def _passed(
    sampler: SQUEAK, gram: Gram, m: int, rng: np.random.Generator, start: int, stop: int
) -> tuple[np.ndarray, _Passing]:
    """Return the row numbers that survive from start to stop, and their dictionary."""
    rows, passing, step = np.arange(0), _Passing(), sampler._step(m)
    for first in range(start, stop, step):
        rows = rows[passing.survivors(m, rng)]
        before, fresh = len(rows), np.arange(first, min(first + step, stop))
        rows = np.append(rows, fresh)
        block = array_ops.to_numpy(gram.block(fresh, rows))
        passing.join(block[:, :before], block[:, before:], sampler, m)
    return rows[passing.survivors(m, rng)], passing


def _in_threads(
    operation: Callable[[Rows, int], _Part], rows: Rows, starts: range, serial: bool
) -> Iterator[_Part]:
    """Yield the dictionaries of parts of these rows, which are read in the calling thread."""
    foreign = array_ops.is_foreign(rows.place.reference)
    workers = 1 if serial or foreign else config.n_threads()
    share = max(config.memory_budget() // workers, 1)

    def alone(part: tuple[int, Rows]) -> _Part:
        with config.config_context(n_threads=1, memory_budget=share, progress=False):
            return operation(part[1], part[0])

    n = rows.shape[0]
    parts = (
        (start, ArrayRows(rows.take(range(start, min(start + starts.step, n))))) for start in starts
    )
    return in_order(alone, parts, workers, "SQUEAK", len(starts), workers + 1)

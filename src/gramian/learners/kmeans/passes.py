"""One pass of Lloyd's algorithm over features: assign each row to its nearest centre.

Weights, labels and other arrays with an entry per row are in the order of the factors' parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.learners.kmeans.clustering import Run
from gramian.matrices.factors import Factors, norms_in
from gramian.rows import even_spans

FEW = 40  # centres, up to which products with them are stored centre by centre
COPIED = 1 << 17  # rows whose features are copied at a time, if some of a block moved


@dataclass(eq=False)
class FeaturedRun(Run):
    """A restart on features; labels are in the order of the parts until it is finished."""

    next_centres: Array = None  # centres of the next pass, (k, r)
    sums: Array = None  # sums of each cluster's rows of Z, (k, r)
    doubt: Doubt | None = None  # which rows the next pass checks; all rows if None

    def then(self, later: FeaturedRun) -> FeaturedRun:
        """Return a later run with the history of both; its objective is at most this one's."""
        later.history = self.history + [value for value in later.history if value < self.inertia]
        return later

    def branch(self, centres: Array) -> FeaturedRun:
        """Return a run that goes on from here with other centres (k, r)."""
        doubt = None if self.doubt is None else self.doubt.copy()
        labels = array_ops.copy(self.labels) if doubt is None else doubt.own(self.labels)
        twin = replace(
            self, labels=labels, centres=self.next_centres, next_centres=centres, doubt=doubt,
            history=[], done=False,
        )  # fmt: skip
        if doubt is not None:
            doubt.move(twin)
        return twin

    def objective(self) -> float:
        """Return the sum of squared distances to the centres; it follows from the sums."""
        xp = array_ops.namespace(self.sums)
        products = xp.sum(self.sums * xp.matrix_transpose(self.dual))
        return self.trace + float(xp.sum(self.masses * self.norms) - 2.0 * products)


# The result of assigning some rows, for ``runs`` restarts with k clusters each: changes of the sums
# (runs · k, columns); masses (runs · k,); and the number of changed rows of each run, followed by
# the first run's inertia if it is measured (runs + 1,).
Looked = tuple[Array, Array, Array]


class Looks:
    """Assigns a block of rows to the nearest centres of one or more runs.

    It refers only to small arrays, so it can be sent to the workers that have the rows.
    """

    def __init__(
        self, dual: Array, norms: Array, k: int, lengths: Callable[[Array], Array], dtype: DType,
        measured: bool,
    ) -> None:  # fmt: skip
        self.right = array_ops.contiguous(array_ops.astype(-2.0 * dual, dtype))  # (columns, runs·k)
        self.offset = array_ops.astype(norms, dtype)  # (runs · k,)
        self.k = k
        self.lengths = lengths  # returns zᵀSz for each row of a block z
        self.dtype = dtype
        self.measured = measured

    def __call__(self, z: Array, w: Array, *state: Array) -> Looked:
        """Assign rows with features z (rows, columns) and weights w (rows,); updates the state.

        The state has the labels, an array (rows,) for each run. If there is one more array, it gets
        the squared distances to the nearest centres of the first run, less zᵀSz.
        """
        labels = state[: self.offset.shape[0] // self.k]
        if len(state) == 1 and not self.measured and fused_pass_serves(z, self.k):
            return self._fused(z, w, labels[0])
        if tiled_pass_serves(z):
            nearest, looked = self._tiled(z, w, labels)
        else:
            z, products, looked = self.look(z, w, labels)
            nearest = self._nearest(products) if len(state) > len(labels) else None
        if len(state) > len(labels):
            state[-1][...] = nearest
        return looked

    def look(self, z: Array, w: Array, labels: Sequence[Array]) -> tuple[Array, Array, Looked]:
        """Also return the converted features, and ||c||² - 2 zᵀSc for each row and centre."""
        xp, k = array_ops.namespace(self.right), self.k
        z = array_ops.astype(z, self.dtype)
        products = self._products(z)
        products += self.offset
        new = (xp.argmin(products[:, i * k : (i + 1) * k], axis=1) for i in range(len(labels)))
        looked = self._looked(z, w, labels, new, partial(self._nearest, products))
        return z, products, looked

    def _products(self, z: Array) -> Array:
        if not isinstance(z, np.ndarray) or self.right.shape[1] > FEW:
            return array_ops.matmul(z, self.right)
        return np.matmul(self.right.T, z.T).T  # faster, and so are the minima over centres

    def _tiled(self, z: Array, w: Array, labels: Sequence[Array]) -> tuple[Array, Looked]:
        """Return the first run's squared distances less zᵀSz too, with no product kept."""
        from gramian.backend.triton_nearest import nearest_centres

        k = self.k
        runs = [slice(i * k, (i + 1) * k) for i in range(len(labels))]
        found = [nearest_centres(z, self.right[:, run], self.offset[run]) for run in runs]
        nearest = array_ops.astype(found[0][1], array_ops.namespace(z).float64)
        z = array_ops.astype(z, self.dtype) if self.measured else z
        return nearest, self._looked(z, w, labels, (new for new, _ in found), lambda: nearest)

    def _looked(
        self, z: Array, w: Array, labels: Sequence[Array], assigned: Iterable[Array],
        nearest: Callable[[], Array],
    ) -> Looked:  # fmt: skip
        """Compare the labels with those now ``assigned``, which replace them."""
        xp, k = array_ops.namespace(self.right), self.k
        gains, masses, changed = [], [], []
        for old, new in zip(labels, assigned, strict=True):
            moved = xp.nonzero(new != old)[0]
            gains.append(_gain(z, w, old, new, moved, k))
            masses.append(array_ops.mass_by_label(new, w, k))
            changed.append(float(moved.shape[0]))
            old[...] = new
        inertia = 0.0
        if self.measured:
            inertia = float(xp.sum(w * (self.lengths(z) + nearest())))
        counts = array_ops.like(np.asarray([*changed, inertia]), masses[0])
        return xp.concat(gains, axis=0), xp.concat(masses, axis=0), counts

    def _nearest(self, products: Array) -> Array:
        xp = array_ops.namespace(self.right)
        return array_ops.astype(xp.min(products[:, : self.k], axis=1), xp.float64)

    def _fused(self, z: Array, w: Array, labels: Array) -> Looked:
        from gramian.backend.triton_programs import lloyd_pass

        xp = array_ops.namespace(self.right)
        gain, masses, moved = lloyd_pass(z, self.right, self.offset, w, labels)
        moved = array_ops.astype(moved, xp.float64)
        return gain, masses, xp.concat((moved, xp.zeros_like(moved)))


def tiled_pass_serves(z: Array) -> bool:
    """Whether a GPU program finds the nearest of any number of centres in a block."""
    return array_ops.runs_triton(z) and array_ops.float_dtype(z) == array_ops.namespace(z).float32


def fused_pass_serves(z: Array, k: int) -> bool:
    """Whether one GPU program does the whole pass over a block."""
    if not tiled_pass_serves(z):
        return False
    from gramian.backend import triton_programs  # imports torch and triton

    return k <= triton_programs.MOST_CENTRES


def _gain(z: Array, w: Array, old: Array, new: Array, moved: Array, k: int) -> Array:
    """Return the change of the clusters' sums by the rows that moved, shape (k, columns).

    ``z`` has shape (rows, columns); ``w``, ``old`` and ``new`` labels (rows,); ``moved`` has the
    positions of the rows that moved.
    """
    if moved.shape[0] == 0:
        return array_ops.like(np.zeros((k, z.shape[1])), z)
    before = None if int(old[0]) < 0 else old  # in the first pass rows leave no cluster
    if moved.shape[0] == z.shape[0]:
        return array_ops.sum_by_label(z, new, w, k, before)
    total: Array = 0.0
    for start, stop in even_spans(0, moved.shape[0], COPIED):
        some = moved[start:stop]
        rows, labels, weights = (array_ops.take_rows(a, some) for a in (z, new, w))
        left = None if before is None else array_ops.take_rows(before, some)
        total = total + array_ops.sum_by_label(rows, labels, weights, k, left)
    return total


def walk(
    factors: Factors,
    weights: Array,
    runs: Sequence[FeaturedRun],
    state: Sequence[Array],
    *,
    measured: bool = False,
    wrap: Callable[[Looks], Callable[..., Looked]] = lambda looks: looks,
) -> tuple[Array, list[Array]]:
    """Assign all rows of the factors to the ``next_centres`` of the runs, in one pass.

    ``wrap`` may wrap the function that handles a block. Returns the counts (runs + 1,) of
    ``Looked``, and the new state. Updates the runs' centres, sums and masses. The sums change only
    by the rows that moved, which are few in late passes. They are exact: added up in float64,
    whatever the dtype of the features.
    """
    xp, dtype, k = factors.xp, factors.dtype, runs[0].next_centres.shape[0]
    item = array_ops.itemsize(dtype)
    centres = xp.matrix_transpose(xp.concat([run.next_centres for run in runs], axis=0))
    dual = factors.core_matmul(centres)
    norms = xp.sum(centres * dual, axis=0)

    def prepare(columns: slice) -> Callable[..., Looked]:
        lengths = norms_in(factors, columns)
        return wrap(Looks(dual[columns, :], norms, k, lengths, dtype, measured))

    # Programs for a GPU keep no products with centres, and divide the rows by themselves.
    on_gpu = tiled_pass_serves(factors.parts.example())
    row_bytes = 0 if on_gpu else 2 * k * len(runs) * item
    by_part, state = factors.sum(
        prepare,
        weights,
        state=state,
        row_bytes=row_bytes,
        result_bytes=8 * k * len(runs) * factors.rank,
        label="Lloyd",
        stored=on_gpu and not measured,
    )
    gains, masses, counts = zip(*by_part, strict=True)
    gains, masses = xp.concat(gains, axis=1), sum(masses)
    for i, run in enumerate(runs):
        clusters = slice(i * k, (i + 1) * k)
        run.centres, run.dual, run.norms = run.next_centres, dual[:, clusters], norms[clusters]
        run.sums = gains[clusters, :] if run.sums is None else run.sums + gains[clusters, :]
        run.masses = masses[clusters]
    return sum(counts), list(state)


if TYPE_CHECKING:
    from gramian.learners.kmeans.margins import Doubt

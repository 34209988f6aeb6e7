"""Passes that skip rows whose cluster cannot have changed, by their margins (Hamerly, 2010)."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.kmeans.passes import FeaturedRun, Looked, Looks, walk
from gramian.matrices.factors import Factors


class Doubt:
    """Tracks which rows may have a new nearest centre, in the order of the parts.

    A row's margin is how much farther the second nearest centre is than the nearest, minus the
    distance that the centres have moved since the row was last checked. While it is positive, the
    row's cluster cannot have changed, and its features are not needed.
    """

    def __init__(self, factors: Factors) -> None:
        self._place = factors.parts.place
        self.margins = array_ops.astype(self._place.constant(0.0), np.float32)
        self.way: np.ndarray | None = None  # by label (k,), still to subtract from lazy margins

    @staticmethod
    def is_possible(factors: Factors) -> bool:
        """Whether distances obey the triangle inequality, and rows can be selected."""
        return factors.core is None and not array_ops.is_foreign(factors.parts.example())

    def walk(
        self, factors: Factors, weights: Array, run: FeaturedRun, measured: bool = False
    ) -> Array:
        """:func:`passes.walk` for a single run, over only the rows in doubt.

        If the rows are on workers, each selects its own; ``measured`` checks all rows.
        """
        rows = None if measured else self._place.now(doubtful, self.margins)
        if rows is None:
            way = self.way
            state = [run.labels, self.margins]
            counts, (run.labels, self.margins) = walk(
                factors, weights, [run], state, measured=measured,
                wrap=lambda looks: WithMargins(looks, way),
            )  # fmt: skip
            self.way = None
            return counts
        some = [run.labels[rows], self.margins[rows]]
        chosen = Factors(factors.parts.choose(rows), factors.core)
        counts, some = walk(chosen, weights[rows], [run], some, wrap=WithMargins)
        run.labels[rows], self.margins[rows] = some
        run.masses = array_ops.mass_by_label(run.labels, weights, run.centres.shape[0])
        return counts

    def move(self, run: FeaturedRun) -> None:
        """Reduce margins by how far a row's own centre and any other centre have moved."""
        way = np.sqrt(np.sum((run.next_centres - run.centres) ** 2, axis=1))
        farthest, second = np.argsort(-way)[:2].tolist()
        other = np.full(len(way), way[farthest])
        other[farthest] = way[second]
        way = (way + other).astype(np.float32)

        def shrink(margins: np.ndarray, labels: np.ndarray) -> np.ndarray:
            margins -= way[labels]
            return margins

        if self._place.now(shrink, self.margins, run.labels) is None:
            self.way = way  # workers subtract it in the next walk

    @staticmethod
    def margin(products: np.ndarray, labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return margins (n,) from ||c||² - 2zᵀc (n, k), which is overwritten, and ||z||² (n,)."""
        places = np.arange(len(labels))
        nearest = products[places, labels]
        products[places, labels] = np.inf
        beyond = products.min(axis=1) - nearest
        # Rounding is relative to the squared norms.
        beyond -= 32 * array_ops.eps(products.dtype) * (lengths + np.abs(nearest))
        near = np.sqrt(np.maximum(lengths + nearest, 0.0))
        return beyond / (near + np.sqrt(np.maximum(lengths + nearest + beyond, 0.0)) + 1e-30)


class WithMargins:
    """Assigns a block of rows, and also updates their margins.

    With ``way`` (k,), how far to reduce margins by label, only the rows in doubt are checked; the
    worker that has the rows selects them.
    """

    def __init__(self, looks: Looks, way: np.ndarray | None = None) -> None:
        self.looks = looks
        self.way = way

    def __call__(self, z: Array, w: Array, labels: Array, margins: Array) -> Looked:
        if self.way is None:
            return self._all(z, w, labels, margins)
        margins -= self.way[labels]
        rows = doubtful(margins)
        if rows is None:
            return self._all(z, w, labels, margins)
        some = labels[rows], margins[rows]
        gains, _, counts = self._all(z[rows], w[rows], *some)
        labels[rows], margins[rows] = some
        return gains, array_ops.mass_by_label(labels, w, self.looks.k), counts

    def _all(self, z: Array, w: Array, labels: Array, margins: Array) -> Looked:
        z, products, looked = self.looks.look(z, w, [labels])
        margins[...] = Doubt.margin(products, labels, self.looks.lengths(z))
        return looked


def doubtful(margins: np.ndarray) -> np.ndarray | None:
    """Return the positions of margins not above 0; None if they are too many to select."""
    used = margins <= 0
    return np.flatnonzero(used) if 2 * np.count_nonzero(used) < len(used) else None

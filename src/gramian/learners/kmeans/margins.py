"""Passes that skip the rows whose cluster is certain, by their margins (Hamerly, 2010)."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.kmeans.passes import FeaturedRun, Looked, Looks, walk
from gramian.matrices.factors import Factors


class Doubt:
    """Which rows could have another nearest centre than before, in the order of the parts.

    Of each row a margin is known: by how much farther than its own centre the next one is, less the
    way that the centres have gone since it was looked at. While that is positive, the row's cluster
    is certain without its features.
    """

    def __init__(self, factors: Factors) -> None:
        self._place = factors.parts.place
        self.margins = array_ops.astype(self._place.constant(0.0), np.float32)
        self.way: np.ndarray | None = None  # what lazy margins are still to shrink by

    @staticmethod
    def is_possible(factors: Factors) -> bool:
        """Whether distances obey the triangle inequality, and rows can be picked out."""
        return factors.core is None and not array_ops.is_foreign(factors.parts.example())

    def walk(
        self, factors: Factors, weights: Array, run: FeaturedRun, measured: bool = False
    ) -> Array:
        """:func:`passes.walk` for a single run, over the rows in doubt alone.

        Where other processes hold the rows, each picks out its own; ``measured`` looks at all.
        """
        rows = None if measured else self._place.now(doubtful, self.margins)
        if rows is None:
            way = self.way
            state = [run.labels, self.margins]
            told, (run.labels, self.margins) = walk(
                factors, weights, [run], state, measured=measured,
                wrap=lambda looks: WithMargins(looks, way),
            )  # fmt: skip
            self.way = None
            return told
        some = [run.labels[rows], self.margins[rows]]
        chosen = Factors(factors.parts.choose(rows), factors.core)
        told, some = walk(chosen, weights[rows], [run], some, wrap=lambda looks: WithMargins(looks))
        run.labels[rows], self.margins[rows] = some
        run.masses = array_ops.mass_by_label(run.labels, weights, run.centres.shape[0])
        return told

    def move(self, run: FeaturedRun) -> None:
        """The centres move: margins shrink by the way of the own and of any other."""
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
        """The margins of some rows from ||c||² - 2zᵀc, which is overwritten, and ||z||²."""
        places = np.arange(len(labels))
        nearest = products[places, labels]
        products[places, labels] = np.inf
        beyond = products.min(axis=1) - nearest
        # Rounding is relative to the squared norms.
        beyond -= 32 * array_ops.eps(products.dtype) * (lengths + np.abs(nearest))
        near = np.sqrt(np.maximum(lengths + nearest, 0.0))
        return beyond / (near + np.sqrt(np.maximum(lengths + nearest + beyond, 0.0)) + 1e-30)


class WithMargins:
    """A look at a block that also writes the margins of its rows.

    With a ``way`` that the centres went, by label, only the rows in doubt are looked at: the
    process that holds the rows picks them out.
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
        gains, _, told = self._all(z[rows], w[rows], *some)
        labels[rows], margins[rows] = some
        return gains, array_ops.mass_by_label(labels, w, self.looks.k), told

    def _all(self, z: Array, w: Array, labels: Array, margins: Array) -> Looked:
        z, products, looked = self.looks.look(z, w, [labels])
        margins[...] = Doubt.margin(products, labels, self.looks.lengths(z))
        return looked


def doubtful(margins: np.ndarray) -> np.ndarray | None:
    """The places of margins that are used up; None where they are too many to be picked out."""
    used = margins <= 0
    return np.flatnonzero(used) if 2 * np.count_nonzero(used) < len(used) else None

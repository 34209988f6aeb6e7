"""Margins: which rows may have a new nearest centre; passes skip the others (Hamerly, 2010)."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.learners.kmeans.passes import FeaturedRun, Looked, Looks, walk
from gramian.matrices.factors import Factors

NONE = np.empty(0, dtype=np.intp)
ROUNDING = 32  # of a squared distance, in units of the norms and of eps
READ = 32  # reading a row costs as much as its products with this many centres


class Doubt:
    """Tracks which rows may have a new nearest centre, in the order of the parts.

    A row's margin is how much farther the second nearest centre is than the nearest, minus the
    distance that the centres have moved since the row was last checked. While it is positive, the
    row's cluster cannot have changed, and its features are not needed.

    A centre that moves far would use up the margins of all rows. If only a few do, rows are
    compared with these few, and their margins shrink by what the others move (compare the groups of
    centres of Ding and others, 2015).
    """

    def __init__(self, factors: Factors) -> None:
        self._place = factors.parts.place
        self.margins = array_ops.astype(self._place.constant(0.0), np.float32)
        self.near = array_ops.astype(self._place.constant(0.0), np.float32)  # own centre's distance
        self.lengths = array_ops.astype(self._place.constant(0.0), factors.dtype)  # zᵀz
        self.new = True  # before a pass that measures all of these
        self.far = NONE  # centres that margins do not take into account, (few,)
        # Still to subtract from lazy margins and to add to ``near``, by label: (2, k).
        self.way: np.ndarray | None = None

    @staticmethod
    def is_possible(factors: Factors) -> bool:
        """Whether distances obey the triangle inequality, and rows can be selected."""
        return factors.core is None and not array_ops.is_foreign(factors.parts.example())

    def copy(self) -> Doubt:
        """Return a copy that can move on from here on its own."""
        twin = copy.copy(self)
        twin.margins, twin.near = self.own(self.margins), self.own(self.near)
        return twin

    def own(self, values: Array) -> Array:
        """Return a copy of an aligned array; lazy ones are not written to."""
        copied = self._place.now(array_ops.copy, values)
        return values if copied is None else copied

    def walk(
        self, factors: Factors, weights: Array, run: FeaturedRun, measured: bool = False
    ) -> Array:
        """:func:`passes.walk` for a single run, over only the rows in doubt.

        If the rows are on workers, each selects its own; ``measured`` checks all rows.
        """
        chosen, measured = None, measured or self.new
        if not measured and not len(self.far):
            chosen = self._place.now(doubtful, self.margins)
        state = [run.labels, self.margins, self.near, self.lengths]
        if chosen is None:
            select = Select(self.way, self.far)
            counts, state = walk(
                factors, weights, [run], state, measured=measured,
                wrap=lambda looks: WithMargins(looks, select),
            )  # fmt: skip
            run.labels, self.margins, self.near, self.lengths = state
            self.way, self.far, self.new = None, NONE, False
            return counts
        some = Factors(factors.parts.choose(chosen), factors.core)
        counts, found = walk(
            some, weights[chosen], [run], [each[chosen] for each in state], wrap=WithMargins
        )
        for each, of_some in zip(state, found, strict=True):
            each[chosen] = of_some
        run.masses = array_ops.mass_by_label(run.labels, weights, run.centres.shape[0])
        return counts

    def move(self, run: FeaturedRun) -> None:
        """Reduce margins by how far a row's own centre and any other centre move next."""
        way = np.sqrt(np.sum((run.next_centres - run.centres) ** 2, axis=1))

        def shrink(margins: np.ndarray, near: np.ndarray, labels: np.ndarray) -> np.ndarray:
            own = way.astype(np.float32)[labels]
            near += own
            margins -= own
            far = far_movers(margins, way)
            margins -= other_ways(way, far).astype(np.float32)[labels]
            return far

        far = self._place.now(shrink, self.margins, self.near, run.labels)
        if far is not None:
            self.far = np.union1d(self.far, far)
            return
        both = np.stack((way + other_ways(way, NONE), way)).astype(np.float32)
        self.way = both if self.way is None else self.way + both

    @staticmethod
    def margin(products: np.ndarray, labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return margins (n,) from ||c||² - 2zᵀc (n, k), which is overwritten, and ||z||² (n,)."""
        places = np.arange(len(labels))
        nearest = products[places, labels]
        products[places, labels] = np.inf
        beyond = products.min(axis=1) - nearest
        # Rounding is relative to the squared norms.
        beyond -= ROUNDING * array_ops.eps(products.dtype) * (lengths + np.abs(nearest))
        near = np.sqrt(np.maximum(lengths + nearest, 0.0))
        return beyond / (near + np.sqrt(np.maximum(lengths + nearest + beyond, 0.0)) + 1e-30)


def far_movers(margins: np.ndarray, way: np.ndarray) -> np.ndarray:
    """Return the few centres that are better compared with all rows; none if there are none.

    ``way`` (k,) is how far each centre moves; ``margins`` (n,) are less that of a row's own centre.
    """
    n, k = len(margins), len(way)
    order = np.argsort(-way, kind="stable")
    few, least = 0, min((k + READ) * _used_up(margins, way[order[0]]), k * n)
    for count in sorted({k // 16, k // 8, k // 4} - {0}):
        cost = n * (READ + count) + (k + READ) * _used_up(margins, way[order[count]])
        if cost < least:
            few, least = count, cost
    return order[:few]


def _used_up(margins: np.ndarray, way: float) -> int:
    return int(np.count_nonzero(margins <= way))


def other_ways(way: np.ndarray, far: np.ndarray) -> np.ndarray:
    """Return how far any other centre, not among ``far``, moves at most; for each centre (k,)."""
    rest = way.copy()
    rest[far] = 0.0
    farthest, second = np.argsort(-rest)[:2].tolist()
    other = np.full(len(way), rest[farthest])
    other[farthest] = rest[second]
    return other


@dataclass(frozen=True, eq=False)
class Select:
    """Selects the rows in doubt of a block."""

    way: np.ndarray | None  # as in ``Doubt``
    far: np.ndarray

    def __call__(
        self, looks: Looks, z: Array, labels: Array, margins: Array, near: Array, lengths: Array
    ) -> np.ndarray | None:
        """Return the positions of the rows in doubt; None if all are to be checked."""
        if looks.measured or (self.way is None and not len(self.far)):
            return None
        if self.way is not None:
            margins -= self.way[0][labels]
            near += self.way[1][labels]
        if len(self.far):
            few = array_ops.matmul(z, np.ascontiguousarray(looks.right[:, self.far]))
            few += looks.offset[self.far]
            least = few.min(axis=1)
            slack = ROUNDING * array_ops.eps(few.dtype) * (lengths + np.abs(least))
            beyond = np.sqrt(np.maximum(lengths + least - slack, 0.0)) - near
            np.minimum(margins, beyond, out=margins, casting="same_kind")
        return doubtful(margins)


@dataclass(eq=False)
class WithMargins:
    """Assigns the rows of a block that are in doubt, and updates their margins."""

    looks: Looks
    select: Select = Select(None, NONE)

    def __call__(
        self, z: Array, w: Array, labels: Array, margins: Array, near: Array, lengths: Array
    ) -> Looked:
        if self.looks.measured:
            lengths[...] = self.looks.lengths(z)
        rows = self.select(self.looks, z, labels, margins, near, lengths)
        if rows is None:
            return self._all(z, w, labels, margins, near, lengths)
        some = [each[rows] for each in (labels, margins, near, lengths)]
        gains, _, counts = self._all(z[rows], w[rows], *some)
        labels[rows], margins[rows], near[rows], _ = some
        return gains, array_ops.mass_by_label(labels, w, self.looks.k), counts

    def _all(
        self, z: Array, w: Array, labels: Array, margins: Array, near: Array, lengths: Array
    ) -> Looked:
        z, products, looked = self.looks.look(z, w, [labels])
        nearest = products[np.arange(len(labels)), labels]
        slack = ROUNDING * array_ops.eps(products.dtype) * (lengths + np.abs(nearest))
        near[...] = np.sqrt(np.maximum(lengths + nearest + slack, 0.0))
        margins[...] = Doubt.margin(products, labels, lengths)
        return looked


def doubtful(margins: np.ndarray) -> np.ndarray | None:
    """Return the positions of margins not above 0; None if they are too many to select."""
    used = margins <= 0
    return np.flatnonzero(used) if 2 * np.count_nonzero(used) < len(used) else None

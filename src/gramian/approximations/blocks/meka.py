"""MEKA: an approximation in blocks, with links between them."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from gramian.approximations.blocks.base import BlockApproximation, BlocksPlan
from gramian.approximations.blocks.basis import FURTHER, SAMPLED_EXTRA, SAMPLED_PER_RANK, points_of
from gramian.approximations.blocks.links import (
    STRIP_COLUMNS,
    STRIP_POINTS,
    LinkRule,
    link_matrix,
    linked_blocks,
)
from gramian.backend import array_ops, config, linalg
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice
from gramian.estimators.parameters import KernelLike, RandomState
from gramian.matrices.block_core import BlockCore
from gramian.matrices.gram import Gram
from gramian.matrices.normal_equations import normal_equations
from gramian.rows import Rows
from gramian.samplers import Sampler

__all__ = ["MEKA"]

LINK_RULES = ("link_threshold", "link_distance", "link_fraction")


class MEKA(BlockApproximation):
    """Memory-efficient kernel approximation: a basis for each block of rows, and links between.

    As in :class:`BKA`, each block of rows has its own basis, and its rows have features in that
    basis only. The matrix between two blocks is expressed in their two bases,
    K_st ≈ Z_s L_st Z_tᵀ, with a small matrix L_st fitted on sampled rows. (Si, Hsieh and Dhillon,
    2014.) At equal memory it has n_blocks times the rank of Nyström, which is better if the matrix
    has a high rank: for a large gamma and rows with few columns.

    Parameters
    ----------
    kernel, n_components, n_blocks, ranks, landmarks, partition, random_state
        As in :class:`BKA`.
    link_threshold : float, optional
        Leave out links between blocks whose centres have a kernel value of at most this.
    link_distance : float, optional
        Leave out links between blocks whose centres are farther apart than this; 0 gives BKA.
    link_fraction : float, optional
        Leave out this fraction of all links, those whose centres have the smallest kernel values.
        At most one of the three may be set; by default all links are kept.
    psd : {"clip", "shift", None}, default="clip"
        With fitted links K̃ may have negative eigenvalues. "clip" sets them to 0, which gives the
        nearest positive semi-definite matrix in the span of the bases, measured on the rows that
        links are fitted on; "shift" adds to all of them so that the smallest is 0, and takes one
        more pass over all rows; None leaves them.

    Attributes
    ----------
    links_ : bool array of shape (blocks, blocks)
        Which blocks are linked.
    labels_, block_sizes_, ranks_, centres_, landmarks_, n_components_, nbytes_, times_, kernel_
        As in :class:`BKA`.

    See Also
    --------
    BKA : the same without links.
    Nystroem : one basis for all rows.

    References
    ----------
    - S. Si, C.-J. Hsieh and I. S. Dhillon, Memory efficient kernel approximation, ICML 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from gramian import MEKA, RBF, Nystroem, relative_error
    >>> X, _ = make_moons(2000, noise=0.1, random_state=0)
    >>> approximation = MEKA(RBF(20.0), 200, random_state=0).fit(X)
    >>> nystroem = Nystroem(RBF(20.0), 50, random_state=0).fit(X)
    >>> approximation.nbytes_ < nystroem.nbytes_
    True
    >>> float(relative_error(approximation, X)) < 0.2 * float(relative_error(nystroem, X))
    True
    """

    compared: ClassVar = {"MEKA": {}}

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        n_components: int = 100,
        *,
        n_blocks: int = 10,
        ranks: str = "spectrum",
        landmarks: str | Sampler = "uniform",
        link_threshold: float | None = None,
        link_distance: float | None = None,
        link_fraction: float | None = None,
        psd: str | None = "clip",
        partition: str | Array = "kmeans",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.n_blocks = n_blocks
        self.ranks = ranks
        self.landmarks = landmarks
        self.link_threshold = link_threshold
        self.link_distance = link_distance
        self.link_fraction = link_fraction
        self.psd = psd
        self.partition = partition
        self.random_state = random_state

    def _fit(self, gram: Gram, rng: np.random.Generator, y: Array | None, plan: BlocksPlan) -> int:
        if self.psd is not None:
            choice(self, "psd", self.psd, ("clip", "shift"))
        LinkRule.of(self, LINK_RULES)
        return super()._fit(gram, rng, y, plan)

    def _planned_core(self) -> BlockCore | None:
        return None if self._count() == 1 else BlockCore(np.empty((0, 0)))

    def _plan(self, rows: Rows) -> BlocksPlan:
        plan, count = super()._plan(rows), self._count()
        total = int(self.n_components)
        wide = 8 * rows.row_bytes // array_ops.itemsize(rows.dtype)  # a row in float64
        points = (1 + FURTHER) * (SAMPLED_PER_RANK * total + SAMPLED_EXTRA * count)
        points = min(points, rows.shape[0])
        largest = (1 + FURTHER) * points_of(-(-3 * total // (2 * count)))
        largest = min(max(largest, STRIP_POINTS), points)
        at_once = min(config.n_threads(), count)
        across = min(largest + STRIP_COLUMNS, points)
        links = at_once * (3 * 8 * largest * across // 2 + 3 * across * wide)
        square, kept, fitted_on = 8 * total**2, plan.kept, plan.steps[-1]["fitted on"]
        steps = [
            *plan.steps,
            {**kept, "fitted on": fitted_on, "links": square + max(square, links)},
            {**kept, "links": square, "decomposition": 7 * square},
        ]
        return replace(plan, kept={**kept, "links": square // 2}, steps=steps)

    def _link(self, gram: Gram) -> BlockCore | None:
        bases, count = self._bases, len(self._bases)
        with self._timed("links"):
            self.links_ = linked_blocks(gram, self.centres_, LinkRule.of(self, LINK_RULES))
            if not self.links_.any():  # BKA: K̃ is block-diagonal and positive semi-definite
                return None
            S = link_matrix(gram, bases, self.links_)
        links: np.ndarray | None = self.links_
        with self._timed("psd", small=len(S) <= 1000):
            if self.psd is not None and not linalg.is_psd(S):
                S = linalg.nearest_psd(S, self._inner(gram), shift=self.psd == "shift")
                links = None
        dtype = np.float32 if self._single else np.float64
        sizes = [basis.rank for basis in bases]
        return BlockCore(S, sizes, None if count == 1 else links, dtype)

    def _inner(self, gram: Gram) -> list[np.ndarray]:
        """Return ZᵀZ of each block; an estimate is enough to clip, which changes little."""
        if self.psd == "shift":
            self._core = None
            return normal_equations(self.factor_rows(gram.rows))[0]
        sizes = zip(self._bases, self.block_sizes_, strict=True)
        return [basis.inner(int(n)) for basis, n in sizes]

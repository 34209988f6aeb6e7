"""Links between blocks: which blocks are linked, and the matrices between their bases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.spatial.distance

from gramian.approximations.blocks.basis import Basis, in_float64
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import is_real
from gramian.backend.threads import side_by_side
from gramian.kernels import tiles
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows
from gramian.rows.parts import slices

STRIP_POINTS = 512  # of the blocks whose links are computed at once
STRIP_COLUMNS = 1024  # of their kernel values computed at once
MOST_SPARE = 1.25  # kernel values computed at once, as a multiple of those that links need


class LinkRule(NamedTuple):
    """Which links are left out: a parameter of MEKA and its value."""

    name: str
    value: float

    @classmethod
    def of(cls, estimator: object, names: tuple[str, ...]) -> LinkRule | None:
        """Return the rule that an estimator's parameters specify; None if all links are kept."""
        chosen = [(name, getattr(estimator, name)) for name in names]
        chosen = [(name, value) for name, value in chosen if value is not None]
        if not chosen:
            return None
        owner = type(estimator).__name__
        if len(chosen) > 1:
            raise ValueError(
                f"{' and '.join(name for name, _ in chosen)} of {owner} are two ways to leave out "
                "links: pass one of them."
            )
        name, value = chosen[0]
        valid = is_real(value) and value >= 0 and (name != "link_fraction" or value <= 1)
        if not valid:
            bounds = "from 0 to 1" if name == "link_fraction" else "not below 0"
            raise ValueError(f"{name} of {owner} must be {bounds}; got {value!r}.")
        return cls(name, float(value))


def linked_blocks(gram: Gram, centres: Array, rule: LinkRule | None) -> np.ndarray:
    """Return which pairs of blocks are linked, by their centres; shape (blocks, blocks)."""
    count = int(centres.shape[0])
    linked = ~np.eye(count, dtype=bool)
    if rule is None or count == 1:
        return linked
    name, value = rule
    points = in_float64(centres)
    if name == "link_distance":
        return linked & (scipy.spatial.distance.cdist(points, points) <= value) & (value > 0)
    similarity = array_ops.to_numpy(gram.kernel(points))
    gram.evaluations += count**2
    if name == "link_threshold":
        return linked & (similarity > value)
    pairs = np.triu_indices(count, k=1)
    dropped = np.argsort(similarity[pairs], kind="stable")[: round(value * len(pairs[0]))]
    linked[pairs[0][dropped], pairs[1][dropped]] = False
    return linked & linked.T


def link_matrix(gram: Gram, bases: list[Basis], linked: np.ndarray) -> np.ndarray:
    """Return S, of shape (total rank, total rank): identity blocks, and links between blocks.

    The link L of blocks s and t is the least-squares fit of K(V_s, V_t) = Z_s L Z_tᵀ on the sampled
    points V. Links are computed where the points are; S is on the host.
    """
    inverses = [basis.inverse for basis in bases]
    kernel, xp, above = gram.kernel, array_ops.namespace(inverses[0]), np.triu(linked, k=1)
    turned = [xp.matrix_transpose(inverse) for inverse in inverses]
    counts = [int(inverse.shape[1]) for inverse in inverses]
    owners = np.repeat(np.arange(len(bases)), [basis.rank for basis in bases])
    S = np.zeros((len(owners), len(owners)))  # at first only what is above its diagonal

    def fill(strip: _LinkedBlocks) -> int:
        left, right = (_points([bases[i] for i in blocks]) for blocks in strip)
        down, across = (slices([counts[i] for i in blocks]) for blocks in strip)
        K = array_ops.astype(tiles.dense(kernel, left, right), xp.float64)
        pairs = zip(strip.members, down, strict=True)
        half = array_ops.concat_rows([inverses[s] @ K[rows, :] for s, rows in pairs])
        pairs = zip(strip.partners, across, strict=True)
        links = xp.concat([half[:, columns] @ turned[t] for t, columns in pairs], axis=1)
        rows, columns = (np.flatnonzero(np.isin(owners, blocks)) for blocks in strip)
        needed = above[np.ix_(owners[rows], owners[columns])]
        S[np.ix_(rows, columns)] = np.where(needed, array_ops.to_numpy(links), 0.0)
        return int(K.shape[0] * K.shape[1])

    foreign, strips = array_ops.is_foreign(inverses[0]), _strips(counts, linked)
    if not foreign:
        strips = [piece for strip in strips for piece in strip.pieces(counts)]
    serial = kernel.serial or foreign
    gram.evaluations += sum(side_by_side(fill, strips, "links", serial=serial))
    S += S.T
    np.fill_diagonal(S, 1.0)
    return S


def _points(bases: list[Basis]) -> ArrayRows:
    return ArrayRows(array_ops.concat_rows([basis.points for basis in bases]))


class _LinkedBlocks(NamedTuple):
    """Neighbouring blocks, and all blocks to their right that one of them is linked to."""

    members: list[int]
    partners: np.ndarray

    def pieces(self, counts: list[int]) -> list[_LinkedBlocks]:
        """Divide the partners so that kernel values with each piece fit the cache."""
        at = np.cumsum(np.asarray(counts)[self.partners]) // STRIP_COLUMNS
        pieces = np.split(self.partners, np.flatnonzero(np.diff(at)) + 1)
        return [_LinkedBlocks(self.members, piece) for piece in pieces]


def _strips(counts: list[int], linked: np.ndarray) -> list[_LinkedBlocks]:
    """Divide links into strips whose kernel values are computed at once.

    ``counts`` has the number of points of each block. A large product takes less time than many
    small ones. A strip grows while most of its kernel values are needed.
    """
    sizes, above = np.asarray(counts), np.triu(linked, k=1)
    strips: list[_LinkedBlocks] = []
    needed_before = 0
    for s in range(len(sizes)):
        partners = np.flatnonzero(above[s])
        if not len(partners):
            continue
        needed = int(sizes[s] * sizes[partners].sum())
        if strips:
            members = [*strips[-1].members, s]
            union = np.union1d(strips[-1].partners, partners)
            rows, both = sizes[members].sum(), needed_before + needed
            if rows <= STRIP_POINTS and rows * sizes[union].sum() <= MOST_SPARE * both:
                strips[-1], needed_before = _LinkedBlocks(members, union), both
                continue
        strips.append(_LinkedBlocks([s], partners))
        needed_before = needed
    return strips

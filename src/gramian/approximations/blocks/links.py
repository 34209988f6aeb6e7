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
from gramian.kernels import Kernel, tiles
from gramian.matrices.gram import Gram
from gramian.rows import ArrayRows


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


def link_matrix(kernel: Kernel, bases: list[Basis], linked: np.ndarray) -> np.ndarray:
    """Return S, of shape (total rank, total rank): identity blocks, and links between blocks.

    The link L of blocks s and t is the least-squares fit of K(V_s, V_t) = Z_s L Z_tᵀ on the sampled
    points V. Links are computed where the points are; S is on the host.
    """
    xp, edges = array_ops.namespace(bases[0].inverse), np.cumsum([0, *(b.rank for b in bases)])
    S = array_ops.like(np.eye(edges[-1]), bases[0].inverse)

    def fill(s: int) -> None:
        partners = s + 1 + np.flatnonzero(linked[s, s + 1 :])
        if not len(partners):
            return
        points = array_ops.concat_rows([bases[t].points for t in partners])
        K = tiles.dense(kernel, ArrayRows(bases[s].points), ArrayRows(points))
        from_left, start = bases[s].inverse @ array_ops.astype(K, xp.float64), 0
        for t in partners:
            stop = start + bases[t].inverse.shape[1]
            link = from_left[:, start:stop] @ xp.matrix_transpose(bases[t].inverse)
            S[edges[s] : edges[s + 1], edges[t] : edges[t + 1]] = link
            S[edges[t] : edges[t + 1], edges[s] : edges[s + 1]] = xp.matrix_transpose(link)
            start = stop

    side_by_side(fill, range(len(bases)), "links", serial=kernel.serial or array_ops.is_foreign(S))
    return array_ops.to_numpy(S)


def link_evaluations(bases: list[Basis], linked: np.ndarray) -> int:
    """Return how many kernel values ``link_matrix`` evaluates."""
    counts = np.array([basis.inverse.shape[1] for basis in bases])
    return int(counts @ np.triu(linked, k=1) @ counts)

"""Sums and counts of rows by their labels."""

from __future__ import annotations

import array_api_compat
import numpy as np
import scipy.sparse

from gramian.backend.array_ops.libraries import (
    astype,
    is_foreign,
    is_lazy,
    like,
    namespace,
    to_numpy,
)
from gramian.backend.typing import Array

FEW = 256  # clusters, up to which sums are a product with the matrix of memberships
COPIED = 1 << 17  # entries of rows that are converted to float64 together
SPARSE = 10_000  # entries of a slab and of its memberships from which sparse ones cost less
SLAB = 65_536  # rows that are sorted by label together


def sum_by_label(
    x: Array, labels: Array, weights: Array, k: int, before: Array | None = None
) -> Array:
    """Return the weighted sum of the rows of x with each of k labels, in float64.

    With ``before``, the change of these sums since the rows had those labels.

    Shapes: x (n, d); labels, weights and before (n,); result (k, d).
    """
    if is_foreign(x):
        xp = namespace(x)
        if array_api_compat.is_torch_array(x):
            by_slab = _torch_products if k <= FEW else _torch_segments
            return by_slab(x, labels, weights, k, before)
        members = _members(labels, like(np.arange(k), labels), before)
        members = astype(members, xp.float64) * weights[:, None]
        return xp.matrix_transpose(members) @ astype(x, xp.float64)
    total, numbers = np.zeros((k, x.shape[1])), np.arange(k, dtype=labels.dtype)
    step = max(COPIED // max(x.shape[1], 1), 512)
    for start in range(0, len(x), step):  # so that the float64 copy stays in cache
        part = slice(start, start + step)
        new, old = labels[part], None if before is None else before[part]
        if (k + x.shape[1]) * len(new) <= SPARSE:
            members = _members(new, numbers, old).astype(np.float64)
            members *= weights[part, None]
            total += members.T @ x[part].astype(np.float64, copy=False)
            continue
        starts = np.arange(len(new) + 1)  # one entry per column
        for sign, each in ((1.0, new), (-1.0, old)):
            if each is not None:
                entries = (sign * weights[part], each, starts)
                total += scipy.sparse.csc_array(entries, shape=(k, len(new))) @ x[part]
    return total


def _members(labels: Array, numbers: Array, before: Array | None) -> Array:
    """Return an (n, k) matrix: 1 where a row has a label, minus 1 where it had it before."""
    members = labels[:, None] == numbers
    if before is None:
        return members
    xp = namespace(labels)
    return astype(members, xp.int8) - astype(before[:, None] == numbers, xp.int8)


def _torch_segments(x: Array, labels: Array, weights: Array, k: int, before: Array | None) -> Array:
    """The same sums over rows sorted by label, slab by slab; always added in the same order."""
    import torch

    total = torch.zeros((k, x.shape[1]), dtype=torch.float64, device=x.device)
    signed = [(1.0, labels)] if before is None else [(1.0, labels), (-1.0, before)]
    for start in range(0, x.shape[0], SLAB):
        part = slice(start, start + SLAB)
        for sign, each in signed:
            some, order = torch.sort(each[part], stable=True)
            rows = x[part][order].double() * (sign * weights[part])[order, None]
            lengths = torch.bincount(some, minlength=k)
            total += torch.segment_reduce(rows, "sum", lengths=lengths, unsafe=True)
    return total


def _torch_products(x: Array, labels: Array, weights: Array, k: int, before: Array | None) -> Array:
    """The same sums by products with memberships, slab by slab."""
    import torch

    total = torch.zeros((k, x.shape[1]), dtype=torch.float64, device=x.device)
    numbers = torch.arange(k, device=x.device)
    for start in range(0, x.shape[0], SLAB):
        part = slice(start, start + SLAB)
        members = _members(labels[part], numbers, None if before is None else before[part])
        total += _torch_product(members.double() * weights[part, None], x[part])
    return total


def _torch_product(members: Array, x: Array) -> Array:
    """membersᵀ x in slabs of rows: one product with so few columns would leave a GPU idle."""
    import torch

    x, slab, k = x.double(), 1024, members.shape[1]
    whole = x.shape[0] // slab * slab
    parts = torch.bmm(
        members[:whole].reshape(-1, slab, k).transpose(1, 2),
        x[:whole].reshape(-1, slab, x.shape[1]),
    )
    return parts.sum(0) + members[whole:].T @ x[whole:]


def counts(labels: Array, k: int) -> np.ndarray:
    """Count the entries with each of k labels; shape (k,), on the host."""
    if not is_lazy(labels):
        return np.bincount(to_numpy(labels), minlength=k)
    by_piece = labels.map_blocks(
        lambda piece: np.bincount(piece, minlength=k)[None, :],
        new_axis=1,
        chunks=((1,) * labels.numblocks[0], (k,)),
        dtype=np.intp,
    )
    return to_numpy(by_piece.sum(axis=0))


def mass_by_label(labels: Array, weights: Array, k: int) -> Array:
    """Return the sum of the weights with each of k labels; shape (k,)."""
    if not is_foreign(labels):
        return np.bincount(labels, weights=weights, minlength=k)
    if array_api_compat.is_torch_array(labels):
        return namespace(labels).bincount(labels, weights=weights, minlength=k)
    return sum_by_label(weights[:, None], labels, namespace(weights).ones_like(weights), k)[:, 0]

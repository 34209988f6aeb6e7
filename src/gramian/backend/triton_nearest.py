"""The nearest of many centres on a GPU, without the products of all rows with all centres.

A program holds a tile of rows and loops over tiles of centres. It keeps the smallest value that
each row has met, so the memory does not depend on the number of centres.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from gramian.backend.array_ops import Array
from gramian.backend.triton_split import dot, leading_and_rest

__all__ = ["nearest_centres"]

TILE: dict[str, int] = {"ROWS": 128, "COLUMNS": 32, "num_warps": 4, "num_stages": 3}
MOST_CENTRES = 64  # in a tile


@triton.jit
def _nearest(
    Z, C, C_rest, offset, labels, least, n, r, k, z_row,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, CENTRES: tl.constexpr,
):  # fmt: skip
    """Find the smallest of zᵀc + offset over all centres c, for a tile of rows z."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, COLUMNS)
    is_row = rows < n
    best = tl.full((ROWS,), float("inf"), dtype=tl.float32)
    place = tl.zeros((ROWS,), dtype=tl.int32)
    for first in range(0, k, CENTRES):
        centres = first + tl.arange(0, CENTRES)
        is_centre = centres < k
        total = tl.zeros((ROWS, CENTRES), dtype=tl.float32)
        for c in range(0, r, COLUMNS):
            here = c + columns
            z = tl.load(
                Z + rows[:, None] * z_row + here[None, :],
                mask=is_row[:, None] & (here[None, :] < r),
                other=0.0,
            ).to(tl.float32)
            at = centres[None, :] * r + here[:, None]
            inside = (here[:, None] < r) & is_centre[None, :]
            right = tl.load(C + at, mask=inside, other=0.0)
            rest = tl.load(C_rest + at, mask=inside, other=0.0)
            total = dot(z, right, rest, total, True)
        lengths = tl.load(offset + centres, mask=is_centre, other=float("inf"))
        values = total + lengths[None, :]
        smallest = tl.min(values, axis=1)
        closer = smallest < best
        place = tl.where(closer, first + tl.argmin(values, axis=1), place)
        best = tl.where(closer, smallest, best)
    tl.store(labels + rows, place.to(tl.int64), mask=is_row)
    tl.store(least + rows, best, mask=is_row)


def nearest_centres(z: Array, C: Array, offset: Array) -> tuple[Array, Array]:
    """Return the place of the smallest column of z C + offset for each row, and its value.

    Shapes: z (n, r), in float32 or half precision; C (r, k), in float32; offset (k,); results (n,).
    """
    (n, r), k = z.shape, C.shape[1]
    z = z if z.stride(1) == 1 else z.contiguous()
    labels = torch.empty(n, dtype=torch.int64, device=z.device)
    least = torch.empty(n, dtype=torch.float32, device=z.device)
    if n:
        _nearest[(triton.cdiv(n, TILE["ROWS"]),)](
            z, *leading_and_rest(C.T.contiguous()), offset, labels, least, n, r, k, z.stride(0),
            CENTRES=min(max(16, triton.next_power_of_2(k)), MOST_CENTRES), **TILE,
        )  # fmt: skip
    return labels, least

"""Products as accurate as float32 on tensor cores, which round numbers to TF32 (11 bits).

A number is the sum of its leading bits, rounded, and a rest. (If the rest were cut off, it would be
twice as large and always of one sign, and errors would be four times as large.) Three products of
such parts give all but the last bit or two of a product in float32. One side is split once, before
a program runs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from gramian.backend.array_ops import Array

KEPT = tl.constexpr(-8192)  # the bits of a float32 that TF32 has
HALF = tl.constexpr(4096)  # of the last one that is kept: added before, it rounds


@triton.jit
def dot(a, b, b_rest, total, THRICE: tl.constexpr):
    """Return total + a b, with b split into its leading bits and a rest; once, in TF32 only.

    Tensor cores cut off what they add up. Sums of a tile are therefore added to the total outside
    of them, where they are rounded.
    """
    if THRICE:
        leading = ((a.to(tl.int32, bitcast=True) + HALF) & KEPT).to(tl.float32, bitcast=True)
        small = tl.dot(a - leading, b, input_precision="tf32")
        small = tl.dot(leading, b_rest, small, input_precision="tf32")
        return total + tl.dot(leading, b, small, input_precision="tf32")
    return tl.dot(a, b, total, input_precision="tf32")


def leading_and_rest(x: Array) -> tuple[Array, Array]:
    """Return the leading bits of numbers in float32, and what is left of them."""
    leading = ((x.view(torch.int32) + HALF.value) & KEPT.value).view(torch.float32)
    return leading, x - leading

"""The laws of rows."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.rows import Rows
from gramian.testing.comparing import close, small_blocks


def check_rows(rows: Rows, expected: Array) -> None:
    """Check that every way of reading the rows gives the dense array ``expected``.

    Parameters
    ----------
    rows : Rows
    expected : array of shape (n, d)

    See Also
    --------
    gramian.Rows : the base class of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import as_rows
    >>> from gramian.testing import check_rows
    >>> X = np.arange(40.0).reshape(10, 4)
    >>> check_rows(as_rows(X), X)
    """
    expected = np.asarray(expected)
    n, d = expected.shape
    xp = rows.xp
    assert rows.shape == (n, d), f"shape: {rows.shape} is not {(n, d)}"
    dtype = array_ops.float_dtype(expected)
    assert array_ops.eps(rows.dtype) == np.finfo(dtype).eps, f"dtype: {rows.dtype}"
    exact = expected.astype(dtype)
    tolerance = 100 * float(np.finfo(dtype).eps) * max(float(np.abs(exact).max()), 1.0) * n * d
    close("collect", rows.collect(), exact, 0.0)
    order = np.random.default_rng(0).permutation(n)[: max(1, n // 2)]
    close("take", rows.take(order), exact[order], 0.0)
    close("persist", rows.persist().collect(), exact, 0.0)
    for numbers in (order, np.sort(order)):
        close("choose", rows.choose(numbers).collect(), exact[numbers], 0.0)
    weights = array_ops.like(np.arange(n, dtype=float), rows.collect())

    def weighted(x: Array, w: Array, out: Array | None = None) -> Array:
        return array_ops.row_norms(x) * array_ops.astype(w, x.dtype)

    squares = (exact.astype(float) ** 2).sum(axis=1) * np.arange(n)
    for blocks in (nullcontext, small_blocks):
        with blocks():
            close("map", rows.map(weighted, weights), squares, tolerance * n)
            total = rows.sum(lambda x, w: xp.sum(weighted(x, w)), weights)
            close("sum", total, squares.sum(), tolerance * n * n)
            late = rows.sum(lambda x, w: xp.sum(weighted(x, w)), weights, start=n // 3)
            close("sum from a row on", late, squares[n // 3 :].sum(), tolerance * n * n)

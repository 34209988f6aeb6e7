"""Type aliases: which types are open, and what they stand for."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

Array: TypeAlias = Any  # an array of any library: NumPy, torch, CuPy or dask
ArrayLike: TypeAlias = Any  # what converts to an array: lists, data frames, arrays, paths, Rows
DType: TypeAlias = Any  # a dtype of any library
Namespace: TypeAlias = Any  # the functions of a library, such as array_api_compat.numpy
Sums: TypeAlias = Any  # an array, or a (nested) tuple or list of arrays, added entry by entry

BlockSum: TypeAlias = Callable[..., Sums]  # function(block, *aligned) of a sum over rows
BlockMap: TypeAlias = Callable[..., Array]  # function(block, *aligned, out=out) -> (rows, width)
Aligned: TypeAlias = tuple[Array, ...]  # arrays (n, ...) that are walked with the rows
State: TypeAlias = Sequence[Array] | None  # such arrays that a sum writes to
Indices: TypeAlias = Sequence[int] | range | np.ndarray  # row numbers, (k,)
PathLike: TypeAlias = str | os.PathLike[str]
RandomState: TypeAlias = np.random.Generator | int | None

T = TypeVar("T")

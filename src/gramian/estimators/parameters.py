"""Types of the parameters that estimators share."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TypeAlias

import numpy as np

from gramian.backend.array_ops import Array
from gramian.kernels import Kernel

# Rows as users pass them: an array of any library or a sparse matrix of shape (n, d), a data frame,
# n objects, the path of a file, or a dask collection.
RowsLike: TypeAlias = Array | str | PathLike[str]
KernelLike: TypeAlias = str | Kernel | Callable[[Array, Array], Array]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

"""Types of the parameters that approximations share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gramian.backend.array_ops import Array
from gramian.kernels import Kernel

KernelLike: TypeAlias = str | Kernel | Callable[[Array, Array], Array]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

"""Choose the kernel, its parameters and the transform of columns for a target."""

from gramian.tuning.blocks import BlockTransformer
from gramian.tuning.tune import tune

__all__ = ["BlockTransformer", "tune"]

"""Choose the kernel, its parameters and the transform of columns for a target."""

from gramian.tuning.tune import tune

__all__ = ["tune"]

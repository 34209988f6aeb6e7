"""The memory of a fit: named amounts, and the step that needs the most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter

from gramian.backend import config

__all__ = ["MemoryEstimate"]

# Samples of rows and other small arrays take a few megabytes whatever the budget, so a fit below
# this is never refused.
LEAST_BUDGET = 16 * 1024**2

Amounts = Mapping[str, int]  # bytes by purpose


def total(amounts: Amounts) -> int:
    """Return the bytes for all purposes."""
    return sum(amounts.values())


class MemoryEstimate(int):
    """A number of bytes, with a breakdown of what they are for.

    Attributes
    ----------
    parts : dict of str to int
        The bytes of each item in memory at the peak, largest first.

    See Also
    --------
    set_config : sets the memory budget.
    MemoryBudgetError : raised if the budget is too small.

    Examples
    --------
    >>> from gramian import KernelKMeans, Nystroem, config_context
    >>> model = KernelKMeans(10, kernel=Nystroem("rbf", 400))
    >>> with config_context(memory_budget="1GB", n_threads=2):
    ...     need = model.estimate_memory(1_000_000, 784, dtype="float32")
    >>> need <= 1e9, next(iter(need.parts))
    (True, 'features of 5... % of the rows')
    """

    parts: dict[str, int]

    def __new__(cls, parts: Amounts) -> MemoryEstimate:
        self = super().__new__(cls, total(parts))
        kept = {name: int(size) for name, size in parts.items() if int(size)}
        self.parts = dict(sorted(kept.items(), key=itemgetter(1), reverse=True))
        return self

    @classmethod
    def peak(cls, steps: Iterable[Amounts], always: Amounts | None = None) -> MemoryEstimate:
        """Return the estimate of the step that needs the most, with what all of them need."""
        most: Amounts = max(steps, key=total, default={})
        return cls({**(always or {}), **most})

    def __str__(self) -> str:
        parts = ", ".join(
            f"{name} {config.format_bytes(size)}" for name, size in self.parts.items()
        )
        return f"{config.format_bytes(int(self))}: {parts}" if parts else "0 B"

    __repr__ = __str__

    def __reduce__(self) -> tuple[type, tuple[dict[str, int]]]:
        return MemoryEstimate, (self.parts,)

    def fits(self) -> bool:
        """Whether a fit that needs this much is allowed."""
        return self <= max(config.memory_budget(), LEAST_BUDGET)

    def check(self, what: str, advice: str) -> None:
        """Raise an error if this exceeds the memory budget."""
        if not self.fits():
            raise config.MemoryBudgetError(
                f"The memory budget of {config.format_bytes(config.memory_budget())} does "
                f"not allow {what}, which needs {self}. {advice}, or raise the budget with "
                "gramian.set_config(memory_budget=...)."
            )

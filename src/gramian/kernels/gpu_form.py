"""The form in which a GPU computes a kernel: its pairing, its scale, and its profile in Triton.

A kernel defines its profile once, in ``_profile``. To derive the GPU program, that method is run on
a :class:`Traced` value instead of a tile, which records each operation as one line of Triton. A
profile that uses only arithmetic and the functions in ``FUNCTIONS`` therefore runs on a GPU without
further work. Any other profile, such as one that calls SciPy, has no program: torch computes its
kernel values and stores them tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, isfinite, log2
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gramian.backend.typing import Array

__all__ = ["GpuForm", "traced_form"]

NUMBERS = ("n0", "n1", "n2", "n3")  # arguments of a program, set when it runs

# NumPy functions written in Triton.
FUNCTIONS = {
    "absolute": "tl.abs({})",
    "add": "{} + {}",
    "cos": "tl.cos({})",
    "divide": "{} / {}",
    "exp": "tl.exp({})",
    "exp2": "tl.exp2({})",
    "log": "tl.log({})",
    "log1p": "tl.log(1.0 + {})",
    "log2": "tl.log2({})",
    "maximum": "tl.maximum({}, {})",
    "minimum": "tl.minimum({}, {})",
    "multiply": "{} * {}",
    "negative": "-{}",
    "positive": "{}",
    "reciprocal": "1.0 / {}",
    "sin": "tl.sin({})",
    "sqrt": "tl.sqrt({})",
    "square": "{0} * {0}",
    "subtract": "{} - {}",
    "tanh": "1.0 - 2.0 / (1.0 + tl.exp(2.0 * {}))",
}


class GpuForm(NamedTuple):
    """A profile of a scaled pairing, as ``backend.triton_programs`` expects it."""

    pairing: str  # "squared", "cityblock" or "inner"
    scale: float
    profile: str  # the source of a function ``profile(u, n0, n1, n2, n3)`` in Triton
    numbers: tuple[float, ...]  # n0 to n3

    def values(self, pairings: np.ndarray) -> np.ndarray:
        """Evaluate the program's text with NumPy for these values of the pairing.

        Tests use it, because it needs neither Triton nor a GPU.
        """
        space: dict[str, Any] = {"tl": np}
        exec(self.profile, space)
        return space["profile"](self.scale * pairings, *self.numbers)


def traced_form(pairing: str, scale: float, profile: Callable[[Array], Array]) -> GpuForm | None:
    """Return the form of a kernel with this profile; None if Triton lacks one of its steps."""
    lines: list[str] = []
    numbers: list[float] = []
    try:
        result = profile(Traced("u", lines, numbers))
    except (TypeError, AttributeError):  # an operation that a traced value lacks
        return None
    if not isinstance(result, Traced):
        return None
    if lines == ["t0 = tl.exp(u)"]:  # GPUs have a base-2 exponential in hardware
        scale, lines = scale * log2(e), ["t0 = tl.exp2(u)"]
    body = "".join(f"    {line}\n" for line in [*lines, f"return {result.name}"])
    source = f"def profile(u, {', '.join(NUMBERS)}):\n{body}"
    unused = len(NUMBERS) - len(numbers)
    return GpuForm(pairing, scale, source, (*numbers, *[0.0] * unused))


class Traced(NDArrayOperatorsMixin):
    """Takes the place of a tile in a profile, and records the operations on it.

    Like an array, it can be changed in place: it then takes the name of the new value.
    """

    def __init__(self, name: str, lines: list[str], numbers: list[float]) -> None:
        self.name = name
        self._lines = lines
        self._numbers = numbers

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise TypeError("A traced value has no numbers.")

    def __bool__(self) -> bool:
        raise TypeError("A GPU program cannot branch on its values.")

    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: Any,
        out: tuple[Traced] | None = None,
        **options: object,
    ) -> Traced:
        numeric = all(isinstance(value, Traced | Real) for value in inputs)
        if method != "__call__" or options or not numeric:
            return NotImplemented
        if ufunc is np.power:
            name = self._power(*inputs)
        elif ufunc.__name__ in FUNCTIONS:
            terms = [self._term(value) for value in inputs]
            name = self._line(FUNCTIONS[ufunc.__name__].format(*terms))
        else:
            return NotImplemented
        if out is None:
            return Traced(name, self._lines, self._numbers)
        out[0].name = name
        return out[0]

    def _line(self, text: str) -> str:
        for line in self._lines:  # squaring a root undoes it
            root, _, value = line.partition(" = ")
            if text == f"{root} * {root}" and value.startswith("tl.sqrt("):
                return value[len("tl.sqrt(") : -1]
        name = f"t{len(self._lines)}"
        self._lines.append(f"{name} = {text}")
        return name

    def _term(self, value: Traced | float) -> str:
        """Write integers into the program; pass other numbers to it, as long as there are slots.

        Kernels that differ only in ``alpha`` or ``coef0`` can then share a program.
        """
        if isinstance(value, Traced):
            return value.name
        number = float(value)
        if not isfinite(number):
            raise TypeError(f"A GPU program cannot contain {number}.")
        if number.is_integer() or (
            number not in self._numbers and len(self._numbers) == len(NUMBERS)
        ):
            return f"({number!r})" if number < 0 else repr(number)
        if number not in self._numbers:
            self._numbers.append(number)
        return NUMBERS[self._numbers.index(number)]

    def _power(self, base: Traced, exponent: float) -> str:
        if not isinstance(base, Traced) or isinstance(exponent, Traced):
            raise TypeError("In a GPU program, exponents of powers must be numbers.")
        exponent = float(exponent)
        if not exponent.is_integer():
            return self._line(f"tl.exp2({self._term(exponent)} * tl.log2({base.name}))")
        if exponent < 0:
            return self._line(f"1.0 / {self._power(base, -exponent)}")
        if exponent == 0:
            return self._line(f"{base.name} * 0.0 + 1.0")
        return self._whole_power(base.name, int(exponent))

    def _whole_power(self, base: str, exponent: int) -> str:
        """Raise to an integer power by squaring: a negative base has no logarithm."""
        if exponent == 1:
            return base
        half = self._whole_power(self._line(f"{base} * {base}"), exponent // 2)
        return self._line(f"{half} * {base}") if exponent % 2 else half

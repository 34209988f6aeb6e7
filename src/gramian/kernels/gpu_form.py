"""A kernel as a GPU computes it: its pairing, its scale, and its profile in Triton's language.

A kernel writes its profile once, in ``_profile``. To get the program for a GPU, that method is run
on a :class:`Traced` value in place of a tile: it records each operation as one line of Triton. So a
profile made of arithmetic and of the functions in ``FUNCTIONS`` runs on a GPU without further work.
Any other profile, such as one that calls SciPy, has no program: its kernel values are computed by
torch and stored tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, isfinite, log2
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

__all__ = ["GpuForm", "traced_form"]

NUMBERS = ("n0", "n1", "n2", "n3")  # what a program can be given when it runs

# NumPy's functions in Triton's language.
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
    """A profile of a scaled pairing, as ``backend.triton_programs`` takes it."""

    pairing: str  # "squared", "cityblock" or "inner"
    scale: float
    profile: str  # the source of a function ``profile(u, n0, n1, n2, n3)`` in Triton's language
    numbers: tuple[float, ...]  # n0 to n3

    def values(self, pairings: np.ndarray) -> np.ndarray:
        """The kernel for these values of the pairing, computed by NumPy from the program's text.

        For tests, which then need neither Triton nor a GPU.
        """
        space: dict[str, Any] = {"tl": np}
        exec(self.profile, space)
        return space["profile"](self.scale * pairings, *self.numbers)


def traced_form(pairing: str, scale: float, profile: Callable[[Any], Any]) -> GpuForm | None:
    """The form of a kernel with this profile; None if some step of it has no line of Triton."""
    lines: list[str] = []
    numbers: list[float] = []
    try:
        result = profile(Traced("u", lines, numbers))
    except (TypeError, AttributeError):  # it does what a traced value cannot
        return None
    if not isinstance(result, Traced):
        return None
    if lines == ["t0 = tl.exp(u)"]:  # the base-2 exponential is the hardware's own
        scale, lines = scale * log2(e), ["t0 = tl.exp2(u)"]
    body = "".join(f"    {line}\n" for line in [*lines, f"return {result.name}"])
    source = f"def profile(u, {', '.join(NUMBERS)}):\n{body}"
    unused = len(NUMBERS) - len(numbers)
    return GpuForm(pairing, scale, source, (*numbers, *[0.0] * unused))


class Traced(NDArrayOperatorsMixin):
    """Stands for a tile in a profile, and writes down what is done with it.

    Like an array it can be changed in place: it then takes the name of the new value.
    """

    def __init__(self, name: str, lines: list[str], numbers: list[float]) -> None:
        self.name = name
        self._lines = lines
        self._numbers = numbers

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("A traced value has no numbers.")

    def __bool__(self) -> bool:
        raise TypeError("A program for a GPU takes no decision on its values.")

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
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
        for line in self._lines:  # the square of a root is what it is the root of
            root, _, value = line.partition(" = ")
            if text == f"{root} * {root}" and value.startswith("tl.sqrt("):
                return value[len("tl.sqrt(") : -1]
        name = f"t{len(self._lines)}"
        self._lines.append(f"{name} = {text}")
        return name

    def _term(self, value: Any) -> str:
        """A whole number is part of the program; others are passed to it while there is room.

        So a kernel with another ``alpha`` or ``coef0`` needs no program of its own.
        """
        if isinstance(value, Traced):
            return value.name
        number = float(value)
        if not isfinite(number):
            raise TypeError(f"A program for a GPU cannot hold {number}.")
        if number.is_integer() or (
            number not in self._numbers and len(self._numbers) == len(NUMBERS)
        ):
            return f"({number!r})" if number < 0 else repr(number)
        if number not in self._numbers:
            self._numbers.append(number)
        return NUMBERS[self._numbers.index(number)]

    def _power(self, base: Any, exponent: Any) -> str:
        if not isinstance(base, Traced) or isinstance(exponent, Traced):
            raise TypeError("A program for a GPU takes powers with a number as exponent.")
        exponent = float(exponent)
        if not exponent.is_integer():
            return self._line(f"tl.exp2({self._term(exponent)} * tl.log2({base.name}))")
        if exponent < 0:
            return self._line(f"1.0 / {self._power(base, -exponent)}")
        if exponent == 0:
            return self._line(f"{base.name} * 0.0 + 1.0")
        return self._whole_power(base.name, int(exponent))

    def _whole_power(self, base: str, exponent: int) -> str:
        """By squaring, since logarithms of negative numbers do not exist."""
        if exponent == 1:
            return base
        half = self._whole_power(self._line(f"{base} * {base}"), exponent // 2)
        return self._line(f"{half} * {base}") if exponent % 2 else half

"""Check parameters, with one wording for all errors: what was expected, and what was given."""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Real
from typing import TypeGuard

from gramian.backend.wording import shown


def is_real(value: object) -> TypeGuard[float]:
    """Whether value is a finite real number (True and False are not)."""
    if type(value) is float or type(value) is int:  # asking an abstract class takes longer
        return isfinite(value)
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def real(owner: object, name: str, value: object) -> float:
    if not is_real(value):
        raise ValueError(f"{name} of {_name(owner)} must be a number; got {shown(value)}.")
    return float(value)


def positive(owner: object, name: str, value: object) -> float:
    if not is_real(value) or value <= 0:
        raise ValueError(f"{name} of {_name(owner)} must be a positive number; got {shown(value)}.")
    return float(value)


def not_negative(owner: object, name: str, value: object) -> float:
    if not is_real(value) or value < 0:
        raise ValueError(
            f"{name} of {_name(owner)} must be a number, at least 0; got {shown(value)}."
        )
    return float(value)


def positive_integer(owner: object, name: str, value: object) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"{name} of {_name(owner)} must be a positive integer; got {shown(value)}."
        )
    return int(value)


def choice(owner: object, name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} of {_name(owner)} must be one of {names}; got {shown(value)}.")
    return value


def _name(owner: object) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__

"""Which approximations to compare: those that support the kernel, or those requested."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

from sklearn.base import clone

from gramian import approximations
from gramian.analysis.comparison.source import changed_parameters
from gramian.analysis.report.colours import LOOKS
from gramian.approximations import Approximation
from gramian.kernels import Kernel
from gramian.rows import Rows


class Method(NamedTuple):
    """A named approximation whose number of features is varied."""

    name: str
    approximation: Approximation

    def sized(self, kernel: Kernel, size: int, seed: int) -> Approximation:
        """Return an unfitted copy of the given size."""
        return _sized(self.approximation, kernel, size, seed)


def _sized(approximation: Approximation, kernel: Any, size: int, seed: int) -> Approximation:
    made = clone(approximation)
    if _is_sized(made):
        return made.set_params(kernel=kernel, n_components=size, random_state=seed)
    # It wraps another one, which has features.
    return made.set_params(kernel=_sized(made.kernel, kernel, size, seed), random_state=seed)


def _is_sized(approximation: Approximation) -> bool:
    return "n_components" in approximation.get_params(deep=False)


def _catalogue() -> tuple[Method, ...]:
    """What the exported classes say of themselves: those with colours of their own come first."""
    found = {
        name: Method(name, cls(**parameters))
        for cls in vars(approximations).values()
        if isinstance(cls, type) and issubclass(cls, Approximation)
        for name, parameters in vars(cls).get("compared", {}).items()
    }
    return tuple(found[name] for name in dict.fromkeys([*LOOKS, *sorted(found)]))


CATALOGUE = _catalogue()
NAMES = tuple(method.name for method in CATALOGUE)


def chosen(given: Any, kernel: Kernel, rows: Rows) -> list[Method]:
    """Resolve ``approximations=`` of :func:`gramian.compare`, for a kernel without rules."""
    if given is None:
        methods = [
            _adapted(method, kernel)
            for method in CATALOGUE
            if method.approximation.serves(kernel, rows)
        ]
    elif isinstance(given, Mapping):
        methods = [Method(str(name), _checked(one)) for name, one in given.items()]
    else:
        several = [given] if isinstance(given, str | Approximation) else list(given)
        methods = [_method(one, kernel) for one in several]
    if not methods:
        raise ValueError("approximations of compare must name at least one; got none.")
    names = [method.name for method in methods]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"approximations of compare must differ; got {', '.join(map(repr, twice))} twice. "
            "Name them: approximations={'one': ..., 'other': ...}."
        )
    return methods


def _method(given: Any, kernel: Kernel) -> Method:
    if not isinstance(given, str):
        return Method(_name(_checked(given)), given)
    known = {_plain(method.name): method for method in CATALOGUE}
    if _plain(given) not in known:
        raise ValueError(
            f"Unknown approximation {given!r}. The names are: {', '.join(NAMES)}. Or pass an "
            "Approximation, such as Nystroem(landmarks='greedy')."
        )
    return _adapted(known[_plain(given)], kernel)


def _plain(name: str) -> str:
    """Remove accents, spaces, dashes and capitals; 'oe' is the same as 'ö'."""
    name = unicodedata.normalize("NFKD", name.lower().replace("oe", "o"))
    return "".join(letter for letter in name if letter.isalnum())


def _checked(given: Any) -> Approximation:
    inner = given
    while isinstance(inner, Approximation):
        if _is_sized(inner):
            return given
        inner = inner.kernel
    raise TypeError(
        "approximations of compare must be names or Approximations with a parameter n_components, "
        f"such as 'MEKA' or Nystroem(landmarks='greedy'); got {given!r:.100}."
    )


def _name(approximation: Approximation) -> str:
    """Return the class name and the parameters that differ from their defaults."""
    own = ("kernel", "n_components", "random_state")
    changed = changed_parameters(approximation).items()
    said = [f"{name}={value!r:.40}" for name, value in changed if name not in own]
    return type(approximation).__name__ + (f" {', '.join(said)}" if said else "")


def _adapted(method: Method, kernel: Kernel) -> Method:
    return method._replace(approximation=method.approximation.adapted(kernel))

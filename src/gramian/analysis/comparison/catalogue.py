"""Which approximations to compare: those that support the kernel, or those requested."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gramian.analysis.comparison.source import changed_parameters
from gramian.approximations import (
    BKA,
    CRAFT,
    MEKA,
    Approximation,
    Nystroem,
    RandomFourier,
    RandomMaclaurin,
    TensorSketch,
)
from gramian.approximations.spectra import laws
from gramian.backend import array_ops
from gramian.kernels import Kernel
from gramian.rows import Rows


class Method(NamedTuple):
    """A named approximation whose number of features is varied."""

    name: str
    approximation: Approximation

    def sized(self, kernel: Kernel, size: int, seed: int) -> Approximation:
        """Return an unfitted copy of the given size."""
        parameters = {"kernel": kernel, "n_components": size, "random_state": seed}
        return clone(self.approximation).set_params(**parameters)


CATALOGUE = (
    Method("Nyström uniform", Nystroem(landmarks="uniform")),
    Method("Nyström k-means", Nystroem(landmarks="kmeans")),
    Method("Nyström RPCholesky", Nystroem(landmarks="rpcholesky")),
    Method("MEKA", MEKA()),
    Method("BKA", BKA()),
    Method("Random Fourier", RandomFourier(frequencies="orthogonal")),
    Method("TensorSketch", TensorSketch()),
    Method("CRAFT", CRAFT()),
    Method("Random Maclaurin", RandomMaclaurin()),
)
NAMES = tuple(method.name for method in CATALOGUE)


def chosen(given: Any, kernel: Kernel, rows: Rows) -> list[Method]:
    """Resolve ``approximations=`` of :func:`gramian.compare`, for a kernel without rules."""
    if given is None:
        methods = [_suited(method, kernel) for method in CATALOGUE if _serves(method, kernel, rows)]
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
    return _suited(known[_plain(given)], kernel)


def _plain(name: str) -> str:
    """Remove accents, spaces, dashes and capitals; 'oe' is the same as 'ö'."""
    name = unicodedata.normalize("NFKD", name.lower().replace("oe", "o"))
    return "".join(letter for letter in name if letter.isalnum())


def _checked(given: Any) -> Approximation:
    if isinstance(given, Approximation) and "n_components" in given.get_params(deep=False):
        return given
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


def _serves(method: Method, kernel: Kernel, rows: Rows) -> bool:
    match method.approximation:
        case Nystroem(landmarks="kmeans"):
            return _are_vectors(kernel, rows) and not array_ops.issparse(rows.take([0]))
        case Nystroem():
            return True
        case MEKA() | BKA():
            return kernel.stationary and _are_vectors(kernel, rows)
        case RandomFourier():
            return _has_frequencies(kernel)
    return _is_series(kernel)


def _suited(method: Method, kernel: Kernel) -> Method:
    """Use orthogonal frequencies if they are unbiased for this kernel, else independent ones."""
    if isinstance(method.approximation, RandomFourier) and _has_frequencies(kernel):
        radial = all(law.is_radial for law in laws(kernel))
        kind = "orthogonal" if radial else "iid"
        return method._replace(approximation=RandomFourier(frequencies=kind))
    return method


def _are_vectors(kernel: Kernel, rows: Rows) -> bool:
    return not (rows.are_objects or kernel.is_matrix)


def _has_frequencies(kernel: Kernel) -> bool:
    try:
        return bool(laws(kernel))
    except ValueError:
        return False


def _is_series(kernel: Kernel) -> bool:
    coefficients = kernel.maclaurin(8)
    return coefficients is not None and bool(np.all(coefficients >= 0))

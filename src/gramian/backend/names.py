"""Classes by the names that users may type in place of an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def by_name(things: Mapping[str, object], base: type) -> dict[str, type]:
    """The subclasses of ``base`` among these, each under the ``names`` that it states itself."""
    classes = {thing for thing in things.values() if isinstance(thing, type)}
    named = {
        name: cls
        for cls in classes
        if issubclass(cls, base)
        for name in vars(cls).get("names", ())  # not those of a class that it derives from
    }
    return dict(sorted(named.items()))


def unknown(what: str, name: str, names: Iterable[str]) -> ValueError:
    """The error for a name that is none of the names."""
    names = list(names)
    near = get_close_matches(name.lower(), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"Unknown {what} {name!r}.{hint} The names are: {', '.join(names)}.")

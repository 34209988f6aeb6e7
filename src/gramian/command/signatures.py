"""Make command-line options from the signatures and docstrings of classes and functions."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import gramian
from gramian.backend.typing import T
from gramian.command.errors import UsageError

Value: TypeAlias = "str | int | float | bool | tuple[str, object] | None"  # of a parameter

ELSEWHERE = ("kernel", "random_state")  # these have their own options
DEST = "parameter_"  # prefix of parameter names among the parsed arguments
VARIES = object()  # the default of a parameter that several classes have, if theirs differ


class Parameter(NamedTuple):
    """A parameter, as described by its signature and docstring."""

    name: str
    default: object
    kind: str  # the type in the docstring
    annotation: str
    text: str

    @property
    def words(self) -> list[str]:
        """The words that it accepts."""
        return re.findall(r'"([^"]+)"', self.kind)

    @property
    def types(self) -> set[str]:
        said = self.annotation if self.annotation != "Any" else re.sub(r'"[^"]*"', "", self.kind)
        types = set(re.findall(r"\b(int|float|bool|str|tuple|None)\b", said))
        if "optional" in self.kind or re.search(r"\bNone\b", self.kind):
            types.add("None")
        if self.words and "{" in self.kind:  # these words and no others
            types.discard("str")
        return types

    def value(self, text: str) -> Value:
        """Convert text to a value; ``ValueError`` if the parameter does not accept it."""
        types = self.types
        if text in self.words:
            return text
        if text.lower() == "none" and "None" in types:
            return None
        if "bool" in types and text.lower() in ("true", "false"):
            return text.lower() == "true"
        number = _number(text)
        if number is not None and types & {"int", "float"}:
            if isinstance(number, int) or "float" in types:
                return number
        elif "tuple" in types and ":" in text:  # such as percentile:10
            word, _, rest = text.partition(":")
            numbers = [_number(one) for one in rest.split(",")]
            if None not in numbers:
                return (word, numbers[0] if len(numbers) == 1 else numbers)
        elif "str" in types:
            return text
        near = get_close_matches(text, self.words, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"expected {self.takes}; got {text!r}{hint}")

    @property
    def takes(self) -> str:
        """The accepted values, in words."""
        types, kinds = self.types, list(self.words)
        if types & {"int", "float"}:
            kinds.append("a number" if "float" in types else "a whole number")
        kinds += ["WORD:NUMBER,..."] * ("tuple" in types) + ["a name"] * ("str" in types)
        kinds += ["true", "false"] * ("bool" in types) + ["none"] * ("None" in types)
        return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)

    def help(self) -> str:
        said = re.sub(r"\s+", " ", re.sub(r":\w+:`~?\.?([^`]*)`|``([^`]*)``", r"\1\2", self.text))
        said = f"{self.takes}. {said}".strip()
        if self.default is VARIES:
            return f"{said} The default depends on the loss.".replace("%", "%%")
        default = str(self.default).lower() if self.default in (None, True, False) else self.default
        return f"{said} Default: {default}.".replace("%", "%%")


def _number(text: str) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def parameters(*owners: Callable[..., object], skip: Iterable[str] = ()) -> dict[str, Parameter]:
    """Collect the parameters of classes or functions; the first docstring wins."""
    found: dict[str, Parameter] = {}
    for owner in owners:
        documented, annotated = _documented(owner), _annotated(owner)
        for name, one in inspect.signature(owner).parameters.items():
            if name in found and found[name].default != one.default:
                found[name] = found[name]._replace(default=VARIES)
            if name in found or name in skip:
                continue
            kind, text = documented[name]
            found[name] = Parameter(name, one.default, kind, annotated.get(name, "Any"), text)
    return found


def _annotated(owner: Callable[..., object]) -> dict[str, str]:
    """Return the annotations of a signature, with aliases resolved; "Any" for open ones."""
    hints = get_type_hints(owner.__init__ if inspect.isclass(owner) else owner)
    return {name: "Any" if "Any" in str(hint) else str(hint) for name, hint in hints.items()}


def _documented(owner: Callable[..., object]) -> dict[str, tuple[str, str]]:
    """Read the Parameters section of a docstring: type and text for each name."""
    doc = inspect.getdoc(owner) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", doc, flags=re.S | re.M)
    found: dict[str, tuple[str, str]] = {}
    entries = re.split(r"^(?=\S)", section[1], flags=re.M) if section else []
    for entry in entries:
        head, _, text = entry.partition("\n")
        names, colon, kind = head.partition(" : ")
        other = re.match(r"\s*As in :class:`(\w+)`", text)
        for name in names.split(", "):
            if colon:
                kind = re.sub(r",?\s*default=.*", "", kind).strip()
                found[name] = kind, inspect.cleandoc(text)
            elif other:  # documented by another class
                found[name] = _documented(getattr(gramian, other[1]))[name]
    return found


def add_options(parser: argparse.ArgumentParser, title: str, found: dict[str, Parameter]) -> None:
    """Add one option per parameter; options that are not used keep the signature's default."""
    group = parser.add_argument_group(title)
    for name, parameter in found.items():
        option = f"--{name.replace('_', '-')}"
        given: dict[str, Any] = {"dest": DEST + name, "default": argparse.SUPPRESS}
        if parameter.types == {"bool"}:
            given["action"] = argparse.BooleanOptionalAction
        else:
            given |= {"type": _reader(parameter), "metavar": name.rpartition("_")[2].upper()}
        group.add_argument(option, help=parameter.help(), **given)


def _reader(parameter: Parameter) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        try:
            return parameter.value(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def given(args: argparse.Namespace, owner: Callable[..., object]) -> dict[str, Value]:
    """Return the options that were used; an error if ``owner`` has no such parameter."""
    has = inspect.signature(owner).parameters
    options = {
        name.removeprefix(DEST): value
        for name, value in vars(args).items()
        if name.startswith(DEST)
    }
    for name in options:
        if name not in has:
            raise UsageError(
                f"--{name.replace('_', '-')} does not apply: {owner.__name__} has no {name}."
            )
    return options


def by_name(text: str, known: Mapping[str, type], what: str) -> type:
    """Look up a name; the error suggests the nearest one."""
    name = text.lower().replace("_", "-")
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"Unknown {what} {text!r}.{hint} The names are: {', '.join(known)}.")


def from_text(text: str, known: Mapping[str, type[T]], what: str, **fixed: object) -> T:
    """Build an object from ``NAME`` or ``NAME:PARAMETER=VALUE,PARAMETER=VALUE``."""
    name, _, rest = text.partition(":")
    cls = by_name(name, known, what)
    takes = parameters(cls, skip=(*ELSEWHERE, *fixed))
    values = dict(fixed)
    for part in rest.split(",") if rest else []:
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(
                f"Expected {name}:PARAMETER=VALUE for the {what}; got {text!r}. Its parameters: "
                f"{', '.join(takes) or 'none'}."
            )
        key = key.strip().replace("-", "_")
        if key not in takes:
            near = get_close_matches(key, takes, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"The {what} {name} has no parameter {key!r}.{hint} It has: "
                f"{', '.join(takes) or 'none'}."
            )
        try:
            values[key] = takes[key].value(value.strip())
        except ValueError as error:
            raise UsageError(f"{key} of the {what} {name}: {error}.") from error
    return cls(**values)

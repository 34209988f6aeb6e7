"""Recognise how a text table is written: its encoding, separator, signs in numbers and header."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

# What stands for "no value", in any case; an empty cell always does.
MISSING = ("na", "n/a", "#n/a", "nan", "null", "none", "?", "-", "--", "nil", "missing")
SEPARATORS = ",;\t|"
WHITE_SPACE = " "  # the separator that stands for any number of spaces and tabs
CURRENCIES = "$€£¥₹"
SPACES = " \u00a0\u202f'\u2019"  # which separate thousands
SAMPLE_LINES = 300
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", ".": "point", " ": "space"}
NAMES |= {"\u00a0": "space", "\u202f": "space", "'": "apostrophe", "\u2019": "apostrophe"}

MINUS = "\u2212"
_UNITS = rf"(?:[{CURRENCIES}%]|EUR|USD|GBP|CHF|JPY)"
_SIGN = rf"[+{MINUS}-]"
# Negative numbers of accountants, without their units: (12) and 12-.
_PARENTHESES = r"^\((.*)\)$"
_MINUS_LAST = rf"^(.*\d.*)[{MINUS}-]$"
_GAP = re.compile(r'("[^"]*")|[ \t]+')
_PLAIN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|\s*[+-]?inf(inity)?\s*", re.I)
_NOT_OF_WINDOWS = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.(\d{2}|\d{4})|\d{4}\.\d{1,2}\.\d{1,2}")
_BOOLEAN = re.compile(r"true|false", re.I)


@dataclass(frozen=True)
class Dialect:
    """How a text table is written.

    Attributes
    ----------
    separator, decimal, quote : str
        The separator " " stands for any number of spaces and tabs.
    thousands : str
        The sign between groups of three digits, or "".
    currency : str
        Units such as € that numbers have, or "".
    negative : str
        How negative numbers are written other than with a minus in front, in words, or "".
    encoding : str
        As Python calls it.
    names : tuple of str
        The names of the columns, or their numbers.
    named : bool
        Whether the file names them.
    skip : int
        Lines before the first row.
    """

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    currency: str = ""
    negative: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    names: tuple[str, ...] = ()
    named: bool = True
    skip: int = 0

    def describe(self) -> str:
        """Say in a few words how the table is written."""
        said = [
            f"{NAMES.get(self.separator, repr(self.separator))}-separated",
            f"decimal {NAMES.get(self.decimal, self.decimal)}",
        ]
        if self.thousands:
            said.append(f"thousands {NAMES.get(self.thousands, self.thousands)}")
        if self.currency:
            said.append(f"units {self.currency}")
        if self.negative:
            said.append(f"negative numbers {self.negative}")
        encoding = {"utf-8-sig": "UTF-8 with BOM", "cp1252": "Latin-1", "latin-1": "Latin-1"}
        said.append(encoding.get(self.encoding, self.encoding.upper()))
        if self.quote != '"':
            said.append(f"quotes {self.quote}")
        if not self.named:
            said.append("no header")
        return ", ".join(said)

    def unified(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines with a single sign between entries."""
        return map(_squeezed, lines) if self.separator == WHITE_SPACE else iter(lines)


def _squeezed(line: str) -> str:
    """Return a line with one space between entries, and none before or after them."""
    end = line[len(line.rstrip("\r\n")) :]
    return _GAP.sub(lambda gap: gap[1] or " ", line.strip()) + end


def encoding_of(chunks: Iterable[bytes]) -> str:
    """Return the encoding of a text, from all of its bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    utf8 = True
    for i, chunk in enumerate(chunks):
        if i == 0:
            known = _marked(chunk)
            if known:
                return known
        if utf8 and not (chunk.isascii() and decoder.getstate()[0] == b""):
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                utf8 = False
        if not utf8 and any(byte in chunk for byte in _NOT_OF_WINDOWS):
            return "latin-1"
    return "utf-8" if utf8 else "cp1252"  # Latin-1 as Windows writes it, with the euro sign


def _marked(start: bytes) -> str:
    """Return the encoding that the first bytes give away, or ""."""
    if start.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [start[i:2000:2].count(0) for i in (0, 1)]
    half = len(start[:2000]) // 2
    if half and max(zeros) > 0.4 * half:  # every other byte of Western text is 0
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    return ""


def recognise(
    lines: list[str],
    encoding: str,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
) -> Dialect:
    """Return the dialect of a table from its first lines; what is given is not looked for."""
    hint = re.fullmatch(r"sep=(.)\s*", lines[0]) if lines else None  # as Excel writes it
    before = 1 if hint else 0
    quote = _quote(lines[before:])
    separator = separator or (hint[1] if hint else _separator(lines[before:], quote))
    unified = Dialect(separator).unified(lines[before:])
    reader = csv.reader(unified, delimiter=separator, quotechar=quote)
    parsed = [(before + reader.line_num, row) for row in reader if any(row)]
    if not parsed:
        raise ValueError("it has no entries")
    width = Counter(len(row) for _, row in parsed[1:] or parsed).most_common(1)[0][0]
    while header is not False and _is_title([row for _, row in parsed[:3]], width):
        before = parsed.pop(0)[0]
    skip, first = parsed[0]
    rows = [row for _, row in parsed[1:]]
    dialect = Dialect(separator, quote=quote, encoding=encoding)
    dialect = with_signs(dialect, [cell for row in rows for cell in row] or first, decimal)
    named = is_header(first, dialect) if header is None else header
    if not named:
        skip = before
    names = tuple(_names(first, rows, width)) if named else tuple(map(str, range(width)))
    return replace(dialect, names=names, named=named, skip=skip)


def _is_title(rows: list[list[str]], width: int) -> bool:
    """Whether the first line is a title: one cell before a header, which has no numbers."""
    if len(rows) < 3 or sum(map(bool, rows[0])) != 1 or width < 2:
        return False
    numbers = [any(map(is_number_like, row)) for row in rows]
    return len(rows[1]) == width and numbers[1:] == [False, True]


def _names(first: list[str], rows: list[list[str]], width: int) -> list[str]:
    """Return a name for each column: "" for row numbers, a number for others without a name."""
    first = [name.strip() or (str(i) if i else "") for i, name in enumerate(first)]
    if len(first) == width - 1 and any(row[-1:] != [""] for row in rows):
        return ["", *first]  # R names the columns, but not that of row names
    return first + [str(i) for i in range(len(first), width)]


def _quote(lines: list[str]) -> str:
    text = "\n".join(lines)
    single = re.findall(r"(?:^|[,;\t|])'[^'\n]*'(?=$|[,;\t|])", text, flags=re.M)
    return "'" if '"' not in text and len(single) >= max(2, len(lines) // 2) else '"'


def _separator(lines: list[str], quote: str) -> str:
    """Return the separator that cuts the lines into equally many, clean cells.

    White space is one if no other sign cuts every line into equally many cells.
    """
    best, found = (0.0, 0.0, 0), ","
    whole = False
    for separator in SEPARATORS:
        rows = [row for row in csv.reader(lines, delimiter=separator, quotechar=quote) if row]
        widths = Counter(map(len, rows))
        width, count = widths.most_common(1)[0] if rows else (1, 0)
        if width < 2:
            continue
        whole = whole or count == len(rows)
        cells = [cell for row in rows for cell in row]
        others = SEPARATORS.replace(separator, "")
        clean = sum(is_number_like(cell) or not any(o in cell for o in others) for cell in cells)
        rank = (round(count / len(rows), 1), round(clean / len(cells), 2), width)
        if rank > best:
            best, found = rank, separator
    return WHITE_SPACE if not whole and _has_white_space_between(lines, quote) else found


def _has_white_space_between(lines: list[str], quote: str) -> bool:
    """Whether white space cuts lines into equally many cells, at least one of them a number.

    The first line may lack the name of the first column, unless it is of a single one: that has
    numbers with spaces between thousands.
    """
    unified = Dialect(WHITE_SPACE).unified(lines)
    rows = [row for row in csv.reader(unified, delimiter=WHITE_SPACE, quotechar=quote) if any(row)]
    widths = {len(row) for row in rows[1:]}
    if len(widths) != 1 or len(rows[0]) < 2 or not 0 <= max(widths) - len(rows[0]) <= 1:
        return False
    return any(all(map(is_number_like, column)) for column in zip(*rows[1:], strict=True))


def is_number_like(cell: str) -> bool:
    """Whether a cell is a number in any country's notation."""
    cell = _bare(cell)
    if _DATE.fullmatch(cell):
        return False
    return re.fullmatch(rf"{_SIGN}?\d[\d.,{SPACES}]*([eE][+-]?\d+)?", cell) is not None


def _bare(cell: str) -> str:
    """Return the cell without units, and without what makes it negative to accountants."""
    cell = re.sub(rf"^{_UNITS}|{_UNITS}$", "", cell.strip()).strip()
    cell = re.sub(rf"{_PARENTHESES}|{_MINUS_LAST}", r"\1\2", cell)
    return re.sub(rf"^{_UNITS}|{_UNITS}$", "", cell.strip()).strip()


def with_signs(dialect: Dialect, cells: list[str], decimal: str | None = None) -> Dialect:
    """Add the signs that the numbers among the cells have."""
    numbers = [cell.strip() for cell in cells if is_number_like(cell)]
    units = Counter(unit for cell in numbers for unit in re.findall(_UNITS, cell))
    bare = [_bare(cell) for cell in numbers]
    decimal = decimal or _decimal(bare, dialect.separator)
    groups = "".join(sign for sign in ",." + SPACES if sign != decimal)
    end = rf"({re.escape(decimal)}\d*)?"
    thousands = Counter(
        found[1]
        for cell in bare
        if (found := re.fullmatch(rf"{_SIGN}?\d{{1,3}}([{groups}])\d{{3}}(\1\d{{3}})*{end}", cell))
    )
    most = thousands.most_common(1)
    return replace(
        dialect,
        decimal=decimal,
        thousands=most[0][0] if most else "",
        currency=" ".join(unit for unit, _ in units.most_common(3)),
        negative=_negative([re.sub(rf"{_UNITS}|\s", "", cell) for cell in numbers]),
    )


def _negative(numbers: list[str]) -> str:
    ways = {_PARENTHESES: "in parentheses", _MINUS_LAST: "with a minus at the end"}
    used = [said for way, said in ways.items() if any(re.match(way, cell) for cell in numbers)]
    return " and ".join(used)


def _decimal(numbers: list[str], separator: str) -> str:
    """Return the decimal sign: the last of two signs, or one that no group of three follows."""
    for cell in numbers:
        if "," in cell and "." in cell:
            return max(",.", key=cell.rfind)
    for sign in ".,":
        groups = re.compile(rf"{_SIGN}?[1-9]\d{{0,2}}(\{sign}\d{{3}})+")
        some = [cell for cell in numbers if sign in cell]
        if any(cell.count(sign) == 1 and not groups.fullmatch(cell) for cell in some):
            return sign
    several = any(cell.count(",") > 1 for cell in numbers)
    commas = any("," in cell for cell in numbers)
    if any(cell.count(".") > 1 for cell in numbers):
        return ","
    return "," if commas and separator == ";" and not several else "."


def is_header(line: list[str], dialect: Dialect | None = None) -> bool:
    """Whether the first line of a table holds column names: a line of numbers is a row.

    Unless they count the columns from 0, as pandas names columns that have no names.
    """
    if line == [str(i) for i in range(len(line))]:
        return True
    dialect = dialect or Dialect()
    numeric = [cell for cell in line if is_number(cell, dialect) or _BOOLEAN.fullmatch(cell)]
    return len(numeric) < len([cell for cell in line if not is_missing(cell)]) or not numeric


def is_missing(cell: str) -> bool:
    return cell.strip() == "" or cell.strip().lower() in MISSING


def is_number(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is a number in this dialect."""
    return re.fullmatch(number_pattern(dialect), cell) is not None


def is_plain_number(cell: str, decimal: str = ".") -> bool:
    """Whether pyarrow reads a cell as a number by itself."""
    if decimal != ".":
        if "." in cell:
            return False
        cell = cell.replace(decimal, ".")
    return _PLAIN.fullmatch(cell) is not None


def is_boolean(cell: str) -> bool:
    return _BOOLEAN.fullmatch(cell.strip()) is not None


def number_pattern(dialect: Dialect) -> str:
    """Return a regular expression of numbers with their units and groups of digits."""
    point = re.escape(dialect.decimal)
    whole = r"\d+"
    if dialect.thousands:
        whole = rf"(?:\d{{1,3}}(?:{re.escape(dialect.thousands)}\d{{3}})+|\d+)"
    unit = rf"(?:{_UNITS}\s*)?"
    amount = rf"{unit}(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?\s*{_UNITS}?"
    forms = rf"{_SIGN}?{amount}|\(\s*{amount}\s*\)|{amount}[{MINUS}-]"
    return rf"^\s*{unit}(?:{forms})\s*{_UNITS}?\s*$"


def minus_pattern() -> str:
    """Return a regular expression of negative numbers in other ways than with a minus in front.

    One of its groups holds the number without a sign. Units must be gone.
    """
    return rf"{_PARENTHESES}|{_MINUS_LAST}|^{MINUS}(.*)$"


def missing_values() -> list[str]:
    """Return every way of writing a missing value, for a reader that compares cells exactly."""
    words = {form for word in MISSING for form in (word, word.upper(), word.capitalize())}
    words |= {"NaN", "N/a", "-nan", "-NaN"}
    return ["", " ", "  ", *(before + word for word in sorted(words) for before in ("", " "))]


def first_lines(lines: Iterator[str]) -> list[str]:
    return list(islice(lines, SAMPLE_LINES))


def units_pattern() -> str:
    """Return a regular expression of the units that numbers may have."""
    return _UNITS

"""The container of a model file: NPY arrays and one JSON text in a ZIP archive.

Nothing here trusts the file. Sizes are compared with that of the file before anything is allocated,
entries may not overlap or be compressed, and an array is what its bytes allow.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from math import prod
from typing import Any, BinaryIO, NoReturn

import numpy as np

TEXT = "model.json"

# What a file may make this process hold, beside its arrays. Parts of the text become Python objects
# that are many times larger; together they stay below 200 MB.
MOST_TEXT = 16 * 1024**2  # bytes
MOST_NODES = 200_000  # objects and lists in the text
MOST_VALUES = 2_000_000  # numbers and strings in it
MOST_ARRAYS = 32_768
MOST_DIRECTORY = 4 * 1024**2  # bytes of the archive's own directory
MOST_EMPTY = 4 * 1024**2  # entries that an array without data would have beside its empty axis

_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(  # as NumPy writes it
    rb"\{'descr': '([<>|][biufcUSMm]\d{1,9}(?:\[\w{1,12}\])?)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
_CHUNK = 1024**2


def entry(name: str) -> zipfile.ZipInfo:
    """Return an entry that has the same bytes at any time."""
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def array_name(number: int) -> str:
    return f"{number}.npy"


def check_text(text: bytes, arrays: int = 0) -> None:
    """Refuse a text that would take too much memory; ``save`` and ``load`` have the same limits."""
    nodes, values = (sum(map(text.count, marks)) for marks in ((b"{", b"["), (b",", b":")))
    for size, most, what in (
        (arrays, MOST_ARRAYS, "arrays"),
        (len(text), MOST_TEXT, "bytes"),
        (nodes, MOST_NODES, "objects and lists"),
        (values, MOST_VALUES, "numbers and strings"),
    ):
        if size > most:
            raise ValueError(
                f"the description of the model has {size} {what}; at most {most} are allowed"
            )


class Archive:
    """The entries of an open model file: the text, and arrays by number."""

    def __init__(self, file: BinaryIO) -> None:
        self._size = os.fstat(file.fileno()).st_size
        _check_directory(file, self._size)
        self._archive = zipfile.ZipFile(file)
        entries = self._archive.infolist()
        self.names = {entry.filename for entry in entries}
        for one in entries:
            if one.compress_type != zipfile.ZIP_STORED or one.compress_size != one.file_size:
                raise ValueError(f"its entry {one.filename!r} must be stored without compression")
        if len(self.names) < len(entries) or sum(e.file_size for e in entries) > self._size:
            raise ValueError("its entries overlap")

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._size

    def text(self) -> dict[str, Any]:
        """Return what the JSON text says."""
        if self._archive.getinfo(TEXT).file_size > MOST_TEXT:
            raise ValueError(f"its {TEXT} has more than {MOST_TEXT} bytes")
        text = self._archive.read(TEXT)
        check_text(text)
        return json.loads(text.decode("ascii"), parse_constant=_no_constant)

    def check_names(self, count: int) -> None:
        """Check that the archive has the text and this many arrays, and nothing else."""
        if (
            type(count) is not int
            or count > MOST_ARRAYS
            or len(self.names) != count + 1
            or self.names != {TEXT, *map(array_name, range(count))}
        ):
            raise ValueError(f"its entries must be {TEXT} and {count} arrays")

    def array(self, number: int) -> np.ndarray:
        """Return the array with this number; the checksum of its entry is verified."""
        info = self._archive.getinfo(array_name(number))
        with self._archive.open(info) as part:
            start = part.read(len(_MAGIC) + 2)
            header = part.read(int.from_bytes(start[-2:], "little"))
            dtype, by_columns, shape = self._described(start, header)
            if len(start) + len(header) + dtype.itemsize * prod(shape) != info.file_size:
                raise ValueError(f"its array {number} does not have the stated size")
            out = np.empty(prod(shape), dtype)
            _fill(part, out)
        _check_values(out)
        return out.reshape(shape[::-1]).T if by_columns else out.reshape(shape)

    def _described(self, start: bytes, header: bytes) -> tuple[np.dtype, bool, tuple[int, ...]]:
        match = _HEADER.fullmatch(header) if start[:-2] == _MAGIC else None
        if match is None:
            raise ValueError(f"an array does not start as NumPy writes it, but with {header!r:.80}")
        dtype = np.dtype(match[1].decode())
        shape = tuple(int(size) for size in match[3].replace(b",", b" ").split())
        if dtype.itemsize * prod(shape) == 0:
            most = max(self._size, MOST_EMPTY)
            if max(dtype.itemsize, prod(size for size in shape if size)) > most:
                raise ValueError(f"an array without data has the shape {shape}")
        return dtype, match[2] == b"True", shape


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _check_directory(file: BinaryIO, size: int) -> None:
    """Check how much zipfile will read as the directory: it makes large objects of small entries.

    The end of the archive must be the end of the file, as ``save`` leaves it.
    """
    file.seek(max(0, size - 98))
    tail = file.read(98)
    stated = int.from_bytes(tail[-10:-6], "little")
    if tail[-22:-18] != b"PK\5\6":
        raise ValueError("it does not end where its archive ends")
    if tail[-42:-38] == b"PK\6\7":  # the end of an archive of more than 4 GB is in two more records
        if tail[:4] != b"PK\6\6" or int.from_bytes(tail[-34:-26], "little") != size - 98:
            raise ValueError("it does not end as an archive ends")
        stated = max(stated, int.from_bytes(tail[40:48], "little"))
    if stated > MOST_DIRECTORY:
        raise ValueError(f"its directory has {stated} bytes; at most {MOST_DIRECTORY} are allowed")


def _fill(part: Any, out: np.ndarray) -> None:
    """Read the rest of an entry into an array, piece by piece."""
    if out.nbytes == 0:
        part.read(1)  # verifies the checksum
        return
    memory: Any = memoryview(out.view(np.uint8))  # type: ignore[arg-type]
    done = 0
    while done < len(memory):
        count = part.readinto(memory[done : done + _CHUNK])
        if not count:
            raise ValueError("an array ends too early")
        done += count


def _check_values(array: np.ndarray) -> None:
    """Refuse bytes that no bool and no string has; NumPy relies on there being none."""
    kind = array.dtype.kind
    if array.nbytes and kind == "b" and array.view(np.uint8).max() > 1:
        raise ValueError("an array of truth values has other values")
    if array.nbytes and kind == "U":
        letters = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if letters.max() > 0x10FFFF:
            raise ValueError("an array of strings has bytes that are no letters")

"""Open text files as streams of bytes: plain or compressed, known by their first bytes."""

from __future__ import annotations

import atexit
import bz2
import gzip
import io
import lzma
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

CHUNK = 2**20
LINES = 1000  # encoded at a time

# The first bytes of compressed files, and how pyarrow or Python unpacks them.
MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
}
_OPEN: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
PACKED = (".gz", ".bz2", ".zst", ".xz", ".zip")
NATIVE = ("", "gzip", "bz2", "zstd")  # what pyarrow reads without Python
LONGEST_WAIT, REST = 0.1, 0.05  # seconds


def compression(path: Path) -> str:
    """Return how a file is compressed, or "" if it is not."""
    with path.open("rb") as file:
        start = file.read(6)
    return next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), "")


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading its bytes, unpacked."""
    kind = compression(path)
    if kind == "zip":
        with zipfile.ZipFile(path) as archive:
            inside = [one for one in archive.namelist() if not one.endswith("/")]
            if len(inside) != 1:
                raise ValueError(f"expected one file in the archive; it has {len(inside)}")
            with archive.open(inside[0]) as file:
                yield file
    elif kind == "zstd":
        import pyarrow

        with pyarrow.input_stream(str(path), compression="zstd") as file:
            yield file
    else:
        with _OPEN.get(kind, open)(path, "rb") as file:
            yield file


@contextmanager
def readable_by_arrow(path: Path) -> Iterator[Any]:
    """Open a file for a reader of pyarrow, without Python where that is possible."""
    kind = compression(path)
    if kind in NATIVE:
        import pyarrow

        with pyarrow.input_stream(str(path), compression=kind or None) as file:
            yield file
    else:
        with unpacked(path) as file, lent(file) as borrowed:
            yield borrowed


@contextmanager
def lent(file: IO[bytes]) -> Iterator[io.RawIOBase]:
    """Lend a file to a reader of pyarrow, and take it back.

    pyarrow reads ahead in a thread of its own. If this thread still calls Python while the process
    exits, the process is aborted, so what is left of the file seems empty to it from now on. Then
    it still frees what it has read, for which it waits for Python once more.
    """
    _rest_before_exit()
    borrowed = _Lent(file)
    try:
        yield borrowed
    finally:
        borrowed.take_back()


@cache
def _rest_before_exit() -> None:
    """Let threads that wait for Python have it before the process ends."""
    atexit.register(time.sleep, REST)


class _Lent(io.RawIOBase):
    """A file that ends once it is taken back."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._reading = threading.Lock()
        self._is_back = False
        self._ended = threading.Event()  # whether the borrower knows that nothing follows

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with self._reading:
            data = b"" if self._is_back else self._file.read(size)
        if not data:
            self._ended.set()
        return data

    def take_back(self) -> None:
        """Let the read that goes on finish, and wait until the borrower has seen the end.

        A borrower that has read far enough ahead does not read again: the wait is short.
        """
        with self._reading:
            self._is_back = True
        self._ended.wait(LONGEST_WAIT)


def chunks(path: Path) -> Iterator[bytes]:
    """Yield the unpacked bytes of a file, a piece at a time."""
    with unpacked(path) as file:
        while chunk := file.read(CHUNK):
            yield chunk


def of_lines(lines: Iterator[str]) -> IO[bytes]:
    """Return a binary file of these lines in UTF-8."""
    return io.BufferedReader(_Lines(lines), CHUNK)


class _Lines(io.RawIOBase):
    """The bytes of lines, made as they are read."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = memoryview("".join(islice(self._lines, LINES)).encode())
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

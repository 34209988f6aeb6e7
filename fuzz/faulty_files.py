"""Does a fit notice what happens to its files? Damaged before, or changed while they are read."""

from __future__ import annotations

import gzip
import os
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import gramian
from fuzz import limited
from gramian.rows.files import rows as file_rows
from gramian.rows.files.rows import FileRows

ATTEMPTS = 600  # at scale 1
ENDS = (".npy", ".csv", ".csv.gz", ".parquet", ".arrow")
X = np.random.default_rng(0).standard_normal((3000, 4)).round(3)
OTHER = X[::-1] + 1.0
CLEAR = (ValueError, OSError, gramian.MemoryBudgetError)  # of a file that is at fault


def run(scale: float, seed: int) -> list[limited.Failure]:
    """Fit to files with something wrong."""
    outcomes, failures = limited.campaign(__name__, seed, range(int(ATTEMPTS * scale)))
    print(f"faulty files: {dict(outcomes)}")
    return failures


def attempt(seed: int, number: int) -> str:
    pick = random.Random(f"files {seed}/{number}")
    end, in_a_pass = pick.choice(ENDS), pick.random() < 0.5
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rows{end}"
        write(path, X)
        wanted = fitted(path)
        kind = pick.choice(CHANGES if in_a_pass else DAMAGES)
        try:
            with few_rows_at_a_time(pick.random() < 0.5):
                if in_a_pass:
                    found = _changed_in_a_pass(path, kind, pick)
                else:
                    kind(path, pick)
                    found = fitted(path)
        except CLEAR as error:
            return f"refused, {kind.__name__}" if str(error) else f"FAILED: {error!r} says nothing"
        except Exception as error:
            said = f"{type(error).__name__}: {error}".replace("\n", " ")
            return f"FAILED: {end}, {kind.__name__}: {said}"
    if in_a_pass and not np.array_equal(found, wanted):
        return f"FAILED: {end}, {kind.__name__} in a pass went unseen"
    return f"fitted, {kind.__name__}"


def write(path: Path, rows: np.ndarray) -> None:
    lines = [",".join(map(str, row)) for row in rows.tolist()]
    text = "a,b,c,d\n" + "\n".join(lines) + "\n"
    if path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".csv":
        path.write_text(text)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode(), 1))
    else:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet

        table = pyarrow.table({name: rows[:, i] for i, name in enumerate("abcd")})
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=300)
        else:
            pyarrow.feather.write_feather(table, path, compression="uncompressed", chunksize=300)


def fitted(source: Any) -> np.ndarray:
    """A number for every row counts: the matrix of a fit that walks over all of them."""
    kernel = gramian.Nystroem(gramian.RBF(0.1), landmarks=X[:5])
    model = gramian.KernelPCA(2, kernel=kernel).fit(gramian.open_rows(source))
    return np.asarray(model.eigenvalues_)


@contextmanager
def few_rows_at_a_time(stays: bool) -> Iterator[None]:
    """Read in small pieces, and if it ``stays`` in the file, in every walk again."""
    size, fits = file_rows.BATCH_BYTES, FileRows.fits
    file_rows.BATCH_BYTES = 200 * X.shape[1] * 8
    if stays:
        FileRows.fits = lambda self: False  # type: ignore[method-assign]
    try:
        yield
    finally:
        file_rows.BATCH_BYTES = size
        FileRows.fits = fits  # type: ignore[method-assign]


def _changed_in_a_pass(path: Path, change: Any, pick: random.Random) -> np.ndarray:
    """Fit, and change the file after some piece of it was read."""
    original, at, seen = FileRows._pieces, pick.randrange(25), 0

    def pieces(self: FileRows, numbers: Any) -> Iterator[np.ndarray]:
        nonlocal seen
        for piece in original(self, numbers):
            kept = piece.copy()
            seen += 1
            if seen == at:
                change(path, pick)
            yield kept

    FileRows._pieces = pieces  # type: ignore[method-assign]
    try:
        return fitted(path)
    finally:
        FileRows._pieces = original  # type: ignore[method-assign]


# What happens before a fit.


def truncated(path: Path, pick: random.Random) -> None:
    os.truncate(path, pick.randrange(path.stat().st_size))


def damaged(path: Path, pick: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(pick.choice((1, 1, 5, 50))):
        data[pick.randrange(min(len(data), pick.choice((100, 10**6))))] = pick.randrange(256)
    path.write_bytes(data)


def prolonged(path: Path, pick: random.Random) -> None:
    with path.open("ab") as file:
        file.write(pick.randbytes(pick.choice((1, 10, 1000))))


def emptied(path: Path, pick: random.Random) -> None:
    path.write_bytes(b"")


def renamed(path: Path, pick: random.Random) -> None:
    """The content of another format."""
    end = pick.choice([end for end in ENDS if not path.name.endswith(end)])
    other = path.with_name(f"other{end}")
    write(other, X)
    os.replace(other, path)


def a_folder(path: Path, pick: random.Random) -> None:
    path.unlink()
    path.mkdir()


def a_link_to_itself(path: Path, pick: random.Random) -> None:
    path.unlink()
    path.symlink_to(path)


# What happens during one.


def overwritten(path: Path, pick: random.Random) -> None:
    """Other bytes at the end, in place, and no other size."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size - size // 3)
        file.write(bytes(size // 3 - 50))


def replaced(path: Path, pick: random.Random) -> None:
    other = path.with_name(f"new{path.suffix}")
    write(other, OTHER)
    os.replace(other, path)


def rewritten(path: Path, pick: random.Random) -> None:
    write(path, OTHER)


def removed(path: Path, pick: random.Random) -> None:
    path.unlink()


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    truncated, damaged, damaged, prolonged, emptied, renamed, a_folder, a_link_to_itself,
)  # fmt: skip
CHANGES: tuple[Callable[[Path, random.Random], None], ...] = (
    truncated, prolonged, overwritten, replaced, rewritten, removed,
)  # fmt: skip


def main(arguments: list[str]) -> None:
    seed, first, last = map(int, arguments)
    warnings.simplefilter("ignore")
    limited.serve(lambda number: attempt(seed, number), first, last, seconds=20)


if __name__ == "__main__":
    main(sys.argv[1:])

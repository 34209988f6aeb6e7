"""Write files completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gramian.backend.typing import PathLike

OPEN_FILES = "/proc/self/fd"


@contextmanager
def whole_file(path: PathLike) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` on success.

    Until then it has no name, so that nothing is left even of a process that is killed. Where the
    system has no such files, it has another name in the same folder; an error or interrupt removes
    it. Either way ``path`` is unchanged.
    """
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    if target.exists() and not target.is_file():
        raise OSError(f"{str(path)!r} is not a regular file and cannot be replaced.")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with _nameless(target.parent) or open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if file.name != str(temporary):
                _give_name(file, temporary)
        if target.exists():
            os.chmod(temporary, target.stat().st_mode)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError):
            _name_file(error, path, temporary)
        raise
    _sync_folder(target.parent)


def _name_file(error: OSError, path: PathLike, temporary: Path) -> None:
    """Name the file that the user knows: a full disk names none."""
    if error.errno and error.filename in (None, str(temporary)):
        error.filename = os.fspath(path)


def _nameless(folder: Path) -> BinaryIO | None:
    """Open a file in a folder that has no name in it; None if the system has no such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir(OPEN_FILES):
        return None
    with suppress(OSError):  # of the file system, or of the folder: then opening a name says which
        return os.fdopen(os.open(folder, flag | os.O_RDWR, 0o666), "w+b")
    return None


def _give_name(file: BinaryIO, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # only with src_dir_fd does Python follow the link, to the file itself
        os.link(f"{OPEN_FILES}/{file.fileno()}", path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a crash, if the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

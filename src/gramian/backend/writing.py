"""Write files completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gramian.backend.typing import PathLike


@contextmanager
def whole_file(path: PathLike) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` on success.

    Until then it has another name in the same folder. An error or interrupt removes it and leaves
    ``path`` unchanged.
    """
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    if target.exists() and not target.is_file():
        raise OSError(f"{str(path)!r} is not a regular file and cannot be replaced.")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a crash, if the system supports it."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

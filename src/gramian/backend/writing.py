"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def whole_file(path: Any) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of ``path`` when all went well.

    Until then it has another name in the same folder; an error or an interrupt removes it, and
    leaves what was at ``path`` before.
    """
    target = Path(os.path.realpath(path))  # what a link leads to is replaced, not the link
    if target.exists() and not target.is_file():
        raise OSError(f"{str(path)!r} is no regular file, and cannot be replaced by one.")
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(beside, target.stat().st_mode)
        os.replace(beside, target)
    except BaseException:
        with suppress(FileNotFoundError):
            beside.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Let the new name survive a crash of the machine, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

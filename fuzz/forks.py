"""Run a function in a copy of this process, with a limit of time and, if wished, no rights."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

SECONDS = 30.0  # before a copy counts as hanging
_CAPABILITIES = 0x20080522  # version 3 of the kernel's structure


class Ended(NamedTuple):
    """How a copy ended: its status as of ``subprocess``, None if it hung; and what it returned."""

    status: int | None
    said: str


def forked(
    function: Callable[[], str],
    number: int | None = None,
    after: float = 0.0,
    seconds: float = SECONDS,
) -> Ended:
    """Run a function in a fork, and send it a signal after some time if there is a number.

    The status is 1 if the function raised; what it said is the traceback then.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        _child(function, writing)
    os.close(writing)
    if number is not None:
        time.sleep(after)
        os.kill(process, number)
    said, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            part = os.read(reading, 65536)
            if not part:
                break
            said += part
    else:
        os.kill(process, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(process, 0)
    return Ended(os.waitstatus_to_exitcode(status) if left > 0 else None, said.decode())


def _child(function: Callable[[], str], writing: int) -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    status = 1
    try:
        os.write(writing, function().encode())
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        os.write(writing, traceback.format_exc().encode())
    finally:
        os._exit(status)


def without_rights() -> None:
    """Make the permissions of files count in this process, also if it belongs to root."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    none = (ctypes.c_uint32 * 6)()
    if libc.capset(header, none):
        raise OSError(ctypes.get_errno(), "capset failed")

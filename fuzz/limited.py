"""Run many small attempts in a process with limits, and go on after one that ends it."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

SECONDS = 5.0  # of the processor's time, that an attempt may take
GROWTH = 300 * 1024**2  # bytes that attempts may add to the process
ADDRESSES = 6 * 1024**3
PATIENCE = 300.0  # seconds without a sign before the process counts as hanging; loops may compile
ROOT = Path(__file__).parents[1]


class Failure(NamedTuple):
    number: int
    what: str

    def __str__(self) -> str:
        return f"attempt {self.number}: {self.what}"


class TooLongError(BaseException):
    """Raised inside an attempt that takes too long; no ``except Exception`` swallows it."""


def serve(attempt: Callable[[int], str], first: int, last: int, seconds: float = SECONDS) -> None:
    """Run attempts in this process; print the number of each, then its outcome."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _stop)
    for number in range(first, last):
        print(number, end=" ", flush=True)
        before = _resident()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            outcome = attempt(number)
        except TooLongError:
            outcome = f"FAILED: longer than {seconds:g} s"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        grown = _resident() - before
        if grown > GROWTH:
            outcome = f"FAILED: {grown >> 20} MB more"
        print(outcome, flush=True)


def _stop(number: int, frame: object) -> None:
    raise TooLongError


def _resident() -> int:
    """Return the most memory that this process has held.

    The resource module would begin with that of the process that started this one.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024


def campaign(module: str, seed: int, numbers: Iterable[int]) -> tuple[Counter[str], list[Failure]]:
    """Run attempts of a module in processes with limits; return outcomes, and what failed."""
    wanted = list(numbers)
    outcomes: Counter[str] = Counter()
    failures: list[Failure] = []
    first, last = wanted[0], wanted[-1] + 1
    while first < last:
        command = [sys.executable, "-m", module, str(seed), str(first), str(last)]
        done = first
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, cwd=ROOT, text=True, env=environment()
        ) as process:
            for line in _lines(process):
                number, _, outcome = line.partition(" ")
                done = int(number) + 1
                outcomes[outcome.partition(":")[0]] += 1
                if outcome.startswith("FAILED"):
                    failures.append(Failure(done - 1, outcome))
        if done < last:  # the process ended inside an attempt
            failures.append(Failure(done, f"FAILED: the process ended with {process.returncode}"))
            outcomes["ENDED"] += 1
            done += 1
        first = done
    return outcomes, failures


def environment() -> dict[str, str]:
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}


def _lines(process: subprocess.Popen[str]) -> Iterable[str]:
    """Yield complete lines; kill the process when none comes for long."""
    assert process.stdout is not None
    handle, rest = process.stdout.fileno(), b""
    last = time.monotonic()
    while True:
        ready, _, _ = select.select([handle], [], [], 1.0)
        if ready:
            data = os.read(handle, 65536)
            if not data:
                return
            last = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode() for line in lines)
        elif time.monotonic() - last > PATIENCE:
            process.kill()
            return

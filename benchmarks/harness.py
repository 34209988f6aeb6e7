"""What the benchmarks share: interleaved timings, growth of memory in a fresh process, tables.

``python -m benchmarks.harness MODULE FUNCTION ARGUMENTS`` is the fresh process of
``measure_growth``; it is not called by hand.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SAMPLING_SECONDS = 0.005


@dataclass(frozen=True)
class Timing:
    """Seconds: the median and the quartiles of some repeats."""

    median: float
    low: float
    high: float

    def milliseconds(self) -> str:
        return f"{self.median * 1e3:.1f} ({self.low * 1e3:.1f}-{self.high * 1e3:.1f})"


def interleaved(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timing]:
    """Time the contenders in turns, so that whatever else the machine does meets all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for function in sides.values():  # the first call pays for imports, threads and caches
        function()
    order = list(sides)
    for _ in range(repeats):
        for name in order:
            start = time.perf_counter()
            result = sides[name]()
            seconds[name].append(time.perf_counter() - start)
            del result  # its memory is given back before the next begins, outside the clock
        order.reverse()  # nobody always comes second
    quartiles = {name: np.percentile(each, [50, 25, 75]) for name, each in seconds.items()}
    return {name: Timing(*map(float, each)) for name, each in quartiles.items()}


@dataclass(frozen=True)
class Growth:
    """What a call took: seconds, and bytes of resident memory beyond those held before it.

    Samples miss peaks that are short, or inside compiled code that lets no other thread run; the
    kernel's own count misses none, but may include one from before the call.
    """

    seconds: float
    sampled: int  # the largest of samples every 5 ms
    counted: int  # the kernel's own high-water mark
    remark: str  # what the call returned

    @property
    def largest(self) -> int:
        return max(self.sampled, self.counted)


class ChildFailedError(RuntimeError):
    """The fresh process gave no result."""


def measure_growth(prepare: Callable[..., Callable[[], str]], *arguments: Any) -> Growth:
    """The growth of resident memory during ``prepare(*arguments)()``, in a fresh process.

    ``prepare`` is a function of a module. What it does itself, such as loading the data, is not
    measured, only the call of what it returns.
    """
    module = prepare.__module__
    if module == "__main__":
        module = sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]
    command = [sys.executable, "-m", "benchmarks.harness", module, prepare.__name__]
    command.append(json.dumps(arguments))
    plain = {name: value for name, value in os.environ.items() if name not in KEEPING}
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=plain)
    if child.returncode < 0:
        raise ChildFailedError(f"killed by {signal.Signals(-child.returncode).name}")
    if child.returncode:  # its traceback is on stderr
        raise ChildFailedError(f"ended with exit status {child.returncode}")
    return Growth(**json.loads(child.stdout.splitlines()[-1]))


def measure_here(call: Callable[[], str]) -> Growth:
    """The growth of resident memory during a call in this process, best a fresh one."""
    with suppress(AttributeError):  # memory that it keeps, but does not use
        ctypes.CDLL(None).malloc_trim(0)
    # The kernel's high-water mark starts anew, so that it leaves out the preparation. Where
    # the system does not offer that, ``counted`` is an upper bound.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    before = peak = _resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(SAMPLING_SECONDS):
            peak = max(peak, _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    try:
        remark = call()
    finally:
        seconds = time.perf_counter() - start
        done.set()
        watcher.join()
    highest = _highest()
    return Growth(seconds, max(peak, _resident()) - before, highest - before, remark)


def _highest() -> int:
    """The high-water mark since it was reset; unlike ru_maxrss, not inherited from the parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


# For glibc: memory that is freed stays with the process, in large pages as otherwise.
KEEPING = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 40),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


@contextmanager
def keeping_memory() -> Iterator[None]:
    """Let processes that are started here keep the memory that they free.

    The host of a virtual machine takes back memory that has been free for two seconds, and needs
    seconds to give a gigabyte again. That would decide how long large calls take, in any library.
    """
    before = {name: os.environ.get(name) for name in KEEPING}
    os.environ.update(KEEPING)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def keep_memory(module: str) -> None:
    """Start ``python -m module`` anew, with the same arguments, as a process that keeps memory."""
    if not KEEPING.items() <= os.environ.items():
        os.execve(
            sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], os.environ | KEEPING
        )
    from gramian.backend import config

    # Kept memory is free for the process, but the system counts it as used.
    config.set_config(memory_budget=config.memory_budget())


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table whose columns line up; numbers are given as text, in their final form."""
    lines = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    to_left = [any(cell[:1].isalpha() for cell in c[1:]) for c in zip(*lines, strict=True)]
    rule = [
        "-" * w if left else "-" * (w - 1) + ":" for w, left in zip(widths, to_left, strict=True)
    ]

    def show(line: list[str]) -> str:
        cells = zip(line, widths, to_left, strict=True)
        return " | ".join(cell.ljust(w) if left else cell.rjust(w) for cell, w, left in cells)

    return "\n".join(f"| {show(line)} |" for line in (lines[0], rule, *lines[1:]))


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def circumstances() -> str:
    """Date, machine and versions, which belong to every figure."""
    names = ("numpy", "scipy", "scikit-learn", "gramian")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{date.today()}; {_processor()}, {len(os.sched_getaffinity(0))} cores, "
        f"{gigabytes:.0f} GB; {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, {versions}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def command_line(main: Callable[[bool], None], description: str | None) -> None:
    """Run a benchmark that is called by itself: ``python -m benchmarks.NAME [--full]``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--full", action="store_true", help="also what takes long")
    full = parser.parse_args().full
    keep_memory(sys.modules["__main__"].__spec__.name)  # type: ignore[union-attr]
    main(full)


if __name__ == "__main__":
    module, function, arguments = sys.argv[1:]
    call = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    print(json.dumps(asdict(measure_here(call))))

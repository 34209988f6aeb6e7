"""How much of the machine others took while something was measured."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path


class Watch:
    """The share of all cores that other processes, or the hypervisor, took since it was made.

    Of processes started meanwhile only those count as own that have ended.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter(), _busy(), _own()

    def others(self) -> float | None:
        """From 0 to 1; None where the system does not tell."""
        start, busy, own = self._start
        now = _busy()
        if busy is None or now is None:
            return None
        offered = (time.perf_counter() - start) * (os.cpu_count() or 1)
        return min(max((now - busy) - (_own() - own), 0.0) / offered, 1.0)


def _busy() -> float | None:
    """Seconds that cores were busy, or taken away, since the machine started."""
    try:
        line = Path("/proc/stat").read_text().splitlines()[0]
    except OSError:
        return None
    user, nice, system, _, _, irq, softirq, steal = map(int, line.split()[1:9])
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)

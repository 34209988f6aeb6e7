"""Times on the device, where each call is waited for and the first one only compiles."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np


def seconds(torch: Any, call: Callable[[], Any], repeats: int = 5) -> float:
    """The median of some runs, after one that compiles."""
    call()
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
        del result
    return float(np.median(taken))

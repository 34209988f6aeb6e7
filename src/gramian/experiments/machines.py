"""Name the machine that measures."""

from __future__ import annotations

import platform
from pathlib import Path

import joblib

from gramian.backend import config
from gramian.backend.wording import counted


def machine() -> str:
    """Return the processor, the cores that this process may use, and the GPU if it is in use."""
    named = f"{_processor()} ({counted(joblib.cpu_count(), 'core')})"
    device = config.device()
    if device is None:
        return named
    import torch

    return f"{torch.cuda.get_device_name(device)} and {named}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())

"""The four global settings: memory budget, threads, device, progress.

They work like scikit-learn's ``set_config`` and ``config_context``. Values are read when a public
call starts, in the calling thread; worker threads never look at them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import cache
from time import monotonic
from typing import Any

import joblib

from gramian.backend import optional
from gramian.backend.checks import is_real, positive_integer
from gramian.backend.wording import counted

__all__ = ["MemoryBudgetError", "config_context", "get_config", "set_config"]


class MemoryBudgetError(MemoryError):
    """Raised if a call needs more memory than the memory budget allows.

    See Also
    --------
    set_config : sets the memory budget.
    MemoryEstimate : what a fit needs.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge, MemoryBudgetError, Nystroem, config_context
    >>> X, y = np.arange(2000.0)[:, None], np.zeros(2000)
    >>> try:
    ...     with config_context(memory_budget="1MB"):
    ...         KernelRidge(kernel=Nystroem("rbf", 1000)).fit(X, y)
    ... except MemoryBudgetError:
    ...     print("too large")
    too large
    """


@dataclass(frozen=True)
class _Settings:
    memory_budget: int | None = None  # bytes; None: a quarter of the free memory
    n_threads: int | None = None  # None: all cores that this process may use
    device: str | None = None  # None: where the data is
    progress: bool = False


_default = _Settings()
# Free memory is read from files: after a rest, that takes as long as computing with 1,000 rows.
READ_AGAIN = 1.0  # seconds
_free = (-READ_AGAIN, 0)  # when free memory was last read, and its value
_override: ContextVar[_Settings | None] = ContextVar("gramian_settings", default=None)
_UNKNOWN = -1
_asked: ContextVar[int | None] = ContextVar("gramian_asked_budget", default=_UNKNOWN)


def current() -> _Settings:
    """Return the current settings, as they are."""
    return _override.get() or _default


def set_config(**settings: Any) -> None:
    """Change gramian's settings for the whole process.

    Parameters
    ----------
    memory_budget : int, str or None
        Memory that a call may use on top of its data, in bytes or as a string such as ``"2GB"`` or
        ``"500 MiB"``. None means a quarter of the memory that is free when the call starts, or of
        the GPU's memory if torch uses a GPU with less.
    n_threads : int or None
        Number of threads that process blocks of rows. None means all cores available to this
        process.
    device : str or None
        Device that computes on host rows: ``"cuda"``, or ``"cuda:1"`` to choose one of several
        GPUs, through torch. NumPy arrays, SciPy matrices and files are moved there block by block,
        or once if they fit, and results are returned as NumPy arrays. A model fitted on the device
        stays there, and new rows are moved to it. Tensors and rows on a cluster stay where
        they are. None or ``"cpu"`` means the CPU.
    progress : bool
        Whether long loops show a progress bar in a terminal (needs ``rich``).

    See Also
    --------
    config_context : the same for a few lines.
    get_config : the current settings.

    Examples
    --------
    >>> import gramian
    >>> gramian.set_config(memory_budget="2GB")
    >>> gramian.get_config()["memory_budget"]
    2000000000
    >>> gramian.set_config(memory_budget=None)
    """
    global _default
    _default = _changed(_default, settings)


@contextmanager
def config_context(**settings: Any) -> Iterator[None]:
    """Change the settings of :func:`set_config` inside a ``with`` block.

    See Also
    --------
    set_config : the same for the whole process.
    get_config : the current settings.

    Examples
    --------
    >>> import gramian
    >>> with gramian.config_context(n_threads=1):
    ...     gramian.get_config()["n_threads"]
    1
    """
    token = _override.set(_changed(current(), settings))
    try:
        yield
    finally:
        _override.reset(token)


def get_config() -> dict[str, Any]:
    """Return the current settings.

    See Also
    --------
    set_config : changes the settings.
    config_context : changes them for a few lines.

    Examples
    --------
    >>> import gramian
    >>> sorted(gramian.get_config())
    ['device', 'memory_budget', 'n_threads', 'progress']
    """
    return dict(vars(current()))


def memory_budget() -> int:
    """Return the memory, in bytes, that a call may use now."""
    budget = current().memory_budget
    if budget is not None:
        return budget
    global _free
    now = monotonic()
    if now - _free[0] > READ_AGAIN:
        _free = now, free_memory()
    return _free[1] // 4


@contextmanager
def one_budget() -> Iterator[None]:
    """Freeze the budget for this block; :func:`hold` reduces it."""
    asked = _asked.set(asked_budget())
    token = _override.set(replace(current(), memory_budget=memory_budget()))
    try:
        yield
    finally:
        _override.reset(token)
        _asked.reset(asked)


def asked_budget() -> int | None:
    """Return the memory budget as it was set, even inside ``one_budget``.

    None means that it depends on the free memory of this process and says nothing about others.
    """
    asked = _asked.get()
    return current().memory_budget if asked is _UNKNOWN else asked


def hold(size: int) -> None:
    """Reduce the budget by ``size`` until the end of the enclosing ``one_budget``."""
    settings = current()
    assert settings.memory_budget is not None, "hold must be used inside one_budget"
    _override.set(replace(settings, memory_budget=max(settings.memory_budget - size, 1)))


def check_fits(size: int, what: str, advice: str) -> None:
    """Raise an error if ``size`` exceeds the memory budget; ``advice`` says what to do instead."""
    budget = memory_budget()
    if size > budget:
        raise MemoryBudgetError(
            f"The memory budget of {format_bytes(budget)} does not allow {what}, which needs "
            f"{format_bytes(size)}. {advice}, or raise the budget with "
            "gramian.set_config(memory_budget=...)."
        )


def n_threads() -> int:
    """Return the number of worker threads to use."""
    threads = current().n_threads
    if threads is not None:
        return threads
    # joblib tells its workers their share of the cores through OMP_NUM_THREADS.
    told = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(told)) if told.isdigit() else _cores()


@cache
def _cores() -> int:
    return joblib.cpu_count()  # reads files: milliseconds


def device() -> str | None:
    """Device that computes on host rows; None means the CPU."""
    return current().device


def _changed(settings: _Settings, changes: dict[str, Any]) -> _Settings:
    known = [field.name for field in fields(_Settings)]
    for name, value in changes.items():
        if name not in known:
            raise TypeError(
                f"gramian has no setting {name!r}; its settings are {', '.join(known)}."
            )
        checked: Any = _CHECKS[name](value)
        settings = replace(settings, **{name: checked})
    return settings


def _check_budget(value: object) -> int | None:
    if value is None:
        return None
    size = parse_bytes(value)
    if size <= 0:
        raise ValueError(f"memory_budget must be positive; got {value!r}.")
    return size


def _check_threads(value: object) -> int | None:
    if value is None:
        return None
    return positive_integer("gramian's settings", "n_threads", value)


def _check_device(value: object) -> str | None:
    if value is None or value == "cpu":
        return None
    if not isinstance(value, str) or not re.fullmatch(r"cuda(:\d+)?", value):
        raise ValueError(
            f"device must be None, 'cpu', 'cuda', or a GPU such as 'cuda:1'; got {value!r}."
        )
    with optional.needed("torch", f"device={value!r}"):
        import torch
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(value.partition(":")[2] or 0) >= found:
        there = counted(found, "CUDA device") if found else "no CUDA device"
        raise ValueError(f"device={value!r}: torch finds {there} here. Use device='cpu'.")
    return value


def _check_progress(value: object) -> bool:
    if value not in (True, False):
        raise ValueError(f"progress must be True or False; got {value!r}.")
    if value:
        with optional.needed("rich", "progress=True"):
            import rich.progress  # noqa: F401
    return bool(value)


_CHECKS = {
    "memory_budget": _check_budget,
    "n_threads": _check_threads,
    "device": _check_device,
    "progress": _check_progress,
}

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 1024 ** (power + 1) for power, unit in enumerate("kmgt")}


def parse_bytes(value: object) -> int:
    """``"1.5 GB"`` -> 1500000000; numbers are returned unchanged."""
    if is_real(value):
        return int(value)
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kmgt]?i?)b?\s*", str(value).lower())
    try:
        assert match is not None
        return int(float(match[1]) * _UNITS[match[2]])
    except (AssertionError, KeyError, ValueError):
        raise ValueError(
            f"Expected a size in bytes, such as 2000000000, '2GB' or '500 MiB'; got {value!r}."
        ) from None


def format_bytes(size: float) -> str:
    """1500000000 -> ``"1.5 GB"``."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def free_memory() -> int:
    """Return the free memory of the machine or, if less, of its container."""
    free = _available_on_machine()
    limit, used = _cgroup_number("memory.max"), _cgroup_number("memory.current")
    if limit is not None and used is not None:
        free = min(free, max(limit - used, 0))
    return min(free, _free_on_device(free))


def _free_on_device(otherwise: int) -> int:
    """Return the free memory of the GPU, if torch uses one."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return otherwise
    kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(torch.cuda.mem_get_info()[0]) + int(kept)


def _available_on_machine() -> int:
    try:
        with open("/proc/meminfo", "rb") as lines:
            for line in lines:
                if line.startswith(b"MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # half of the installed memory, if the system does not report free memory
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 1024**3


def _cgroup_number(name: str) -> int | None:
    try:
        with open(f"/sys/fs/cgroup/{name}", "rb") as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" means no limit

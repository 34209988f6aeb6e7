"""Measure units in several processes, each on its own share of the cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from math import prod
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue

import joblib

from gramian.backend import config
from gramian.backend.progress import progress
from gramian.backend.threads import one_blas_thread
from gramian.experiments.base import Experiment, Settings, Unit
from gramian.experiments.store import Store

BLAS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
SIZES = "n", "m", "rank", "blocks", "runs"  # settings of a unit that make it take long


def measure_in_pieces(
    experiments: list[Experiment], settings: Settings, store: Store, processes: int
) -> None:
    """Measure into the store what is not there yet; units whose data is missing are left out."""
    left = [
        (each.name, unit)
        for each in experiments
        for unit in each.units(settings)
        if store.get(each, unit) is None
    ]
    left.sort(key=lambda item: -_size(item[1]))
    context, cores = get_context("spawn"), max(joblib.cpu_count() // processes, 1)
    shares = context.SimpleQueue()
    for share in _shares(processes, cores):
        shares.put(share)
    told = shares, cores, config.memory_budget() // processes
    with (
        progress("units", len(left)) as step,
        _few_threads(cores),
        ProcessPoolExecutor(processes, context, _settle, told) as pool,
    ):
        try:
            for done in as_completed([pool.submit(_piece, *each, store) for each in left]):
                done.result()
                step()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _size(unit: Unit) -> float:
    """Return about how long a unit takes, compared with others."""
    return prod(unit[name] or 1 for name in SIZES if isinstance(unit.get(name), int))


def _shares(processes: int, cores: int) -> list[list[int]]:
    """Return the numbers of the cores of each process; none where they cannot be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        return [[] for _ in range(processes)]
    every = sorted(os.sched_getaffinity(0))
    first = [i * cores % len(every) for i in range(processes)]
    return [every[i : i + cores] for i in first]


@contextmanager
def _few_threads(cores: int) -> Iterator[None]:
    """Let processes that start now have so many threads in BLAS."""
    before = {name: os.environ.get(name) for name in BLAS}
    os.environ.update(dict.fromkeys(BLAS, str(cores)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _settle(shares: SimpleQueue[list[int]], cores: int, memory_budget: int) -> None:
    share = shares.get()
    if share:
        os.sched_setaffinity(0, share)
    config.set_config(n_threads=cores, memory_budget=memory_budget)


def _piece(name: str, unit: Unit, store: Store) -> None:
    from gramian.experiments.run import find, measured

    (experiment,) = find([name])
    try:
        with one_blas_thread():
            measured(experiment, unit, store)
    except OSError:  # a data set is not available: the outcome says so
        return

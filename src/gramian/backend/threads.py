"""Run blocks in threads, with results in order and BLAS limited to one thread each."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import copy_context
from functools import cache
from itertools import repeat
from typing import TypeVar

from threadpoolctl import LibController, OpenBLASController, ThreadpoolController

from gramian.backend import config
from gramian.backend.progress import progress

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    label: str,
    count: int | None = None,
    waiting: int | None = None,
) -> Iterator[Result]:
    """Map ``function`` over items on worker threads; yield results in the order of the items.

    Items are drawn in the calling thread, at most ``waiting`` ahead of the results (by default
    2 * workers + 1). An iterable without a length needs ``count``.
    """
    count = len(items) if isinstance(items, Sized) else count
    assert count is not None
    waiting = 2 * workers + 1 if waiting is None else waiting
    with progress(label, count) as step:
        if min(workers, count, waiting) <= 1:
            for item in items:
                yield function(item)
                step()
            return
        with one_blas_thread(), _pool(workers) as pool:
            pending: deque[Future[Result]] = deque()
            try:
                for item in items:
                    # Use the caller's context, so that its settings apply in the workers too.
                    pending.append(pool.submit(copy_context().run, function, item))
                    if len(pending) >= waiting:  # bound the results that wait
                        yield pending.popleft().result()
                        step()
                while pending:
                    yield pending.popleft().result()
                    step()
            finally:
                wait([future for future in pending if not future.cancel()])


class _Pool(ThreadPoolExecutor):
    """Threads, with the numbers by which the system knows them, and the CPUs that they may use."""

    def __init__(self, workers: int, cpus: set[int]) -> None:
        self.workers, self.cpus = workers, cpus
        self.threads: list[int] = []
        super().__init__(workers, "gramian", self._enter)

    def _enter(self) -> None:
        _inside.pool = self
        self.threads.append(threading.get_native_id())
        _allow(self.threads[-1], self.cpus)  # not only the CPU of the thread that starts this one


_pools: dict[int, _Pool] = {}  # by their size
_inside = threading.local()  # the pool of a thread, if it is of one
if hasattr(os, "register_at_fork"):  # a forked process has no threads but one
    os.register_at_fork(after_in_child=_pools.clear)


@contextmanager
def _pool(workers: int) -> Iterator[_Pool]:
    """Return threads that are kept for later walks, which may be short.

    Starting threads takes as long as a small walk, and each would need new memory for its tiles.
    Inside a thread of a pool they are new: the pool's own could all be waiting for this one.
    """
    outer: _Pool | None = getattr(_inside, "pool", None)
    if outer is not None:
        with _Pool(workers, outer.cpus) as pool:
            yield pool
        return
    if workers not in _pools:
        _pools.setdefault(workers, _Pool(workers, set()))
    pool = _pools[workers]
    pool.cpus = _allowed_cpus()
    with _apart(pool):
        yield pool


@contextmanager
def _apart(pool: _Pool) -> Iterator[None]:
    """Keep threads on one CPU each while they work, if there are as many of them as CPUs.

    In a virtual machine, the kernel often wakes them on the same CPU, since it cannot tell whether
    another one that sleeps is there for it. It takes milliseconds to notice: short walks took as
    long as with one thread. Where CPUs are left over, threads move as they like.
    """
    cpus = sorted(pool.cpus)
    threads = list(pool.threads) if len(cpus) == pool.workers else []
    try:
        for thread, cpu in zip(threads, cpus, strict=False):
            _allow(thread, {cpu})
        yield
    finally:
        for thread in threads:
            _allow(thread, pool.cpus)


def _allowed_cpus() -> set[int]:
    """Return the CPUs that this thread may use; none where the system does not say."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def _allow(thread: int, cpus: set[int]) -> None:
    if cpus:
        with suppress(OSError):  # not permitted, or the thread has ended
            os.sched_setaffinity(thread, cpus)


def side_by_side(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    label: str,
    *,
    serial: bool = False,
) -> list[Result]:
    """Map ``function`` over items that are walks themselves, each limited to one thread."""
    if serial or len(items) == 1:
        return [function(item) for item in items]
    workers = config.n_threads()
    share = max(config.memory_budget() // workers, 1)

    def alone(item: Item) -> Result:
        with config.config_context(n_threads=1, memory_budget=share, progress=False):
            return function(item)

    return list(in_order(alone, items, workers, label))


_blas_lock = threading.Lock()
_blas_users = 0
_blas_threads: list[int] = []  # of each library, before the limit


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread per caller while any thread of the process is inside.

    The limit applies to the whole process, so the first to enter sets it and the last to leave
    lifts it. Otherwise nested or simultaneous fits would restore each other's limit.
    """
    global _blas_users, _blas_threads
    with _blas_lock:
        if _blas_users == 0:
            _blas_threads = [library.get_num_threads() for library in _blas_libraries()]
            _set_blas_threads(repeat(1))
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0:
                _set_blas_threads(_blas_threads)


def few_blas_threads(size: int) -> AbstractContextManager[None]:
    """Use one thread to factorise a matrix of this size, unless it is large.

    For a small matrix, threads save less than they cost when a core is busy.
    """
    return one_blas_thread() if size <= 2000 else nullcontext()


@cache
def _blas_libraries() -> list[LibController]:
    # Finding the loaded libraries takes milliseconds, so it is done once. They are asked directly:
    # threadpoolctl's limiter looks at all libraries each time, and small fits limit threads often.
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_blas_threads(counts: Iterable[int]) -> None:
    """Set the number of threads of each library.

    Since version 3.8, threadpoolctl lets only the first thread change OpenBLAS's. Here the first to
    enter and the last to leave can be any thread.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
    for library, count in zip(_blas_libraries(), counts, strict=False):
        library.set_num_threads(count)

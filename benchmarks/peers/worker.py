"""A contender in a process of its own, which does what it is told, one call after the other.

A process holds one library's threads and memory only. Its first call gives the growth of memory;
the clock of further calls runs inside it, so that the way to it costs nothing.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import time
import traceback
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import keeping_memory, measure_here
from benchmarks.peers.job import OURS, Inputs, Job, Work


class ContenderFailedError(RuntimeError):
    """The process of a contender ended, or its call did."""


class Outcome(NamedTuple):
    """What one call gave."""

    seconds: float
    memory: int | None = None  # bytes beyond those held before
    quality: float | None = None
    size: int | None = None
    work: Work | None = None


def save(folder: Path, inputs: Inputs) -> None:
    """Arrays as files, numbers beside them."""
    folder.mkdir()
    numbers = {name: x for name, x in inputs.items() if not isinstance(x, np.ndarray)}
    (folder / "numbers.json").write_text(json.dumps(numbers))
    for name in inputs.keys() - numbers.keys():
        np.save(folder / f"{name}.npy", inputs[name])


def load(folder: Path) -> Inputs:
    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    return arrays | json.loads((folder / "numbers.json").read_text())


class Seat:
    """A contender with its inputs, ready to be called; used inside the worker, and by tests."""

    def __init__(self, job: Job, name: str, inputs: Inputs) -> None:
        contender = job.contender(name)
        self.job, self.inputs = job, inputs
        self._judged = job.quality is not None and not contender.is_limit
        self._works = job.work is not None and name == OURS
        self._quality: Any = None
        self._call = contender.prepare(inputs)

    def first(self, seed: int) -> Outcome:
        """A call whose growth of memory is measured."""
        kept: list[Any] = []

        def call() -> str:
            kept.append(self._call(seed))
            return ""

        growth = measure_here(call)
        result = kept.pop()
        size = int(result.nbytes) if self.job.has_size else None
        work = self.job.work(self.inputs, result) if self._works else None  # type: ignore[misc]
        memory = growth.largest if self.job.has_memory else None
        return Outcome(growth.seconds, memory, self._quality_of(result), size, work)

    def again(self, seed: int, judge: bool) -> Outcome:
        """A call that is timed; the quality of its result is looked at where that is asked for."""
        start = time.perf_counter()
        result = self._call(seed)
        seconds = time.perf_counter() - start
        return Outcome(seconds, quality=self._quality_of(result) if judge else None)

    def _quality_of(self, result: Any) -> float | None:
        if not self._judged:
            return None
        if self._quality is None:
            assert self.job.quality is not None
            self._quality = self.job.quality.prepare(self.inputs)
        return self._quality(result)


class Worker:
    """The parent's side of a contender in a fresh process."""

    def __init__(self, scale: str, job: str, contender: str, folder: Path, found: Inputs) -> None:
        fresh = multiprocessing.get_context("spawn")
        self._pipe, theirs = fresh.Pipe()
        arguments = (theirs, scale, job, contender, folder, found)
        self._process = fresh.Process(target=_serve, args=arguments, daemon=True)
        with keeping_memory():
            self._process.start()
        theirs.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self._pipe.close()  # the other side reads an end, and leaves
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def wait(self) -> None:
        """Until it is ready to be called."""
        self._receive()

    def first(self, seed: int) -> Outcome:
        return self._ask("first", seed)

    def again(self, seed: int, judge: bool) -> Outcome:
        return self._ask("again", seed, judge)

    def _ask(self, *what: Any) -> Outcome:
        with suppress(OSError):  # where it is gone, why is found out below
            self._pipe.send(what)
        return self._receive()

    def _receive(self) -> Any:
        try:
            ok, answer = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(timeout=5)
            code = self._process.exitcode
            how = signal.Signals(-code).name if code and code < 0 else f"exit status {code}"
            raise ContenderFailedError(f"its process ended by {how}") from None
        if not ok:
            raise ContenderFailedError(answer)
        return answer


def _serve(
    pipe: Connection, scale: str, job_name: str, contender: str, folder: Path, found: Inputs
) -> None:
    from benchmarks.peers.catalogue import jobs
    from benchmarks.peers.data import SCALES

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sees it, and closes the pipe
    os.dup2(2, 1)  # what libraries print is no part of the report
    os.environ["PYKEOPS_VERBOSE"] = "0"
    try:
        job = next(job for job in jobs(SCALES[scale]) if job.name == job_name)
        if job.contender(contender).package != OURS:
            warnings.simplefilter("ignore")  # of packages that are not there, of what is deprecated
        seat = Seat(job, contender, load(folder) | found)
    except Exception as error:
        _report(pipe, error)
        return
    gc.freeze()  # all that is there stays: collections need not look at it
    pipe.send((True, None))
    while True:
        try:
            what, *arguments = pipe.recv()
        except EOFError:
            return
        gc.collect()  # what the call before left behind
        try:
            pipe.send((True, getattr(seat, what)(*arguments)))
        except Exception as error:
            _report(pipe, error)


def _report(pipe: Connection, error: Exception) -> None:
    traceback.print_exception(error)
    pipe.send((False, f"{type(error).__name__}: {error}"))

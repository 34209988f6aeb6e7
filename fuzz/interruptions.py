"""What do signals, forks and threads leave behind? At random moments of fits, saves, commands."""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

import gramian
from fuzz import limited
from fuzz.forks import forked
from gramian.rows import arrays

ATTEMPTS = 400  # at scale 1

OLD, NEW = (np.random.default_rng(seed).standard_normal((900, 4)) for seed in (0, 1))
TARGETS = np.arange(900) % 2


def run(scale: float, seed: int) -> list[limited.Failure]:
    """Interrupt, fork and run side by side; look at what is left."""
    outcomes, failures = limited.campaign(__name__, seed, range(int(ATTEMPTS * scale)))
    print(f"interruptions: {dict(outcomes)}")
    return failures


@cache
def models() -> list[Any]:
    from gramian import BKA, RBF, KernelKMeans, KernelPCA, KernelRidge, Nystroem

    nystroem = Nystroem(RBF(0.1), 30, random_state=0)
    return [
        KernelRidge(0.1, kernel=nystroem),
        KernelRidge(0.1, kernel=RBF(0.1)),
        KernelRidge("loo", kernel=BKA(RBF(0.1), 30, n_blocks=3, random_state=0)),
        KernelPCA(2, kernel=nystroem),
        KernelKMeans(3, kernel=nystroem, n_init=1, random_state=0),
        gramian.KernelLogisticRegression(1.0, kernel=nystroem),
    ]


def said(model: Any) -> np.ndarray:
    use = "predict" if hasattr(model, "predict") else "transform"
    return np.asarray(getattr(model, use)(OLD[:50]))


@cache
def wanted(which: int) -> tuple[np.ndarray, np.ndarray, float]:
    """What a model says after a fit to the old rows, and to the new; seconds of a fit."""
    old = said(clone(models()[which]).fit(OLD, TARGETS))
    start = time.perf_counter()
    new = said(clone(models()[which]).fit(NEW, TARGETS))
    return old, new, time.perf_counter() - start


def blas() -> list[int]:
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def fit(pick: random.Random) -> str:
    """An interrupted fit leaves the old state, the settings, and a model that can be fitted."""
    which = pick.randrange(len(models()))
    old, new, seconds = wanted(which)
    model = clone(models()[which]).fit(OLD, TARGETS)
    try:
        with interrupted_after(pick.random() * seconds * 1.1 + 1e-5):
            model.fit(NEW, TARGETS)
        left = "new"
    except KeyboardInterrupt:
        left = "old"
    allowed = {"old": (old, new), "new": (new,)}[left]  # it may come as the fit returns
    if not any(np.array_equal(said(model), each) for each in allowed):
        return f"FAILED: {models()[which]} was left between two fits"
    if not np.array_equal(said(model.fit(NEW, TARGETS)), new):
        return f"FAILED: {models()[which]} cannot be fitted again"
    return f"a fit, with the {left} state"


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt after some time, at whatever line the process is then."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def save(pick: random.Random) -> str:
    """A killed writer leaves the old file or the new one."""
    number = pick.choice((signal.SIGTERM, signal.SIGKILL, signal.SIGINT))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        gramian.save(gramian.RBF(1.0), path)

        def write() -> str:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for i in range(10**6):
                gramian.save(gramian.RBF(float(i)), path)
            return ""

        forked(write, number, after=pick.random() * 0.02)
        if os.listdir(folder) != ["model"]:
            return f"FAILED: {number!r} in save left {os.listdir(folder)}"
        gramian.load(path)
    return f"a save, {number.name}"


@cache
def rows() -> str:
    rng = np.random.default_rng(0)
    lines = [",".join(f"{v:.4f}" for v in row) for row in rng.standard_normal((400, 4))]
    return "a,b,c,d\n" + "\n".join(lines) + "\n"


def _command() -> str:
    from gramian.command import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        arguments = "rows.csv --n-clusters 3 --model model --output labels.csv --quiet"
        raise SystemExit(main(["cluster", *arguments.split()]))


@cache
def uninterrupted() -> tuple[bytes, float]:
    """The output of the command, and its seconds."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("rows.csv").write_text(rows())
        start = time.perf_counter()
        forked(_command)
        return Path("labels.csv").read_bytes(), time.perf_counter() - start


def command(pick: random.Random) -> str:
    """An interrupted command leaves no file, or whole ones."""
    number = pick.choice((signal.SIGTERM, signal.SIGINT))
    labels, seconds = uninterrupted()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("rows.csv").write_text(rows())
        end = forked(_command, number, after=0.01 + pick.random() * seconds)
        left = set(os.listdir()) - {"rows.csv"}
        if left not in (set(), {"model"}, {"model", "labels.csv"}):
            return f"FAILED: {number!r} in a command left {left}"
        if "model" in left:
            gramian.load("model")
        if "labels.csv" in left and Path("labels.csv").read_bytes() != labels:
            return f"FAILED: {number!r} in a command left labels that are not whole"
    if end.status not in (0, -number, 128 + number):
        return f"FAILED: {number!r} ended a command with {end}"
    return f"a command, {number.name}"


def side_by_side(pick: random.Random) -> str:
    """Fits in several threads give what each gives alone, but for the rounding of BLAS.

    Its threads are limited while any of the fits needs that.
    """
    chosen = [pick.randrange(len(models())) for _ in range(4)]
    for which in chosen:
        wanted(which)
    found: dict[int, np.ndarray] = {}

    def one(place: int) -> None:
        found[place] = said(clone(models()[chosen[place]]).fit(NEW, TARGETS))

    workers = [threading.Thread(target=one, args=(place,)) for place in range(len(chosen))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for place, which in enumerate(chosen):
        if place not in found or not np.allclose(found[place], wanted(which)[1], 1e-9, 1e-9):
            return f"FAILED: {models()[which]} in threads"
    return "fits in threads"


def child(pick: random.Random) -> str:
    """A fit in a forked child gives what it gives here."""
    which = pick.randrange(len(models()))

    def fitted() -> str:
        again = said(clone(models()[which]).fit(NEW, TARGETS))
        return str(np.array_equal(again, wanted(which)[1]))

    wanted(which)
    end = forked(fitted)
    if end != (0, "True"):
        return f"FAILED: {models()[which]} in a forked child: {end}".replace("\n", " ")
    return "a fit in a forked child"


KINDS: tuple[Callable[[random.Random], str], ...] = (fit, fit, save, command, side_by_side, child)


def strangers() -> int:
    """Count the threads, without those that gramian keeps for its walks."""
    return sum(not thread.name.startswith("gramian") for thread in threading.enumerate())


def attempt(seed: int, number: int) -> str:
    pick = random.Random(f"interruptions {seed}/{number}")
    before = blas(), gramian.get_config(), strangers()
    outcome = pick.choice(KINDS)(pick)
    after = blas(), gramian.get_config(), strangers()
    return f"FAILED: {outcome}: {before} became {after}" if before != after else outcome


def main(arguments: list[str]) -> None:
    seed, first, last = map(int, arguments)
    warnings.simplefilter("ignore")
    threadpool_limits(2, user_api="blas")  # so that a limit which is lost shows
    gramian.set_config(n_threads=3)
    arrays.CACHE_BYTES, arrays.LEAST_ROWS = 2**14, 32  # many blocks, for the threads
    limited.serve(lambda number: attempt(seed, number), first, last, seconds=60)


if __name__ == "__main__":
    main(sys.argv[1:])

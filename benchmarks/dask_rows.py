"""Kernel k-means and ridge on dask: against NumPy, on one and two workers, and on clusters.

Workers are processes of this machine with one thread each; rows and their features are in their
memory. Times and bytes are measured; the last table is a model that is fitted to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, log2
from typing import Any, NamedTuple

import dask.array as da
import distributed
import numpy as np

import gramian
from benchmarks.harness import command_line, interleaved, table
from gramian.backend.threads import one_blas_thread
from gramian.learners.kmeans import lloyd
from gramian.matrices.factors import Factors
from gramian.rows import Rows
from gramian.rows.dask.calls import packed
from gramian.rows.dask.places import CHUNK_BYTES

D, M, K = 16, 256, 10  # columns, landmarks, clusters
ROWS, CHUNK = 1_000_000, 125_000
PASSES = 5
BUDGET = "6GB"

# Assumed of a cluster, whose workers have one core each.
NETWORK = 1.25e9  # bytes a second into or out of a machine: 10 Gbit/s
LATENCY = 1e-3  # seconds for a message between two machines
MEMORY = 16e9  # bytes of a worker that features may take
READING = 0.5e9  # bytes a second that a worker reads from storage
ITERATIONS = 20


def made(rows: int, block_info: Any = None) -> np.ndarray:
    """Rows in clusters that overlap, the same for every chunking of the same sizes."""
    number = block_info[None]["chunk-location"][0]
    rng = np.random.default_rng(number)
    centres = 2.0 * np.random.default_rng(0).standard_normal((K, D))
    X = centres[rng.integers(K, size=rows)] + 2.0 * rng.standard_normal((rows, D))
    return X.astype(np.float32)


def lazy_rows(n: int, chunk: int = CHUNK) -> Any:
    chunks = ((chunk,) * (n // chunk), (D,))
    return da.map_blocks(made, chunk, chunks=chunks, dtype=np.float32)


def landmarks() -> gramian.Nystroem:
    return gramian.Nystroem(gramian.RBF(0.01), M, random_state=0)


def clusters() -> gramian.KernelKMeans:
    return gramian.KernelKMeans(K, landmarks(), max_iter=PASSES, tol=0, random_state=0)


def ridge() -> gramian.KernelRidge:
    return gramian.KernelRidge(1.0, landmarks(), solver="direct", random_state=0)


@contextmanager
def cluster(workers: int) -> Iterator[distributed.Client]:
    options: Any = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers=workers, memory_limit="8GB", **options) as local,
        distributed.Client(local) as client,
    ):
        client.run(lambda: __import__("gramian.learners"))  # before the clock
        yield client


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The best of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def sent(client: distributed.Client) -> int:
    """Bytes that workers have sent so far, to each other and to the client, by their own count."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


class Lloyd:
    """Passes of Lloyd's iteration over features that are kept, until the centres rest."""

    def __init__(self, rows: Rows) -> None:
        approximation = landmarks().fit_rows(rows, np.random.default_rng(0))
        self.factors: Factors = approximation.factor_rows(rows).persist()
        self.weights = rows.place.constant(1.0)
        self.first = self.factors.coordinates(np.arange(K))
        self.begin()

    def begin(self) -> None:
        """The first pass, in which all rows get labels."""
        self.run = lloyd.FeaturedRun(lloyd.no_labels(self.weights), next_centres=self.first)
        self.doubt = lloyd.Doubt(self.factors)
        self.go(measured=True)

    def go(self, measured: bool = False) -> None:
        """One pass, and the centres of the next."""
        lloyd.assign(self.factors, self.weights, [self.run], measured, self.doubt)
        self.run.next_centres = lloyd.centre_of(self.run.sums, self.run.masses)
        self.doubt.move(self.run)


# Against NumPy, and on two workers.


def against_numpy(n: int, repeats: int = 5) -> None:
    """Fits in turns: in this process, on one worker, on two."""
    sides: dict[str, dict[str, Callable[[], Any]]] = {"k-means": {}, "ridge": {}}

    def add(side: str, X: Any, around: Callable[[], Any]) -> None:
        def call(fit: Callable[[], Any]) -> Callable[[], None]:
            def timed() -> None:
                with around():
                    fit()

            return timed

        sides["k-means"][side] = call(lambda: clusters().fit(X))
        sides["ridge"][side] = call(lambda: ridge().fit(X, X[:, 0]))

    @contextmanager
    def one_thread() -> Iterator[None]:
        with gramian.config_context(n_threads=1, memory_budget=BUDGET), one_blas_thread():
            yield

    names = "NumPy, one thread", "dask, 1 worker", "dask, 2 workers"
    with cluster(1) as one, cluster(2) as two:
        add(names[0], lazy_rows(n).compute(scheduler="threads"), one_thread)
        for name, client in zip(names[1:], (one, two), strict=True):
            with client.as_current():
                data = lazy_rows(n).persist()
                distributed.wait(data)
            add(name, data, client.as_current)
        times = {what: interleaved(each, repeats) for what, each in sides.items()}
    lines = []
    for name in names:
        cells = [name]
        for each in times.values():
            plain, single, own = each[names[0]].median, each[names[1]].median, each[name].median
            said = {
                names[0]: "",
                names[1]: f" ({own / plain - 1:+.0%})",
                names[2]: f" (efficiency {single / 2 / own:.0%})",
            }
            cells.append(f"{own:.2f}{said[name]}")
        lines.append(tuple(cells))
    print(
        f"{n:,} rows of {D} columns in float32, {M} landmarks, chunks of {CHUNK:,} rows; medians "
        f"of {repeats} fits in turns. In brackets: overhead against NumPy, and efficiency.\n"
    )
    print(table(("", f"k-means, {K} clusters, {PASSES} passes (s)", "ridge (s)"), lines))


# Bytes.


def bytes_moved(most: int) -> float:
    """Prints what two workers send in a pass for several numbers of rows; returns the last."""
    lines, moved = [], 0.0
    with cluster(2) as client:
        for n in (most // 4, most // 2, most):
            lloyd = Lloyd(gramian.as_rows(lazy_rows(n).persist()))
            counts = [sent(client)]
            for _ in range(2 * PASSES):
                lloyd.go()
                counts.append(sent(client))
            passes = np.diff(counts)
            moved = float(np.median(passes))
            lines.append((f"{n:,}", n // CHUNK, f"{moved / 1e3:.1f}", f"{passes.max() / 1e3:.1f}"))
            del lloyd
    sums = 8 * (K * M + K)
    print(
        f"\nBytes that two workers send in a pass of Lloyd's iteration, by their own counters: the "
        f"middle and the largest of {2 * PASSES} passes. The sums of one worker are "
        f"{sums / 1e3:.1f} kB.\n"
    )
    print(table(("rows", "chunks", "middle (kB)", "largest (kB)"), lines))
    return moved


# The model.


class Line(NamedTuple):
    """Seconds of a task: for itself, and for each row."""

    task: float
    row: float

    @classmethod
    def through(cls, rows: list[int], times: list[float]) -> Line:
        A = np.stack((np.ones(len(rows)), rows), axis=1) / np.asarray(times)[:, None]
        task, row = np.linalg.lstsq(A, np.ones(len(rows)))[0]  # of relative errors
        return cls(max(float(task), 0.0), float(row))

    def of(self, rows: float) -> float:
        return self.task + self.row * rows


@dataclass
class Cost:
    """What k-means costs on a cluster, in seconds: fitted to what this machine took."""

    features: Line  # a chunk of features
    first: Line  # a chunk in the first pass over kept features, in which every row moves
    later: Line  # a chunk in later passes, which look at rows in doubt
    scheduler: float  # for each chunk in a pass
    function: float  # bytes that each worker is sent in a pass
    sums: float  # bytes that each worker sends in a pass

    def of(self, n: int, workers: int) -> dict[str, float]:
        chunk = CHUNK_BYTES // (4 * M)  # as long as DaskRows makes it
        chunks, own = ceil(n / chunk), ceil(n / chunk / workers)
        kept = 4.0 * n * M / workers <= MEMORY
        made = 1 if kept else ITERATIONS
        # Rows are read for gamma, for landmarks, for the sample of the restarts, for features.
        read = (3 + made) * 4.0 * D * n / workers / READING
        depth = ceil(log2(workers)) + 1
        message = LATENCY + max(self.function, self.sums) / NETWORK
        return {
            "reading": read,
            "features": made * own * self.features.of(chunk),
            "passes": own * (self.first.of(chunk) + (ITERATIONS - 1) * self.later.of(chunk)),
            "network": ITERATIONS * 2 * depth * message,
            "scheduler": (ITERATIONS + made) * chunks * self.scheduler,
        }


def task_seconds(client: distributed.Client, call: Callable[[], Any], name: str) -> float:
    """The mean seconds that workers computed in tasks of this name, by the scheduler's record."""
    with distributed.get_task_stream(client=client) as stream:
        call()
    spent = [
        each["stop"] - each["start"]
        for task in stream.data
        if name in str(task["key"])
        for each in task["startstops"]
        if each["action"] == "compute"
    ]
    return float(np.mean(spent))


def fitted(moved: float) -> Cost:
    sizes = [CHUNK // 8, CHUNK // 4, CHUNK // 2, CHUNK]
    times: dict[str, list[float]] = {"features": [], "first": [], "later": []}
    with cluster(1) as client:
        for size in sizes:
            rows = gramian.as_rows(lazy_rows(4 * size, size).persist())
            lloyd = Lloyd(rows)
            function = packed(lambda first=lloyd.first: first)
            approximation = landmarks().fit_rows(rows, np.random.default_rng(0))
            factors = approximation.factor_rows(rows)

            def make(factors: Factors = factors) -> None:
                factors.sum(lambda columns: lambda z: z[:1].sum(axis=0))

            def later(lloyd: Lloyd = lloyd) -> None:
                for _ in range(PASSES):
                    lloyd.go()

            times["features"].append(task_seconds(client, make, "sum_chunk"))
            times["first"].append(task_seconds(client, lloyd.begin, "sum_chunk"))
            times["later"].append(task_seconds(client, later, "sum_chunk"))
    sent_bytes = len(function[0]) + sum(large.array.nbytes for large in function[1])
    lines = {name: Line.through(sizes, each) for name, each in times.items()}
    return Cost(**lines, scheduler=per_chunk(), function=sent_bytes, sums=moved / 2)


def per_chunk() -> float:
    """What one more chunk costs a pass beside its rows: tasks, and the messages about them."""
    times = []
    counts = (16, 128)
    with cluster(1):
        for count in counts:
            lloyd = Lloyd(gramian.as_rows(lazy_rows(64_000, 64_000 // count).persist()))
            lloyd.go()
            times.append(seconds(lloyd.go, PASSES))
    return max((times[1] - times[0]) / (counts[1] - counts[0]), 1e-5)


def costs(cost: Cost) -> None:
    def line(of: Line) -> str:
        return f"{of.task * 1e3:.1f} ms and {of.row * 1e9:.0f} ns a row"

    print(
        f"\nA model of k-means with {K} clusters on {M} features of {D} columns, in seconds. "
        f"Measured, for a chunk: features {line(cost.features)}; the first pass over them "
        f"{line(cost.first)}; a later one {line(cost.later)}; "
        f"{cost.scheduler * 1e3:.1f} ms of the scheduler's in each pass. In a pass a worker gets "
        f"{cost.function / 1e3:.0f} kB and sends {cost.sums / 1e3:.0f} kB. Assumed: one core for "
        f"each worker, {NETWORK / 1e9:.2f} GB/s and {LATENCY * 1e3:.0f} ms between machines, "
        f"{READING / 1e9:.1f} GB/s from storage, {MEMORY / 1e9:.0f} GB of each worker for "
        f"features, {ITERATIONS} passes, chunks of {CHUNK_BYTES // (4 * M):,} rows.\n"
    )
    lines = []
    for n in (8_000_000, 1_000_000_000):
        for workers in (8, 32, 128):
            parts = cost.of(n, workers)
            worst = max(parts, key=lambda name: parts[name])
            cells = [short(parts[name]) for name in parts]
            lines.append((f"{n:,}", workers, *cells, short(sum(parts.values())), worst))
    names = cost.of(8, 8)
    print(table(("rows", "workers", *names, "all", "bottleneck"), lines))


def short(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


def main(full: bool) -> None:
    n = 4 * ROWS if full else ROWS
    against_numpy(n)
    costs(fitted(bytes_moved(n)))


if __name__ == "__main__":
    command_line(main, __doc__)

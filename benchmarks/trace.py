"""How long a way a fit goes: the functions of gramian that it runs, and the files they are in.

``python -m benchmarks.trace [--list]`` counts code objects (functions, lambdas, comprehensions)
below ``src/gramian`` in three fits, each traced after an untraced one has imported what it needs.
One thread and a memory budget of 1 GB make all machines count the same.
``--list`` names them in the order of their first call, with the depth and the number of calls.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

import gramian
from gramian import RBF, KernelKMeans, KernelRidge, Nystroem, config_context

PACKAGE = str(Path(gramian.__file__).parent) + "/"
ROWS, COLUMNS = 3000, 8


class Trace:
    """The functions that a call runs: how often, and how deep their first call is."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.depths: dict[CodeType, int] = {}
        self._depth = 0
        sys.setprofile(self._event)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return") or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if event == "return":
            self._depth -= 1
            return
        self.calls[frame.f_code] += 1
        self.depths.setdefault(frame.f_code, self._depth)
        self._depth += 1

    @property
    def files(self) -> set[str]:
        return {code.co_filename.removeprefix(PACKAGE) for code in self.calls}

    def packages(self) -> Counter[str]:
        """The number of functions in each package."""
        return Counter(
            code.co_filename.removeprefix(PACKAGE).split("/")[0].removesuffix(".py")
            for code in self.calls
        )

    def lines(self) -> list[str]:
        """Each function where it is first called, with the number of its calls."""
        return [
            f"{count:>7}  {'  ' * min(self.depths[code], 30)}{code.co_qualname}  "
            f"({code.co_filename.removeprefix(PACKAGE)}:{code.co_firstlineno})"
            for code, count in self.calls.items()
        ]


def fits(folder: Path) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    y = np.sin(X[:, 0])
    path = folder / "rows.npy"
    np.save(path, X)
    kmeans = KernelKMeans(10, kernel=Nystroem(RBF("median"), 200), random_state=0)
    ridge = KernelRidge("loo", random_state=0)
    found: dict[str, Callable[[], object]] = {
        "k-means on Nyström": lambda: kmeans.fit(X),
        "ridge on a file": lambda: ridge.fit(path, y),
    }
    try:
        import dask
        import dask.array
    except ImportError:
        return found
    lazy = dask.array.from_array(X, chunks=(ROWS // 3, COLUMNS))

    def on_dask() -> None:
        with dask.config.set(scheduler="synchronous"):
            kmeans.fit(lazy)

    return {**found, "k-means on dask": on_dask}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the functions")
    parser.add_argument("--full", action="store_true", help="the same: there is no longer run")
    options = parser.parse_args()
    print("| fit | functions | files | by package |\n|---|---:|---:|---|")
    lists = []
    with tempfile.TemporaryDirectory() as folder, config_context(n_threads=1, memory_budget="1GB"):
        for name, fit in fits(Path(folder)).items():
            fit()
            trace = Trace(fit)
            parts = ", ".join(f"{part} {count}" for part, count in trace.packages().most_common())
            print(f"| {name} | {len(trace.calls)} | {len(trace.files)} | {parts} |")
            lists.append("\n".join([f"\n{name}\n", *trace.lines()]))
    if options.list:
        print("\n".join(lists))


if __name__ == "__main__":
    main()

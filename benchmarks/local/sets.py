"""Score against time on sets of 7,000 to 50,000 rows: kernel methods, SVM and boosting."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.svm import SVC, SVR

from benchmarks.chart import Point, chart
from benchmarks.harness import table, write_whole
from benchmarks.local.data import OUT, REGRESSION, SCALES, Options, Split, divided, sampled
from gramian import (
    BKA,
    MEKA,
    RBF,
    Approximation,
    Exact,
    KernelRidge,
    KernelRidgeClassifier,
    Local,
    Nystroem,
)
from gramian.approximations import ApproximationWarning
from gramian.backend.linalg import NotPositiveDefiniteError

FEW, MANY = 10_000, 50_000  # rows of a set, for training and testing
TUNED_ROWS = {FEW: 2_500, MANY: 5_000}  # training rows on which gamma and alpha are chosen
EXACT_ROWS = 20_000  # the exact method gets no more than this
GAMMAS = (0.25, 1.0, 4.0, 16.0, 64.0)  # times that of the median distance
ALPHAS = {FEW: (0.003, 0.03, 0.3), MANY: (0.0003, 0.003, 0.03, 0.3, 3.0)}  # 1 / (2 C)
BLOCKS, RANK = 10, 500  # of BKA and MEKA
MARK, END = "<!-- the table of sets -->", "<!-- the end of the table of sets -->"  # for the page


Maker = Callable[[float, float, int], Any]  # of gamma, alpha and the number of rows: a model


@dataclass(frozen=True)
class Contender:
    """A method at one size; contenders of the same method share their gamma and alpha."""

    method: str
    size: str
    make: Callable[[RBF, int], Any]  # of a kernel and the number of rows: an approximation


def local(rows_a_block: int, m: int) -> Callable[[RBF, int], Approximation]:
    def make(kernel: RBF, n: int) -> Approximation:
        inner: Any = Nystroem(kernel, m, landmarks="uniform") if m else kernel
        return Local(inner, max(n // rows_a_block, 1), random_state=0)

    return make


def nystroem(m: int) -> Contender:
    return Contender("Nyström", f"m = {m}", lambda kernel, n: Nystroem(kernel, min(m, n)))


# Of each method the first is the one that gamma and alpha are chosen with.
KERNEL_METHODS = [
    nystroem(1000),
    nystroem(300),
    nystroem(3000),
    Contender("BKA", f"rank {RANK}", lambda kernel, n: BKA(kernel, RANK, n_blocks=BLOCKS)),
    Contender("MEKA", f"rank {RANK}", lambda kernel, n: MEKA(kernel, RANK, n_blocks=BLOCKS)),
    Contender("Local(RBF)", "1000 a block", local(1000, 0)),
    Contender("Local(RBF)", "500 a block", local(500, 0)),
    Contender("Local(RBF)", "2000 a block", local(2000, 0)),
    Contender("Local(Nyström)", "1000 a block, m = 300", local(1000, 300)),
    Contender("Local(Nyström)", "500 a block, m = 300", local(500, 300)),
    Contender("Local(Nyström)", "2000 a block, m = 300", local(2000, 300)),
    Contender("Local(Nyström)", "1000 a block, m = 1000", local(1000, 1000)),
    Contender("exact", "", lambda kernel, n: Exact(kernel)),
]


@dataclass(frozen=True)
class Result:
    set: str
    rows: int  # that it learned from
    method: str
    size: str
    score: float
    fit: float  # seconds
    predict: float
    cpu: float  # seconds of all cores, for both; other load on the machine hardly affects it
    gamma: float
    alpha: float

    @property
    def seconds(self) -> float:
        return self.fit + self.predict


def ridge(name: str, contender: Contender, gamma: float, alpha: float, n: int) -> Any:
    kind = KernelRidge if name in REGRESSION else KernelRidgeClassifier
    return kind(alpha, contender.make(RBF(gamma), n), random_state=0)


def machine(name: str, gamma: float, alpha: float) -> Any:
    kind = SVR if name in REGRESSION else SVC
    return kind(C=1 / (2 * alpha), gamma=gamma, cache_size=1000)


def boosting(name: str, trees: int) -> Any:
    """Without a penalty it diverges where a class has few rows: 25 % on avila, 99.8 % with it."""
    regression = name in REGRESSION
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return kind(max_iter=trees, l2_regularization=1.0, early_stopping=False, random_state=0)


def tried(model: Any, split: Split) -> tuple[float, float, float, float]:
    """The score on the test rows, and the seconds of the fit, of the prediction, and of cores."""
    with warnings.catch_warnings():  # about blocks that were merged, or fewer landmarks
        warnings.simplefilter("ignore", ApproximationWarning)
        start, begun = time.perf_counter(), time.process_time()
        model.fit(split.X, split.y)
        fitted = time.perf_counter()
        score = float(model.score(split.X_test, split.y_test))
        done = time.perf_counter()
        return score, fitted - start, done - fitted, time.process_time() - begun


def attempted(model: Any, split: Split) -> tuple[float, float, float, float] | None:
    """The same, or None where rounding leaves no solution, which is said."""
    try:
        return tried(model, split)
    except NotPositiveDefiniteError as error:
        print(f"no solution ({error}): {model}", file=sys.stderr, flush=True)
        return None


def best(
    make: Maker, split: Split, gammas: list[float], alphas: tuple[float, ...]
) -> tuple[float, float]:
    """The gamma and alpha with the best score on the rows held out."""
    n = len(split.X)
    found = {(g, a): attempted(make(g, a, n), split) for g, a in product(gammas, alphas)}
    scores = {pair: numbers[0] for pair, numbers in found.items() if numbers}
    return max(scores, key=scores.__getitem__)


def stored(name: str, most: int) -> Path:
    return OUT / f"{name}-{most}.json"


def kept(name: str, most: int) -> list[Result]:
    if not stored(name, most).exists():
        return []
    return [Result(**each) for each in json.loads(stored(name, most).read_text())]


def contenders(name: str, n: int, most: int) -> Iterator[tuple[str, str, Maker]]:
    """Method, size, and a function that makes the model from gamma, alpha and the rows."""
    for each in KERNEL_METHODS:
        if each.method != "exact" or n <= EXACT_ROWS:
            yield (
                each.method,
                each.size,
                lambda g, a, count, each=each: ridge(name, each, g, a, count),  # type: ignore[misc]
            )
    yield "SVM", "", lambda g, a, count: machine(name, g, a)
    for trees in (100,) if most == FEW else (100, 300):
        yield "boosting", f"{trees} trees", lambda g, a, count, t=trees: boosting(name, t)  # type: ignore[misc]


def measure(name: str, most: int, options: Options) -> None:
    """Measure what is not stored yet; gamma and alpha are chosen on a part of the training rows."""
    split = sampled(name, most)
    n = len(split.X)
    some = np.random.default_rng(1).permutation(n)[: TUNED_ROWS[most]]
    inner = divided(split.X[some], split.y[some], seed=2)
    scale = RBF("median").fit(inner.X).gamma_
    found = kept(name, most)
    if found:
        where = stored(name, most).relative_to(OUT.parents[2])
        print(
            f"{name}: {len(found)} results are from before; delete {where} to measure again",
            file=sys.stderr,
        )
    chosen = {each.method: (each.gamma, each.alpha) for each in found}
    for method, size, make in contenders(name, n, most):
        if any((each.method, each.size) == (method, size) for each in found):
            continue
        if options.is_over:
            print(f"{name}: {method} {size} is left for another time", file=sys.stderr)
            return
        if method == "boosting":
            chosen[method] = (0.0, 0.0)
        elif method not in chosen:
            chosen[method] = best(make, inner, [scale * f for f in GAMMAS], ALPHAS[most])
        model = make(*chosen[method], n)
        numbers = attempted(model, split)
        if numbers is None:
            continue
        found.append(Result(name, n, method, size, *numbers, *chosen[method]))
        print(f"{name}: {method} {size}: {found[-1].score:.4f}", file=sys.stderr, flush=True)
        write_whole(stored(name, most), json.dumps([asdict(each) for each in found], indent=1))


# Method and the size its parameters are chosen with: the best size on the test rows would flatter.
COLUMNS = {
    "Nyström": "m = 1000",
    "BKA": f"rank {RANK}",
    "MEKA": f"rank {RANK}",
    "Local(RBF)": "1000 a block",
    "Local(Nyström)": "1000 a block, m = 300",
    "exact": "",
    "SVM": "",
    "boosting": "100 trees",
}


def show_scores(by_set: dict[str, list[Result]]) -> None:
    lines = []
    for name, results in by_set.items():
        found = {(each.method, each.size): each for each in results}
        line = [name, f"{results[0].rows:,}"]
        for pair in COLUMNS.items():
            one = found.get(pair)
            line.append("" if one is None else f"{one.score:.4f} ({one.seconds:.1f})")
        lines.append(line)
    print(
        "\nAccuracy, or R², with the seconds of fit and prediction. One split: four fifths of the"
    )
    print("rows for training. Sizes:", ", ".join(f"{m} {s}" for m, s in COLUMNS.items() if s), "\n")
    print(f"{MARK}\n\n{table(['set', 'rows', *COLUMNS], lines)}\n\n{END}\n")


def show_gains(by_set: dict[str, list[Result]]) -> None:
    """Each Local between the slowest Nyström that is faster and the fastest that is slower."""
    lines = []
    for name, results in by_set.items():
        others = sorted((r for r in results if r.method == "Nyström"), key=lambda r: r.seconds)
        for own in (each for each in results if each.method.startswith("Local")):
            line = [name, own.method, own.size, f"{own.score:.4f}", f"{own.seconds:.2f}"]
            faster = [each for each in others if each.seconds <= own.seconds][-1:]
            slower = [each for each in others if each.seconds > own.seconds][:1]
            for near in (faster, slower):
                gain = [f"{own.score - each.score:+.4f} ({each.size})" for each in near]
                line += gain or [""]
            lines.append(line)
    print("Gain over the Nyström that is next in time, on either side.\n")
    header = ["set", "method", "size", "score", "s", "over a faster one", "over a slower one"]
    print(table(header, lines))


def drawn(by_set: dict[str, list[Result]]) -> str:
    """Return a picture of score against time: a panel for each set, a line for each method."""
    panels: dict[str, dict[str, list[Point]]] = {}
    for name, results in by_set.items():
        panel = panels.setdefault(name, {})
        for each in results:
            tip = f"{each.method} {each.size}: {each.score:.4f} in {each.seconds:.2f} s"
            panel.setdefault(each.method, []).append(Point(each.seconds, each.score, tip))
    return chart(
        panels,
        title=f"Score against seconds of fit and prediction, for {len(by_set)} data sets",
        said="across: seconds for fit and prediction; up: accuracy, or R² (cadata, cpusmall)",
    )


def main(options: Options) -> None:
    most = MANY if options.full else FEW
    OUT.mkdir(parents=True, exist_ok=True)
    for name in options.only or SCALES:
        measure(name, most, options)
    by_set = {name: found for name in SCALES if (found := kept(name, most))}
    if options.cpu:
        by_set = {
            name: [replace(each, fit=each.cpu, predict=0.0) for each in results]
            for name, results in by_set.items()
        }
    show_scores(by_set)
    show_gains(by_set)
    picture = OUT / f"sets-{most}.svg"
    write_whole(picture, drawn(by_set))
    print(f"\n→ {picture.relative_to(OUT.parents[2])}")

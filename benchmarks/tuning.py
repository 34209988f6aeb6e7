"""``gramian.tune`` beside gradient boosting, tuned support vector machines, random forests, xRFM.

Each set is split at random into training rows (3,000, or 70 % of a smaller set) and at most 5,000
test rows, the same for all contenders, which see the columns as they are stored. The score is R² or
accuracy on the test rows: the mean of the splits, with its standard error. Seconds are those of the
wall, and CPU seconds of all threads together.

Each measurement is kept in the file of its set and split under ``out/benchmarks/tuning``, so a run
may be interrupted, and parts of it may run at different times: what is there is not measured again
(``--again`` does). ``--sets``, ``--splits`` and ``--contenders`` choose less; ``--full`` takes five
splits. The table is that of all that is kept; ``--page`` writes it into the results page.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.__main__ import RESULTS, write_section
from benchmarks.harness import circumstances, table, write_whole
from gramian import datasets, tune

REGRESSION = ("cadata", "cpusmall", "abalone", "wine_quality", "diabetes")
CLASSIFICATION = (
    "pendigits", "satimage", "avila", "banknote", "a9a", "covtype", "mnist", "digits",
    "breast_cancer", "ijcnn1", "cod_rna",
)  # fmt: skip
TRAINING, TESTED = 3000, 5000
SPLITS = 5
SECONDS = 60.0  # for the search of tune
GRID = {"svm__C": [1.0, 10.0, 100.0], "svm__gamma": [0.3, 1.0, 3.0]}  # gamma relative to "scale"


KEPT = Path("out/benchmarks/tuning")
VERDICTS = ("beats gradient boosting", "is level with the best", "is strictly best")


class Split(NamedTuple):
    """Training and test rows of a set."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    classes: bool


class Result(NamedTuple):
    """The score of one contender on one split."""

    dataset: str
    split: int
    contender: str
    score: float
    seconds: float  # of the wall
    cpu: float


Scores: TypeAlias = dict[str, list[Result]]  # of a set, by contender


def drawn(name: str, number: int, training: int = TRAINING) -> Split:
    """Draw a split; the official test rows are mixed with the others."""
    stored = datasets.load(name)
    X, y = stored.X.reshape(len(stored.X), -1), stored.y
    if stored.X_test is not None and stored.y_test is not None:
        X = np.concatenate((X, stored.X_test.reshape(len(stored.X_test), -1)))
        y = np.concatenate((y, stored.y_test))
    order = np.random.default_rng(number).permutation(len(X))
    count = min(training, int(0.7 * len(X)))
    train, test = order[:count], order[count : count + TESTED]
    X = X.astype(np.float64)
    return Split(X[train], y[train], X[test], y[test], name in CLASSIFICATION)


def tuned(split: Split, number: int, seconds: float = SECONDS) -> Any:
    task = "classify" if split.classes else "regress"
    return tune(split.X, split.y, task, time=seconds, holdout=0.0, random_state=number)


def boosted(split: Split, number: int) -> Any:
    kind = HistGradientBoostingClassifier if split.classes else HistGradientBoostingRegressor
    return kind(random_state=number).fit(split.X, split.y)


def forest(split: Split, number: int) -> Any:
    kind = RandomForestClassifier if split.classes else RandomForestRegressor
    return kind(random_state=number).fit(split.X, split.y)


def support_vectors(split: Split, number: int) -> Any:
    """Nine pairs of C and gamma by three-fold cross-validation; targets have mean 0, variance 1."""
    gammas = [g / split.X.shape[1] for g in GRID["svm__gamma"]]
    machine = Pipeline([("scale", StandardScaler()), ("svm", SVC() if split.classes else SVR())])
    grid = {**GRID, "svm__gamma": gammas}
    if split.classes:
        return GridSearchCV(machine, grid, cv=3).fit(split.X, split.y)
    search = GridSearchCV(machine, grid, cv=3)
    return TransformedTargetRegressor(search, transformer=StandardScaler()).fit(split.X, split.y)


def xrfm(split: Split, number: int) -> Any:
    """xRFM as it comes, on standardised columns; a fifth of the rows validates."""
    from sklearn.model_selection import train_test_split
    from xrfm import xRFM

    labels = np.unique(split.y, return_inverse=True)[1] if split.classes else split.y
    parts = train_test_split(split.X, labels, test_size=0.2, random_state=number)
    scaler = StandardScaler().fit(parts[0])
    X, X_val = (scaler.transform(part).astype(np.float32) for part in parts[:2])
    kind = np.int64 if split.classes else np.float32
    model = xRFM(device="cpu", tuning_metric="accuracy" if split.classes else "mse")
    model.fit(X, parts[2].astype(kind), X_val, parts[3].astype(kind))
    return _Scored(scaler, model, np.unique(split.y) if split.classes else None)


class _Scored:
    """A model whose predictions are scored as scikit-learn scores them."""

    def __init__(self, scaler: Any, model: Any, classes: np.ndarray | None) -> None:
        self.scaler, self.model, self.classes = scaler, model, classes

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        said = np.ravel(self.model.predict(self.scaler.transform(X).astype(np.float32)))
        if self.classes is not None:
            return float(np.mean(self.classes[said.astype(int)] == y))
        return float(1 - np.mean((said - y) ** 2) / np.var(y))


OURS = "tune"
CONTENDERS: dict[str, Callable[[Split, int], Any]] = {
    OURS: tuned,
    "gradient boosting": boosted,
    "SVM, tuned": support_vectors,
    "random forest": forest,
    "xRFM": xrfm,
}


def measure(name: str, number: int, contender: str) -> Result:
    split = drawn(name, number)
    start, cpu = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CONTENDERS[contender](split, number)
    seconds, cpu = perf_counter() - start, process_time() - cpu
    score = float(model.score(split.X_test, split.y_test))
    return Result(name, number, contender, score, seconds, cpu)


def summary(results: Iterable[Result]) -> str:
    """Return the table of mean scores, and who wins how often."""
    found: dict[str, Scores] = {}
    for one in results:
        found.setdefault(one.dataset, {}).setdefault(one.contender, []).append(one)
    present = [name for name in CONTENDERS if any(name in each for each in found.values())]
    # Only sets that everybody was measured on count.
    counted = [s for s in found.values() if OURS in s and len(s) == len(present) > 1]
    verdicts = [verdict(scores) for scores in counted]
    said = ", ".join(
        f"{what} on {sum(each[what] for each in verdicts)} of {len(counted)} sets"
        for what in VERDICTS
    )
    lines = [_line(dataset, found[dataset], present) for dataset in _ordered(found)]
    header = ["set", "splits", *present, "seconds", "CPU s"]
    longest = max((r.seconds for s in found.values() for r in s.get(OURS, [])), default=0.0)
    return (
        f"{table(header, lines)}\n\n`tune` {said}. Its longest run took {longest:.0f} s. "
        "Seconds are in the order of the columns."
    )


def verdict(scores: Scores) -> dict[str, bool]:
    """Return what is true of ``tune`` on a set."""
    means = {name: _mean(runs) for name, runs in scores.items()}
    rival = max((name for name in means if name != OURS), key=lambda name: means[name])
    return {
        "beats gradient boosting": means[OURS] > means.get("gradient boosting", np.inf),
        "is level with the best": means[OURS] >= means[rival] - _error(scores, rival),
        "is strictly best": means[OURS] > means[rival],
    }


def _line(dataset: str, scores: Scores, present: list[str]) -> list[str]:
    best = max(map(_mean, scores.values()))
    numbers = sorted({one.split for runs in scores.values() for one in runs})
    seconds, cpu = (
        " / ".join(_seconds(scores.get(name, []), which) for name in present)
        for which in ("seconds", "cpu")
    )
    return [
        dataset,
        str(len(numbers)),
        *(_cell(scores.get(name, []), best) for name in present),
        seconds,
        cpu,
    ]


def _cell(runs: list[Result], best: float) -> str:
    if not runs:
        return ""
    said = f"{_mean(runs):.4f}"
    said = f"**{said}**" if _mean(runs) == best else said
    return f"{said} ± {_spread([one.score for one in runs]):.4f}" if len(runs) > 1 else said


def _seconds(runs: list[Result], which: str) -> str:
    return f"{np.mean([getattr(one, which) for one in runs]):.0f}" if runs else "-"


def _mean(runs: list[Result]) -> float:
    return float(np.mean([one.score for one in runs]))


def _spread(values: list[float]) -> float:
    """Return the standard error of a mean; 0 of one value."""
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0


def _error(scores: Scores, rival: str) -> float:
    """Return the standard error of the difference over the splits that both have."""
    ours = {one.split: one.score for one in scores[OURS]}
    return _spread([ours[r.split] - r.score for r in scores[rival] if r.split in ours])


def _ordered(found: dict[str, Any]) -> list[str]:
    known = [*REGRESSION, *CLASSIFICATION]
    return sorted(found, key=lambda name: known.index(name) if name in known else len(known))


# What was measured, in one file for each set and split.


def kept(folder: Path) -> list[Result]:
    """Return all that is kept in a folder."""
    files = sorted(folder.glob("*.json"))
    return [Result(**one) for path in files for one in json.loads(path.read_text("utf-8"))]


def keep(folder: Path, one: Result) -> None:
    """Add a result to those of its set and split, in place of one of the same contender."""
    path = folder / f"{one.dataset}-{one.split}.json"
    before = (
        [Result(**each) for each in json.loads(path.read_text("utf-8"))] if path.exists() else []
    )
    results = [each for each in before if each.contender != one.contender] + [one]
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps([each._asdict() for each in results], indent=1) + "\n")


def main() -> None:
    options = _parser().parse_args()
    CONTENDERS[OURS] = partial(tuned, seconds=options.seconds)
    folder: Path = options.results
    done = {(r.dataset, r.split, r.contender) for r in kept(folder) if not options.again}
    splits = options.splits or range(SPLITS if options.full else 1)
    wanted = [] if options.page else product(splits, options.sets, options.contenders)
    for number, name, contender in wanted:
        if (name, number, contender) in done:
            continue
        try:
            one = measure(name, number, contender)
        except (ImportError, FileNotFoundError) as error:  # not installed, or no such data here
            print(f"{name}, {contender}: left out: {error}", file=sys.stderr)
            continue
        keep(folder, one)
        print(*one, file=sys.stderr, flush=True)
    results = kept(folder)
    if not results:
        sys.exit(f"Nothing is kept in {folder}: run without --page first.")
    said = summary(results)
    print(said)
    if options.page:
        write_section(RESULTS, "tuning", f"{circumstances()}.\n\n{_marked(said)}")


def _marked(said: str) -> str:
    """Return the table between marks, by which the documentation finds it."""
    return f"<!-- the table of tuning -->\n\n{said}\n\n<!-- the end of the table of tuning -->"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*REGRESSION, *CLASSIFICATION])
    parser.add_argument("--splits", type=int, nargs="+")
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the search of tune")
    parser.add_argument("--results", type=Path, default=KEPT, metavar="FOLDER")
    parser.add_argument("--again", action="store_true", help="measure what is kept, too")
    parser.add_argument("--full", action="store_true", help=f"{SPLITS} splits")
    parser.add_argument("--page", action="store_true", help="write the table, and measure nothing")
    return parser


if __name__ == "__main__":
    main()

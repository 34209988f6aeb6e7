"""``gramian.tune`` beside gradient boosting, tuned support vector machines, random forests, xRFM.

Each set is split at random into training rows (3,000, or 70 % of a smaller set) and at most 5,000
test rows, the same for all contenders, which see the columns as they are stored. The score is R² or
accuracy on the test rows, the mean of the splits. Seconds are CPU seconds of the whole process, all
threads together, so that other work on the machine does not count.

``--sets`` and ``--splits`` choose less; ``--full`` takes five splits of all sets. ``--append FILE``
adds each result to a file of JSON lines, and leaves out what is there already.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

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

from benchmarks.harness import table
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
    seconds: float


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
    start = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CONTENDERS[contender](split, number)
    seconds = process_time() - start
    score = float(model.score(split.X_test, split.y_test))
    return Result(name, number, contender, score, seconds)


def summary(results: Iterable[Result]) -> str:
    """Return the table of mean scores, and who wins how often."""
    found: dict[str, dict[str, list[Result]]] = {}
    for one in results:
        found.setdefault(one.dataset, {}).setdefault(one.contender, []).append(one)
    present = [name for name in CONTENDERS if any(name in each for each in found.values())]
    counts = {"beats gradient boosting": 0, "level with the best": 0, "best": 0}
    counted, lines = 0, []
    for dataset, by_name in found.items():
        means = {name: np.mean([r.score for r in by_name[name]]) for name in by_name}
        best = max(means.values())
        cells = [_cell(means, name, best) for name in present]
        seconds = [np.mean([r.seconds for r in by_name.get(name, [])] or [0]) for name in present]
        splits = len(by_name.get(OURS, []))
        lines.append([dataset, str(splits), *cells, " / ".join(f"{s:.0f}" for s in seconds)])
        if OURS not in means or len(means) < max(len(present), 2):
            continue  # only sets that everybody was measured on count
        counted += 1
        others = [name for name in means if name != OURS]
        rival = max(others, key=lambda name: means[name])
        counts["beats gradient boosting"] += means[OURS] > means.get("gradient boosting", np.inf)
        counts["best"] += means[OURS] > means[rival]
        counts["level with the best"] += means[OURS] >= means[rival] - _error(by_name, rival)
    said = ", ".join(f"{what} on {count} of {counted} sets" for what, count in counts.items())
    return f"{table(['set', 'splits', *present, 'CPU s'], lines)}\n\n`tune` {said}."


def _cell(means: dict[str, Any], name: str, best: float) -> str:
    if name not in means:
        return ""
    return f"**{means[name]:.4f}**" if means[name] == best else f"{means[name]:.4f}"


def _error(by_name: dict[str, list[Result]], rival: str) -> float:
    """Return the standard error of the difference over the splits that both have; 0 for one."""
    ours = {r.split: r.score for r in by_name[OURS]}
    theirs = {r.split: r.score for r in by_name[rival]}
    gaps = [ours[s] - theirs[s] for s in ours if s in theirs]
    return float(np.std(gaps, ddof=1) / len(gaps) ** 0.5) if len(gaps) > 1 else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*REGRESSION, *CLASSIFICATION])
    parser.add_argument("--splits", type=int, nargs="+")
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the search of tune")
    parser.add_argument("--append", type=Path, metavar="FILE")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    CONTENDERS[OURS] = partial(tuned, seconds=options.seconds)
    results = _read(options.append)
    done = {(r.dataset, r.split, r.contender) for r in results}
    splits = options.splits or range(SPLITS if options.full else 1)
    for number in splits:
        for name in options.sets:
            for contender in options.contenders:
                if (name, number, contender) in done:
                    continue
                try:
                    one = measure(name, number, contender)
                except (ImportError, FileNotFoundError):  # not installed, or no such data here
                    continue
                results.append(one)
                if options.append:
                    with options.append.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(one._asdict()) + "\n")
                    print(*one, flush=True)
    print(summary(results))


def _read(path: Path | None) -> list[Result]:
    if path is None or not path.exists():
        return []
    return [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()

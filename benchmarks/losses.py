"""Other losses against scikit-learn: on the same Nyström features, and on the exact kernel.

``python -m benchmarks losses`` tries small sizes, ``--full`` those of the claims: covtype (561,012
rows) with 1,000 landmarks and MNIST with 2,000, SVC on 20,000 rows, probabilities on five data
sets, 10,000 classes, and a file of a million rows in a budget of 200 MB. ``--part PART`` runs one;
``torchkm``, which takes a ``--device``, runs only so. Times are CPU seconds of all threads, so that
other work on the machine changes little, and with the same features wall time too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.kernel_approximation
import sklearn.linear_model
import sklearn.svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import gramian
from benchmarks import _torchkm
from benchmarks._data import rows
from benchmarks.harness import measure_growth, table
from benchmarks.peers.learners import GivenFeatures
from gramian import (
    RBF,
    Exact,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidgeClassifier,
    KernelSVC,
    Local,
    Nystroem,
    datasets,
)

TEST_ROWS = 10_000
ALPHA = 1.0
BUDGET = "200MB"
CALIBRATED = ("pendigits", "satimage", "a9a", "covtype", "mnist")


class Split(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def split(name: str, n: int | None) -> Split:
    """Rows in float32 and classes; of covtype class 2 against the rest."""
    X, y = rows(name, "float32"), np.asarray(datasets.load(name).y)
    y = (y == 2).astype(int) if name == "covtype" else y
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[:TEST_ROWS], order[TEST_ROWS:][:n]
    return Split(X[train], y[train], X[test], y[test])


class Spent(NamedTuple):
    wall: float
    cpu: float  # of all threads

    def __add__(self, other: Spent) -> Spent:  # type: ignore[override]
        return Spent(self.wall + other.wall, self.cpu + other.cpu)


def clocked(call: Callable[[], Any]) -> tuple[Any, Spent]:
    """The result of a call, and the seconds it took."""
    begun, start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = call()
    return result, Spent(time.perf_counter() - begun, time.process_time() - start)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and the CPU seconds it took."""
    result, spent = clocked(call)
    return result, spent.cpu


def log_loss(Z: np.ndarray, y: np.ndarray, model: Any) -> float:
    f = Z.astype(np.float64) @ np.asarray(model.coef_).T + model.intercept_
    if f.shape[1] == 1:
        losses = np.logaddexp(0, -np.where(y == model.classes_[1], 1, -1) * f[:, 0])
    else:
        largest = f.max(axis=1, keepdims=True)
        own = f[np.arange(len(f)), np.searchsorted(model.classes_, y)]
        losses = np.log(np.exp(f - largest).sum(axis=1)) + largest[:, 0] - own
    return float(losses.sum() + 0.5 * ALPHA * (np.asarray(model.coef_) ** 2).sum())


def squared_hinge(Z: np.ndarray, y: np.ndarray, model: Any) -> float:
    total = 0.0
    classes = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    for k, label in enumerate(classes):
        f = Z.astype(np.float64) @ np.asarray(model.coef_)[k]
        total += float((np.maximum(0, 1 - np.where(y == label, 1, -1) * f) ** 2).sum())
    return total + 0.5 * ALPHA * float((np.asarray(model.coef_) ** 2).sum())


def our_learner(loss: str, kernel: Any) -> Any:
    if loss == "logistic":
        return KernelLogisticRegression(ALPHA, kernel, random_state=0)
    return KernelSVC(ALPHA, kernel, loss="squared_hinge", fit_intercept=False, tol=1e-6)


def their_learner(loss: str) -> Any:
    if loss == "logistic":
        return sklearn.linear_model.LogisticRegression(C=1 / ALPHA, tol=1e-5, max_iter=2000)
    return sklearn.svm.LinearSVC(
        C=1 / ALPHA, dual=False, fit_intercept=False, tol=1e-5, max_iter=10_000
    )


ON_FEATURES = {"logistic": log_loss, "squared hinge": squared_hinge}


def on_features(name: str, n: int | None, m: int, gamma: float, only: str) -> None:
    """Solvers on the features of one fitted approximation, given to both or computed by both.

    ``only`` is a loss; by default, both run.
    """
    data = split(name, n)
    approximation, fitting = clocked(lambda: Nystroem(RBF(gamma), m, random_state=0).fit(data.X))
    Z = approximation.transform(data.X)
    lines = []
    for loss in [only] if only else ON_FEATURES:
        whole, ours = clocked(
            lambda loss=loss: our_learner(loss, approximation).fit(data.X, data.y)
        )
        given, ours_given = clocked(
            lambda loss=loss: our_learner(loss, GivenFeatures()).fit(Z, data.y)
        )
        other, theirs = clocked(lambda loss=loss: their_learner(loss).fit(Z, data.y))
        reference = ON_FEATURES[loss](Z, data.y, other)
        sides = {
            "gramian, computes features": (ours, float(np.sum(whole.objective_)), whole),
            "gramian, gets features": (ours_given, float(np.sum(given.objective_)), given),
            "scikit-learn, gets features": (theirs, reference, other),
        }
        for side, (spent, objective, model) in sides.items():
            lines.append(
                [
                    f"{loss}, {side}", f"{spent.wall:.1f}", f"{spent.cpu:.1f}",
                    f"{theirs.wall / spent.wall:.1f}", f"{theirs.cpu / spent.cpu:.1f}",
                    f"{objective:.7g}", f"{objective / reference - 1:.1e}", np.max(model.n_iter_),
                ]
            )  # fmt: skip
    made = sklearn.kernel_approximation.Nystroem(gamma=gamma, n_components=m, random_state=0)
    _, making = clocked(lambda: made.fit_transform(data.X))
    print(f"{name}, {len(data.X):,} rows of float32, {m:,} landmarks, RBF with gamma {gamma:g},")
    print(f"alpha {ALPHA:g}. Ratios are scikit-learn's seconds over those of the line. For a whole")
    print(
        f"pipeline, add {fitting.wall:.1f} s (CPU {fitting.cpu:.1f}) to gramian, which chooses its"
    )
    print(
        f"landmarks by k-means, and {making.wall:.1f} s (CPU {making.cpu:.1f}) to scikit-learn for"
    )
    print("its Nystroem, with random landmarks.\n")
    header = ["", "wall s", "CPU s", "ratio", "CPU ratio", "objective", "above", "steps"]
    print(table(header, lines), "\n")


def against_svc(n: int, m: int) -> None:
    """What may replace SVC; with gamma 10, a row has few neighbours."""
    data, kernel = split("covtype", n), RBF(10.0)
    sides = {
        "ridge classifier, Local": KernelRidgeClassifier(0.1, Local(kernel, random_state=0)),
        "squared hinge, Local": KernelSVC(
            0.1, Local(kernel, random_state=0), loss="squared_hinge", tol=1e-3
        ),
        "hinge, exact": KernelSVC(0.1, Exact(kernel), tol=1e-3),
        "hinge, Local": KernelSVC(0.1, Local(kernel, random_state=0), tol=1e-3),
        f"squared hinge, {m:,} landmarks": KernelSVC(
            0.1, Nystroem(kernel, m, random_state=0), loss="squared_hinge", tol=1e-3, random_state=0
        ),
        "scikit-learn's SVC": sklearn.svm.SVC(C=10.0, gamma=10.0, cache_size=1000),
    }
    lines = []
    for name, model in sides.items():
        model, seconds = timed(lambda model=model: model.fit(data.X, data.y))
        score, predicting = timed(lambda model=model: model.score(data.X_test, data.y_test))
        lines.append([name, f"{score:.4f}", f"{seconds:.2f}", f"{predicting:.3f}"])
    print(f"covtype, {n:,} rows, gamma 10, C = 10, alpha 0.1; {TEST_ROWS:,} rows predicted.\n")
    print(table(["", "accuracy", "fit CPU s", "predict CPU s"], lines), "\n")


def calibration_error(p: np.ndarray, y: np.ndarray, bins: int = 15) -> float:
    """The expected calibration error: |accuracy - confidence|, averaged over bins of confidence."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    which = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = np.bincount(which, weights=right - sure, minlength=bins)
    return float(np.abs(gaps).sum() / len(y))


def probabilities(n: int, m: int) -> None:
    """Fit n rows of each set, with gamma by the default rule on all sides, and judge others."""
    lines = []
    for name in CALIBRATED:
        data = datasets.load(name)
        X, y = datasets.scaled(data.X, "float32"), np.unique(data.y, return_inverse=True)[1]
        order = np.random.default_rng(0).permutation(len(y))
        train, test = np.split(order[: n + TEST_ROWS], [min(n, 2 * len(y) // 3)])
        X, y, T, u = X[train], y[train], X[test], y[test]
        kernel = Nystroem(RBF("median"), m, random_state=0).fit(X)
        gamma = kernel.kernel_.gamma_
        features = make_pipeline(kernel, sklearn.linear_model.LogisticRegression(max_iter=1000))
        svc = sklearn.svm.SVC(C=10.0, gamma=gamma)
        sides = {
            "KernelLogisticRegression('loo')": KernelLogisticRegression(
                "loo", kernel, random_state=0
            ),
            "KernelRidgeClassifier('loo')": KernelRidgeClassifier("loo", kernel),
            "CalibratedClassifierCV(SVC)": CalibratedClassifierCV(svc, ensemble=False, cv=3),
            "LogisticRegression, columns": sklearn.linear_model.LogisticRegression(max_iter=1000),
            "LogisticRegression, features": features,
        }
        for side, model in sides.items():
            model, seconds = timed(lambda m=model, X=X, y=y: m.fit(X, y))
            p = model.predict_proba(T)
            own = np.clip(p[np.arange(len(p)), u], 1e-15, 1.0)
            values = -np.log(own).mean(), calibration_error(p, u), (p.argmax(1) == u).mean()
            lines.append([name, side, *(f"{v:.4f}" for v in values), f"{seconds:.1f}"])
    print(f"Probabilities of up to {TEST_ROWS:,} other rows; {n:,} rows to train on, {m}")
    print("landmarks, gamma by the median of distances.\n")
    header = ["", "", "log loss", "calibration error", "accuracy", "fit CPU s"]
    print(table(header, lines), "\n")


def fit_many_classes(loss: str, n: int, classes: int, m: int) -> Callable[[], str]:
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((classes, 20))
    y = np.concatenate((np.arange(classes), rng.integers(0, classes, n - classes)))
    X = (centres[y] + 0.2 * rng.standard_normal((n, 20))).astype(np.float32)
    kernel = Nystroem(RBF(0.05), m, landmarks="uniform", random_state=0)
    gramian.set_config(memory_budget="1GB")
    model: Any = KernelSVC(1.0, kernel, loss=loss, random_state=0)
    if loss == "logistic":
        model = KernelLogisticRegression(1.0, kernel, random_state=0)

    def fit() -> str:
        try:
            _, seconds = timed(lambda: model.fit(X, y))
        except ValueError as refused:
            return str(refused)
        return f"{seconds:.0f} CPU s, {model.n_iter_} steps"

    return fit


def many_classes(n: int, classes: int, m: int) -> None:
    print(f"{classes:,} classes, {n:,} rows, {m} landmarks, in a budget of 1 GB:\n")
    for loss in ("logistic", "squared_hinge", "hinge"):
        grown = measure_growth(fit_many_classes, loss, n, classes, m)
        print(f"{loss}: {grown.largest / 1e6:.0f} MB, {grown.remark}")
    print()


def quantiles(m: int) -> None:
    lines = []
    for name in ("cadata", "wine_quality"):
        data = datasets.load(name)
        X, y = datasets.scaled(data.X, "float64"), np.asarray(data.y, dtype=float)
        order = np.random.default_rng(0).permutation(len(X))
        train, test = np.array_split(order, 2)
        kernel = Nystroem(RBF(1.0), m, random_state=0)
        model = KernelQuantileRegressor(1.0, kernel, quantile=[0.05, 0.5, 0.95], random_state=0)
        scale = y.std()
        fitted, seconds = timed(
            lambda model=model, X=X, y=y, t=train, s=scale: model.fit(X[t], y[t] / s)
        )
        below = (y[test, None] / scale <= fitted.predict(X[test])).mean(axis=0)
        lines.append([name, *(f"{share:.3f}" for share in below), f"{seconds:.1f}"])
    print("Shares of other rows below the predicted quantiles.\n")
    print(table(["", "0.05", "0.5", "0.95", "fit CPU s"], lines), "\n")


def fit_a_file(path: str, n: int, m: int) -> Callable[[], str]:
    y = np.load(Path(path).with_name("classes.npy"))
    gramian.set_config(memory_budget=BUDGET)
    model = KernelLogisticRegression(1.0, Nystroem("rbf", m, random_state=0), random_state=0)

    def fit() -> str:
        _, seconds = timed(lambda: model.fit(Path(path), y))
        return f"{seconds:.0f} CPU s, {model.n_iter_} steps"

    return fit


def from_a_file(n: int, m: int) -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        X = np.lib.format.open_memmap(path, "w+", np.float32, (n, 50))
        classes = np.empty(n, dtype=np.int8)
        for start in range(0, n, 100_000):
            block = rng.standard_normal((min(100_000, n - start), 50), dtype=np.float32)
            X[start : start + len(block)] = block
            signal = block[:, 0] * block[:, 1] + 0.5 * rng.standard_normal(len(block))
            classes[start : start + len(block)] = signal > 0
        X.flush()
        del X
        np.save(path.with_name("classes.npy"), classes)
        grown = measure_growth(fit_a_file, str(path), n, m)
    print(f"Logistic regression on a file of {n:,} rows of 50 float32, {m} landmarks, in {BUDGET}:")
    print(f"{grown.seconds:.0f} s, {grown.largest / 1e6:.0f} MB, {grown.remark}.\n")


def main(full: bool = False, part: str = "", device: str = "cpu", loss: str = "") -> None:
    if loss and loss not in ON_FEATURES:
        raise SystemExit(f"--loss must be one of {', '.join(ON_FEATURES)}; got {loss}.")
    parts = {
        "covtype": lambda: on_features(
            "covtype", None if full else 20_000, 1000 if full else 200, 5.0, loss
        ),
        "mnist": lambda: on_features(
            "mnist", None if full else 5_000, 2000 if full else 200, 0.02, loss
        ),
        "svc": lambda: against_svc(20_000 if full else 3_000, 2000 if full else 300),
        "quantiles": lambda: quantiles(500 if full else 100),
        "probabilities": lambda: probabilities(5_000 if full else 1_500, 300 if full else 150),
        "classes": lambda: many_classes(
            20_000 if full else 3_000, 10_000 if full else 300, 100 if full else 50
        ),
        "file": lambda: from_a_file(1_000_000 if full else 50_000, 500 if full else 100),
    }
    alone = {
        "torchkm": lambda: _torchkm.main(device, None if full else 3_000, 2000 if full else 200)
    }
    if part and part not in parts | alone:
        raise SystemExit(f"--part must be one of {', '.join(parts | alone)}; got {part}.")
    for run in [(parts | alone)[part]] if part else parts.values():
        run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the sizes of the claims")
    parser.add_argument("--part", default="", help="one part")
    parser.add_argument("--device", default="cpu", help="of the part torchkm: cpu or cuda")
    parser.add_argument("--loss", default="", help="of the parts covtype and mnist: one loss")
    main(**vars(parser.parse_args()))

"""001: the three exact algorithms, each compared with its version without a kernel."""

from __future__ import annotations

import numpy as np
import sklearn.decomposition
import sklearn.kernel_ridge
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from gramian.analysis.report.figures import At, Curves, Points
from gramian.experiments import audits, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    DOUBLE_PENALTY,
    ONE_ITERATION,
    RANDOM_LABELS,
    SCALED_COMPONENTS,
    SHIFTED,
    SHIFTED_COMPONENTS,
)
from gramian.experiments.drawing import axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF
from gramian.learners import KernelKMeans, KernelPCA, KernelRidge

SEEDS = 10


class Seeded(Experiment):
    """One unit for each seed."""

    def trial(self) -> list[Unit]:
        return self.units(Settings(quick=True))[:3]


class Ridge(Seeded):
    name = "001/ridge"
    title = "Kernel ridge regression"
    breaks = (DOUBLE_PENALTY, SHIFTED)
    claim = "α = (K + λI)⁻¹ y, and f(x) = Σ k(x, x_i) α_i fits data that no line can."

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(n=60, gamma=1.0, penalty=0.1, noise=0.2, seed=range(SEEDS))

    def measure(self, *, n: int, gamma: float, penalty: float, noise: float, seed: int) -> Numbers:
        rng = np.random.default_rng(seed)
        x = np.sort(rng.uniform(0, 6, n))
        y = np.sin(x) + noise * rng.normal(size=n)
        X, grid = x[:, None], np.linspace(0, 6, 61)
        kernel = RBF(gamma)
        model = KernelRidge(penalty, kernel=kernel, fit_intercept=False).fit(X, y)
        f = model.predict(grid[:, None])
        alpha = reference.ridge(reference.rbf(X, X, gamma), y, penalty)
        theirs = sklearn.kernel_ridge.KernelRidge(alpha=penalty, kernel="rbf", gamma=gamma)
        line = np.polyfit(x, y, 1)
        return {
            "x": x.tolist(),
            "y": y.tolist(),
            "grid": grid.tolist(),
            "fit": f.tolist(),
            "line": np.polyval(line, grid).tolist(),
            "predictions off": audits.off(f, reference.rbf(grid[:, None], X, gamma) @ alpha),
            "off scikit-learn": float(np.abs(f - theirs.fit(X, y).predict(grid[:, None])).max()),
            "error": float(np.sqrt(np.mean((f - np.sin(grid)) ** 2))),
            "error of a line": float(
                np.sqrt(np.mean((np.polyval(line, grid) - np.sin(grid)) ** 2))
            ),
        }

    def figures(self, results: Results) -> list[Curves]:
        one = results[0]
        series = {
            name: [At(x, y) for x, y in zip(one["grid"], values, strict=True)][::2]
            for name, values in (
                ("exact", one["fit"]),
                ("least squares", one["line"]),
                ("sin x", np.sin(one["grid"]).tolist()),
            )
        }
        x, y = axis("x", is_log=False), axis("y", is_log=False)
        said = f"{one['n']} points sin x plus noise of {one['noise']:g}; RBF, λ {one['penalty']:g}."
        return [curves(self.title, x, y, series, said)]

    def checks(self, results: Results) -> list[Check]:
        off = float(results.values("off scikit-learn").max())
        noise, error = results[0]["noise"], results.median("error")
        line = float(results.values("error of a line").min())
        return [
            Check(off < 1e-8, f"It agrees with scikit-learn to {off:.0e} (allowed: 1e-8)."),
            Check(
                error < 0.5 * noise < line,
                f"Its distance from sin x is {error:.3f} (standard deviation) with noise of "
                f"{noise:g}; that of a line is {line:.2f} or more.",
            ),
        ]


PLANE = "first column", "second column"
COMPONENTS = "first component", "second component"


def rings(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return make_circles(n, factor=0.3, noise=0.06, random_state=seed)


def by_class(
    points: np.ndarray, labels: np.ndarray, names: list[str]
) -> dict[str, list[list[float]]]:
    """Return the points of each class, rounded to what a picture shows."""
    points, labels = np.asarray(points), np.asarray(labels)
    return {name: np.round(points[labels == label], 4).tolist() for label, name in enumerate(names)}


class Clusters(Seeded):
    name = "001/k-means"
    title = "Kernel k-means"
    breaks = (RANDOM_LABELS, ONE_ITERATION)
    claim = "Lloyd's steps need only K, and find clusters that no straight line separates."

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(n=400, gamma=5.0, seed=range(SEEDS))

    def measure(self, *, n: int, gamma: float, seed: int) -> Numbers:
        X, y = rings(n, seed)
        kernel = RBF(gamma)
        model = KernelKMeans(2, kernel=kernel, random_state=seed).fit(X)
        labels, K = np.asarray(model.labels_), reference.rbf(X, X, gamma)
        distances = reference.kernel_distances(K, K, K.diagonal(), labels)
        objective = reference.kernel_objective(K, labels)
        plain = KMeans(2, n_init=2, random_state=0).fit_predict(X)
        return {
            "rings": by_class(X, y, ["outer ring", "inner ring"]),
            "found": by_class(X, labels == labels[y == 1][0], ["cluster A", "cluster B"]),
            "plain": by_class(X, plain, ["cluster A", "cluster B"]),
            "agreement": float(adjusted_rand_score(y, labels)),
            "agreement of k-means": float(adjusted_rand_score(y, plain)),
            "off the formula": float(abs(model.inertia_ / objective - 1)),
            "rows astray": float(np.mean(distances.argmin(axis=1) != labels)),
        }

    def figures(self, results: Results) -> list[Points]:
        one = results[0]
        return [
            Points("k-means", one["plain"], *PLANE, "It separates the points by a line."),
            Points("Kernel k-means", one["found"], *PLANE, "RBF, gamma 5: each ring is a cluster."),
        ]

    def checks(self, results: Results) -> list[Check]:
        own, plain = results.median("agreement"), results.median("agreement of k-means")
        return [
            Check(
                own > 0.99 and plain < 0.1,
                f"Its clusters match the rings (adjusted Rand index {own:.2f}); those of k-means "
                f"do not ({plain:.2f}).",
            )
        ]


class Components(Seeded):
    name = "001/pca"
    title = "Kernel PCA"
    breaks = (SCALED_COMPONENTS, SHIFTED_COMPONENTS)
    claim = "Eigenvectors of K give components that separate rings."

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(n=400, gamma=5.0, seed=range(SEEDS))

    def measure(self, *, n: int, gamma: float, seed: int) -> Numbers:
        X, y = rings(n, seed)
        Z = KernelPCA(2, kernel=RBF(gamma)).fit_transform(X)
        theirs = sklearn.decomposition.KernelPCA(2, kernel="rbf", gamma=gamma).fit_transform(X)
        signs = np.sign(np.sum(Z * theirs, axis=0))
        own = reference.components(reference.rbf(X, X, gamma), 2)
        names = ["outer ring", "inner ring"]

        def gap(values: np.ndarray) -> float:
            """Return the gap between the rings along one direction, relative to its range."""
            inner, outer = values[y == 1], values[y == 0]
            apart = max(inner.min() - outer.max(), outer.min() - inner.max())
            return float(apart / np.ptp(values))

        return {
            "before": by_class(X, y, names),
            "after": by_class(Z, y, names),
            "off scikit-learn": float(np.abs(Z * signs - theirs).max()),
            "off the formula": audits.off(Z * signs, own * np.sign(np.sum(own * theirs, axis=0))),
            "gap": max(gap(Z[:, 0]), gap(Z[:, 1])),
            "gap before": max(gap(X[:, 0]), gap(X[:, 1])),
        }

    def figures(self, results: Results) -> list[Points]:
        one = results[0]
        return [
            Points("Before", one["before"], *PLANE, "Two rings in the plane."),
            Points("After kernel PCA", one["after"], *COMPONENTS, "RBF, gamma 5."),
        ]

    def checks(self, results: Results) -> list[Check]:
        off = float(results.values("off scikit-learn").max())
        gap, before = results.median("gap"), results.median("gap before")
        return [
            Check(off < 1e-7, f"The components agree with scikit-learn's to {off:.0e}."),
            Check(
                gap > 0.05 > before,
                f"Along a component, the rings are {gap:.0%} of its range apart; along a column, "
                f"they overlap by {-before:.0%}.",
            ),
        ]


EXACT = (Ridge, Clusters, Components)

"""001: the three exact algorithms, each compared with its version without a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.decomposition
import sklearn.kernel_ridge
from sklearn.cluster import KMeans
from sklearn.datasets import make_circles
from sklearn.metrics import adjusted_rand_score

from gramian.analysis.report.figures import At, Curves, Points
from gramian.experiments.base import Check, Experiment, Settings, Unit
from gramian.experiments.drawing import axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF
from gramian.learners import KernelKMeans, KernelPCA, KernelRidge


class Ridge(Experiment):
    name = "001/ridge"
    title = "Kernel ridge regression"
    claim = "α = (K + λI)⁻¹ y, and f(x) = Σ k(x, x_i) α_i fits data that no line can."

    def units(self, settings: Settings) -> list[Unit]:
        return [{"n": 60, "gamma": 1.0, "penalty": 0.1, "noise": 0.2}]

    def measure(self, *, n: int, gamma: float, penalty: float, noise: float) -> dict[str, Any]:
        rng = np.random.default_rng(0)
        x = np.sort(rng.uniform(0, 6, n))
        y = np.sin(x) + noise * rng.normal(size=n)
        X, grid = x[:, None], np.linspace(0, 6, 61)
        kernel = RBF(gamma)
        model = KernelRidge(penalty, kernel=kernel, fit_intercept=False).fit(X, y)
        f = model.predict(grid[:, None])
        alpha = np.linalg.solve(kernel(X) + penalty * np.eye(n), y)
        theirs = sklearn.kernel_ridge.KernelRidge(alpha=penalty, kernel="rbf", gamma=gamma)
        line = np.polyfit(x, y, 1)
        return {
            "x": x.tolist(),
            "y": y.tolist(),
            "grid": grid.tolist(),
            "fit": f.tolist(),
            "line": np.polyval(line, grid).tolist(),
            "off the formula": float(np.abs(f - kernel(grid[:, None], X) @ alpha).max()),
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
        one = results[0]
        off = max(one["off the formula"], one["off scikit-learn"])
        return [
            Check(off < 1e-8, f"It agrees with the formula and scikit-learn to {off:.0e}."),
            Check(
                one["error"] < 0.5 * one["noise"] < one["error of a line"],
                f"Its distance from sin x is {one['error']:.3f} (standard deviation) with noise of "
                f"{one['noise']:g}; that of a line is {one['error of a line']:.2f}.",
            ),
        ]


PLANE = "first column", "second column"
COMPONENTS = "first component", "second component"


def rings(n: int) -> tuple[np.ndarray, np.ndarray]:
    return make_circles(n, factor=0.3, noise=0.06, random_state=0)


def by_class(points: Any, labels: Any, names: list[str]) -> dict[str, list[list[float]]]:
    """Return the points of each class, rounded to what a picture shows."""
    points, labels = np.asarray(points), np.asarray(labels)
    return {name: np.round(points[labels == label], 4).tolist() for label, name in enumerate(names)}


class Clusters(Experiment):
    name = "001/k-means"
    title = "Kernel k-means"
    claim = "Lloyd's steps need only K, and find clusters that no straight line separates."

    def units(self, settings: Settings) -> list[Unit]:
        return [{"n": 400, "gamma": 5.0}]

    def measure(self, *, n: int, gamma: float) -> dict[str, Any]:
        X, y = rings(n)
        kernel = RBF(gamma)
        model = KernelKMeans(2, kernel=kernel, random_state=0).fit(X)
        labels, K = model.labels_, kernel(X)
        members = (labels == np.unique(labels)[:, None]).astype(float)
        within = np.einsum("ji,ji->j", members, members @ K) / members.sum(axis=1)
        plain = KMeans(2, n_init=10, random_state=0).fit_predict(X)
        return {
            "rings": by_class(X, y, ["outer ring", "inner ring"]),
            "found": by_class(X, labels == labels[y == 1][0], ["cluster A", "cluster B"]),
            "plain": by_class(X, plain, ["cluster A", "cluster B"]),
            "agreement": float(adjusted_rand_score(y, labels)),
            "agreement of k-means": float(adjusted_rand_score(y, plain)),
            "off the formula": float(abs(model.inertia_ / (np.trace(K) - within.sum()) - 1)),
        }

    def figures(self, results: Results) -> list[Points]:
        one = results[0]
        return [
            Points("k-means", one["plain"], *PLANE, "It separates the points by a line."),
            Points("Kernel k-means", one["found"], *PLANE, "RBF, gamma 5: each ring is a cluster."),
        ]

    def checks(self, results: Results) -> list[Check]:
        one = results[0]
        return [
            Check(
                one["agreement"] > 0.99 and one["agreement of k-means"] < 0.1,
                f"Its clusters match the rings (adjusted Rand index {one['agreement']:.2f}); "
                f"those of k-means do not ({one['agreement of k-means']:.2f}).",
            ),
            Check(
                one["off the formula"] < 1e-9,
                "Its objective agrees with the formula to a relative "
                f"{one['off the formula']:.0e}.",
            ),
        ]


class Components(Experiment):
    name = "001/pca"
    title = "Kernel PCA"
    claim = "Eigenvectors of K give components that separate rings."

    def units(self, settings: Settings) -> list[Unit]:
        return [{"n": 400, "gamma": 5.0}]

    def measure(self, *, n: int, gamma: float) -> dict[str, Any]:
        X, y = rings(n)
        Z = KernelPCA(2, kernel=RBF(gamma)).fit_transform(X)
        theirs = sklearn.decomposition.KernelPCA(2, kernel="rbf", gamma=gamma).fit_transform(X)
        signs = np.sign(np.sum(Z * theirs, axis=0))
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
        one = results[0]
        off = one["off scikit-learn"]
        return [
            Check(off < 1e-7, f"The components agree with scikit-learn's to {off:.0e}."),
            Check(
                one["gap"] > 0.05 > one["gap before"],
                f"Along a component, the rings are {100 * one['gap']:.0f} % of its range apart; "
                f"along a column, they overlap by {-100 * one['gap before']:.0f} %.",
            ),
        ]


EXACT = (Ridge, Clusters, Components)

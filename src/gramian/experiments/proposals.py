"""000, its proposals for further work: other landmarks, and an unknown number of clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from gramian.analysis.accuracy import relative_error
from gramian.analysis.report.figures import Curves, Grid
from gramian.approximations import MEKA, Nystroem
from gramian.experiments import audits, breaks, data, measuring, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import FEATURES, STRAY_LABELS, UNDERSTATED, uniform_for
from gramian.experiments.drawing import ERROR, RUNS, axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF
from gramian.learners import OnlineKernelKMeans
from gramian.samplers import KDPP, KMeansCentres, Landmarks, RPCholesky

LANDMARKS = {
    "Nyström uniform": "uniform",
    "Nyström k-means": "kmeans",
    "Nyström RPCholesky": "rpcholesky",
    "Nyström k-DPP": "dpp",
}


class OtherLandmarks(Experiment):
    name = "000/landmarks"
    title = "Landmarks that represent the data or depend on each other"
    claim = (
        "Cluster centres should represent the data better than random points; so should sampling "
        "that depends on earlier draws, such as a Markov chain."
    )
    breaks = (
        *FEATURES,
        *breaks.LANDMARKS,
        uniform_for(KMeansCentres, "k-means centres"),
        uniform_for(RPCholesky, "RPCholesky"),
        uniform_for(KDPP, "the k-DPP"),
        UNDERSTATED,
    )
    note = (
        "RPCholesky draws each landmark in proportion to the error left by the previous ones; the "
        "k-DPP is sampled by a Markov chain of swaps. For a Gaussian kernel, the report's "
        "probabilities are uniform."
    )

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(
            data="iris",
            method=list(LANDMARKS),
            gamma=1.0,
            m=[5, 10, 20, 40],
            runs=10 if settings.quick else 30,
        )

    def trial(self) -> list[Unit]:
        return [
            unit | {"runs": 4} for unit in self.units(Settings(quick=True)) if unit["m"] in (10, 20)
        ]

    def measure(self, *, data: str, method: str, gamma: float, m: int, runs: int) -> Numbers:
        X, _ = _rows(data)
        kernel, landmarks, K = RBF(gamma), LANDMARKS[method], reference.rbf(X, X, gamma)
        laws = {"rpcholesky": reference.by_residuals, "dpp": reference.by_volume}
        law: Callable[[Landmarks], dict[str, float]] = lambda chosen: {}  # noqa: E731
        if landmarks == "kmeans":
            law = lambda chosen: audits.centres(np.asarray(chosen.points), X)  # noqa: E731
        elif landmarks in laws:
            law = audits.by_determinant(K, m, laws[landmarks])
        found, seen = [], []
        for seed in range(runs):
            model = Nystroem(kernel, m, landmarks=landmarks, random_state=seed).fit(X)
            found.append(float(relative_error(model, X)))
            audit = audits.nystroem(model, X, is_uniform=landmarks == "uniform")
            own = law(model.landmarks_)
            seen.append({**audit, **own, **audits.reported_error(model, X, found[-1])})
        return {"error": found, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        series = {str(m): results.curve("m", "error", method=m) for m in results.choices("method")}
        return [curves(self.title, axis("landmarks"), ERROR, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        found = []
        uniform = results.medians("error", "m", method="Nyström uniform")
        for method in list(LANDMARKS)[1:]:
            own = results.medians("error", "m", method=method)
            ratios = [own[m] / uniform[m] for m in own]
            middle = float(np.exp(np.mean(np.log(ratios))))
            found.append(
                Check(
                    middle < 0.97,
                    f"{method.removeprefix('Nyström ')} has {middle:.2f} times the error of "
                    f"uniform landmarks ({min(ratios):.2f} to {max(ratios):.2f}, depending on "
                    "their number).",
                )
            )
        return found


class UnknownClusters(Experiment):
    name = "000/unknown-clusters"
    title = "Blocks for an unknown number of clusters"
    breaks = (*FEATURES, STRAY_LABELS)
    claim = "Online, a point can open a new cluster, so the number of clusters need not be known."
    note = (
        "DP-means in feature space (Kulis and Jordan), with a distance as its only parameter; its "
        "clusters become MEKA's blocks. k-means uses the number of clusters that DP-means found."
    )

    def units(self, settings: Settings) -> list[Unit]:
        distances = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
        return crossed(data="iris", gamma=0.5, threshold=distances, rank=30, seed=range(10))

    def trial(self) -> list[Unit]:
        every = self.units(Settings(quick=True))
        return [unit for unit in every if unit["seed"] < 2 and unit["threshold"] in (0.5, 1.0)]

    def measure(
        self, *, data: str, gamma: float, threshold: float, rank: int, seed: int
    ) -> Numbers:
        X, y = _rows(data)
        kernel = RBF(gamma)
        model = OnlineKernelKMeans(threshold, kernel, random_state=seed)
        order = np.random.default_rng(seed).permutation(len(X))
        for batch in np.array_split(order, 5):  # as a stream
            model.partial_fit(X[batch])
        labels = np.asarray(model.predict(X))
        count = len(np.unique(labels))
        approximation: Any = model.approximation_
        Z = np.asarray(approximation.transform(X))
        middles = np.asarray(model.centres_)
        astray = float(np.mean(cdist(Z, middles).argmin(axis=1) != labels))
        audit = audits.nystroem(approximation, X, is_uniform=False)
        common: dict[str, Any] = {"n_blocks": count, "random_state": seed}
        error = measuring.errors(lambda _: MEKA(kernel, rank, partition=labels, **common), X, 1)
        told = measuring.errors(lambda _: MEKA(kernel, rank, **common), X, 1)
        random = measuring.errors(lambda _: MEKA(kernel, rank, partition="random", **common), X, 1)
        return {
            "clusters": count,
            "agreement": float(adjusted_rand_score(y, labels)),
            "error": error[0],
            "error of k-means": told[0],
            "error at random": random[0],
            "rows astray": astray,
            "farthest": float(cdist(Z, middles).min(axis=1).max()),
            "off the formula": audit["off the formula"],
        }

    def figures(self, results: Results) -> list[Grid]:
        header = ["threshold", "clusters", "agreement with the species", "MEKA's error", "k-means"]
        keys = ["threshold", "clusters", "agreement", "error", "error of k-means"]
        first = results.where(seed=0)
        rows = [[unit[key] for key in keys] + [unit["error at random"]] for unit in first]
        said = f"Blocks by DP-means, by k-means and at random; total rank {results[0]['rank']}."
        return [Grid(self.title, [*header, "at random"], rows, said)]

    def checks(self, results: Results) -> list[Check]:
        counts = results.medians("clusters", "threshold")
        first, last = counts[min(counts)], counts[max(counts)]
        falling = list(counts.values()) == sorted(counts.values(), reverse=True)
        best = max(results.medians("agreement", "threshold").values())
        several = [unit for unit in results if unit["clusters"] > 1]
        told, random = (
            float(np.median([unit["error"] / unit[rival] for unit in several]))
            for rival in ("error of k-means", "error at random")
        )
        return [
            Check(
                falling and first > last,
                f"{first:g} clusters at distance {min(counts):g} and {last:g} at {max(counts):g} "
                "(medians); the larger the distance, the fewer.",
            ),
            Check(best > 0.3, f"The best agreement with the three species is {best:.2f}."),
            Check(
                told < 1.5 and random < 1,
                f"MEKA's error with these blocks is {told:.2f} times that with k-means blocks and "
                f"{random:.2f} times that with random blocks (medians).",
            ),
        ]


def _rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    return data.rows(name, "none")


PROPOSALS = (OtherLandmarks, UnknownClusters)

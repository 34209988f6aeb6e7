"""000, its proposals for further work: other landmarks, and an unknown number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from gramian.analysis.report.figures import Curves, Grid
from gramian.approximations import MEKA, Nystroem
from gramian.experiments import data, measuring
from gramian.experiments.base import Check, Experiment, Settings, Unit, crossed
from gramian.experiments.drawing import ERROR, RUNS, axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF
from gramian.learners import OnlineKernelKMeans

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

    def measure(self, *, data: str, method: str, gamma: float, m: int, runs: int) -> dict[str, Any]:
        X, _ = _rows(data)
        kernel, landmarks = RBF(gamma), LANDMARKS[method]
        return {
            "error": measuring.errors(
                lambda seed: Nystroem(kernel, m, landmarks=landmarks, random_state=seed), X, runs
            )
        }

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
    claim = "Online, a point can open a new cluster, so the number of clusters need not be known."
    note = (
        "DP-means in feature space (Kulis and Jordan), with a distance as its only parameter; its "
        "clusters become MEKA's blocks. k-means uses the number of clusters that DP-means found."
    )

    def units(self, settings: Settings) -> list[Unit]:
        distances = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
        return crossed(data="iris", gamma=0.5, threshold=distances, rank=30)

    def measure(self, *, data: str, gamma: float, threshold: float, rank: int) -> dict[str, Any]:
        X, y = _rows(data)
        kernel = RBF(gamma)
        model = OnlineKernelKMeans(threshold, kernel, random_state=0)
        order = np.random.default_rng(0).permutation(len(X))
        for batch in np.array_split(order, 5):  # as a stream
            model.partial_fit(X[batch])
        labels = model.predict(X)
        count = len(np.unique(labels))
        common: dict[str, Any] = {"n_blocks": count, "random_state": 0}
        error = measuring.errors(lambda _: MEKA(kernel, rank, partition=labels, **common), X, 1)
        told = measuring.errors(lambda _: MEKA(kernel, rank, **common), X, 1)
        random = measuring.errors(lambda _: MEKA(kernel, rank, partition="random", **common), X, 1)
        return {
            "clusters": count,
            "agreement": float(adjusted_rand_score(y, labels)),
            "error": error[0],
            "error of k-means": told[0],
            "error at random": random[0],
        }

    def figures(self, results: Results) -> list[Grid]:
        header = ["threshold", "clusters", "agreement with the species", "MEKA's error", "k-means"]
        keys = ["threshold", "clusters", "agreement", "error", "error of k-means"]
        rows = [[unit[key] for key in keys] + [unit["error at random"]] for unit in results]
        said = f"Blocks by DP-means, by k-means and at random; total rank {results[0]['rank']}."
        return [Grid(self.title, [*header, "at random"], rows, said)]

    def checks(self, results: Results) -> list[Check]:
        counts = [unit["clusters"] for unit in results]
        worst = max(u["error"] / u["error of k-means"] for u in results if u["clusters"] > 1)
        best = max(results, key=lambda unit: unit["agreement"])
        random = max(u["error"] / u["error at random"] for u in results if u["clusters"] > 1)
        return [
            Check(
                counts == sorted(counts, reverse=True) and counts[0] > counts[-1],
                f"{counts[0]} clusters at distance {results[0]['threshold']:g} and {counts[-1]} at "
                f"{results[-1]['threshold']:g}; the larger the distance, the fewer.",
            ),
            Check(
                best["agreement"] > 0.3,
                f"The best agreement with the three species is {best['agreement']:.2f}, with "
                f"{best['clusters']} clusters.",
            ),
            Check(
                worst < 1.5 and random < 1,
                f"MEKA's error with these blocks is at most {worst:.2f} times that with k-means "
                f"blocks and at most {random:.2f} times that with random blocks.",
            ),
        ]


def _rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    return data.rows(name, "none")


PROPOSALS = (OtherLandmarks, UnknownClusters)

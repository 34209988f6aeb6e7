"""003, lemma 2, proposition 3 and mini-batches: what landmarks and seeding cost k-means."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from gramian import theory
from gramian.analysis.report.figures import Curves
from gramian.approximations import Nystroem
from gramian.experiments import audits, data, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    FEATURES,
    LANDMARKS,
    LESS_RISK,
    MOVED_CENTRES,
    ONE_ITERATION,
    RANDOM_LABELS,
    bounds,
)
from gramian.experiments.drawing import RUNS, axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF
from gramian.learners import KernelKMeans

CLUSTERS, EPSILON = 10, 0.5


class Lemma2(Experiment):
    name = "003/lemma-2"
    title = "What landmarks cost k-means"
    claim = (
        "W(C_nm) - W(C_n) ≤ min(k, d_eff(γ)) γ / ((1 - ε) n) with a γ-preserving dictionary, and "
        "k-means++ is within 8 (log k + 2) of the best (proposition 3)."
    )
    note = (
        "Digits, 10 clusters. γ is the least for which the landmarks are γ-preserving, ε = 0.5. "
        "The best clusterings are the best of ten starts. The lemma prints γ twice."
    )
    per_run = "more", "bound", "factor"
    breaks = (
        *FEATURES,
        *LANDMARKS,
        RANDOM_LABELS,
        ONE_ITERATION,
        MOVED_CENTRES,
        LESS_RISK,
        *bounds("kmeans_plus_plus_factor"),
    )

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(n=400 if settings.quick else 1400, m=[10, 20, 40, 80], runs=10)

    def trial(self) -> list[Unit]:
        return crossed(n=200, m=[10, 40], runs=2)

    def measure(self, *, n: int, m: int, runs: int) -> Numbers:
        (X, _), (X_test, _) = data.clustered("digits", n)
        X = X.astype(np.float64)
        gamma = RBF("mean").fit(X, random_state=0).gamma_
        K = reference.rbf(X, X, gamma)
        exact = KernelKMeans(CLUSTERS, kernel=RBF(gamma), n_init=10, random_state=0).fit(X)
        best = reference.kernel_objective(K, np.asarray(exact.labels_)) / n
        factor = theory.kmeans_plus_plus_factor(CLUSTERS)
        found: dict[str, Any] = {"more": [], "bound": [], "factor": [], "best": best}
        seen = []
        for seed in range(runs):
            kernel = Nystroem(RBF(gamma), m, landmarks="uniform", random_state=seed)
            model = KernelKMeans(CLUSTERS, kernel=kernel, n_init=10, random_state=seed).fit(X)
            chosen = np.asarray(model.approximation_.landmarks_.indices)  # type: ignore[union-attr]
            left = K - reference.nystroem(K[:, chosen], K[np.ix_(chosen, chosen)])
            ridge = float(np.linalg.norm(left, 2)) * (1 - EPSILON) / EPSILON
            size = min(CLUSTERS, float(reference.leverage(K, ridge).sum()))
            found["more"].append(float(model.risk(X)) - best)
            found["bound"].append(size * ridge / (1 - EPSILON) / n)
            seeds = reference.plus_plus(K, CLUSTERS, np.random.default_rng(seed))
            far = K.diagonal()[:, None] + K.diagonal()[seeds] - 2 * K[:, seeds]
            found["factor"].append(float(far.min(axis=1).mean() / best))
            audit = audits.nystroem(model.approximation_, X)
            seen.append(audit | audits.clusters(model, X, X_test.astype(np.float64)))
        bound = audits.bound(factor, 8 * (log(CLUSTERS) + 2))
        return {**found, "largest factor": factor, **audits.joined(seen), **bound}

    def figures(self, results: Results) -> list[Curves]:
        series = {"measured": results.curve("m", "more"), "bound": results.curve("m", "bound")}
        y = axis("W(C_nm) - W(C_n)")
        marked = f"√n = {sqrt(results[0]['n']):.0f}."
        return [curves(self.title, axis("uniform landmarks m"), y, series, f"{RUNS} {marked}")]

    def checks(self, results: Results) -> list[Check]:
        share = max(max(u["more"]) / min(u["bound"]) for u in results)
        more = results.medians("more", "m")
        factor, most = float(results.values("factor").mean()), results[0]["largest factor"]
        return [
            Check(share <= 1, f"The excess is at most {share:.2f} times its bound."),
            Check(
                more[max(more)] < 0.5 * more[min(more)],
                f"It falls from {more[min(more)]:.4f} with {min(more)} landmarks to "
                f"{more[max(more)]:.4f} with {max(more)}.",
            ),
            Check(
                1 <= factor <= most,
                f"k-means++ alone costs {factor:.2f} times the best; the proposition allows "
                f"{most:.1f}.",
            ),
        ]


class MiniBatches(Experiment):
    name = "003/mini-batches"
    title = "Lloyd's algorithm in mini-batches"
    claim = "Mini-batches find centres about as good as those of full passes."
    note = "The paper runs all its experiments so. Digits, 10 clusters, √n landmarks."
    per_run = "risk", "risk of passes"
    breaks = (*FEATURES, *LANDMARKS, LESS_RISK, MOVED_CENTRES)

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(n=1400, m=37, batch=[50, 100, 200], runs=10)

    def trial(self) -> list[Unit]:
        return crossed(n=600, m=24, batch=[100], runs=4)

    def measure(self, *, n: int, m: int, batch: int, runs: int) -> Numbers:
        (X, _), (X_test, _) = data.clustered("digits", n)
        gamma = RBF("mean").fit(X, random_state=0).gamma_
        found: dict[str, Any] = {"risk": [], "risk of passes": []}
        seen = []
        for seed in range(runs):
            kernel = Nystroem(RBF(gamma), m, landmarks="uniform", random_state=seed)
            for name, size in (("risk", batch), ("risk of passes", None)):
                model = KernelKMeans(CLUSTERS, kernel=kernel, batch_size=size, random_state=seed)
                found[name].append(float(model.fit(X).risk(X_test)))
                seen.append(audits.nystroem(model.approximation_, X))
                if size is None:
                    seen.append(audits.clusters(model, X, X_test))
        return {**found, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        names = {"mini-batches": "risk", "full passes": "risk of passes"}
        series = {name: results.curve("batch", what) for name, what in names.items()}
        y = axis("W on unseen rows", is_log=False)
        return [curves(self.title, axis("rows of a batch"), y, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        ratios = [
            results.mean("risk", batch=b) / results.mean("risk of passes", batch=b)
            for b in results.choices("batch")
        ]
        return [
            Check(
                min(ratios) > 0.95 and max(ratios) < 1.05,
                f"Their risk is {min(ratios):.3f} to {max(ratios):.3f} times that of full passes "
                "(0.95 to 1.05 allowed).",
            )
        ]


KMEANS_BOUNDS = (Lemma2, MiniBatches)

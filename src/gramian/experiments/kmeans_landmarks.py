"""003, landmarks by leverage scores, and the lemmas on numbers of landmarks."""

from __future__ import annotations

from math import ceil, sqrt

import numpy as np

from gramian import theory
from gramian.analysis.accuracy import relative_error
from gramian.analysis.report.figures import Curves, Grid
from gramian.approximations import Nystroem
from gramian.experiments import audits, data, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    ALWAYS_PRESERVING,
    FEATURES,
    FEWER,
    LANDMARKS,
    LESS_RISK,
    ONE_ITERATION,
    RANDOM_LABELS,
    bounds,
    uniform_for,
)
from gramian.experiments.data import Labelled
from gramian.experiments.drawing import MEANS, axis, curves
from gramian.experiments.results import Results, slope
from gramian.kernels import RBF
from gramian.learners import KernelKMeans
from gramian.matrices.gram import Gram
from gramian.samplers import LeverageScores, RecursiveLeverage, Sampler, Uniform

CLUSTERS = 10
MANY = 5000  # draws with replacement, to see their law


class Landmarks(Experiment):
    name = "003/landmarks"
    title = "Uniform landmarks and ridge leverage scores"
    claim = (
        "Sampling by ridge leverage scores needs on the order of d_eff(γ) landmarks, uniform "
        "sampling n/γ; uniform landmarks are enough for the risk."
    )
    breaks = (
        *FEATURES,
        *LANDMARKS,
        uniform_for(RecursiveLeverage, "leverage scores"),
        RANDOM_LABELS,
        ONE_ITERATION,
        LESS_RISK,
    )
    per_run = "left", "risk"
    note = (
        "γ = √n. The figures show the trace error tr(K - K̃)/tr K and the risk W of kernel k-means."
    )

    def units(self, settings: Settings) -> list[Unit]:
        common: Unit = {"method": ["uniform", "leverage"], "runs": 10}
        clumps = crossed(data="clumps", n=1400, m=[20, 40, 80], **common)
        if settings.quick:
            return crossed(data="digits", n=1400, m=[10, 37, 100, 200], **common) + clumps
        return crossed(data="mnist", n=10_000, m=[10, 30, 100, 300, 1000], **common) + clumps

    def trial(self) -> list[Unit]:
        common: Unit = {"method": ["uniform", "leverage"], "runs": 3, "n": 400}
        return crossed(data="digits", m=[10, 40], **common) + crossed(
            data="clumps", m=[20, 40], **common
        )

    def measure(self, *, data: str, method: str, n: int, m: int, runs: int) -> Numbers:
        (X, _), (X_test, _) = _divided(data, n)
        X_test = X_test[:10_000]
        gamma = RBF("mean").fit(X, random_state=0).gamma_
        kernel, is_uniform = RBF(gamma), method == "uniform"
        landmarks = "uniform" if is_uniform else "recursive-leverage"
        scores = None
        if not is_uniform and len(X) <= 2000:
            scores = reference.leverage_of(reference.rbf(X, X, gamma), m / (2 * np.log(m)))
        left, risks, seen = [], [], []
        for seed in range(runs):
            model = Nystroem(kernel, m, landmarks=landmarks, random_state=seed).fit(X)
            left.append(float(relative_error(model, X, norm="trace")))
            clusters = KernelKMeans(CLUSTERS, kernel=model, random_state=seed).fit(X)
            risks.append(clusters.risk(X_test))
            audit = audits.nystroem(model, X, is_uniform=is_uniform)
            if scores is not None:
                audit |= audits.by_scores(np.asarray(model.landmarks_.indices), scores)
            if seed == 0 or len(X) <= 5000:
                audit |= audits.clusters(clusters, X, X_test)
            seen.append(audit)
        return {"left": left, "risk": risks, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        names = {"uniform": "Nyström uniform", "leverage": "leverage scores"}
        x, figures = axis("landmarks m"), []
        for what, title, y in (
            ("left", "Trace error", axis("tr(K - K̃) / tr K")),
            ("risk", "Risk on unseen rows", axis("W", is_log=False)),
        ):
            images = results.where(data=results[0]["data"])
            series = {
                name: images.mean_curve("m", what, method=method) for method, name in names.items()
            }
            figures.append(curves(title, x, y, series, MEANS))
        return figures

    def checks(self, results: Results) -> list[Check]:
        images = results.where(data=results[0]["data"])
        ratios, clumped = (_ratios(part) for part in (images, results.where(data="clumps")))
        risk = {m: images.medians("risk", "m", method=m) for m in ("uniform", "leverage")}
        root = min(risk["uniform"], key=lambda m: abs(m - sqrt(results[0]["n"])))
        more = risk["uniform"][root] / risk["leverage"][root] - 1
        falls = images.medians("left", "m", method="uniform")
        return [
            Check(
                max(clumped) < 0.9,
                f"Leverage scores have {min(clumped):.2f} to {max(clumped):.2f} times the trace "
                "error of uniform landmarks where a tenth of the rows is in many small clusters "
                "(below 0.9 asked).",
            ),
            Check(
                float(np.exp(np.mean(np.log(ratios)))) < 1.02,
                f"On images, they have {min(ratios):.2f} to {max(ratios):.2f} times the error: "
                "scores are almost equal there.",
            ),
            Check(
                falls[max(falls)] < 0.5 * falls[min(falls)],
                f"With {min(falls)} to {max(falls)} uniform landmarks, the trace error falls from "
                f"{falls[min(falls)]:.3f} to {falls[max(falls)]:.3f}.",
            ),
            Check(
                abs(more) < 0.05,
                f"With {root} landmarks, the risk with uniform ones differs by {100 * more:+.1f} % "
                "from that with leverage scores.",
            ),
        ]


class Lemmas(Experiment):
    name = "003/lemmas"
    title = "How many landmarks preserve the feature space"
    claim = (
        "m ≥ 12 κ² (n/γ) log(n/δ)/ε² uniform landmarks, or 12 κ² d_eff(γ) log(n/δ)/ε² by leverage "
        "scores, are γ-preserving with probability 1 - δ; d_eff(γ) ≤ min(rank K, tr K/γ)."
    )
    breaks = (
        *bounds("landmarks_needed"),
        *bounds("effective_dimension"),
        ALWAYS_PRESERVING,
        uniform_for(LeverageScores, "leverage scores"),
        FEWER,
    )
    note = (
        "The constants are generous: most of these numbers exceed n. The paper's bound on d_eff "
        "lacks tr K. 'Needed' is the smallest tested number of landmarks for which 19 of 20 draws "
        "are γ-preserving."
    )

    def units(self, settings: Settings) -> list[Unit]:
        n = 300 if settings.quick else 500
        return crossed(data="digits", n=n, times_root=[0.1, 0.3, 1.0, 3.0], draws=20, epsilon=0.5)

    def trial(self) -> list[Unit]:
        return crossed(data="digits", n=100, times_root=[0.3, 3.0], draws=10, epsilon=0.5)

    def measure(
        self, *, data: str, n: int, times_root: float, draws: int, epsilon: float
    ) -> Numbers:
        (X, _), _ = _divided(data, n)
        gamma = RBF("mean").fit(X, random_state=0).gamma_
        gram, K = Gram(RBF(gamma), X), reference.rbf(X, X, gamma)
        ridge = times_root * sqrt(n)
        dimension = theory.effective_dimension(gram, ridge=ridge)
        scores = reference.leverage(K, ridge)
        rng = np.random.default_rng(0)
        some = np.asarray(LeverageScores(ridge).select(gram, MANY, rng).indices)
        wrong = []
        for m in (2, 4, 8, 16, 32, 64):
            chosen = rng.choice(n, m, replace=False)
            seen = theory.is_preserving(gram, chosen, ridge, epsilon)
            wrong.append(seen != reference.is_preserving(K, chosen, ridge, epsilon))
        needs = [
            theory.landmarks_needed(n, ridge=ridge, epsilon=epsilon),
            theory.landmarks_needed(n, ridge=ridge, epsilon=epsilon, effective_dimension=dimension),
        ]
        wanted = [
            reference.landmarks_needed(n, size, epsilon, 0.05) for size in (n / ridge, dimension)
        ]
        audit = audits.bound([dimension, *needs], [scores.sum(), *wanted])
        law = float(scores @ scores / scores.sum())
        audit |= audits.short_of(float(scores[some].mean()), law, float(scores.mean()))

        def needed(sampler: Sampler, fewest: list[int]) -> int:
            m = 1
            while m < n:
                drawn = [
                    np.asarray(sampler.select(gram, m, np.random.default_rng(seed)).indices)
                    for seed in range(draws)
                ]
                fewest.append(m - min(len(np.unique(each)) for each in drawn))
                kept = [theory.is_preserving(gram, each, ridge, epsilon) for each in drawn]
                if np.mean(kept) >= 0.95:
                    return m
                m = ceil(1.4 * m)
            return n

        missing: list[int] = []
        return {
            "ridge": ridge,
            "dimension": dimension,
            "most": min(float(n), gram.trace() / ridge),
            "lemma 1": needs[0],
            "lemma 3": needs[1],
            "judged wrong": float(np.sum(wrong)),
            **audit,
            "uniform": needed(Uniform(), missing),
            "leverage": needed(LeverageScores(ridge), []),  # with replacement
            "landmarks missing": missing,
        }

    def figures(self, results: Results) -> list[Curves | Grid]:
        series = {
            "Nyström uniform": results.curve("ridge", "uniform"),
            "leverage scores": results.curve("ridge", "leverage"),
            "effective dimension": results.curve("ridge", "dimension"),
        }
        n = results[0]["n"]
        header = ["γ", "d_eff(γ)", "tr K/γ", "lemma 1", "needed", "lemma 3", "needed"]
        keys = ["ridge", "dimension", "most", "lemma 1", "uniform", "lemma 3", "leverage"]
        rows = [[unit[key] for key in keys] for unit in results]
        drawn = curves("Landmarks needed", axis("γ"), axis("landmarks"), series, f"{n} rows.")
        return [
            drawn,
            Grid("Compared with the lemmas", header, rows, f"δ = 0.05, ε = 0.5, {n} rows."),
        ]

    def checks(self, results: Results) -> list[Check]:
        over = max(unit["dimension"] / unit["most"] for unit in results)
        shares = [
            max(unit["uniform"] / unit["lemma 1"], unit["leverage"] / unit["lemma 3"])
            for unit in results
        ]
        power = slope(results.medians("uniform", "ridge"))
        factor = [unit["uniform"] / unit["dimension"] for unit in results]
        return [
            Check(over <= 1 + 1e-9, f"d_eff is at most {over:.2f} of min(n, tr K/γ)."),
            Check(
                max(shares) <= 1,
                f"At most {100 * max(shares):.2g} % of the landmarks in the lemmas are needed.",
            ),
            Check(
                power < -0.4 and min(factor) >= 0.5 and max(factor) < 4,
                f"The number of uniform landmarks needed falls as γ^{power:.2f} and is "
                f"{min(factor):.1f} to {max(factor):.1f} times d_eff(γ).",
            ),
        ]


def _ratios(results: Results) -> list[float]:
    """Return the trace error with leverage scores, divided by that with uniform landmarks."""
    a, b = (results.medians("left", "m", method=m) for m in ("leverage", "uniform"))
    return [max(a[m], 1e-12) / max(b[m], 1e-12) for m in a]


def _divided(name: str, n: int) -> tuple[Labelled, Labelled]:
    return data.clustered(name, n)


KMEANS_LANDMARKS = (Landmarks, Lemmas)

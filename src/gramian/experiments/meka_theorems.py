"""002, theorems 2 and 3: measured errors and their bounds. On Iris, which has few columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian import theory
from gramian.analysis.report.figures import Curves
from gramian.approximations import BKA, MEKA
from gramian.experiments import audits, data, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    FEATURES,
    LANDMARKS,
    LINKS,
    ONE_PASS,
    RANDOM_BLOCKS,
    bounds,
)
from gramian.experiments.drawing import RUNS, axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF


class Theorem2(Experiment):
    name = "002/theorem-2"
    title = "Blocks of tight clusters have low rank"
    claim = (
        "‖K_st - best rank-r approximation‖_F ≤ 4 C r^(-1/d) √(n_s n_t) min(radius_s, radius_t)."
    )
    breaks = (*bounds("block_rank_bound"), RANDOM_BLOCKS, ONE_PASS)
    per_run = "left", "bound", "share"
    note = "Iris, because with 4 columns the bound is informative. All 9 blocks of 3 clusters."

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(data="iris", gamma=0.3, blocks=3, rank=[1, 2, 4, 8, 16, 32], runs=10)

    def trial(self) -> list[Unit]:
        every = self.units(Settings(quick=True))
        return [unit | {"runs": 4} for unit in every if unit["rank"] in (1, 32)]

    def measure(self, *, data: str, gamma: float, blocks: int, rank: int, runs: int) -> Numbers:
        X, kernel = _some(data, None, "none"), RBF(gamma)
        K, seen = reference.rbf(X, X, gamma), []
        found: dict[str, Any] = {"left": [], "bound": [], "share": []}
        for seed in range(runs):
            model = BKA(kernel, 30, n_blocks=blocks, random_state=seed).fit(X)
            labels = np.asarray(model.labels_)
            bound = theory.block_rank_bound(kernel, X, labels, rank)
            wanted = reference.block_rank_bound(X, labels, gamma, rank)
            own = [labels == s for s in range(blocks)]
            left = np.array([[reference.tail(K[np.ix_(s, t)], rank) for t in own] for s in own])
            found["left"].append(float(np.median(left)))
            found["bound"].append(float(np.median(bound)))
            found["share"].append(float(np.max(left / bound)))
            seen.append({**audits.bound(bound, wanted), **audits.partition(model, X)})
        return {**found, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        series = {
            "measured": results.curve("rank", "left"),
            "bound": results.curve("rank", "bound"),
        }
        y = axis("error of the best rank-r approximation")
        said = f"Medians over the blocks. {RUNS}"
        return [curves(self.title, axis("rank r"), y, series, said)]

    def checks(self, results: Results) -> list[Check]:
        shares = results.values("share")
        by = results.medians("left", "rank")
        return [
            Check(max(shares) <= 1, f"No block's error exceeds {max(shares):.2f} times its bound."),
            Check(
                by[max(by)] < 1e-3 * by[min(by)],
                f"The blocks' error falls from {by[min(by)]:.2g} at rank {min(by)} to "
                f"{by[max(by)]:.1g} at rank {max(by)}.",
            ),
        ]


class Theorem3(Experiment):
    name = "002/theorem-3"
    breaks = (*bounds("meka_bound"), *FEATURES, *LANDMARKS, RANDOM_BLOCKS, ONE_PASS, *LINKS)
    per_run = "measured", "in 2-norm", "bound", "bound of it"
    title = "MEKA's error and its bound"
    claim = (
        "‖K - K̃‖_F ≤ ‖K - K_ck‖_F + (64k/m)^¼ n K_max √(1 + θ) + 2‖Δ‖_F with high probability, and "
        "‖K - K̃‖₂ ≤ ‖K - K_ck‖₂ + 2n/√(cm) K_max (1 + θ) + 2‖Δ‖₂."
    )
    note = (
        "The theorem assumes landmarks drawn from all rows and links fitted on all pairs; gramian "
        "draws landmarks within blocks and fits links on samples. δ = 0.05."
    )

    def units(self, settings: Settings) -> list[Unit]:
        runs = 10 if settings.quick else 30
        return crossed(data="iris", gamma=1.0, blocks=3, rank=[6, 12, 24, 48], runs=runs)

    def trial(self) -> list[Unit]:
        every = self.units(Settings(quick=True))
        return [unit | {"runs": 4} for unit in every if unit["rank"] in (6, 24)]

    def measure(self, *, data: str, gamma: float, blocks: int, rank: int, runs: int) -> Numbers:
        X, kernel = _some(data, None, "none"), RBF(gamma)
        K, count = reference.rbf(X, X, gamma), min(3 * rank, len(X))
        values = np.sort(np.linalg.eigvalsh(K))[::-1]
        found: dict[str, Any] = {"measured": [], "in 2-norm": [], "bound": [], "bound of it": []}
        seen = []
        for seed in range(runs):
            model = MEKA(kernel, rank, n_blocks=blocks, random_state=seed).fit(X)
            labels, left = np.asarray(model.labels_), K - np.asarray(model.factor(X).dense())
            bounds = [
                theory.meka_bound(kernel, X, labels, rank, count, norm=norm)
                for norm in ("fro", "spectral")
            ]
            wanted = [
                reference.meka_bound(K, labels, rank, count, 0.05, norm) for norm in (False, True)
            ]
            found["measured"].append(float(np.linalg.norm(left)))
            found["in 2-norm"].append(float(np.linalg.norm(left, 2)))
            found["bound"].append(bounds[0])
            found["bound of it"].append(bounds[1])
            seen.append({**audits.blocks(model, X), **audits.bound(bounds, wanted)})
        return {**found, "best": float(np.linalg.norm(values[rank:])), **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        series = {
            "measured": results.curve("rank", "measured"),
            "bound": results.curve("rank", "bound"),
            "best possible": results.curve("rank", "best"),
        }
        y = axis("‖K - K̃‖ in the Frobenius norm")
        return [curves(self.title, axis("total rank"), y, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        shares = [max(unit["measured"]) / min(unit["bound"]) for unit in results]
        in_2_norm = [max(unit["in 2-norm"]) / min(unit["bound of it"]) for unit in results]
        near = [float(np.median(unit["measured"])) / unit["best"] for unit in results]
        return [
            Check(
                max(*shares, *in_2_norm) <= 1,
                f"The error is at most {max(shares):.2f} times its bound, and "
                f"{max(in_2_norm):.3f} times in the 2-norm.",
            ),
            Check(
                min(near) >= 1 - 1e-9 and max(near) < 5,
                f"It is {min(near):.2f} to {max(near):.2f} times the best possible at its rank.",
            ),
        ]


def _some(name: str, n: int | None, scale: str = "minmax") -> np.ndarray:
    return data.some(name, n, scale)[0]


MEKA_THEOREMS = (Theorem2, Theorem3)

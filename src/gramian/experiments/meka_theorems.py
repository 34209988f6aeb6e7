"""002, theorems 2 and 3: measured errors and their bounds. On Iris, which has few columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian import theory
from gramian.analysis.report.figures import Curves
from gramian.approximations import BKA, MEKA
from gramian.experiments import data, measuring
from gramian.experiments.base import Check, Experiment, Settings, Unit, crossed
from gramian.experiments.drawing import RUNS, axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF
from gramian.matrices.gram import Gram


class Theorem2(Experiment):
    name = "002/theorem-2"
    title = "Blocks of tight clusters have low rank"
    claim = (
        "‖K_st - best rank-r approximation‖_F ≤ 4 C r^(-1/d) √(n_s n_t) min(radius_s, radius_t)."
    )
    note = "Iris, because with 4 columns the bound is informative. All 9 blocks of 3 clusters."

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(data="iris", gamma=0.3, blocks=3, rank=[1, 2, 4, 8, 16, 32])

    def measure(self, *, data: str, gamma: float, blocks: int, rank: int) -> dict[str, Any]:
        X, kernel = _some(data, None, "none"), RBF(gamma)
        labels = BKA(kernel, 30, n_blocks=blocks, random_state=0).fit(X).labels_
        bound = theory.block_rank_bound(kernel, X, labels, rank)
        K, left = np.asarray(Gram(kernel, X).dense()), np.zeros_like(bound)
        for s in range(blocks):
            for t in range(blocks):
                values = np.linalg.svd(K[np.ix_(labels == s, labels == t)], compute_uv=False)
                left[s, t] = np.linalg.norm(values[rank:])
        return {"left": left.ravel().tolist(), "bound": bound.ravel().tolist()}

    def figures(self, results: Results) -> list[Curves]:
        series = {
            "measured": results.curve("rank", "left"),
            "bound": results.curve("rank", "bound"),
        }
        y = axis("error of the best rank-r approximation")
        said = "Medians over the blocks, and the middle 80 % of them."
        return [curves(self.title, axis("rank r"), y, series, said)]

    def checks(self, results: Results) -> list[Check]:
        shares = [
            max(a / b for a, b in zip(unit["left"], unit["bound"], strict=True)) for unit in results
        ]
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
    title = "MEKA's error and its bound"
    claim = "‖K - K̃‖_F ≤ ‖K - K_ck‖_F + (64k/m)^¼ n K_max √(1 + θ) + 2‖Δ‖_F with high probability."
    note = (
        "The theorem assumes landmarks drawn from all rows and links fitted on all pairs; gramian "
        "draws landmarks within blocks and fits links on samples. δ = 0.05."
    )

    def units(self, settings: Settings) -> list[Unit]:
        runs = 5 if settings.quick else 30
        return crossed(data="iris", gamma=1.0, blocks=3, rank=[6, 12, 24, 48], runs=runs)

    def measure(
        self, *, data: str, gamma: float, blocks: int, rank: int, runs: int
    ) -> dict[str, Any]:
        X, kernel = _some(data, None, "none"), RBF(gamma)
        found = measuring.errors(
            lambda seed: MEKA(kernel, rank, n_blocks=blocks, random_state=seed), X, runs
        )
        labels = MEKA(kernel, rank, n_blocks=blocks, random_state=0).fit(X).labels_
        K = np.asarray(Gram(kernel, X).dense())
        tail = np.linalg.norm(np.sort(np.linalg.eigvalsh(K))[::-1][rank:])
        return {
            "measured": [error * float(np.linalg.norm(K)) for error in found],
            "bound": theory.meka_bound(kernel, X, labels, rank, min(3 * rank, len(X))),
            "best": float(tail),
        }

    def figures(self, results: Results) -> list[Curves]:
        series = {
            "measured": results.curve("rank", "measured"),
            "bound": results.curve("rank", "bound"),
            "best possible": results.curve("rank", "best"),
        }
        y = axis("‖K - K̃‖ in the Frobenius norm")
        return [curves(self.title, axis("total rank"), y, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        shares = [max(unit["measured"]) / unit["bound"] for unit in results]
        near = [float(np.median(unit["measured"])) / unit["best"] for unit in results]
        return [
            Check(max(shares) <= 1, f"The error is at most {max(shares):.2f} times the bound."),
            Check(
                min(near) >= 1 - 1e-9 and max(near) < 5,
                f"It is {min(near):.2f} to {max(near):.2f} times the best possible at its rank.",
            ),
        ]


def _some(name: str, n: int | None, scale: str = "minmax") -> np.ndarray:
    return data.some(name, n, scale)[0]


MEKA_THEOREMS = (Theorem2, Theorem3)

"""000, theorems 1, 3, 10 and 12: measured errors and their bounds. All on Iris.

Bounds are generous, so an error within its bound proves little. The checks also look at how fast
the error falls, or at a limit that no method can beat.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian import theory
from gramian.analysis.report.figures import Curves
from gramian.approximations import BKA, Nystroem
from gramian.experiments import audits, data, measuring, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    DRAWN_FROM_HALF,
    FEATURES,
    MISSCALED,
    ONE_PASS,
    RANDOM_BLOCKS,
    UNDERSTATED,
    UNIFORM_COLUMNS,
    WRONG_PRODUCT,
    WRONG_SVD,
    bounds,
)
from gramian.experiments.drawing import RUNS, axis, curves
from gramian.experiments.results import Results, slope
from gramian.kernels import RBF
from gramian.samplers import Diagonal

DELTA = 0.1


class Bounded(Experiment):
    """A measured error and its bound, against the number of columns."""

    y_title: str

    def figures(self, results: Results) -> list[Curves]:
        series = {
            "measured": results.curve("columns", "measured"),
            "bound": results.curve("columns", "bound"),
        }
        if "best" in results[0]:
            series["best possible"] = results.curve("columns", "best")
        y = axis(self.y_title)
        return [curves(self.title, axis("columns c drawn"), y, series, RUNS)]

    per_run = ("measured",)

    def trial(self) -> list[Unit]:
        return [unit | {"runs": 10} for unit in self.units(Settings(quick=True))]

    def bounds_hold(self, results: Results) -> list[Check]:
        """Check the mean, and at least 1 - δ of the draws."""
        shares, means = [], []
        for unit in results:
            measured = np.array(unit["measured"])
            means.append(measured.mean() / unit["bound"])
            shares.append(np.mean(measured > unit["likely bound"]))
        return [
            Check(
                max(means) <= 1,
                f"The mean error is at most {max(means):.2f} times its bound.",
            ),
            Check(
                max(shares) <= DELTA,
                f"At most {100 * max(shares):.0f} % of the draws exceed the probabilistic bound, "
                f"which allows {100 * DELTA:.0f} %.",
            ),
        ]


class Theorem1(Bounded):
    name = "000/theorem-1"
    title = "The error of a sampled matrix product"
    breaks = (*bounds("product_bound"), WRONG_PRODUCT, UNIFORM_COLUMNS)
    claim = "E‖AAᵀ - CCᵀ‖_F ≤ ‖A‖_F² / √c, with columns drawn by their squared norms."
    note = "A is Iris, centred: its 150 rows are the columns of A, with 4 entries each."
    y_title = "‖AAᵀ - CCᵀ‖ in the Frobenius norm"

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(columns=[10, 30, 100, 300, 1000], runs=100 if settings.quick else 1000)

    def measure(self, *, columns: int, runs: int) -> Numbers:
        X, _ = data.rows("iris", "none")
        A = (X - X.mean(axis=0)).T
        exact, found, apart = A @ A.T, [], []
        law = np.sum(A**2, axis=0) / np.sum(A**2)
        for seed in range(runs):
            C, R = theory.approximate_product(A, A.T, columns, rng=seed)
            found.append(float(np.linalg.norm(exact - C @ R)))
            own = reference.sampled(A, law, columns, seed)
            apart.append(audits.off(C @ R, own @ own.T))
        bounds = [theory.product_bound(A, A.T, columns, delta=delta) for delta in (None, DELTA)]
        wanted = [reference.product_bound(A, columns, delta) for delta in (None, DELTA)]
        return {
            "measured": found,
            "bound": bounds[0],
            "likely bound": bounds[1],
            "root of variance": float(np.sqrt(reference.product_variance(A, law, columns))),
            "off the formula": apart,
            **audits.joined([audits.bound(bounds, wanted)]),
        }

    def checks(self, results: Results) -> list[Check]:
        power = slope(results.medians("measured", "columns"))
        text = f"The error falls as c^{power:.2f}; the theorem says c^-0.5."
        roots = [
            np.sqrt(np.mean(np.square(u["measured"]))) / u["root of variance"] for u in results
        ]
        return [
            *self.bounds_hold(results),
            Check(-0.65 < power < -0.35, text),
            Check(
                max(abs(root - 1) for root in roots) < 0.5,
                f"Its root mean square is {min(roots):.2f} to {max(roots):.2f} times that of the "
                "proof's closed form (the check allows 0.5 to 1.5).",
            ),
        ]


class Theorem3(Bounded):
    name = "000/theorem-3"
    title = "The error of a linear-time SVD"
    breaks = (*bounds("svd_bound"), WRONG_SVD, UNIFORM_COLUMNS)
    claim = "‖A - H_k H_kᵀ A‖_F² ≤ ‖A - A_k‖_F² + 2√k ‖AAᵀ - CCᵀ‖_F."
    note = "A is the kernel matrix of Iris (RBF, gamma 1), k = 5; the squared error is shown."
    y_title = "squared error ‖A - HHᵀA‖²"

    def units(self, settings: Settings) -> list[Unit]:
        counts = [10, 20, 50, 100, 200]
        return crossed(columns=counts, k=5, gamma=1.0, runs=20 if settings.quick else 100)

    def measure(self, *, columns: int, k: int, gamma: float, runs: int) -> Numbers:
        X, _ = data.rows("iris", "none")
        A, found, apart = reference.rbf(X, X, gamma), [], []
        law = np.sum(A**2, axis=0) / np.sum(A**2)
        for seed in range(runs):
            H, _ = theory.linear_time_svd(A, k, columns, rng=seed)
            found.append(float(np.linalg.norm(A - H @ (H.T @ A)) ** 2))
            own = np.linalg.svd(reference.sampled(A, law, columns, seed), full_matrices=False)[0]
            apart.append(audits.off(H @ H.T, own[:, :k] @ own[:, :k].T))
        bounds = [theory.svd_bound(A, k, columns, delta=delta) for delta in (None, DELTA)]
        wanted = [reference.svd_bound(A, k, columns, delta) for delta in (None, DELTA)]
        return {
            "measured": found,
            "best": reference.tail(A, k) ** 2,
            "bound": bounds[0],
            "likely bound": bounds[1],
            "off the formula": apart,
            **audits.joined([audits.bound(bounds, wanted)]),
        }

    def checks(self, results: Results) -> list[Check]:
        by, best = results.medians("measured", "columns"), results[0]["best"]
        first, last = (by[c] / best for c in (min(by), max(by)))
        least = min(unit_min / best for unit_min in (min(u["measured"]) for u in results))
        return [
            *self.bounds_hold(results),
            Check(
                least >= 1 - 1e-9,
                f"No draw beats the best rank-k error; the closest is {least:.3f} times as large.",
            ),
            Check(
                last < 1.1 < first,
                f"The squared error is {first:.2f} times the best rank-k error with {min(by)} "
                f"columns and {last:.3f} times with {max(by)}.",
            ),
        ]


class Theorem10(Bounded):
    name = "000/theorem-10"
    title = "Nyström's error"
    breaks = (*bounds("nystrom_bound"), *FEATURES, MISSCALED, DRAWN_FROM_HALF, UNDERSTATED)
    claim = "E‖G - G̃_k‖_F ≤ ‖G - G_k‖_F + ε Σ G_ii for c ≥ 64k/ε⁴ columns."
    note = (
        "RBF, gamma 1, k = 5. The report prints Σ G_ii² instead of Σ G_ii; for this kernel they "
        "are equal. Columns are drawn with replacement in proportion to G_ii, here uniformly, "
        "and W is truncated to rank k."
    )
    y_title = "‖G - G̃‖ in the Frobenius norm"

    def units(self, settings: Settings) -> list[Unit]:
        counts = [10, 20, 50, 100]
        return crossed(columns=counts, k=5, gamma=1.0, runs=20 if settings.quick else 100)

    def measure(self, *, columns: int, k: int, gamma: float, runs: int) -> Numbers:
        X, _ = data.rows("iris", "none")
        kernel, K = RBF(gamma), reference.rbf(X, X, gamma)
        own: dict[str, Any] = {"landmarks": Diagonal(), "rank": k, "truncation": "core"}
        found = measuring.audited(
            lambda seed: Nystroem(kernel, columns, random_state=seed, **own),
            X,
            runs,
            law=np.full(len(X), 1 / len(X)),  # K_ii / Σ K_jj
        )
        bounds = [theory.nystrom_bound(K, k, columns, delta) for delta in (None, DELTA)]
        wanted = [reference.nystrom_bound(K, k, columns, delta) for delta in (None, DELTA)]
        return {
            **found,
            "measured": [error * float(np.linalg.norm(K)) for error in found["error"]],
            "best": reference.tail(K, k),
            "bound": bounds[0],
            "likely bound": bounds[1],
            **audits.joined([audits.bound(bounds, wanted)]),
        }

    def checks(self, results: Results) -> list[Check]:
        by, best = results.medians("measured", "columns"), results[0]["best"]
        least = min(min(unit["measured"]) for unit in results) / best
        first, last = (by[c] / best for c in (min(by), max(by)))
        return [
            *self.bounds_hold(results),
            Check(
                least >= 1 - 1e-9,
                f"No draw beats the best rank-k error; the closest is {least:.3f} times as large.",
            ),
            Check(
                last < 1.3 and last < first,
                f"The error is {first:.2f} times the best rank-k error with {min(by)} columns and "
                f"{last:.2f} times with {max(by)}.",
            ),
        ]


class Theorem12(Experiment):
    name = "000/theorem-12"
    title = "How much of the kernel k-means blocks hold"
    breaks = (*bounds("d_kernel_bound"), *bounds("d_kernel"), RANDOM_BLOCKS, ONE_PASS)
    per_run = "held", "bound"
    claim = "D_kernel ≥ n f(0)²/2 - 2 η²R² D_kmeans: k-means blocks hold much of K."
    note = (
        "The report omits the factor 2, which the proof needs. A negative bound says nothing; this "
        "happens above some gamma."
    )

    def units(self, settings: Settings) -> list[Unit]:
        gammas = [0.03, 0.1, 0.3, 1.0, 3.0]
        return crossed(partition=["kmeans", "random"], gamma=gammas, blocks=5, runs=10)

    def trial(self) -> list[Unit]:
        every = self.units(Settings(quick=True))
        return [unit | {"runs": 3} for unit in every if unit["gamma"] in (0.03, 1.0)]

    def measure(self, *, partition: str, gamma: float, blocks: int, runs: int) -> Numbers:
        X, _ = data.rows("iris", "none")
        kernel, K = RBF(gamma), reference.rbf(X, X, gamma)
        found: dict[str, Any] = {"held": [], "bound": [], "largest": float(len(X))}
        seen = []
        for seed in range(runs):
            model = BKA(kernel, 10, n_blocks=blocks, partition=partition, random_state=seed).fit(X)
            labels = np.asarray(model.labels_)
            own = [
                theory.d_kernel(kernel, X, labels),
                theory.d_kernel_bound(kernel, X, labels),
                theory.d_kmeans(X, labels),
            ]
            wanted = [
                reference.d_kernel(K, labels),
                reference.d_kernel_bound(X, labels, gamma),
                reference.d_kmeans(X, labels),
            ]
            found["held"].append(own[0])
            found["bound"].append(own[1])
            seen.append({**audits.bound(own, wanted), **audits.partition(model, X)})
        return {**found, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        series = {
            "D_kernel of k-means": results.curve("gamma", "held", partition="kmeans"),
            "D_kernel at random": results.curve("gamma", "held", partition="random"),
            "bound": [at for at in results.curve("gamma", "bound", partition="kmeans") if at.y > 0],
        }
        y = axis("D_kernel (n = 150 at most)", is_log=False)
        said = "5 blocks. The bound for the k-means partition is drawn where it is positive."
        return [curves(self.title, axis("gamma"), y, series, said)]

    def checks(self, results: Results) -> list[Check]:
        held, bound = results.values("held"), results.values("bound")
        informative = bound[bound > 0] / held[bound > 0]
        by = {p: results.medians("held", "gamma", partition=p) for p in ("kmeans", "random")}
        more = min(by["kmeans"][gamma] / by["random"][gamma] for gamma in by["kmeans"])
        return [
            Check(
                bool(np.all(held >= bound) and len(informative))
                and bool(np.all(held <= (1 + 1e-9) * results[0]["largest"])),
                f"D_kernel is above its bound in all cases, by at least {min(held - bound):.1f}; "
                f"where the bound is positive, it is up to {max(informative):.0%} of D_kernel.",
            ),
            Check(
                more > 1,
                f"k-means blocks hold at least {more:.2f} times as much as random blocks.",
            ),
        ]


THEOREMS = (Theorem1, Theorem3, Theorem10, Theorem12)

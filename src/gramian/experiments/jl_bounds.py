"""004, proposition 1, theorem 3, and bounds (11) to (13) on distances."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.stats import kstest

from gramian import theory
from gramian.analysis.report.figures import Curves
from gramian.approximations import KernelJL
from gramian.experiments import audits, data, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import FEATURES, LANDMARKS, SKETCH, UNCENTRED, bounds
from gramian.experiments.drawing import RUNS, axis, curves
from gramian.experiments.results import Results, slope
from gramian.kernels import RBF

TAU = 4.0


class Proposition1(Experiment):
    name = "004/proposition-1"
    title = "The sketch alone, and its distribution"
    claim = (
        "Inner products of Θf and Θg are within C ‖Σ‖³ (√s_Σ³ + √τ)/√r of ⟨f, Σ³g⟩ for all f and g "
        "(proposition 1), and Θf is Gaussian (theorem 3)."
    )
    note = (
        "Digits, the median width, all rows as the subsample: Kernel-JL is then Θ for the rows' "
        "own covariance Σ. C is not known; the check asks that 3 is enough, as theorem 1 uses it."
    )
    per_run = "share", "error"
    breaks = (*FEATURES, *SKETCH, UNCENTRED)

    def units(self, settings: Settings) -> list[Unit]:
        runs = 40 if settings.quick else 100
        return crossed(n=200, r=[30, 100, 300, 1000], runs=runs)

    def trial(self) -> list[Unit]:
        return crossed(n=150, r=[30, 300], runs=4)

    def measure(self, *, n: int, r: int, runs: int) -> Numbers:
        X, _ = data.some("digits", n)
        gamma = RBF("median").fit(X).gamma_
        K = reference.rbf(X, X, gamma)
        values, vectors = np.linalg.eigh(K)
        kept = values > 1e-6 * values[-1]
        values, vectors = values[kept], vectors[:, kept]
        exact = np.diag((values / n) ** 3)
        bound = reference.jl_rates(K, n, r, TAU)[0]
        found: dict[str, Any] = {"share": [], "error": [], "bound": bound}
        scores, seen = [], []
        deviation = np.sqrt(np.diag(K @ K @ K @ K) / n**3 / r)
        for seed in range(runs):
            model = KernelJL(RBF(gamma), r, n_samples=n, centred=False, random_state=seed).fit(X)
            Z = np.asarray(model.transform(X))
            theta = vectors.T @ Z / np.sqrt(values)[:, None]  # Θ in the eigenvectors of Σ
            error = float(np.linalg.norm(theta @ theta.T - exact, 2))
            found["error"].append(error)
            found["share"].append(error / bound)
            scores.append(Z[0] / deviation[0])
            seen.append(audits.sketch(model, X))
        found["p"] = float(kstest(np.concatenate(scores), "norm").pvalue)
        return found | audits.joined(seen)

    def figures(self, results: Results) -> list[Curves]:
        series = {name: results.curve("r", name) for name in ("error", "bound")}
        y = axis("largest error of an inner product")
        return [curves(self.title, axis("features r"), y, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        share, power = float(results.values("share").max()), slope(results.medians("error", "r"))
        p = float(results.values("p").min())
        return [
            Check(share <= 1, f"The error is at most {share:.2f} times its bound."),
            Check(-0.7 < power < -0.3, f"It falls as r^{power:.2f}; the proposition says r^-0.5."),
            Check(p > 1e-3, f"A test finds no difference from the normal law (p = {p:.2g})."),
        ]


class Distances(Experiment):
    name = "004/distances"
    title = "What Kernel-JL does to distances"
    claim = (
        "Distances shrink by at most λ_k³ (11) and grow by at most λ_1³ (12); the distance of two "
        "clusters' means shrinks by at most λ_1³ (13), up to the error of theorem 1."
    )
    note = (
        "The two toy data sets, 200 rows. The error of theorem 1 exceeds everything else unless s "
        "and r are huge, so the limits without it are also checked, up to a factor of 2 for the "
        "sketch. The paper prints 2εκ in (11), where its proof has 4εκ."
    )
    per_run = "above", "below", "means"
    breaks = (
        *FEATURES,
        *SKETCH,
        *LANDMARKS,
        *bounds("jl_distance_bound"),
        *bounds("jl_separation_bound"),
        *bounds("jl_means_bound"),
    )

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(data=list(data.TOYS), n=200, s=200, r=1000, k=3, runs=10)

    def trial(self) -> list[Unit]:
        return crossed(data=list(data.TOYS), n=120, s=100, r=400, k=3, runs=4)

    def measure(self, *, data: str, n: int, s: int, r: int, k: int, runs: int) -> Numbers:
        X, labels = _toy(data, n)
        gamma = RBF("median").fit(X).gamma_
        K = reference.rbf(X, X, gamma)
        values = np.linalg.eigvalsh(K)[::-1] / n
        apart = 2 - 2 * K  # ‖f - g‖²
        farthest = float(apart.max())
        bound = [
            theory.jl_distance_bound(K, farthest, s, r),
            theory.jl_separation_bound(K, k, farthest, s, r),
            theory.jl_means_bound(K, labels, s, r),
        ]
        wanted = [
            reference.jl_distance_bound(K, farthest, s, r, TAU),
            reference.jl_separation_bound(K, k, farthest, s, r, TAU),
            reference.jl_means_bound(K, labels, s, r, TAU),
        ]
        upper, outside = ~np.eye(n, dtype=bool), reference.outside(K, k)
        found: dict[str, Any] = {"above": [], "below": [], "means": []}
        seen = []
        for seed in range(runs):
            model = KernelJL(RBF(gamma), r, n_samples=s, centred=False, random_state=seed).fit(X)
            Z = np.asarray(model.transform(X))
            mapped = squareform(pdist(Z, "sqeuclidean"))
            least = values[k - 1] ** 3 * (apart - 4 * outside)
            found["above"].append(float(np.max(mapped[upper] / (values[0] ** 3 * apart[upper]))))
            found["below"].append(float(np.min(mapped - least)))
            middle = Z[labels].mean(axis=0) - Z[~labels].mean(axis=0)
            found["means"].append(float(middle @ middle))
            seen.append(audits.sketch(model, X))
        found |= {"bounds": bound, "largest": float(values[0] ** 3 * farthest)}
        return found | audits.joined(seen) | audits.bound(bound, wanted)

    def figures(self, results: Results) -> list[Curves]:
        series = {unit["data"]: results.curve("r", "above", data=unit["data"]) for unit in results}
        y = axis("largest growth of a squared distance / λ_1³", is_log=False)
        return [curves(self.title, axis("features r"), y, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        above = float(results.values("above").max())
        short = min(min(u["below"]) / u["largest"] for u in results)
        kept = all(min(u["means"]) >= u["bounds"][2] for u in results)
        return [
            Check(
                above <= 2,
                f"Squared distances grow by at most {above:.2f} λ_1³ (2 allowed for the sketch).",
            ),
            Check(
                short >= -0.05,
                f"They fall short of λ_k³ (‖f - g‖² - 4εκ) by at most {max(-short, 0.0):.1%} of "
                "the largest (5 %).",
            ),
            Check(kept, "The distance of the clusters' means is above its bound."),
        ]


def _toy(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    return data.TOYS[name](np.random.default_rng(0), n)


JL_BOUNDS = (Proposition1, Distances)

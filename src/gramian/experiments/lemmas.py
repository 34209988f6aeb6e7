"""000, lemma 2 and lemmas 5 to 9, and ranks in proportion to the blocks' sizes. All on Iris."""

from __future__ import annotations

import numpy as np

from gramian import theory
from gramian.analysis.report.figures import Curves
from gramian.approximations import MEKA, Nystroem
from gramian.experiments import audits, data, measuring, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    DRAWN_FROM_HALF,
    EQUAL_RANKS,
    FEATURES,
    LANDMARKS,
    LINKS,
    MISSCALED,
    ONE_PASS,
    RANDOM_BLOCKS,
    UNIFORM_COLUMNS,
    WRONG_PRODUCT,
)
from gramian.experiments.drawing import ERROR, RUNS, axis, curves
from gramian.experiments.results import Results, slope
from gramian.kernels import RBF
from gramian.samplers import Diagonal

DELTA = 0.1


class Lemma2(Experiment):
    name = "000/lemma-2"
    title = "The error of a sampled product, squared"
    claim = "E‖AAᵀAAᵀ - CCᵀCCᵀ‖_F ≤ 2 ‖A‖_F⁴ / √c, with columns drawn by their squared norms."
    note = "A is Iris, centred. With probability 1 - δ the bound is η times as large; δ = 0.1."
    per_run = ("measured",)
    breaks = (WRONG_PRODUCT, UNIFORM_COLUMNS)

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(columns=[10, 30, 100, 300, 1000], runs=100 if settings.quick else 1000)

    def trial(self) -> list[Unit]:
        return [unit | {"runs": 10} for unit in self.units(Settings(quick=True))]

    def measure(self, *, columns: int, runs: int) -> Numbers:
        X, _ = data.rows("iris", "none")
        A = (X - X.mean(axis=0)).T
        exact, law = A @ A.T @ A @ A.T, np.sum(A**2, axis=0) / np.sum(A**2)
        found, apart = [], []
        for seed in range(runs):
            C, R = theory.approximate_product(A, A.T, columns, rng=seed)
            own = reference.sampled(A, law, columns, seed)
            found.append(float(np.linalg.norm(exact - C @ R @ C @ R)))
            apart.append(audits.off(C @ R, own @ own.T))
        bound = 2 * float(np.sum(A**2)) ** 2 / np.sqrt(columns)
        return {
            "measured": found,
            "bound": bound,
            "likely bound": reference.eta(DELTA) * bound,
            "off the formula": apart,
        }

    def figures(self, results: Results) -> list[Curves]:
        series = {name: results.curve("columns", name) for name in ("measured", "bound")}
        y = axis("‖AAᵀAAᵀ - CCᵀCCᵀ‖ in the Frobenius norm")
        return [curves(self.title, axis("columns c drawn"), y, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        means = [float(np.mean(unit["measured"])) / unit["bound"] for unit in results]
        over = max(float(np.mean(np.array(u["measured"]) > u["likely bound"])) for u in results)
        power = slope(results.medians("measured", "columns"))
        return [
            Check(
                max(means) <= 1 and over <= DELTA,
                f"The mean is at most {max(means):.2f} times its bound, and {over:.0%} of the "
                "draws exceed the probabilistic one, which allows 10 %.",
            ),
            Check(-0.75 < power < -0.35, f"The error falls as c^{power:.2f}; the lemma says -0.5."),
        ]


class Lemmas5To9(Experiment):
    name = "000/lemmas-5-9"
    title = "The steps to Nyström's bound"
    claim = (
        "‖G - G̃_k‖ = ‖XᵀX - XᵀÛÛᵀX‖, its square in three terms, and each term within √k ‖E‖_F of "
        "its limit, E = XXᵀXXᵀ - C_X C_Xᵀ C_X C_Xᵀ."
    )
    note = (
        "X is a root of the kernel matrix of Iris (RBF, gamma 1), k = 5. Lemma 8 prints a second "
        "factor ‖k‖, which the proof does not need."
    )
    per_run = "equal 5", "equal 6", "share 7", "share 8", "share 9"
    breaks = (*FEATURES, MISSCALED, DRAWN_FROM_HALF)

    def units(self, settings: Settings) -> list[Unit]:
        counts = [10, 20, 50, 100]
        return crossed(columns=counts, k=5, gamma=1.0, runs=20 if settings.quick else 100)

    def trial(self) -> list[Unit]:
        return crossed(columns=[10, 50], k=5, gamma=1.0, runs=4)

    def measure(self, *, columns: int, k: int, gamma: float, runs: int) -> Numbers:
        rows, _ = data.rows("iris", "none")
        G = reference.rbf(rows, rows, gamma)
        values, vectors = np.linalg.eigh(G)
        X = (vectors * np.sqrt(np.maximum(values, 0))).T  # G = XᵀX
        S, law, seen = X @ X.T, np.full(len(G), 1 / len(G)), []
        found: dict[str, list[float]] = {name: [] for name in self.per_run}
        for seed in range(runs):
            model = Nystroem(
                RBF(gamma),
                columns,
                landmarks=Diagonal(),
                rank=k,
                truncation="core",
                random_state=seed,
            ).fit(rows)
            seen.append(audits.nystroem(model, rows, law=law))
            C = X[:, np.asarray(model.landmarks_.indices)] * np.sqrt(len(G) / columns)
            U, sigma, _ = np.linalg.svd(C, full_matrices=False)
            U, fourth = U[:, :k], float(np.sum(sigma[:k] ** 4))
            projected = G - X.T @ U @ (U.T @ X)
            left = G - np.asarray(model.factor(rows).dense())
            size = np.sqrt(k) * np.linalg.norm(S @ S - C @ C.T @ C @ C.T)
            terms = np.sum((S @ U) ** 2), np.sum((U.T @ S @ U) ** 2), np.sum(values[-k:] ** 2)
            whole = np.sum(G**2) - 2 * terms[0] + terms[1]
            found["equal 5"].append(float(np.linalg.norm(left) / np.linalg.norm(projected) - 1))
            found["equal 6"].append(float(whole / np.sum(projected**2) - 1))
            for name, term in zip(self.per_run[2:], terms, strict=True):
                found[name].append(float(abs(term - fourth) / size))
        return {name: list(map(float, each)) for name, each in found.items()} | audits.joined(seen)

    def figures(self, results: Results) -> list[Curves]:
        series = {f"lemma {i}": results.curve("columns", f"share {i}") for i in (7, 8, 9)}
        y = axis("difference / (√k ‖E‖)", is_log=False)
        return [curves(self.title, axis("columns c drawn"), y, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        equal = [float(np.abs(results.values(f"equal {i}")).max()) for i in (5, 6)]
        shares = [float(results.values(f"share {i}").max()) for i in (7, 8, 9)]
        return [
            Check(
                max(equal) < 1e-6,
                f"The equalities of lemmas 5 and 6 hold to {equal[0]:.0e} and {equal[1]:.0e} "
                "(allowed: 1e-6).",
            ),
            Check(
                max(shares) <= 1,
                "The differences of lemmas 7, 8 and 9 are at most "
                f"{shares[0]:.2f}, {shares[1]:.2f} and {shares[2]:.2f} times √k ‖E‖.",
            ),
        ]


class RanksBySize(Experiment):
    name = "000/ranks"
    title = "Ranks in proportion to the blocks' sizes"
    claim = "MEKA is sensitive to the rank; the report's is a linear function of the block's size."
    note = "RBF, gamma 1, 5 blocks. The report gives no numbers; ranks are rounded to integers."
    breaks = (*FEATURES, *LANDMARKS, RANDOM_BLOCKS, ONE_PASS, *LINKS, EQUAL_RANKS)

    def units(self, settings: Settings) -> list[Unit]:
        runs = 10 if settings.quick else 30
        return crossed(method=["size", "equal"], gamma=1.0, rank=[10, 20, 40], blocks=5, runs=runs)

    def trial(self) -> list[Unit]:
        return crossed(method=["size", "equal"], gamma=1.0, rank=[10, 40], blocks=5, runs=3)

    def measure(self, *, method: str, gamma: float, rank: int, blocks: int, runs: int) -> Numbers:
        X, _ = data.rows("iris", "none")

        def make(seed: int) -> MEKA:
            return MEKA(RBF(gamma), rank, n_blocks=blocks, ranks=method, random_state=seed)

        apart = 0.0
        if method == "size":
            for seed in range(runs):
                model = make(seed).fit(X)
                linear = rank * np.asarray(model.block_sizes_) / len(X)
                apart = max(apart, float(np.abs(np.asarray(model.ranks_) - linear).max()))
        return measuring.audited(make, X, runs) | {"apart": apart}

    def figures(self, results: Results) -> list[Curves]:
        names = {"size": "in proportion to the size", "equal": "equal"}
        series = {s: results.curve("rank", "error", method=m) for m, s in names.items()}
        return [curves(self.title, axis("total rank"), ERROR, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        apart = float(results.values("apart", method="size").max())
        by = results.medians("error", "rank", method="size")
        return [
            Check(apart < 1.5, f"Ranks are off a linear function by at most {apart:.2f} (1.5)."),
            Check(
                by[max(by)] < 0.5 * by[min(by)],
                f"The error falls from {by[min(by)]:.3f} at rank {min(by)} to {by[max(by)]:.3f} at "
                f"rank {max(by)}.",
            ),
        ]


LEMMAS = (Lemma2, Lemmas5To9, RanksBySize)

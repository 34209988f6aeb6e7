"""002, tables 5 and 6, figures 5 and 6: the blocks of a kernel matrix."""

from __future__ import annotations

import numpy as np

from gramian import diagnostics
from gramian.analysis.accuracy import relative_error
from gramian.analysis.report.figures import Curves, Grid
from gramian.approximations import BKA
from gramian.experiments import audits, data, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    FEATURES,
    LANDMARKS,
    LARGER_COSINES,
    MORE_RANKS,
    ONE_PASS,
    RANDOM_BLOCKS,
)
from gramian.experiments.drawing import ERROR, RUNS, axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF

BLOCKS = 5
KINDS = "kmeans", "spectral", "random"


class Tables5And6(Experiment):
    name = "002/tables-5-6"
    title = "Ranks of blocks: k-means and random partitions"
    claim = (
        "With k-means, the numerical rank of each block is fairly small; with random blocks it "
        "is not."
    )
    breaks = (RANDOM_BLOCKS, ONE_PASS, MORE_RANKS)
    note = (
        "The paper gives neither gamma nor δ. With gamma 1 and δ = 1e-5 the ranks come close to "
        "its tables: 16 to 29 on the diagonal and 7 to 14 off it with k-means, 47 to 139 and 43 "
        "to 101 at random. The quick run uses Iris, with gamma 0.1."
    )

    def units(self, settings: Settings) -> list[Unit]:
        common: Unit = {"data": "ijcnn1", "scale": "none", "n": 4000, "gamma": 1.0, "delta": 1e-5}
        if settings.quick:
            common |= {"data": "iris", "n": 150, "gamma": 0.1}
        return crossed(partition=["kmeans", "random"], blocks=BLOCKS, seed=range(10), **common)

    def trial(self) -> list[Unit]:
        return [unit for unit in self.units(Settings(quick=True)) if unit["seed"] < 3]

    def measure(
        self,
        *,
        partition: str,
        data: str,
        scale: str,
        n: int,
        gamma: float,
        delta: float,
        blocks: int,
        seed: int,
    ) -> Numbers:
        X = _sample(data, n, scale, seed)
        model = BKA(
            RBF(gamma), 20 * blocks, n_blocks=blocks, partition=partition, random_state=seed
        ).fit(X)
        ranks = diagnostics.block_ranks(model, X, delta=delta, max_rows=n)
        found = {"ranks": ranks.numerical.tolist(), "rows": ranks.rows.tolist()}
        if seed == 0 or n <= audits.MOST_ROWS:
            labels = np.asarray(model.labels_)
            own = [X[labels == s] for s in range(len(ranks.rows))]
            wanted = [[reference.rank(reference.rbf(a, b, gamma), delta) for b in own] for a in own]
            found["ranks off"] = float(np.abs(ranks.numerical - np.array(wanted)).max())
        return found | audits.partition(model, X)

    def figures(self, results: Results) -> list[Grid]:
        darkest = float(max(np.max(unit["ranks"]) for unit in results))
        drawn = []
        first = results.where(seed=results[0]["seed"])
        for unit, title in zip(first, ("By k-means", "At random"), strict=True):
            header = ["block", *(str(s + 1) for s in range(len(unit["rows"]))), "rows"]
            rows = [
                [str(s + 1), *ranks, rows]
                for s, (ranks, rows) in enumerate(zip(unit["ranks"], unit["rows"], strict=True))
            ]
            said = f"Singular values above max(rows)·‖K_st‖·δ, δ = {unit['delta']:g}."
            drawn.append(Grid(title, header, rows, said, darkest, unshaded=1))
        return drawn

    def checks(self, results: Results) -> list[Check]:
        off, on = [], []
        for partition in ("kmeans", "random"):
            own = [np.array(unit["ranks"]) for unit in results.where(partition=partition)]
            beside = [ranks[~np.eye(len(ranks), dtype=bool)] for ranks in own]
            off.append(float(np.median(np.concatenate(beside))))
            on.append(float(np.median(np.concatenate([ranks.diagonal() for ranks in own]))))
        return [
            Check(
                off[0] < 0.5 * off[1] and on[0] < 0.5 * on[1],
                f"Median ranks are {on[0]:.0f} on the diagonal and {off[0]:.0f} off it with "
                f"k-means, and {on[1]:.0f} and {off[1]:.0f} with random blocks; the check requires "
                "less than half.",
            )
        ]


class Figure5(Experiment):
    name = "002/figure-5"
    title = "BKA with three partitions"
    claim = (
        "k-means in the input space performs like spectral clustering on the kernel matrix, but "
        "is much more efficient; random partitions are far worse."
    )
    breaks = (*FEATURES, *LANDMARKS, RANDOM_BLOCKS, ONE_PASS)
    per_run = "error", "seconds"
    note = "Columns in [0, 1], 5 blocks. The quick run uses scikit-learn's wine data."

    def units(self, settings: Settings) -> list[Unit]:
        where: Unit = {"data": "covtype", "n": 500, "gamma": 1.0, "runs": 10}
        if settings.quick:
            where = {"data": "wine", "n": 178, "gamma": 3.0, "runs": 10}
        return crossed(partition=["kmeans", "spectral", "random"], rank=[10, 25, 50, 100], **where)

    def trial(self) -> list[Unit]:
        every = self.units(Settings(quick=True))
        return [unit | {"runs": 3} for unit in every if unit["rank"] == 25]

    def measure(
        self, *, data: str, n: int, gamma: float, partition: str, rank: int, runs: int
    ) -> Numbers:
        errors, seconds, seen = [], [], []
        for seed in range(runs):
            X = _sample(data, n, "minmax", seed)
            model = BKA(
                RBF(gamma), rank, n_blocks=BLOCKS, partition=partition, random_state=seed
            ).fit(X)
            errors.append(float(relative_error(model, X)))
            seconds.append(model.times_["partition"])
            seen.append(audits.blocks(model, X))
        return {"error": errors, "seconds": seconds, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        names = {"kmeans": "k-means", "spectral": "spectral", "random": "random"}
        series = {
            name: results.curve("rank", "error", partition=kind) for kind, name in names.items()
        }
        return [curves(self.title, axis("total rank of BKA"), ERROR, series, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        last = max(results.choices("rank"))
        at = {p: results.median("error", partition=p, rank=last) for p in KINDS}
        gain = (at["random"] - at["kmeans"]) / (at["random"] - at["spectral"])
        times = {p: min(results.values("seconds", partition=p)) for p in KINDS}
        return [
            Check(
                gain > 0.8 and at["kmeans"] < 0.8 * at["random"],
                f"At rank {last}, the errors are {at['kmeans']:.3f} (k-means), "
                f"{at['spectral']:.3f} (spectral) and {at['random']:.3f} (random): k-means "
                f"achieves {100 * gain:.0f} % of the gain of spectral clustering.",
            ),
            Check(
                times["kmeans"] < times["spectral"],
                f"k-means takes {1e3 * times['kmeans']:.1f} ms, spectral clustering "
                f"{1e3 * times['spectral']:.1f} ms.",
                is_time=True,
            ),
        ]


class Figure6(Experiment):
    name = "002/figure-6"
    title = "Principal angles between the bases of blocks"
    claim = (
        "Most cosines between the bases of K_ss and K_st are close to 1, so the bases are similar."
    )
    breaks = (RANDOM_BLOCKS, ONE_PASS, LARGER_COSINES)
    note = (
        "The paper's figure shows one pair of blocks; this one all 20 pairs of 5 blocks. Random "
        "subspaces of rank r in a block of n rows have squared cosines of r/n on average."
    )

    def units(self, settings: Settings) -> list[Unit]:
        where: Unit = {"data": "covtype", "n": 1000, "gamma": 1.0}
        if settings.quick:
            where = {"data": "breast_cancer", "n": 569, "gamma": 0.3}
        return crossed(rank=[5, 10, 20, 30], blocks=BLOCKS, seed=range(10), **where)

    def trial(self) -> list[Unit]:
        every = self.units(Settings(quick=True))
        return [unit | {"n": 200} for unit in every if unit["rank"] == 5 and unit["seed"] < 3]

    def measure(
        self, *, data: str, n: int, gamma: float, rank: int, blocks: int, seed: int
    ) -> Numbers:
        X, kernel = _sample(data, n, "minmax", seed), RBF(gamma)
        model = BKA(kernel, 10 * blocks, n_blocks=blocks, random_state=seed).fit(X)
        labels = np.asarray(model.labels_)
        found = diagnostics.principal_cosines(kernel, X, labels, ranks=(rank,), max_rows=n)
        cosines = found.cosines[rank]
        s, t = found.pairs[0]
        own, other = X[labels == s], X[labels == t]
        wanted = reference.cosines(
            reference.rbf(own, own, gamma), reference.rbf(own, other, gamma), rank
        )
        return {
            "cosine": np.round(cosines[~np.isnan(cosines)], 6).tolist(),
            "chance": float(np.sqrt(min(1.0, rank / np.median(model.block_sizes_)))),
            "cosines off": float(np.nanmax(np.abs(cosines[0, : len(wanted)] - wanted))),
            **audits.partition(model, X),
        }

    def figures(self, results: Results) -> list[Curves]:
        series = {
            "measured": results.curve("rank", "cosine"),
            "by chance": results.curve("rank", "chance"),
        }
        said = "Medians of all cosines of all pairs, and the middle 80 % of them."
        y = axis("cosine of the principal angles", is_log=False)
        return [curves(self.title, axis("rank of the bases"), y, series, said)]

    def checks(self, results: Results) -> list[Check]:
        shares = [
            float(np.mean(results.values("cosine", rank=rank) > 0.9))
            for rank in results.choices("rank")
        ]
        least = min(results.median("cosine", rank=r) for r in results.choices("rank"))
        chance = max(unit["chance"] for unit in results)
        return [
            Check(
                min(shares) > 0.5,
                f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of the cosines are above "
                "0.9; the check requires more than half.",
            ),
            Check(
                least > chance,
                f"Their median is at least {least:.3f}; by chance it would be at most "
                f"{chance:.2f}.",
            ),
        ]


def _sample(name: str, n: int, scale: str, seed: int) -> np.ndarray:
    return data.some(name, n, scale, seed=seed)[0]


BLOCKWISE = (Tables5And6, Figure5, Figure6)

"""002, tables 5 and 6, figures 5 and 6: the blocks of a kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian import diagnostics
from gramian.analysis.accuracy import relative_error
from gramian.analysis.report.figures import Curves, Grid
from gramian.approximations import BKA
from gramian.experiments import data
from gramian.experiments.base import Check, Experiment, Settings, Unit, crossed
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
    note = (
        "The paper gives neither gamma nor δ. With gamma 1 and δ = 1e-5 the ranks come close to "
        "its tables: 16 to 29 on the diagonal and 7 to 14 off it with k-means, 47 to 139 and 43 "
        "to 101 at random. The quick run uses Iris, with gamma 0.1."
    )

    def units(self, settings: Settings) -> list[Unit]:
        common: Unit = {"data": "ijcnn1", "scale": "none", "n": 4000, "gamma": 1.0, "delta": 1e-5}
        if settings.quick:
            common |= {"data": "iris", "n": 150, "gamma": 0.1}
        return crossed(partition=["kmeans", "random"], blocks=BLOCKS, **common)

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
    ) -> dict[str, Any]:
        X = _some(data, n, scale)
        model = BKA(RBF(gamma), 20 * blocks, n_blocks=blocks, partition=partition, random_state=0)
        found = diagnostics.block_ranks(model.fit(X), X, delta=delta, max_rows=n)
        return {"ranks": found.numerical.tolist(), "rows": found.rows.tolist()}

    def figures(self, results: Results) -> list[Grid]:
        darkest = float(max(np.max(unit["ranks"]) for unit in results))
        drawn = []
        for unit, title in zip(results, ("By k-means", "At random"), strict=True):
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
            ranks = np.array(results.where(partition=partition)[0]["ranks"])
            beside = ~np.eye(len(ranks), dtype=bool)
            off.append(float(np.median(ranks[beside])))
            on.append(float(np.median(ranks.diagonal())))
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
    note = "Columns in [0, 1], 5 blocks. The quick run uses scikit-learn's wine data."

    def units(self, settings: Settings) -> list[Unit]:
        where: Unit = {"data": "covtype", "n": 500, "gamma": 1.0, "runs": 10}
        if settings.quick:
            where = {"data": "wine", "n": 178, "gamma": 3.0, "runs": 5}
        return crossed(partition=["kmeans", "spectral", "random"], rank=[10, 25, 50, 100], **where)

    def measure(
        self, *, data: str, n: int, gamma: float, partition: str, rank: int, runs: int
    ) -> dict[str, Any]:
        X, errors, seconds = _some(data, n), [], []
        for seed in range(runs):
            model = BKA(
                RBF(gamma), rank, n_blocks=BLOCKS, partition=partition, random_state=seed
            ).fit(X)
            errors.append(float(relative_error(model, X)))
            seconds.append(model.times_["partition"])
        return {"error": errors, "seconds": min(seconds)}

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
            ),
        ]


class Figure6(Experiment):
    name = "002/figure-6"
    title = "Principal angles between the bases of blocks"
    claim = (
        "Most cosines between the bases of K_ss and K_st are close to 1, so the bases are similar."
    )
    note = (
        "The paper's figure shows one pair of blocks; this one all 20 pairs of 5 blocks. Random "
        "subspaces of rank r in a block of n rows have squared cosines of r/n on average."
    )

    def units(self, settings: Settings) -> list[Unit]:
        where: Unit = {"data": "covtype", "n": 1000, "gamma": 1.0}
        if settings.quick:
            where = {"data": "breast_cancer", "n": 569, "gamma": 0.3}
        return crossed(rank=[5, 10, 20, 30], blocks=BLOCKS, **where)

    def measure(self, *, data: str, n: int, gamma: float, rank: int, blocks: int) -> dict[str, Any]:
        X, kernel = _some(data, n), RBF(gamma)
        model = BKA(kernel, 10 * blocks, n_blocks=blocks, random_state=0).fit(X)
        found = diagnostics.principal_cosines(kernel, X, model.labels_, ranks=(rank,))
        cosines = found.cosines[rank]
        sizes = model.block_sizes_
        return {
            "cosine": np.round(cosines[~np.isnan(cosines)], 6).tolist(),
            "chance": float(np.sqrt(min(1.0, rank / np.median(sizes)))),
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
        shares = [float(np.mean(np.array(unit["cosine"]) > 0.9)) for unit in results]
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


def _some(name: str, n: int | None, scale: str = "minmax") -> np.ndarray:
    return data.some(name, n, scale)[0]


BLOCKWISE = (Tables5And6, Figure5, Figure6)

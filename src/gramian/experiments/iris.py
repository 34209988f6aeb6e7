"""000, figures 1 to 9: Nyström, BKA and MEKA on Iris.

The report gives no gamma, rank or number of landmarks for its figures. The rows are Iris, unscaled;
the error is ‖K - K̃‖_F / ‖K‖_F. Methods that are compared have equally many landmarks in total. From
figure 5 on, they also store equally many numbers per row, links included.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

from gramian.analysis.report.figures import Curves
from gramian.experiments import breaks, data, measuring
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    FEATURES,
    LINKS,
    ONE_PASS,
    RANDOM_BLOCKS,
    UNDERSTATED,
    Break,
)
from gramian.experiments.drawing import ERROR, RUNS, axis, curves
from gramian.experiments.results import Results

BLOCKS = 3
GAMMAS = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
LOW, HIGH = [3, 4, 6, 9, 12], [20, 25, 30, 40, 50]
LANDMARKS = 60  # in total
LEVEL = 0.01  # of tests
BROKEN_BLOCKS: tuple[Break, ...] = (
    *FEATURES,
    *breaks.LANDMARKS,
    RANDOM_BLOCKS,
    ONE_PASS,
    UNDERSTATED,
)
BROKEN_LINKS: tuple[Break, ...] = (*BROKEN_BLOCKS, *LINKS)


def runs(settings: Settings) -> int:
    return 10 if settings.quick else 30


class OnIris(Experiment):
    """Base of the figures: errors of several methods against one parameter."""

    over: str
    x_title: str
    x_is_log = True
    tried: tuple[float, ...]  # the values at which breaks are tried

    def trial(self) -> list[Unit]:
        every = [unit | {"runs": 4} for unit in self.units(Settings(quick=True))]
        return [unit for unit in every if unit.get(self.over, self.tried[0]) in self.tried]

    def figures(self, results: Results) -> list[Curves]:
        series = {
            str(name): results.curve(self.over, "error", method=name)
            for name in results.choices("method")
        }
        x = axis(self.x_title, is_log=self.x_is_log)
        return [curves(self.title, x, ERROR, series, caption=RUNS)]


class AgainstScikitLearn(OnIris):
    """Figures 1 and 2."""

    breaks = (*FEATURES, *breaks.LANDMARKS, UNDERSTATED)
    claim = "The report's Nyström performs almost like scikit-learn's."
    per_run = "error", "error of gramian"
    note = "Both draw their landmarks uniformly, but from different generators."

    def measure(self, *, method: str, gamma: float, rank: int, runs: int) -> Numbers:
        X, _ = data.rows("iris", "none")
        if method == "scikit-learn":
            return measuring.scikit_learn_errors(X, gamma, rank, runs)
        make = measuring.blocks_or_nystroem(method, gamma, rank)
        return measuring.audited(make, X, runs)

    def checks(self, results: Results) -> list[Check]:
        theirs = results.values("error", method="scikit-learn")
        same = results.values("error of gramian", method="scikit-learn")
        apart = float(np.max(np.abs(same / theirs - 1)))
        alike, ratios = [], []
        for x in results.choices(self.over):
            a, b = (
                results.values("error", method=m, **{self.over: x})
                for m in ("Nyström", "scikit-learn")
            )
            alike.append(float(mannwhitneyu(a, b).pvalue))
            ratios.append(float(np.exp(np.mean(np.log(a)) - np.mean(np.log(b)))))
        return [
            Check(
                apart < 1e-3,
                "With scikit-learn's landmarks, gramian's error is the same up to "
                f"{apart:.0e} (allowed: 0.001).",
            ),
            Check(
                min(alike) > LEVEL / len(alike),
                f"With its own, it is {min(ratios):.2f} to {max(ratios):.2f} times scikit-learn's "
                f"(geometric means); rank-sum tests find no difference (p = {min(alike):.2g}, "
                f"level {LEVEL:g} for all).",
            ),
        ]


class Figure1(AgainstScikitLearn):
    name = "000/figure-1"
    title = "gramian's and scikit-learn's Nyström against gamma"
    over, x_title = "gamma", "gamma"
    tried = 0.3, 3.0

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(
            method=["Nyström", "scikit-learn"], gamma=GAMMAS, rank=20, runs=2 * runs(settings)
        )


class Figure2(AgainstScikitLearn):
    name = "000/figure-2"
    title = "gramian's and scikit-learn's Nyström against rank"
    over, x_title = "rank", "rank (number of landmarks)"
    tried = 10, 40

    def units(self, settings: Settings) -> list[Unit]:
        ranks = [2, 5, 10, 20, 40, 80]
        return crossed(
            method=["Nyström", "scikit-learn"], gamma=1.0, rank=ranks, runs=2 * runs(settings)
        )


class OnBlocks(OnIris):
    """Figures 3 to 9: blocks and Nyström, with equally many landmarks."""

    breaks = BROKEN_LINKS

    def measure(
        self,
        *,
        method: str,
        gamma: float,
        rank: int,
        runs: int,
        blocks: int = BLOCKS,
        landmarks: int = LANDMARKS,
        distance: float | None = None,
    ) -> Numbers:
        X, _ = data.rows("iris", "none")
        make = measuring.blocks_or_nystroem(method, gamma, rank, blocks, landmarks, distance)
        known = {"count": landmarks // blocks} if method != "Nyström" else {}
        return measuring.audited(make, X, runs, **known)


class BlocksOverRank(OnBlocks):
    """Figures 3 and 4."""

    breaks = BROKEN_BLOCKS
    over, x_title = "rank", "total rank"
    ranks: list[int]
    note = (
        f"gamma 5 and {LANDMARKS} landmarks for both, reduced to the best rank. The report does "
        "not say how many landmarks its methods have. With 50 for Nyström and three times the rank "
        "for BKA, figure 4 looks as it does in the report."
    )

    def units(self, settings: Settings) -> list[Unit]:
        methods, count = ["Nyström", "BKA"], runs(settings)
        return crossed(method=methods, gamma=5.0, rank=self.ranks, runs=count)

    def ratios(self, results: Results) -> list[float]:
        """Return BKA's error divided by Nyström's, at each rank."""
        a, b = (results.medians("error", "rank", method=m) for m in ("BKA", "Nyström"))
        return [a[rank] / b[rank] for rank in a if rank in b]


class Figure3(BlocksOverRank):
    name = "000/figure-3"
    title = "BKA and Nyström at low rank"
    claim = (
        "BKA performs worse than Nyström at the same rank, because it sees only the diagonal "
        "blocks."
    )
    ranks = LOW
    tried = 3, 12

    def checks(self, results: Results) -> list[Check]:
        found = self.ratios(results)
        text = f"BKA's error is {min(found):.2f} to {max(found):.2f} times Nyström's at ranks"
        return [Check(min(found) > 1, f"{text} {LOW[0]} to {LOW[-1]}.")]


class Figure4(BlocksOverRank):
    name = "000/figure-4"
    title = "BKA and Nyström at high rank"
    claim = "At higher ranks, BKA outperforms Nyström."
    ranks = HIGH
    tried = 20, 50

    def checks(self, results: Results) -> list[Check]:
        found = self.ratios(results)
        text = f"BKA's error is {min(found):.2f} to {max(found):.2f} times Nyström's at ranks"
        return [Check(max(found) < 1, f"{text} {HIGH[0]} to {HIGH[-1]}.")]


class MEKAOnIris(OnBlocks):
    """Figures 5 to 9: MEKA has ``rank`` numbers per row, Nyström what MEKA stores in total."""

    note = f"Both methods have {LANDMARKS} landmarks; Nyström's rank is what MEKA stores per row."

    def measure(self, *, method: str, rank: int, **unit: Any) -> Numbers:
        if method != "Nyström" or "is_rank" in unit:
            unit.pop("is_rank", None)
            total = rank * unit.get("blocks", BLOCKS) if method != "Nyström" else rank
            return super().measure(method=method, rank=total, **unit)
        X, _ = data.rows("iris", "none")
        blocks = unit.pop("blocks", BLOCKS)
        count = unit.get("landmarks", LANDMARKS)
        make = measuring.blocks_or_nystroem("MEKA", unit["gamma"], rank * blocks, blocks, count)
        kept = measuring.numbers_per_row(make(0).fit(X), len(X))
        return super().measure(method=method, rank=min(ceil(kept), count), **unit)


def below(results: Results, over: str) -> dict[Any, float]:
    """Return MEKA's error divided by Nyström's, at each value."""
    a, b = (results.medians("error", over, method=m) for m in ("MEKA", "Nyström"))
    return {x: a[x] / b[x] for x in a if x in b}


class Figure5(MEKAOnIris):
    name = "000/figure-5"
    title = "MEKA and Nyström against gamma"
    claim = "MEKA outperforms Nyström: its error is lower."
    note = f"{MEKAOnIris.note} At small gamma K as a whole has a low rank: both errors are tiny."
    over, x_title = "gamma", "gamma"
    tried = 0.1, 3.0

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(method=["Nyström", "MEKA"], gamma=GAMMAS, rank=10, runs=runs(settings))

    def checks(self, results: Results) -> list[Check]:
        found = below(results, "gamma")
        smooth, local = ({g: x for g, x in found.items() if (g < 0.5) == s} for s in (True, False))
        return [
            Check(
                max(part.values(), default=0.0) < 1,
                f"MEKA's error is {min(part.values()):.2g} to {max(part.values()):.2g} times "
                f"Nyström's at gamma {min(part):g} to {max(part):g}.",
            )
            for part in (smooth, local)
            if part
        ]


class Figure6(MEKAOnIris):
    name = "000/figure-6"
    title = "MEKA against the number of blocks"
    claim = "MEKA's error stays below Nyström's as the number of clusters varies."
    note = f"{MEKAOnIris.note} With one block, MEKA is Nyström."
    over, x_title, x_is_log = "blocks", "number of blocks", False
    tried = 2, 5

    def units(self, settings: Settings) -> list[Unit]:
        counts = [1, 2, 3, 4, 5, 6]
        common = {"gamma": 1.0, "rank": 6, "runs": runs(settings)}
        return crossed(method=["MEKA", "Nyström"], blocks=counts, **common)

    def checks(self, results: Results) -> list[Check]:
        found = below(results, "blocks")
        several = [ratio for count, ratio in found.items() if count > 1]
        by = results.medians("error", "blocks", method="MEKA")
        return [
            Check(
                max(several) < 1,
                f"With 2 to {max(found)} blocks, MEKA's error is {min(several):.2f} to "
                f"{max(several):.2f} times Nyström's.",
            ),
            Check(
                by[max(by)] < by[min(by)],
                f"With {max(by)} blocks of equal rank, it is {by[max(by)]:.3f}; with {min(by)}, "
                f"{by[min(by)]:.3f}.",
            ),
        ]


class Figure7(MEKAOnIris):
    name = "000/figure-7"
    title = "MEKA and Nyström against the number of landmarks"
    claim = "Both improve with c, the number of points used."
    note = "MEKA has 6 numbers per row, Nyström as many as MEKA stores. c is the total number."
    over, x_title = "landmarks", "landmarks c"
    tried = 21, 84

    def units(self, settings: Settings) -> list[Unit]:
        counts = [21, 30, 42, 60, 84]
        common = {"gamma": 1.0, "rank": 6, "runs": runs(settings)}
        return crossed(method=["Nyström", "MEKA"], landmarks=counts, **common)

    def checks(self, results: Results) -> list[Check]:
        found = []
        for method in ("Nyström", "MEKA"):
            by = results.medians("error", "landmarks", method=method)
            first, last = by[min(by)], by[max(by)]
            text = f"{method}'s error falls from {first:.3f} to {last:.3f}"
            found.append(
                Check(last < 0.9 * first, f"{text} with {min(by)} to {max(by)} landmarks.")
            )
        return found


class Figure8(MEKAOnIris):
    name = "000/figure-8"
    title = "The rank at which Nyström matches MEKA"
    claim = "Nyström performs as well as MEKA if its rank is increased."
    note = f"Both methods have {LANDMARKS} landmarks in total; MEKA has rank 6 in each block."
    over, x_title = "rank", "numbers per row"
    tried = 6, 30

    def units(self, settings: Settings) -> list[Unit]:
        common = {"gamma": 1.0, "runs": runs(settings)}
        ranks = [6, 8, 10, 12, 15, 20, 30]
        return crossed(method="MEKA", rank=6, **common) + crossed(
            method="Nyström", rank=ranks, is_rank=True, **common
        )

    def figures(self, results: Results) -> list[Curves]:
        (drawn,) = super().figures(results.where(method="Nyström"))
        flat = results.curve("rank", "error", method="MEKA")[0]
        ends = [flat._replace(x=x) for x in (flat.x, max(results.choices("rank")))]
        series = {**drawn.series, "MEKA": ends}
        said = f"MEKA, with rank 6 in each block, is the horizontal line. {RUNS}"
        return [curves(drawn.title, drawn.x, drawn.y, series, said)]

    def checks(self, results: Results) -> list[Check]:
        meka = results.median("error", method="MEKA")
        kept = results.median("kept", method="MEKA")
        by = results.medians("error", "rank", method="Nyström")
        enough = [rank for rank, error in by.items() if error <= meka]
        if not enough:
            return [Check(False, f"No rank up to {max(by)} brings Nyström to MEKA's {meka:.3f}.")]
        return [
            Check(
                enough[0] > 6,
                f"Nyström reaches MEKA's error of {meka:.3f} at rank {enough[0]}; MEKA has rank 6 "
                f"in each block and stores {kept:.1f} numbers per row. At rank {min(by)}, "
                f"Nyström's error is {by[min(by)]:.3f}.",
            )
        ]


class Figure9(MEKAOnIris):
    name = "000/figure-9"
    title = "MEKA against the threshold for links"
    claim = "Threshold 0 is BKA; the error falls as the threshold grows and more links are kept."
    note = "The threshold is a distance between centres, from 0 to more than the largest."
    over, x_title, x_is_log = (
        "distance",
        "threshold: largest distance between linked centres",
        False,
    )
    tried = 0.0, 2.0, 6.0

    def units(self, settings: Settings) -> list[Unit]:
        common = {"gamma": 0.5, "rank": 6, "blocks": 5, "runs": runs(settings)}
        distances = [0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        return crossed(method="BKA", **common) + crossed(
            method="MEKA", distance=distances, **common
        )

    def figures(self, results: Results) -> list[Curves]:
        (drawn,) = super().figures(results.where(method="MEKA"))
        values = results.values("error", method="BKA")
        at = drawn.series["MEKA"][0]._replace(y=float(np.median(values)))
        return [curves(drawn.title, drawn.x, drawn.y, {**drawn.series, "BKA": [at]}, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        by = results.medians("error", "distance", method="MEKA")
        bka = results.values("error", method="BKA")
        zero = results.values("error", method="MEKA", distance=0.0)
        apart = float(np.abs(bka - zero).max())
        values = list(by.values())
        rise = max(later - now for now, later in pairwise(values))
        return [
            Check(apart < 1e-9, f"At threshold 0, MEKA and BKA differ by at most {apart:.1g}."),
            Check(
                rise <= 0.01 * values[0] and values[-1] < 0.5 * values[0],
                f"The error falls from {values[0]:.3f} to {values[-1]:.3f}, and rises by at most "
                f"{max(rise, 0.0):.1g} from one threshold to the next.",
            ),
        ]


IRIS = (Figure1, Figure2, Figure3, Figure4, Figure5, Figure6, Figure7, Figure8, Figure9)

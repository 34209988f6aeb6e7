"""000, figures 1 to 9: Nyström, BKA and MEKA on Iris.

The report gives no gamma, rank or number of landmarks for its figures. The rows are Iris, unscaled;
the error is ‖K - K̃‖_F / ‖K‖_F. "Same rank" means that both approximations store the same number of
values per row: MEKA's total rank is then its number of blocks times Nyström's rank.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from gramian.analysis.report.figures import Curves
from gramian.experiments import data, measuring
from gramian.experiments.base import Check, Experiment, Settings, Unit, crossed
from gramian.experiments.drawing import ERROR, RUNS, axis, curves
from gramian.experiments.results import Results

BLOCKS = 3
GAMMAS = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
LOW, HIGH = [3, 4, 6, 9, 12], [20, 25, 30, 40, 50]
LANDMARKS = 50


def runs(settings: Settings) -> int:
    return 10 if settings.quick else 30


class OnIris(Experiment):
    """Base of the figures: errors of several methods against one parameter."""

    over: str
    x_title: str
    x_is_log = True

    def figures(self, results: Results) -> list[Curves]:
        series = {
            str(name): results.curve(self.over, "error", method=name)
            for name in results.choices("method")
        }
        x = axis(self.x_title, is_log=self.x_is_log)
        return [curves(self.title, x, ERROR, series, caption=RUNS)]


class AgainstScikitLearn(OnIris):
    """Figures 1 and 2."""

    claim = "The report's Nyström performs almost like scikit-learn's."
    note = (
        "Both draw their landmarks uniformly, but from different generators, so they can only "
        "agree on average over many draws."
    )

    def measure(self, *, method: str, gamma: float, rank: int, runs: int) -> dict[str, Any]:
        X, _ = data.rows("iris", "none")
        if method == "scikit-learn":
            return {"error": measuring.scikit_learn_errors(X, gamma, rank, runs)}
        make = measuring.blocks_or_nystroem(method, gamma, rank)
        return {"error": measuring.errors(make, X, runs)}

    def checks(self, results: Results) -> list[Check]:
        ratios = []
        for x in results.choices(self.over):
            ours, theirs = (
                np.exp(np.mean(np.log(results.values("error", method=m, **{self.over: x}))))
                for m in ("Nyström", "scikit-learn")
            )
            ratios.append(float(ours / theirs))
        least, most = min(ratios), max(ratios)
        return [
            Check(
                least >= 2 / 3 and most <= 1.5,
                f"gramian's error is {least:.2f} to {most:.2f} times scikit-learn's at every "
                f"{self.over} (geometric means over the draws; the check allows 0.67 to 1.5).",
            )
        ]


class Figure1(AgainstScikitLearn):
    name = "000/figure-1"
    title = "gramian's and scikit-learn's Nyström against gamma"
    over, x_title = "gamma", "gamma"

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(
            method=["Nyström", "scikit-learn"], gamma=GAMMAS, rank=20, runs=2 * runs(settings)
        )


class Figure2(AgainstScikitLearn):
    name = "000/figure-2"
    title = "gramian's and scikit-learn's Nyström against rank"
    over, x_title = "rank", "rank (number of landmarks)"

    def units(self, settings: Settings) -> list[Unit]:
        ranks = [2, 5, 10, 20, 40, 80]
        return crossed(
            method=["Nyström", "scikit-learn"], gamma=1.0, rank=ranks, runs=2 * runs(settings)
        )


class BlocksOverRank(OnIris):
    """Figures 3 and 4."""

    over, x_title = "rank", "total rank"
    ranks: list[int]
    note = (
        f"gamma 5 and {LANDMARKS} landmarks, reduced to the best rank. Where BKA overtakes "
        "depends on gamma: BKA never sees what lies between the blocks, and at gamma 2 and "
        "below, that is more than the error of Nyström with as many landmarks."
    )

    def units(self, settings: Settings) -> list[Unit]:
        methods, count = ["Nyström", "BKA"], runs(settings)
        return crossed(method=methods, gamma=5.0, rank=self.ranks, landmarks=LANDMARKS, runs=count)

    def measure(
        self, *, method: str, gamma: float, rank: int, landmarks: int, runs: int
    ) -> dict[str, Any]:
        X, _ = data.rows("iris", "none")
        make = measuring.blocks_or_nystroem(method, gamma, rank, BLOCKS, landmarks)
        return {"error": measuring.errors(make, X, runs)}

    def ratios(self, results: Results) -> list[float]:
        """Return BKA's error divided by Nyström's, at each rank."""
        a, b = (results.medians("error", "rank", method=m) for m in ("BKA", "Nyström"))
        return [a[rank] / b[rank] for rank in a]


class Figure3(BlocksOverRank):
    name = "000/figure-3"
    title = "BKA and Nyström at low rank"
    claim = (
        "BKA performs worse than Nyström at the same rank, because it sees only the diagonal "
        "blocks."
    )
    ranks = LOW

    def checks(self, results: Results) -> list[Check]:
        found = self.ratios(results)
        text = f"BKA's error is {min(found):.2f} to {max(found):.2f} times Nyström's at ranks"
        return [Check(min(found) > 1, f"{text} {LOW[0]} to {LOW[-1]}.")]


class Figure4(BlocksOverRank):
    name = "000/figure-4"
    title = "BKA and Nyström at high rank"
    claim = "At higher ranks, BKA outperforms Nyström."
    ranks = HIGH

    def checks(self, results: Results) -> list[Check]:
        found = self.ratios(results)
        text = f"BKA's error is {min(found):.2f} to {max(found):.2f} times Nyström's at ranks"
        return [Check(max(found) < 1, f"{text} {HIGH[0]} to {HIGH[-1]}.")]


class MEKAOnIris(OnIris):
    """Figures 5 to 9: MEKA and Nyström, with ``rank`` numbers per row."""

    note = (
        "Approximations have equal rank if they store the same number of values per row: MEKA has "
        "that rank in each of its blocks."
    )

    def measure(
        self,
        *,
        method: str,
        gamma: float,
        rank: int,
        runs: int,
        blocks: int = BLOCKS,
        landmarks: int | None = None,
        distance: float | None = None,
    ) -> dict[str, Any]:
        X, _ = data.rows("iris", "none")
        total = rank * blocks if method in ("MEKA", "BKA") else rank
        make = measuring.blocks_or_nystroem(method, gamma, total, blocks, landmarks)
        if method == "MEKA" and landmarks is not None:
            plain, sampler = make, measuring.AtMost(landmarks)
            make = lambda seed: plain(seed).set_params(landmarks=sampler)  # noqa: E731
        if distance is not None:
            linked = make
            make = lambda seed: linked(seed).set_params(link_distance=distance)  # noqa: E731
        return {"error": measuring.errors(make, X, runs)}


def below(results: Results, over: str) -> list[float]:
    """Return MEKA's error divided by Nyström's, at each value."""
    a, b = (results.medians("error", over, method=m) for m in ("MEKA", "Nyström"))
    return [a[x] / b[x] for x in a]


class Figure5(MEKAOnIris):
    name = "000/figure-5"
    title = "MEKA and Nyström against gamma"
    claim = "MEKA outperforms Nyström: its error is lower."
    over, x_title = "gamma", "gamma"

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(method=["Nyström", "MEKA"], gamma=GAMMAS, rank=10, runs=runs(settings))

    def checks(self, results: Results) -> list[Check]:
        found = below(results, "gamma")
        text = f"MEKA's error is {min(found):.2g} to {max(found):.2g} times Nyström's"
        return [Check(max(found) < 1, f"{text} at every gamma, with 10 numbers per row.")]


class Figure6(MEKAOnIris):
    name = "000/figure-6"
    title = "MEKA against the number of blocks"
    claim = "MEKA's error stays below Nyström's as the number of clusters varies."
    note = (
        f"{MEKAOnIris.note} MEKA with one block is Nyström with a better basis, because a block "
        "keeps the best basis of its rank."
    )
    over, x_title, x_is_log = "blocks", "number of blocks", False

    def units(self, settings: Settings) -> list[Unit]:
        common = {"gamma": 1.0, "rank": 6, "runs": runs(settings)}
        counts = [1, 2, 3, 4, 5, 6, 8]
        return crossed(method="MEKA", blocks=counts, **common) + crossed(
            method="Nyström", blocks=1, **common
        )

    def figures(self, results: Results) -> list[Curves]:
        (drawn,) = super().figures(results.where(method="MEKA"))
        flat = results.curve("blocks", "error", method="Nyström")[0]
        ends = [flat._replace(x=x) for x in (1, max(results.choices("blocks")))]
        return [curves(drawn.title, drawn.x, drawn.y, {**drawn.series, "Nyström": ends}, RUNS)]

    def checks(self, results: Results) -> list[Check]:
        nystroem = results.median("error", method="Nyström")
        found = results.medians("error", "blocks", method="MEKA")
        most = max(found[count] for count in found if count > 1)
        return [
            Check(
                most < nystroem,
                f"With 2 to {max(found)} blocks, MEKA's error is at most {most:.3f}; Nyström's is "
                f"{nystroem:.3f}.",
            ),
            Check(
                found[max(found)] < found[1],
                f"With {max(found)} blocks of equal rank, it is {found[max(found)]:.3f}; with one "
                f"block, {found[1]:.3f}.",
            ),
        ]


class Figure7(MEKAOnIris):
    name = "000/figure-7"
    title = "MEKA and Nyström against the number of landmarks"
    claim = "Both improve with c, the number of points used."
    note = (
        "The rank is fixed at 6 numbers per row. For MEKA, c is the number of landmarks per block."
    )
    over, x_title = "landmarks", "landmarks c (per block)"

    def units(self, settings: Settings) -> list[Unit]:
        return crossed(
            method=["Nyström", "MEKA"],
            gamma=1.0,
            rank=6,
            landmarks=[7, 10, 14, 20, 28],
            runs=2 * runs(settings),
        )

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
    over, x_title = "rank", "numbers per row"

    def units(self, settings: Settings) -> list[Unit]:
        common = {"gamma": 1.0, "runs": runs(settings)}
        ranks = [6, 10, 15, 20, 30, 45, 60]
        return crossed(method="MEKA", rank=6, **common) + crossed(
            method="Nyström", rank=ranks, **common
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
        by = results.medians("error", "rank", method="Nyström")
        enough = [rank for rank, error in by.items() if error <= meka]
        if not enough:
            return [Check(False, f"No rank up to {max(by)} brings Nyström to MEKA's {meka:.3f}.")]
        return [
            Check(
                enough[0] > 6,
                f"Nyström reaches MEKA's error of {meka:.3f} at rank {enough[0]}; MEKA stores 6 "
                f"numbers per row. At rank 6, Nyström's error is {by[6]:.3f}.",
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

    def units(self, settings: Settings) -> list[Unit]:
        common = {"gamma": 0.5, "rank": 6, "blocks": 5, "runs": runs(settings)}
        distances = [0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        return crossed(method="MEKA", distance=distances, **common) + crossed(
            method="BKA", **common
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

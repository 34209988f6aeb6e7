"""002, figures 7 to 10: MEKA's error and time, against other methods and by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from gramian import diagnostics
from gramian.analysis.accuracy import relative_error
from gramian.analysis.report.figures import Curves
from gramian.approximations import MEKA, Nystroem
from gramian.backend.config import config_context
from gramian.experiments import audits, data, measuring, reference
from gramian.experiments.base import Check, Experiment, Numbers, Settings, Unit, crossed
from gramian.experiments.breaks import (
    DOUBLE_PENALTY,
    FEATURES,
    FEWER_LINKS,
    LANDMARKS,
    LINKS,
    ONE_PASS,
    RANDOM_BLOCKS,
    UNDERSTATED,
)
from gramian.experiments.comparing import by_time, faster, leaner
from gramian.experiments.data import Labelled
from gramian.experiments.drawing import CPU_SECONDS, ERROR, RUNS, SECONDS, axis, curves
from gramian.experiments.results import Results
from gramian.kernels import RBF, Laplacian
from gramian.learners import KernelRidge

BLOCKS = 5
LEAST = "The shortest CPU time of the runs, on one thread."


@contextmanager
def one_thread() -> Iterator[None]:
    with config_context(n_threads=1), threadpool_limits(1):
        yield


@contextmanager
def timed(seconds: list[float]) -> Iterator[None]:
    """Measure CPU time in one thread, which other load on the machine hardly affects."""
    with one_thread():
        start = process_time()
        yield
        seconds.append(process_time() - start)


class Figure7(Experiment):
    name = "002/figure-7"
    title = "Kernel ridge regression with Nyström, CSI and MEKA"
    breaks = (*FEATURES, *LANDMARKS, RANDOM_BLOCKS, ONE_PASS, *LINKS, DOUBLE_PENALTY)
    per_run = "error", "seconds"
    claim = "MEKA and Nyström are much faster than CSI for kernel regression."
    note = (
        "RBF on columns in [0, 1], with a fifth of the rows held out. Times are compared at equal "
        "error; memory includes the links. gramian's CSI computes columns in blocks and is about "
        "four times as fast as one that takes them one by one, so it is not much slower than MEKA. "
        "In the quick run, the target is the digit."
    )

    def units(self, settings: Settings) -> list[Unit]:
        methods = ["Nyström uniform", "Nyström CSI", "MEKA"]
        if settings.quick:
            where: list[Unit] = [{"data": "digits", "gamma": 0.05, "penalty": 0.1}]
            ranks, runs = [10, 20, 40, 80], 10
        else:
            where = [
                {"data": "wine_quality", "gamma": 10.0, "penalty": 0.5},
                {"data": "cpusmall", "gamma": 4.0, "penalty": 0.1},
            ]
            ranks, runs = [10, 20, 40, 80, 160], 10
        return [
            unit
            for each in where
            for unit in crossed(**each, method=methods, rank=ranks, runs=runs)
            if unit["method"] != "MEKA" or unit["rank"] < ranks[-1]
        ]

    def trial(self) -> list[Unit]:
        own: Unit = {"data": "iris", "gamma": 3.0, "penalty": 0.1, "runs": 3}
        return crossed(method=["Nyström uniform", "Nyström CSI", "MEKA"], rank=[4, 8], **own)

    def measure(
        self, *, data: str, gamma: float, penalty: float, method: str, rank: int, runs: int
    ) -> Numbers:
        X, y = _labelled(data)
        y = y.astype(np.float64)
        seconds: list[float] = []
        seen: list[dict[str, float]] = []
        kernel, errors, kept = RBF(gamma), [], 0.0
        for seed in range(runs):
            (train, target), (test, wanted) = _halves(X, y, seed)
            approximation = {
                "Nyström uniform": Nystroem(kernel, rank, landmarks="uniform"),
                "Nyström CSI": Nystroem(kernel, rank, landmarks="csi"),
                "MEKA": MEKA(kernel, BLOCKS * rank, n_blocks=BLOCKS),
            }[method].set_params(random_state=seed)
            mean = target.mean()
            model = KernelRidge(penalty, kernel=approximation, fit_intercept=False)
            with timed(seconds):
                model.fit(train, target - mean)
            left = model.predict(test) + mean - wanted
            errors.append(float(np.linalg.norm(left) / np.linalg.norm(wanted)))
            kept = measuring.numbers_per_row(model.approximation_, len(train))
            known = {"is_uniform": False} if method == "Nyström CSI" else {}
            audit = audits.approximation(model.approximation_, train, **known)
            seen.append({**audit, **audits.ridge(model, train, target - mean, test, penalty)})
        return {"error": errors, "seconds": seconds, "kept": kept, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        drawn = []
        y = axis("test error ‖f - y‖ / ‖y‖", is_log=False)
        for name in results.choices("data"):
            own = results.where(data=name)
            memory = {m: own.over("kept", "error", method=m) for m in own.choices("method")}
            x = axis("numbers per row")
            drawn.append(curves(f"{name}: error against memory", x, y, memory, RUNS))
            drawn.append(curves(f"{name}: error against time", CPU_SECONDS, y, by_time(own), LEAST))
        return drawn

    def checks(self, results: Results) -> list[Check]:
        found = []
        for name in results.choices("data"):
            own = results.where(data=name)
            seen = [faster(own, "Nyström CSI", fast) for fast in ("Nyström uniform", "MEKA")]
            seen.append(leaner(own, "MEKA", "Nyström uniform", 1.02))
            found += [each._replace(text=f"{name}: {each.text}") for each in seen]
        return found


class Figure8(Experiment):
    name = "002/figure-8"
    title = "MEKA against the threshold ε for links"
    breaks = (*FEATURES, *LANDMARKS, RANDOM_BLOCKS, ONE_PASS, *LINKS, FEWER_LINKS)
    per_run = "error", "seconds", "links"
    claim = "A larger ε drops more links: the error is higher and the fit faster."
    note = (
        "gamma 1 (digits: 0.3), all links at ε = 0 and none at 1. The quick run uses "
        "scikit-learn's digits instead of ijcnn1. The authors set ε to 0.1."
    )

    def units(self, settings: Settings) -> list[Unit]:
        thresholds = [0.0, 0.06, 0.1, 0.13, 0.2, 0.3, 0.5, 1.0]
        where: Unit = {"data": "ijcnn1", "scale": "none", "gamma": 1.0, "rank": 1000, "blocks": 20}
        if settings.quick:
            where |= {"data": "digits", "scale": "minmax", "gamma": 0.3, "rank": 300}
        return crossed(threshold=thresholds, **where, runs=10)

    def trial(self) -> list[Unit]:
        own: Unit = {"data": "iris", "scale": "none", "gamma": 0.5, "rank": 30, "blocks": 5}
        return crossed(threshold=[0.0, 0.1, 1.0], **own, runs=3)

    def measure(
        self,
        *,
        data: str,
        scale: str,
        gamma: float,
        rank: int,
        blocks: int,
        threshold: float,
        runs: int,
    ) -> Numbers:
        X = _some(data, None, scale)
        seconds: list[float] = []
        errors, links, seen = [], [], []
        for seed in range(runs):
            model = MEKA(
                RBF(gamma), rank, n_blocks=blocks, link_threshold=threshold, random_state=seed
            )
            with timed(seconds):
                model.fit(X)
            errors.append(float(relative_error(model, X, random_state=seed)))
            links.append(int(model.links_.sum()) // 2)
            near = reference.rbf(np.asarray(model.centres_), np.asarray(model.centres_), gamma)
            wanted = int(np.count_nonzero(np.triu(near, k=1) > threshold))
            seen.append({**audits.blocks(model, X), "links missing": wanted - links[-1]})
        return {"error": errors, "seconds": seconds, "links": links, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        x = axis("threshold ε", is_log=False)
        error = {"MEKA": results.curve("threshold", "error")}
        time = {"MEKA": results.curve("threshold", "seconds")}
        return [
            curves("Error", x, ERROR, error, RUNS),
            curves(
                "Time of the fit",
                x,
                CPU_SECONDS,
                time,
                "The shortest CPU time of the runs, on one thread.",
            ),
        ]

    def checks(self, results: Results) -> list[Check]:
        errors, links = (results.medians(w, "threshold") for w in ("error", "links"))
        seconds = results.medians("seconds", "threshold")
        values = list(errors.values())
        falls = max(now - later for now, later in pairwise(values))
        first, last = min(errors), max(errors)
        return [
            Check(
                falls <= 0.02 * values[-1] and values[-1] > 2 * values[0],
                f"The error rises from {values[0]:.4f} with {links[first]:.0f} links to "
                f"{values[-1]:.4f} with {links[last]:.0f}"
                + (
                    f", falling by at most {falls:.1g} in between."
                    if falls > 0
                    else ", never falling."
                ),
            ),
            Check(
                seconds[last] < seconds[first],
                f"The fit takes {1e3 * seconds[first]:.0f} ms with all links, "
                f"{1e3 * seconds[last]:.0f} ms with none.",
                is_time=True,
            ),
        ]


class Figure9(Experiment):
    name = "002/figure-9"
    title = "Time of each step of MEKA against the number of blocks"
    claim = (
        "With few blocks, the bases take most of the time; the number of links grows "
        "quadratically, so they take more and more."
    )
    breaks = (*FEATURES, RANDOM_BLOCKS, *LINKS, FEWER_LINKS)
    per_run = "partition", "basis", "links", "psd"
    note = "Rank 100 in each block (digits: 20), gamma 1. The quick run uses digits."

    def units(self, settings: Settings) -> list[Unit]:
        where: Unit = {"data": "ijcnn1", "scale": "none", "gamma": 1.0, "rank": 100, "runs": 10}
        if settings.quick:
            where |= {"data": "digits", "scale": "minmax", "gamma": 0.05, "rank": 20}
        return crossed(blocks=[3, 5, 10, 15, 20], **where)

    def trial(self) -> list[Unit]:
        own: Unit = {"data": "iris", "scale": "none", "gamma": 0.5, "rank": 6, "runs": 2}
        return crossed(blocks=[3, 5], **own)

    def measure(
        self, *, data: str, scale: str, gamma: float, rank: int, blocks: int, runs: int
    ) -> Numbers:
        X = _some(data, None, scale)
        side = MEKA(RBF(gamma), rank, random_state=0)
        with one_thread():
            found = [
                diagnostics.step_times(side, X, [blocks], rank_per_block=rank)[0]
                for _ in range(runs)
            ]
        steps = "partition", "basis", "links", "psd"
        model = MEKA(RBF(gamma), blocks * rank, n_blocks=blocks, random_state=0).fit(X)
        pairs = len(model.ranks_) * (len(model.ranks_) - 1) // 2
        audit = {
            **audits.blocks(model, X),
            "links missing": pairs - int(model.links_.sum()) // 2,
        }
        return {step: [getattr(row, step) for row in found] for step in steps} | audit

    def figures(self, results: Results) -> list[Curves]:
        steps = {
            "k-means": "partition",
            "bases": "basis",
            "links": "links",
            "positive semi-definite": "psd",
        }
        series = {name: results.curve("blocks", step) for name, step in steps.items()}
        said = (
            "The shortest time of the runs, on one thread. Making K̃ positive semi-definite is "
            "not a step of the paper."
        )
        return [curves(self.title, axis("blocks"), SECONDS, series, said)]

    def checks(self, results: Results) -> list[Check]:
        basis, links = (
            {unit["blocks"]: min(unit[step]) for unit in results} for step in ("basis", "links")
        )
        few, many = min(basis), max(basis)
        shares = [links[c] / (basis[c] + links[c]) for c in (few, many)]
        return [
            Check(
                basis[few] > links[few],
                f"With {few} blocks, the bases take {1e3 * basis[few]:.1f} ms, the links "
                f"{1e3 * links[few]:.1f} ms.",
                is_time=True,
            ),
            Check(
                shares[1] > 1.5 * shares[0] and links[many] > 3 * links[few],
                f"The share of the links grows from {100 * shares[0]:.0f} % to "
                f"{100 * shares[1]:.0f} % with {many} blocks.",
                is_time=True,
            ),
        ]


class Figure10(Experiment):
    name = "002/figure-10"
    title = "The Laplacian kernel"
    breaks = (*FEATURES, *LANDMARKS, RANDOM_BLOCKS, ONE_PASS, *LINKS, UNDERSTATED)
    per_run = "error", "seconds"
    claim = "MEKA is more memory-efficient and faster than Nyström, RNys and KNys here, too."
    note = (
        "3 blocks. The paper's gamma is 2⁻⁷ on unscaled columns; with columns scaled from [0, "
        "100] to [0, 1] this is 100·2⁻⁷. 'Rank of W' uses twice the landmarks and truncates W, "
        "as randomised Nyström (RNys) does. Times are compared at equal error; memory includes "
        "the links. gramian's MEKA is not faster: for a better basis, its blocks use three times "
        "as many landmarks as their rank, and it also runs k-means, while Nyström with a few "
        "hundred landmarks is little more than one matrix product. The quick run uses "
        "scikit-learn's digits."
    )

    def units(self, settings: Settings) -> list[Unit]:
        where: Unit = {"data": "pendigits", "gamma": 100 * 2.0**-7, "blocks": 3, "runs": 10}
        if settings.quick:
            where |= {"data": "digits", "gamma": 0.05}
        ranks = [10, 20, 40, 80]
        others = ["Nyström uniform", "Nyström, rank of W", "Nyström k-means"]
        return crossed(**where, method="MEKA", rank=ranks) + crossed(
            **where, method=others, rank=[*ranks, 160, 320]
        )

    def trial(self) -> list[Unit]:
        own: Unit = {"data": "iris", "gamma": 1.0, "blocks": 3, "runs": 3}
        methods = ["MEKA", "Nyström uniform", "Nyström, rank of W", "Nyström k-means"]
        return crossed(**own, method=methods, rank=[4, 8])

    def measure(
        self, *, data: str, gamma: float, method: str, rank: int, blocks: int, runs: int
    ) -> Numbers:
        X, kernel = _some(data, None), Laplacian(gamma)
        seconds: list[float] = []
        seen: list[dict[str, float]] = []
        errors, kept = [], 0.0
        for seed in range(runs):
            model = {
                "Nyström uniform": Nystroem(kernel, rank, landmarks="uniform"),
                "Nyström, rank of W": Nystroem(
                    kernel, 2 * rank, landmarks="uniform", rank=rank, truncation="core"
                ),
                "Nyström k-means": Nystroem(kernel, rank, landmarks="kmeans"),
                "MEKA": MEKA(kernel, blocks * rank, n_blocks=blocks),
            }[method].set_params(random_state=seed)
            with timed(seconds):
                model.fit(X).factor(X).persist()
            errors.append(float(relative_error(model, X, random_state=seed)))
            kept = measuring.numbers_per_row(model, len(X))
            known = {"is_uniform": False} if method == "Nyström k-means" else {}
            audit = audits.approximation(model, X, **known)
            seen.append({**audit, **audits.reported_error(model, X, errors[-1])})
        return {"error": errors, "seconds": seconds, "kept": kept, **audits.joined(seen)}

    def figures(self, results: Results) -> list[Curves]:
        memory = {m: results.over("kept", "error", method=m) for m in results.choices("method")}
        return [
            curves("Error against memory", axis("numbers per row"), ERROR, memory, RUNS),
            curves("Error against time", CPU_SECONDS, ERROR, by_time(results), LEAST),
        ]

    def checks(self, results: Results) -> list[Check]:
        others = [method for method in results.choices("method") if method != "MEKA"]
        return [
            *(leaner(results, "MEKA", other) for other in others),
            *(faster(results, other, "MEKA") for other in others),
        ]


def _some(name: str, n: int | None, scale: str = "minmax") -> np.ndarray:
    return data.some(name, n, scale)[0]


def _labelled(name: str) -> Labelled:
    return data.rows(name)


def _halves(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[Labelled, Labelled]:
    return data.divided(X, y, 4 * len(X) // 5, seed)


MEKAS = (Figure7, Figure8, Figure9, Figure10)

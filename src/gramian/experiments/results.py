"""Measured numbers as a table of units, with medians, curves and ratios."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from scipy.stats import t as student

from gramian.analysis.report.figures import At

Points = list[tuple[float, float]]
SPREAD = 10.0, 90.0  # percentiles between which a band lies
REPLICATES = 10


class Results(list[dict[str, Any]]):
    """A list with one dictionary per unit: its settings and its numbers.

    Examples
    --------
    >>> from gramian.experiments.results import Results
    >>> results = Results([{"m": 10, "error": [0.5, 0.7]}, {"m": 20, "error": 0.1}])
    >>> results.median("error", m=10), results.choices("m")
    (0.6, [10, 20])
    """

    def where(self, **fixed: object) -> Results:
        """Return the units with these values."""
        return Results(r for r in self if all(r.get(k) == v for k, v in fixed.items()))

    def choices(self, name: str, **fixed: object) -> list[Any]:
        """Return the distinct values of a setting, in order of appearance."""
        return list(dict.fromkeys(r[name] for r in self.where(**fixed) if name in r))

    def values(self, what: str, **fixed: object) -> np.ndarray:
        """Return all numbers of that name; a unit with several runs has a list of them."""
        found = [r[what] for r in self.where(**fixed) if r.get(what) is not None]
        if not found:
            raise KeyError(f"No {what!r} was measured for {fixed}.")
        return np.concatenate([np.atleast_1d(np.asarray(each, dtype=float)) for each in found])

    def replicates(self, names: tuple[str, ...], *, others: bool = False) -> list[Results]:
        """Divide the runs into ten parts, or as many as there are runs, each with all units.

        ``names`` are the numbers of which a unit has one for each of its ``runs``. Units without
        runs are in every part. If units have a ``seed``, the seeds are divided instead. With
        ``others``, each part is replaced by all runs that are not in it.
        """
        if seeds := self.choices("seed"):
            parts = [seeds[i::REPLICATES] for i in range(min(REPLICATES, len(seeds)))]
            return [
                Results(unit for unit in self if (unit["seed"] in part) != others) for part in parts
            ]
        counts = [len(unit[name]) for unit in self for name in names if _is_list(unit, name)]
        return [
            Results(
                {
                    k: _part(v, i, others) if k in names and _is_list(unit, k) else v
                    for k, v in unit.items()
                }
                for unit in self
            )
            for i in range(min([REPLICATES, *counts]) if counts else 0)
        ]

    def median(self, what: str, **fixed: object) -> float:
        return float(np.median(self.values(what, **fixed)))

    def mean(self, what: str, **fixed: object) -> float:
        return float(np.mean(self.values(what, **fixed)))

    def medians(self, what: str, over: str, **fixed: object) -> dict[Any, float]:
        """Return the median for each value of the setting ``over``."""
        chosen = self.where(**fixed)
        return {x: chosen.median(what, **{over: x}) for x in chosen.choices(over)}

    def curve(self, x: str, y: str, **fixed: object) -> list[At]:
        """Return medians over the runs, with a band for the middle 80 %."""
        chosen, points = self.where(**fixed), []
        for value in sorted(chosen.choices(x)):
            found = chosen.values(y, **{x: value})
            low, high = np.percentile(found, SPREAD)
            points.append(At(value, float(np.median(found)), float(low), float(high)))
        return points

    def over(self, x: str, y: str, **fixed: object) -> list[At]:
        """Return a curve against a number that was itself measured, one point per unit."""
        chosen = self.where(**fixed)
        bands = [np.percentile(unit[y], SPREAD) for unit in chosen]
        return sorted(
            At(*point, float(low), float(high))
            for point, (low, high) in zip(chosen.points(x, y), bands, strict=True)
        )

    def points(self, x: str, y: str, **fixed: object) -> Points:
        """Return the medians of two measured numbers, for each unit."""
        return [
            (float(np.median(unit[x])), float(np.median(unit[y]))) for unit in self.where(**fixed)
        ]

    def mean_curve(self, x: str, y: str, **fixed: object) -> list[At]:
        """Return means over the runs, with 95 % confidence intervals."""
        chosen, points = self.where(**fixed), []
        for value in sorted(chosen.choices(x)):
            mean, half = interval(chosen.values(y, **{x: value}))
            points.append(At(value, mean, mean - half, mean + half))
        return points


def _part(values: list[Any], i: int, others: bool) -> list[Any]:
    return [v for j, v in enumerate(values) if (j % REPLICATES == i) != others]


def _is_list(unit: Mapping[str, object], name: str) -> bool:
    return isinstance(unit.get(name), list)


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % confidence interval."""
    if len(values) < 2:
        return float(np.mean(values)), 0.0
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / sqrt(len(values))
    return float(np.mean(values)), float(half)


def ratios(a: Points, b: Points, levels: int = 5) -> list[float]:
    """Divide one curve by another at several common x, interpolating in logarithms.

    Empty if the curves have no x in common.

    Examples
    --------
    >>> from gramian.experiments.results import ratios
    >>> found = ratios([(1.0, 2.0), (100.0, 20.0)], [(10.0, 1.0), (1000.0, 1.0)], levels=2)
    >>> [round(ratio, 3) for ratio in found]
    [6.325, 20.0]
    """
    curves = [np.log(sorted(points)) for points in (a, b)]
    low = max(float(curve[0, 0]) for curve in curves)
    high = min(float(curve[-1, 0]) for curve in curves)
    if low > high:
        return []
    at = np.linspace(low, high, levels)
    ya, yb = (np.interp(at, curve[:, 0], curve[:, 1]) for curve in curves)
    return [float(each) for each in np.exp(ya - yb)]


def costs(points: Points) -> Points:
    """Turn (cost, error) into (error, cost to reach it), dropping points that cost more for worse.

    Examples
    --------
    >>> from gramian.experiments.results import costs
    >>> costs([(1.0, 0.5), (2.0, 0.6), (3.0, 0.1)])
    [(0.5, 1.0), (0.1, 3.0)]
    """
    found: Points = []
    for cost, error in sorted(points):
        if not found or error < found[-1][0]:
            found.append((error, cost))
    return found


def slope(values: Mapping[float, float]) -> float:
    """Return the power with which positive values grow, by least squares on logarithms."""
    return float(np.polyfit(np.log(list(values)), np.log(list(values.values())), 1)[0])

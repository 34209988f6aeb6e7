"""Compare methods by cost: time to reach equal errors, and errors at equal memory.

Units have a "method" and the measured "error", "seconds" and "kept", the numbers stored per row.
"""

from __future__ import annotations

from gramian.analysis.report.figures import At
from gramian.experiments.base import Check
from gramian.experiments.results import Points, Results, costs, ratios


def by_time(results: Results) -> dict[str, list[At]]:
    """Return the error of each method against its time."""
    return {
        method: [At(*point) for point in sorted(results.points("seconds", "error", method=method))]
        for method in results.choices("method")
    }


def faster(results: Results, slow: str, fast: str) -> Check:
    """Check that one method reaches equal errors in less time."""
    a, b = (costs(results.points("seconds", "error", method=m)) for m in (slow, fast))
    if not (found := ratios(a, b)):
        text = f"{slow}'s errors, {span(a)}, and {fast}'s, {span(b)}, do not overlap."
        return Check(False, text, is_time=True)
    text = (
        f"To reach equal errors, {slow} takes {min(found):.2g} to {max(found):.2g} times as long as"
    )
    return Check(min(found) > 1, f"{text} {fast}.", is_time=True)


def leaner(results: Results, method: str, other: str, most: float = 1.0) -> Check:
    """Check that one method has a smaller error with as many numbers stored per row."""
    a, b = (results.points("kept", "error", method=m) for m in (method, other))
    if not (found := ratios(a, b)):
        return Check(False, f"{method} stores {span(a)} numbers per row, {other} {span(b)}.")
    text = f"At equal memory, {method} has {min(found):.2f} to {max(found):.2f} times the error of"
    return Check(max(found) < most, f"{text} {other}.")


def span(points: Points) -> str:
    x = [point[0] for point in points]
    return f"{min(x):.3g} to {max(x):.3g}"

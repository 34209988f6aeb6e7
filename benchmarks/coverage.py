"""How often the intervals of relative_error contain the error: python -m benchmarks coverage

Approximations on rows with and without outliers; the exact error is that of all pairs.
``python -m benchmarks.coverage --page docs/guide/errors.md`` also writes the table into that page.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np

from benchmarks.harness import write_whole
from gramian import BKA, MEKA, RBF, Approximation, Nystroem, RandomFourier, relative_error
from gramian.analysis import accuracy

BEGIN, END = "<!-- coverage -->", "<!-- end of coverage -->"
APPROXIMATIONS = {
    "Nyström, smooth kernel": Nystroem(RBF(0.2), 40, random_state=0),
    "Nyström, uniform": Nystroem(RBF(2.0), 80, landmarks="uniform", random_state=0),
    "Nyström, greedy": Nystroem(RBF(0.5), 60, landmarks="greedy", random_state=0),
    "BKA": BKA(RBF(0.5), 60, n_blocks=5, random_state=0),
    "MEKA": MEKA(RBF(0.5), 60, n_blocks=5, random_state=0),
    "Random Fourier": RandomFourier(RBF(0.5), 200, random_state=0),
}


def rows(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 4))
    if kind == "a far clump":
        X[:12] = 6 + 0.3 * rng.standard_normal((12, 4))
    elif kind == "outliers":
        X[: n // 300] *= 8
    elif kind == "heavy tails":
        X = rng.standard_t(2, (n, 4))
    return X


def measured(approximation: Approximation, X: np.ndarray, norm: str, seeds: int) -> list[str]:
    """Return the exact error, how often the interval has it, and how wide the interval is.

    The width is compared with the narrowest interval that the estimates allow: the one from their
    2.5th to their 97.5th percentile over the seeds. A spectral interval comes from bounds.
    """
    exact = float(relative_error(approximation, X, norm, exact=True))
    found = [
        relative_error(approximation, X, norm, exact=False, random_state=seed)
        for seed in range(seeds)
    ]
    share = np.mean([one.low <= exact <= one.high for one in found])
    width = np.median([np.log(one.high / one.low) for one in found])
    low, high = np.quantile([np.log(one.value) for one in found], [0.025, 0.975])
    best = f"{width / (high - low):.2f}" if norm == "fro" else "bounds"
    return [f"{exact:.3g}", f"{100 * share:.1f} %", f"{np.exp(width):.2f}", best]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--sampled", type=int, default=400)
    parser.add_argument("--page", type=Path, help="the page between whose marks the table goes")
    args = parser.parse_known_args(arguments)[0]
    if args.page is not None:
        parts(args.page)  # before it takes long
    accuracy.SAMPLED_ROWS = args.sampled
    lines = [
        f"{args.rows:,} rows, {args.sampled} of them sampled, {args.seeds} seeds "
        f"({args.seeds // 4} for the spectral norm).",
        "",
        "| rows | approximation | norm | error | covered | high / low | width / narrowest |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    print("\n".join(lines))
    for kind in ("normal", "a far clump", "outliers", "heavy tails"):
        X = rows(kind, args.rows)
        for name, approximation in APPROXIMATIONS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                approximation.fit(X)
            for norm, seeds in (("fro", args.seeds), ("spectral", args.seeds // 4)):
                found = measured(approximation, X, norm, max(seeds, 2))
                lines.append("| " + " | ".join([kind, name, norm, *found]) + " |")
                print(lines[-1], flush=True)
    if args.page is not None:
        write_between_marks(args.page, "\n".join(lines))


def parts(page: Path) -> tuple[str, str]:
    """Return what is before and after the table of the page."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} must have the lines {BEGIN} and {END}, with the table between.")
    return before, after


def write_between_marks(page: Path, table: str) -> None:
    """Replace what is between the two marks of the page."""
    before, after = parts(page)
    write_whole(page, f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    main()

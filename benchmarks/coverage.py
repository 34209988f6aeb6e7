"""How often the intervals of relative_error contain the error: python -m benchmarks coverage

Approximations on rows with and without outliers; the exact error is that of all pairs.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from gramian import BKA, MEKA, RBF, Nystroem, RandomFourier, relative_error
from gramian.analysis import accuracy

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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--sampled", type=int, default=400)
    args = parser.parse_known_args(arguments)[0]
    accuracy.SAMPLED_ROWS = args.sampled
    print("| rows | approximation | norm | error | covered | high / low |")
    print("|---|---|---|--:|--:|--:|")
    for kind in ("normal", "a far clump", "outliers", "heavy tails"):
        X = rows(kind, args.rows)
        for name, approximation in APPROXIMATIONS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                approximation.fit(X)
            for norm in ("fro", "spectral"):
                exact = float(relative_error(approximation, X, norm, exact=True))
                found = [
                    relative_error(approximation, X, norm, exact=False, random_state=seed)
                    for seed in range(args.seeds if norm == "fro" else args.seeds // 10)
                ]
                share = np.mean([one.low <= exact <= one.high for one in found])
                ratio = np.median([one.high / one.low for one in found])
                print(f"| {kind} | {name} | {norm} | {exact:.3g} | {100 * share:.0f} % "
                      f"| {ratio:.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

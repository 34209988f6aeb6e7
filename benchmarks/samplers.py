"""Every landmark sampler at m = 500: error, time and kernel evaluations."""

from __future__ import annotations

import time

import numpy as np

import gramian
from benchmarks._data import rows
from benchmarks.harness import command_line, table

# Rows, a gamma, and whether all samplers are shown. Uniform landmarks leave 5 to 12 %.
CASES = [("covtype", 50_000, 1.0, False), ("covtype", 50_000, 3.0, True)]
CASES += [("mnist", 20_000, 0.02, True)]
MAIN = ("kmeans", "rpcholesky")
LANDMARKS = 500
SLOW = 3.0  # seconds: what takes longer is run once


def main(full: bool = False) -> None:
    for name, n, gamma, everything in CASES:
        X = rows(name, "float32")
        X = X[np.random.default_rng(0).choice(len(X), n, replace=False)]
        y = X[:, 0].astype(np.float64)
        lines = []
        others = gramian.sampler_names() if everything else MAIN
        order = ["uniform", *(s for s in others if s not in ("auto", "uniform"))]
        base = (1.0, 1.0)
        for landmarks in order:
            if landmarks == "leverage":  # stores the whole matrix: not for this many rows
                continue
            sampler = gramian.as_sampler(landmarks, gramian.Gram("linear", X[:2]))
            seconds, models = [], []
            for seed in range(3):
                gram = gramian.Gram(gramian.RBF(gamma), X)
                start = time.perf_counter()
                chosen = sampler.select(gram, LANDMARKS, np.random.default_rng(seed), y)
                spent = time.perf_counter() - start
                evaluations = gram.evaluations
                given = chosen.points if chosen.indices is None else chosen.indices
                model = gramian.Nystroem(gramian.RBF(gamma), LANDMARKS, landmarks=given)
                start = time.perf_counter()
                model.fit(X).transform(X)
                seconds.append(spent + time.perf_counter() - start)
                models.append(model)
                if seconds[0] > SLOW:
                    break
            fro = np.mean([float(gramian.relative_error(model, X)) for model in models])
            trace = float(gramian.relative_error(models[0], X, norm="trace"))
            spent = float(np.median(seconds))
            if landmarks == "uniform":
                base = (float(fro), spent)
            lines.append(
                [
                    landmarks,
                    f"{trace:.4f}",
                    f"{fro:.4f}",
                    f"{fro / base[0]:.2f}",
                    f"{spent:.2f}",
                    f"{spent / base[1]:.2f}",
                    f"{evaluations / (n * LANDMARKS):.2f}",
                ]
            )
        print(f"{name}, {n:,} rows, float32, RBF with gamma {gamma:g}, m = {LANDMARKS}.\n")
        header = ["landmarks", "trace error", "Frobenius", "of uniform's"]
        header += ["fit + transform s", "of uniform's", "evaluations / (n m)"]
        print(table(header, lines), "\n")


if __name__ == "__main__":
    command_line(main, __doc__)

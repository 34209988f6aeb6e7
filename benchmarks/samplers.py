"""Every landmark sampler at m = 500: error, time and kernel evaluations."""

from __future__ import annotations

import time

import numpy as np

import gramian
from benchmarks.harness import command_line, table
from benchmarks.nystroem import rows

# Rows, and a gamma where uniform landmarks leave 10 to 30 % on covtype, the mean rule's on MNIST.
CASES = [("covtype", 50_000, 10.0), ("mnist", 20_000, 0.0048)]
LANDMARKS = 500


def main(full: bool = False) -> None:
    for name, n, gamma in CASES:
        X = rows(name, "float32")
        X = X[np.random.default_rng(0).choice(len(X), n, replace=False)]
        y = X[:, 0].astype(np.float64)
        lines = []
        order = ["uniform", *(s for s in gramian.sampler_names() if s not in ("auto", "uniform"))]
        base = (1.0, 1.0)
        for landmarks in order:
            sampler = gramian.as_sampler(landmarks, gramian.Gram("linear", X[:2]))
            counted = gramian.Gram(gramian.RBF(gamma), X)
            try:
                sampler.select(counted, LANDMARKS, np.random.default_rng(0), y)
            except ValueError as error:
                lines.append([landmarks, "-", "-", "-", "-", "-", str(error)[:40]])
                continue
            seconds, models = [], []
            for seed in range(3):
                model = gramian.Nystroem(
                    gramian.RBF(gamma), LANDMARKS, landmarks=landmarks, random_state=seed
                )
                start = time.perf_counter()
                model.fit(X, y).transform(X)
                seconds.append(time.perf_counter() - start)
                models.append(model)
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
                    f"{counted.evaluations / (n * LANDMARKS):.2f}",
                ]
            )
        print(f"{name}, {n:,} rows, float32, RBF with gamma {gamma:g}, m = {LANDMARKS}.\n")
        header = ["landmarks", "trace error", "Frobenius", "of uniform's"]
        header += ["fit + transform s", "of uniform's", "evaluations / (n m)"]
        print(table(header, lines), "\n")


if __name__ == "__main__":
    command_line(main, __doc__)

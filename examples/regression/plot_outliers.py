"""
What do a few wrong measurements do?
====================================

Squared errors follow outliers: one that is ten times as far away pulls a hundred times as hard.
:class:`~gramian.KernelHuberRegressor` counts large errors linearly, and a
:class:`~gramian.KernelQuantileRegressor` for the median counts all of them that way.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, KernelHuberRegressor, KernelQuantileRegressor, KernelRidge

rng = np.random.default_rng(4)
X = np.sort(rng.uniform(0, 10, 200))[:, None]
truth = np.sin(X[:, 0]) + 0.2 * X[:, 0]
y = truth + 0.15 * rng.standard_normal(200)
kernel = RBF(bandwidth=1.0)
models = {
    "ridge": KernelRidge(1.0, kernel=kernel),
    "Huber": KernelHuberRegressor(1.0, kernel=kernel),
    "median": KernelQuantileRegressor(1.0, kernel=kernel, quantile=0.5),
}

# %%
# Left: one measurement in ten is wrong, always in the same direction. Right: the mean distance from
# the truth as more of them are.

wrong = rng.permutation(200)


def with_outliers(share):
    spoiled = y.copy()
    spoiled[wrong[: round(share * 200)]] += 4.0
    return spoiled


shares = np.linspace(0, 0.4, 9)
distances = {name: [] for name in models}
for share in shares:
    for name, model in models.items():
        found = model.fit(X, with_outliers(share)).predict(X)
        distances[name].append(np.abs(found - truth).mean())

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), width_ratios=[1.7, 1])
left.scatter(X, with_outliers(0.1), s=9, color="0.6")
left.plot(X, truth, color="black", lw=1, label="truth")
for (name, model), colour in zip(models.items(), ("#c8463c", "#2f6fb0", "#3d9a6b")):
    left.plot(X, model.fit(X, with_outliers(0.1)).predict(X), color=colour, label=name)
    right.plot(shares, distances[name], "o-", color=colour, label=name, ms=4)
left.set(xlabel="x", ylabel="y", ylim=(-1.2, 7))
left.legend(ncols=4, fontsize=9, loc="lower right")
right.set(xlabel="share of wrong measurements", ylabel="mean distance from the truth")

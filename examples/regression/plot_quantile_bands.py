"""
How far off may a prediction be?
================================

A mean says nothing about the spread. :class:`~gramian.KernelQuantileRegressor` predicts quantiles:
nine targets in ten lie between the predictions of 0.05 and 0.95. Given a list of quantiles, it fits
them together, and its predictions never cross.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, KernelQuantileRegressor

rng = np.random.default_rng(3)


def draw(n):
    x = np.sort(rng.uniform(0, 10, n))
    spread = 0.15 + 0.5 * np.abs(np.sin(0.6 * x))
    return x[:, None], np.sin(x) + spread * rng.gamma(2.0, 1.0, n)  # skewed


X, y = draw(400)
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
kernel = RBF(bandwidth=0.5)
model = KernelQuantileRegressor(0.1, kernel, quantile=levels).fit(X, y)

# %%
# Fitted one by one, the curves of two quantiles may cross, which true quantiles never do.

line = np.linspace(0, 10, 400)[:, None]
alone = [KernelQuantileRegressor(0.1, kernel, quantile=q).fit(X, y).predict(line) for q in levels]
crossed = (np.diff(np.stack(alone), axis=0) < 0).any(axis=0).mean()
together = (np.diff(model.predict(line)) < 0).any(axis=1).mean()
print(f"crossings on {crossed:.1%} of the line one by one, {together:.0%} together")

# %%
# Left: the bands hold half and nine tenths of the targets. They are wide where the targets are
# spread out, and lopsided because these are skewed. Right: the share of new targets below each
# quantile. On new targets the bands are a little too narrow, as 400 rows are few.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), width_ratios=[2, 1])
low, lower, middle, upper, high = model.predict(line).T
left.scatter(X, y, s=7, color="0.55")
left.fill_between(line[:, 0], low, high, color="#2f6fb0", alpha=0.18, lw=0, label="9 in 10")
left.fill_between(line[:, 0], lower, upper, color="#2f6fb0", alpha=0.35, lw=0, label="half")
left.plot(line, middle, color="#1d4f82", label="median")
left.set(xlabel="x", ylabel="y")
left.legend(loc="upper right", ncols=3)
X_new, y_new = draw(4000)
share = (y_new[:, None] < model.predict(X_new)).mean(axis=0)
right.plot([0, 1], [0, 1], color="0.7", lw=1)
right.plot(levels, share, "o", ms=8)
right.set(xlabel="quantile asked for", ylabel="share of new targets below", aspect="equal")

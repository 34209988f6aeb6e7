"""
Trend and season in one kernel
==============================

A sum of kernels fits a sum of functions: one term for a slow trend, one for a yearly pattern. The
periodic term is a Python function of rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, FunctionKernel, KernelRidge, Linear

rng = np.random.default_rng(0)
years = np.sort(rng.uniform(0, 8, 300))
noise = 0.3 * rng.standard_normal(300)
season = 1.5 * np.sin(2 * np.pi * years) + 0.7 * np.cos(4 * np.pi * years)
y = 0.08 * years**2 + season + noise
X = years[:, None]


def yearly(a, b):
    """Large if a and b are at the same time of the year."""
    return np.exp(-2 * np.sin(np.pi * (a - b.T)) ** 2)


kernels = {
    "RBF": RBF(bandwidth=0.3),
    "trend + season": 10 * RBF(bandwidth=6.0) + FunctionKernel(yearly) + 0.1 * Linear(),
}
seen = years < 6.5
line = np.linspace(0, 8, 500)[:, None]
figure, axes = plt.subplots(figsize=(9, 4))
axes.scatter(X[seen], y[seen], s=8, color="0.6", label="training rows")
axes.scatter(X[~seen], y[~seen], s=10, facecolor="none", edgecolor="0.5", label="unseen")
for name, kernel in kernels.items():
    model = KernelRidge("loo", kernel=kernel).fit(X[seen], y[seen])
    error = np.sqrt(np.mean((model.predict(X[~seen]) - y[~seen]) ** 2))
    axes.plot(line, model.predict(line), label=f"{name}: error {error:.2f} on unseen rows")
axes.axvline(6.5, color="0.7", lw=1)
axes.set(xlabel="years", ylim=(-3, 9))
axes.legend(loc="upper left", fontsize=9)

# %%
# Both kernels fit the training rows. Only the one that knows about years can continue them.

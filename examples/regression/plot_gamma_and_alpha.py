"""
Which gamma and alpha?
======================

A grid search over gamma, with leave-one-out for alpha at each value: a picture of the whole
landscape for the price of a few fits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from gramian import RBF, KernelRidge

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
y = (y - y.mean()) / y.std()

middle = RBF("median").fit(X).gamma_
gammas = middle * 2.0 ** np.arange(-8, 5)
alphas = np.geomspace(1e-4, 1e3, 40)
errors = np.array(
    [KernelRidge(("loo", alphas), kernel=RBF(gamma)).fit(X, y).path_.errors for gamma in gammas]
)
best = np.unravel_index(errors.argmin(), errors.shape)
print(f"best: gamma {gammas[best[0]]:.3g}, alpha {alphas[best[1]]:.3g}, error {errors.min():.3f}")

figure, axes = plt.subplots(figsize=(7.5, 4.2))
levels = np.geomspace(errors.min(), 1.2, 14)
filled = axes.contourf(gammas, alphas, errors.T, levels, extend="max", cmap="viridis_r")
figure.colorbar(filled, label="leave-one-out error", format="%.2f")
axes.plot(gammas[best[0]], alphas[best[1]], "*", color="white", ms=15, mec="black")
axes.axvline(middle, color="white", ls="--", lw=1)
axes.annotate('gamma="median"', (middle, 2e-4), color="white", xytext=(4, 0),
              textcoords="offset points")  # fmt: skip
axes.set(xscale="log", yscale="log", xlabel="gamma", ylabel="alpha")

# %%
# The valley is wide: within a factor of a few in either direction the error hardly changes. Search
# in factors of two, starting from ``RBF("median")``; finer steps gain nothing.

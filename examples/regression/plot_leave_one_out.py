"""
How much should I smooth?
=========================

The penalty ``alpha`` decides between following the data and ignoring its noise. ``alpha="loo"``
finds the leave-one-out error of a whole grid of penalties from a single decomposition: no model is
fitted twice.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, KernelRidge

rng = np.random.default_rng(1)
X = np.sort(rng.uniform(0, 10, 150))[:, None]
truth = np.sin(X[:, 0]) + 0.5 * np.sin(3 * X[:, 0])
y = truth + 0.4 * rng.standard_normal(150)

kernel = RBF(bandwidth=0.5)
model = KernelRidge(alpha="loo", kernel=kernel).fit(X, y)
path = model.path_
print(f"alpha {model.alpha_:.3g}, leave-one-out error {path.errors.min():.3f}")

# %%
# The curve on the left has a clear minimum. On the right are three points of it: too little
# penalty, the chosen one, and too much.

line = np.linspace(0, 10, 400)[:, None]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=[1, 1.6])
left.loglog(path.alphas, path.errors)
left.set(xlabel="alpha", ylabel="leave-one-out error", ylim=(0.14, 2))
right.scatter(X, y, s=8, color="0.6")
for alpha, colour in ((1e-6, "#c8463c"), (model.alpha_, "#2f6fb0"), (50.0, "#3d9a6b")):
    left.axvline(alpha, color=colour, ls="--", lw=1.2)
    curve = KernelRidge(alpha, kernel=kernel).fit(X, y).predict(line)
    right.plot(line, curve, color=colour, label=f"alpha {alpha:.2g}")
right.set(ylim=(-2.6, 2.6), xlabel="x")
right.legend(ncols=3, loc="lower center", fontsize=9)

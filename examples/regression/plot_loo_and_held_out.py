"""
Does leave-one-out choose the right alpha?
==========================================

``alpha="loo"`` predicts every row by a model fitted to all others, without fitting any of them
twice. ``alpha="gcv"`` replaces each row's leverage by their mean, which is all that batches allow.
Neither sees new rows. Here both are compared with the error on 4,000 of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from gramian import RBF, KernelRidge, Nystroem

X, y = make_friedman1(5000, n_features=5, noise=1.0, random_state=0)
new = slice(1000, None)
alphas = np.geomspace(1e-4, 1e2, 25)

figure, panels = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True)
for axes, n in zip(panels, (60, 250, 1000)):
    kernel = Nystroem(RBF(0.5), min(n, 300), random_state=0).fit(X[:n])
    by_loo = KernelRidge(("loo", alphas), kernel=kernel).fit(X[:n], y[:n])
    by_gcv = KernelRidge(("gcv", alphas), kernel=kernel).fit(X[:n], y[:n])
    truth = [
        np.mean((KernelRidge(a, kernel=kernel).fit(X[:n], y[:n]).predict(X[new]) - y[new]) ** 2)
        for a in alphas
    ]
    axes.loglog(alphas, by_loo.path_.errors, label="leave-one-out")
    axes.loglog(alphas, by_gcv.path_.errors, "--", label="generalised cross-validation")
    axes.loglog(alphas, truth, color="black", label="4,000 new rows")
    at_loo = truth[int(np.argmin(by_loo.path_.errors))]
    axes.plot(by_loo.alpha_, at_loo, "o", color="#c8463c", ms=8, label="chosen by leave-one-out")
    axes.set(title=f"{n} rows", xlabel="alpha", ylim=(0.9, 60))
    print(f"{n:4} rows: error on new rows {at_loo:.2f}, at best {min(truth):.2f}")
panels[0].set_ylabel("mean squared error")
panels[-1].legend(fontsize=8.5, loc="upper left")

# %%
# The curves of estimates and new rows lie close to each other where it matters, near the minimum.
# The noise alone has a mean square of 1.

"""
When should an iteration stop?
==============================

With many landmarks, ridge is solved by iteration (FALKON). ``validation_fraction=`` holds out some
rows and stops when their error no longer falls. ``residuals_`` and ``validation_errors_`` show how
it went.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, KernelRidge, Nystroem

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (8000, 3)).astype(np.float32)
y = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2]) + 0.3 * rng.standard_normal(8000)
approximation = Nystroem(RBF(0.5), 400, random_state=0).fit(X)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
for alpha in (1e-2, 1.0, 100.0):
    model = KernelRidge(
        alpha, kernel=approximation, solver="iterative", validation_fraction=0.2, random_state=0
    ).fit(X, y)
    steps = np.arange(1, model.n_iter_ + 1)
    left.semilogy(steps, model.residuals_, "o-", ms=4, label=f"alpha {alpha:g}")
    right.plot(steps, model.validation_errors_, "o-", ms=4)
left.set(xlabel="iteration", ylabel="relative residual")
left.legend()
right.axhline(0.09, color="0.6", ls="--", lw=1)
right.annotate("noise", (1, 0.09), xytext=(0, 4), textcoords="offset points", color="0.4")
right.set(xlabel="iteration", ylabel="squared error on held-out rows", yscale="log")

# %%
# The system is preconditioned by the landmarks, so a few iterations are enough: the error on unseen
# rows stops falling long before the residual does.

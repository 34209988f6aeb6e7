"""
Exact, but without the matrix
=============================

``Exact(kernel)`` never stores the kernel matrix: it computes tiles when they are needed and throws
them away. The result is that of the dense computation; only the memory differs.
"""

import tracemalloc

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge as DenseKernelRidge

import gramian
from gramian import RBF, Exact, KernelRidge

rng = np.random.default_rng(0)
sizes = [500, 1000, 2000, 4000]
peaks = {"scikit-learn": [], "gramian, Exact": []}
for n in sizes:
    X = rng.uniform(-3, 3, (n, 3))
    y = np.sin(X).sum(1)
    found = []
    models = (
        DenseKernelRidge(alpha=0.1, kernel="rbf", gamma=0.5),
        KernelRidge(0.1, kernel=Exact(RBF(0.5)), tol=1e-9, random_state=0),
    )
    for name, model in zip(peaks, models):
        tracemalloc.start()
        with gramian.config_context(memory_budget="20MB"):
            found.append(model.fit(X, y).predict(X[:200]))
        peaks[name].append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    print(f"{n:5} rows: predictions differ by {np.abs(found[0] - found[1]).max():.1e}")

figure, axes = plt.subplots(figsize=(7.5, 4))
for name, values in peaks.items():
    axes.loglog(sizes, values, "o-", label=name)
axes.loglog(sizes, 8 * np.array(sizes) ** 2 / 1e6, "--", color="0.6", lw=1, label="the matrix")
axes.set(xlabel="rows", ylabel="peak memory of the fit (MB)")
axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
axes.minorticks_off()
axes.legend()

# %%
# The budget is 20 MB here. A smaller matrix would be kept; a larger one is computed again in each
# iteration. That takes longer, and it is the only way when the matrix does not fit.

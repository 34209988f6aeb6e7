"""
A million rows in 200 MB
========================

The exact kernel matrix of a million rows would take 8 TB. Here they are in a file that is read
block by block, and the fit has a memory budget of 200 MB.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import gramian
from gramian import RBF, KernelKMeans, Nystroem

n = 1_000_000
X, moons = make_moons(n, noise=0.08, random_state=0)
model = KernelKMeans(2, kernel=Nystroem(RBF(5.0), 100), max_iter=20, random_state=0)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "moons.npy"
    np.save(path, X.astype(np.float32))
    with gramian.config_context(memory_budget="200MB"):
        print(model.estimate_memory(n, 2, dtype="float32", on_disk=True))
        start = perf_counter()
        labels = np.asarray(model.fit_predict(path))
seconds = perf_counter() - start
agreement = np.mean(labels == moons)
print(f"{seconds:.1f} s; {max(agreement, 1 - agreement):.1%} of the rows are in the right moon")

# %%
# What other ways would take: the memory of a fit on top of its data, by number of rows.

rows = np.geomspace(1e3, 1e8, 40)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
left.scatter(*X[::200].T, c=labels[::200], s=2, cmap="tab10", vmax=9)
left.set(title=f"{n:,} rows, every 200th drawn", xticks=[], yticks=[])
right.loglog(rows, 8 * rows**2, label="kernel matrix, float64")
right.loglog(rows, 4 * 100 * rows, label="100 features per row, float32")
with gramian.config_context(memory_budget="200MB"):
    features = [model.estimate_memory(int(r), 2, dtype="float32", on_disk=True) for r in rows]
right.loglog(rows, np.array([int(f) for f in features]), label="gramian, budget of 200 MB")
right.axhline(2e8, color="0.6", ls="--", lw=1)
right.set(xlabel="rows", ylabel="bytes", ylim=(1e5, 1e15))
right.legend(fontsize=9)

"""
The same on a GPU
=================

With ``device="cuda"`` gramian computes on the GPU and returns NumPy arrays. Nothing else in your
code changes. Where there is no GPU, as on the machine that builds this page, the same lines run on
the CPU.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import gramian
from gramian import RBF, KernelKMeans, Nystroem


def has_gpu():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


device = "cuda" if has_gpu() else "cpu"
X, _ = make_moons(50_000, noise=0.08, random_state=0)
with gramian.config_context(device=device):
    kernel = Nystroem(RBF(5.0), 60)
    labels = KernelKMeans(2, kernel=kernel, random_state=0).fit_predict(X.astype(np.float32))
print(device, type(labels).__name__, np.bincount(labels))

# %%
# These are recorded figures of one H200, from the section ``gpu`` of benchmarks/RESULTS.md:
# products of a kernel matrix of a million rows and 10,000 points with 16 vectors.
# ``python -m benchmarks.gpu --full`` measures them.
#
# .. code-block:: none
#
#      d  gramian, float32  gramian, TF32  torch, float32, stored tiles
#     16           16.2 ms         6.7 ms                      144.8 ms
#     64           31.4 ms        10.8 ms                      152.4 ms
#    256           93.6 ms        33.3 ms                      229.6 ms
#    784          402.1 ms       115.9 ms                      433.4 ms

columns = [16, 64, 256, 784]
recorded = {
    "torch, stored tiles": [144.8, 152.4, 229.6, 433.4],
    "gramian, float32": [16.2, 31.4, 93.6, 402.1],
    "gramian, TF32": [6.7, 10.8, 33.3, 115.9],
}
figure, axes = plt.subplots(figsize=(8, 3.8))
for i, (name, values) in enumerate(recorded.items()):
    bars = axes.bar(np.arange(4) + 0.27 * (i - 1), values, 0.26, label=name)
    axes.bar_label(bars, fmt="%.0f", fontsize=8)
axes.set_xticks(range(4), [f"{d} columns" for d in columns])
axes.set(ylabel="milliseconds (recorded)", yscale="log")
axes.legend()

"""
Do better random frequencies help?
==================================

Random Fourier features draw frequencies at random. Orthogonal directions and sequences that fill
space evenly have less error for the same number of features, most of all if there are few columns.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, RandomFourier, relative_error

rng = np.random.default_rng(0)
sizes = [16, 32, 64, 128, 256, 512, 1024]
figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True)
for axes, columns in zip(panels, (2, 8, 64)):
    X = rng.standard_normal((600, columns))
    kernel = RBF("mean")
    for frequencies in ("iid", "orthogonal", "sobol"):
        errors = [
            np.mean(
                [
                    float(relative_error(RandomFourier(kernel, size, frequencies=frequencies,
                                                       random_state=seed).fit(X), X))
                    for seed in range(4)
                ]
            )
            for size in sizes
        ]  # fmt: skip
        axes.loglog(sizes, errors, "o-", ms=4, label=frequencies)
    axes.set(title=f"{columns} columns", xlabel="features")
panels[0].set_ylabel("relative error")
panels[0].legend()

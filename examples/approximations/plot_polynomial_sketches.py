"""
Random features of polynomial kernels
=====================================

Three maps for the same kernel. The error grows with the degree, because a polynomial of high degree
has many more terms than there are features; CRAFT suffers least.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gramian import CRAFT, Polynomial, RandomMaclaurin, TensorSketch, relative_error

X = load_digits().data[::3]
X = X / np.linalg.norm(X, axis=1, keepdims=True)
degrees = [2, 3, 4, 6, 8, 10]

figure, axes = plt.subplots(figsize=(7.5, 4))
for method in (RandomMaclaurin, TensorSketch, CRAFT):
    errors = [
        [
            float(relative_error(method(Polynomial(p, gamma=1.0, coef0=1.0), 300,
                                        random_state=seed).fit(X), X))
            for seed in range(3)
        ]
        for p in degrees
    ]  # fmt: skip
    line = axes.plot(degrees, np.mean(errors, axis=1), "o-", label=method.__name__)[0]
    axes.fill_between(degrees, np.min(errors, axis=1), np.max(errors, axis=1), alpha=0.2,
                      color=line.get_color())  # fmt: skip
axes.set(xlabel="degree", ylabel="relative error, 300 features", yscale="log")
axes.legend()

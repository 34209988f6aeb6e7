"""
Can one model predict many values?
==================================

Kernel ridge regression takes any number of targets at once: here the 32 pixels of the lower half of
a digit, from the 32 pixels of its upper half. One decomposition serves all of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge

from gramian import RBF, KernelRidge

X = load_digits().data / 16
upper, lower = X[:, :32], X[:, 32:]
train, test = slice(0, 1500), slice(1500, None)

models = {"linear": Ridge(1.0), "kernel": KernelRidge(0.1, kernel=RBF(0.1))}
predicted = {}
for name, model in models.items():
    model.fit(upper[train], lower[train])
    predicted[name] = model.predict(upper[test])
    print(f"{name}: squared error {np.mean((predicted[name] - lower[test]) ** 2):.4f}")

figure, panels = plt.subplots(3, 10, figsize=(10, 3.2))
for i, column in enumerate(panels.T):
    shown = {"truth": lower[test][i]} | {name: values[i] for name, values in predicted.items()}
    for axes, (name, half) in zip(column, shown.items()):
        image = [*upper[test][i].reshape(4, 8), *half.reshape(4, 8)]
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        axes.axhline(3.5, color="#e08a1e", lw=1)
        axes.set(xticks=[], yticks=[])
        if i == 0:
            axes.set_ylabel(name)

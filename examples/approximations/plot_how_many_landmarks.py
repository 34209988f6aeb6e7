"""
How many landmarks do I need?
=============================

More landmarks mean less error, more memory and more time. The score of a learner stops rising long
before the error reaches zero: that is where to stop.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gramian import RBF, KernelRidgeClassifier, Nystroem, relative_error

X, y = load_digits(return_X_y=True)
X = X / 16
train, test = slice(0, 1200), slice(1200, None)
kernel = RBF(0.1)
exact = KernelRidgeClassifier(0.1, kernel=kernel).fit(X[train], y[train])

sizes = [5, 10, 20, 40, 80, 160, 320, 640]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
for landmarks in ("uniform", "kmeans"):
    errors, scores = [], []
    for size in sizes:
        approximation = Nystroem(kernel, size, landmarks=landmarks, random_state=0).fit(X[train])
        model = KernelRidgeClassifier(0.1, kernel=approximation).fit(X[train], y[train])
        errors.append(float(relative_error(approximation, X[train])))
        scores.append(model.score(X[test], y[test]))
    left.loglog(sizes, errors, "o-", label=landmarks)
    right.semilogx(sizes, scores, "o-", label=landmarks)
right.axhline(exact.score(X[test], y[test]), color="0.5", ls="--", lw=1, label="exact kernel")
left.set(xlabel="landmarks", ylabel="relative error of the kernel matrix")
right.set(xlabel="landmarks", ylabel="accuracy on unseen digits")
for axes in (left, right):
    axes.axvline(np.sqrt(1200), color="0.8", lw=1)
left.annotate("√n", (np.sqrt(1200), errors[0]), xytext=(3, 0), textcoords="offset points")
right.legend()

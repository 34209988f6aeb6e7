"""
My stream changes over time
===========================

Landmarks from the first batch cannot represent rows unlike them. Random Fourier features cover the
whole space, so a model can follow a stream wherever it goes.
"""

import matplotlib.pyplot as plt
import numpy as np

from gramian import RBF, KernelRidge, Nystroem, RandomFourier


def batch(t, rng):
    """Rows around a point that moves to the right."""
    X = rng.normal([t, 0], [0.8, 0.8], (300, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(300)


times = np.linspace(0, 10, 40)
models = {
    "Nyström, landmarks of the first batch": KernelRidge(
        0.1, kernel=Nystroem(RBF(1.0), 150, random_state=0)
    ),
    "random Fourier features": KernelRidge(
        0.1, kernel=RandomFourier(RBF(1.0), 600, frequencies="orthogonal", random_state=0)
    ),
}
errors = {name: [] for name in models}
rng = np.random.default_rng(0)
for t in times:
    X, y = batch(t, rng)
    for name, model in models.items():
        model.partial_fit(X, y)
        Xn, yn = batch(t, np.random.default_rng(1))
        errors[name].append(np.sqrt(np.mean((model.predict(Xn) - yn) ** 2)))

figure, (top, below) = plt.subplots(2, 1, figsize=(9, 5), height_ratios=[1, 1.5])
for t in times[::4]:
    X, y = batch(t, np.random.default_rng(2))
    top.scatter(X[:, 0], X[:, 1], c=np.full(300, t), s=3, vmin=0, vmax=10)
top.set(yticks=[], xlabel="the rows move to the right")
for name, values in errors.items():
    below.plot(times, values, "o-", ms=4, label=name)
below.axhline(0.1, color="0.6", ls="--", lw=1)
below.annotate("noise", (10, 0.1), xytext=(4, 3), textcoords="offset points", color="0.4")
below.set(xlabel="time", ylabel="error on new rows", yscale="log")
below.legend()

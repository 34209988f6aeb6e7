"""
Can I believe the probabilities?
================================

:class:`~gramian.KernelLogisticRegression` predicts the probability of every class. A probability is
honest if, among the rows that get 0.7, seven in ten belong to the class. The penalty ``alpha``
decides how honest the model is: with too small a value it is overconfident, with too large a value
it hedges.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_blobs
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

from gramian import RBF, KernelLogisticRegression, Nystroem

centres = [[-1.4, 0.6], [1.3, 0.9], [0.1, -1.2], [0.2, 2.4]]
X, part = make_blobs(2400, centers=centres, cluster_std=0.85, random_state=0)
y = np.array([0, 1, 2, 2])[part]  # the third class has two parts
train, test = slice(0, 400), slice(400, None)

kernel = Nystroem(RBF(1.0), 60, random_state=0)
grid = {"alpha": [0.001, 0.01, 0.1, 1.0, 10.0]}
search = GridSearchCV(
    KernelLogisticRegression(kernel=kernel), grid, scoring="neg_log_loss", cv=3
).fit(X[train], y[train])
models = {
    f"alpha {alpha:g}": KernelLogisticRegression(alpha, kernel).fit(X[train], y[train])
    for alpha in (0.001, search.best_params_["alpha"], 100.0)
}

# %%
# Left: the three probabilities of each place as a mixture of three colours, from the model that the
# search chose. Right: how honest each model is on rows it has not seen, and its log loss.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), width_ratios=[1.2, 1])
colours = np.array([[0.18, 0.44, 0.69], [0.88, 0.54, 0.12], [0.24, 0.6, 0.42]])
a, b = np.meshgrid(np.linspace(-4, 4, 160), np.linspace(-4, 5, 160))
mixed = search.predict_proba(np.c_[a.ravel(), b.ravel()]) @ colours
left.imshow(mixed.reshape(*a.shape, 3), origin="lower", extent=(-4, 4, -4, 5))
left.scatter(*X[train].T, c=colours[y[train]], s=14, edgecolor="white", lw=0.5)
left.set(xticks=[], yticks=[])
right.plot([0, 1], [0, 1], color="0.7", lw=1)
for (name, model), colour in zip(models.items(), ("#c8463c", "#2f6fb0", "#8a8f98")):
    given = model.predict_proba(X[test])
    share, said = calibration_curve((y[test] == 2), given[:, 2], n_bins=8)
    right.plot(said, share, "o-", color=colour, label=f"{name}: {log_loss(y[test], given):.3f}")
right.set(xlabel="probability given to the third class", ylabel="share of its rows")
right.legend(title="log loss on unseen rows", fontsize=9)
print(search.best_params_)

"""
Can I cluster graphs?
=====================

Objects can be anything that you can compare: here small graphs, as adjacency matrices. The kernel
compares how many neighbours their nodes have, which does not depend on how the nodes are numbered.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from gramian import FunctionKernel, KernelKMeans

rng = np.random.default_rng(0)


def ring(n):
    return np.roll(np.eye(n), 1, axis=1)


def tree(n):
    edges = np.zeros((n, n))
    edges[np.arange(1, n), [rng.integers(i) for i in range(1, n)]] = 1
    return edges


def crowd(n):
    return np.triu(rng.random((n, n)) < 0.5, 1).astype(float)


graphs, kinds = [], []
for kind, make in enumerate((ring, tree, crowd)):
    for n in rng.integers(7, 13, 20):
        edges = make(n)
        graphs.append(np.maximum(edges, edges.T))
        kinds.append(kind)


def degrees(graph):
    """The share of nodes with 1, 2, ..., 6 or more neighbours."""
    counts = np.bincount(np.clip(graph.sum(0).astype(int), 0, 6), minlength=7)
    return counts / len(graph)


def alike(a, b):
    return float(np.exp(-3 * np.abs(degrees(a) - degrees(b)).sum()))


kernel = FunctionKernel(alike, pairwise=True)
model = KernelKMeans(3, kernel=kernel, n_init=10, random_state=0).fit(graphs)
print(f"agreement with rings, trees and crowds: {adjusted_rand_score(kinds, model.labels_):.2f}")

# %%
# Eight graphs of each cluster:

figure, panels = plt.subplots(3, 8, figsize=(10, 4))
for k, row in enumerate(panels):
    members = [g for g, label in zip(graphs, model.labels_) if label == k]
    for axes in row:
        axes.axis("off")
    for axes, graph in zip(row, members):
        angle = 2 * np.pi * np.arange(len(graph)) / len(graph)
        x, y = np.cos(angle), np.sin(angle)
        for i, j in np.argwhere(np.triu(graph)):
            axes.plot(x[[i, j]], y[[i, j]], color="0.65", lw=0.8)
        axes.scatter(x, y, s=14, color=plt.get_cmap("tab10")(k), zorder=2)
        axes.set_aspect("equal")

"""
Can I cluster strings?
======================

A kernel needs no coordinates, only a number for each pair of objects. With a function that compares
two strings, every learner accepts lists of strings. Here are names of places, and a kernel that
counts the groups of three letters that they share.
"""

from collections import Counter
from math import sqrt

import matplotlib.pyplot as plt

from gramian import FunctionKernel, KernelKMeans

places = """Reykjavik Keflavik Dalvik Husavik Grindavik Olafsvik Sandvik Narvik Larvik
Warszawa Czestochowa Krakow Chorzow Rzeszow Tarnow Gorzow Glogow Mielec
Barcelona Tarragona Pamplona Badalona Girona Carmona Archidona Estepona
Southampton Northampton Wolverhampton Brighton Preston Taunton Bolton Luton Darlington
Edinburgh Hamburg Salzburg Augsburg Freiburg Wurzburg Magdeburg Duisburg Oldenburg""".split()


def trigrams(word):
    padded = f"  {word.lower()}  "
    return Counter(padded[i : i + 3] for i in range(len(padded) - 2))


def shared(a, b):
    return sum((trigrams(a) & trigrams(b)).values())


def similarity(a, b):
    return shared(a, b) / sqrt(shared(a, a) * shared(b, b))


kernel = FunctionKernel(similarity, pairwise=True)
model = KernelKMeans(5, kernel=kernel, n_init=20, random_state=0).fit(places)

# %%
# The kernel matrix, with the names sorted by cluster: names with the same ending lie together.

order = model.labels_.argsort(kind="stable")
names = [places[i] for i in order]
colours = plt.get_cmap("tab10").colors
figure, axes = plt.subplots(figsize=(7.5, 7.5))
axes.imshow(kernel(names), cmap="magma_r", vmin=0, vmax=1)
axes.set_yticks(range(len(names)), names, fontsize=7.5)
axes.set_xticks([])
for tick, i in zip(axes.get_yticklabels(), order):
    tick.set_color(colours[model.labels_[i]])

# %%
# New strings go to the nearest cluster:

for name in ("Kensington", "Bamburgh", "Kopavik", "Gerona"):
    members = [p for p, label in zip(places, model.labels_) if label == model.predict([name])[0]]
    members.sort(key=lambda place: -similarity(place, name))
    print(f"{name:12} with {', '.join(members[:4])}, ...")

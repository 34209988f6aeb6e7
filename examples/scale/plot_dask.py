"""
The same on dask
================

dask in, dask out: pass a dask array, and the work is done where its chunks are, with the same
result as with NumPy. Here dask's threads on one machine take the place of a cluster.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from gramian import RBF, KernelKMeans, Nystroem

X, _ = make_moons(60_000, noise=0.08, random_state=0)
chunks = da.from_array(X, chunks=(15_000, 2))
model = KernelKMeans(2, kernel=Nystroem(RBF(5.0), 60), random_state=0)

labels = model.fit_predict(chunks)
print(labels)
same = model.fit_predict(X)
print(f"{np.mean(labels.compute() == same):.2%} of the labels are those of NumPy")

# %%
# On a cluster only the first line differs: ``client = Client("tcp://scheduler:8786")``. What
# workers send does not grow with the rows. These are recorded figures, from the section
# ``dask_rows`` of benchmarks/RESULTS.md; ``python -m benchmarks dask_rows`` measures them.
#
# .. code-block:: none
#
#                        k-means, 10 clusters, 5 passes   ridge
#    NumPy, one thread   2.13 s                           1.99 s
#    dask, 1 worker      2.65 s (+24%)                    2.27 s (+14%)
#    dask, 2 workers     2.09 s (efficiency 63%)          1.47 s (efficiency 77%)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
left.scatter(*X[::20].T, c=labels.compute()[::20], s=4, cmap="tab10", vmax=9)
left.set(title="60,000 rows in four chunks", xticks=[], yticks=[])
names = ["NumPy\none thread", "dask\n1 worker", "dask\n2 workers"]
place = np.arange(3)
right.bar(place - 0.2, [2.13, 2.65, 2.09], 0.4, label="k-means")
right.bar(place + 0.2, [1.99, 2.27, 1.47], 0.4, label="ridge")
right.set_xticks(place, names)
right.set(ylabel="seconds (recorded)", title="1,000,000 rows")
right.legend()

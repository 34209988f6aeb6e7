"""
Does a smaller error mean a better model?
=========================================

Not always. :func:`~gramian.compare` measures both: the error of the kernel matrix, and the score of
a learner on held-out rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import gramian

X, y = load_digits(return_X_y=True)
comparison = gramian.compare(
    X / 16, y, sizes=[20, 50, 100, 200], repeats=1, max_rows=1200, random_state=0
)
print(comparison.recommendation)

# %%
# Each line is an approximation; points further along it have more features.

frame = comparison.to_frame()
figure, axes = plt.subplots(figsize=(8, 4.4))
for name, rows in frame.groupby("name"):
    if name != "Exact":
        axes.plot(rows.error, rows.score, "o-", ms=5, label=name)
axes.set(xscale="log", xlabel="relative error of the kernel matrix")
axes.set(ylabel="accuracy on held-out rows")
axes.invert_xaxis()
axes.legend(fontsize=8.5)

# %%
# ``comparison.report("report.html")`` writes all of this as a page, with the spectrum and the block
# structure of the matrix. The code to paste:

print(comparison.code)

"""Clustering and regression, each by a linear method and by its kernel counterpart.

Run ``make demo`` or ``python examples/demo.py``: it prints a table and writes out/demo.png.
Every kernel is gramian's default, RBF with gamma="scale"; nothing is tuned to the scores.
"""

import os
import sys
import timeit
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_circles, make_friedman1
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score, r2_score
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import gramian

PICTURE = Path(__file__).resolve().parents[1] / "out" / "demo.png"
N = 10_000  # training rows of the large regression: enough that Nyström stands for the kernel
BLUE, ORANGE = "#0072B2", "#D55E00"  # the colours suit the colour-blind (Okabe and Ito; Tol)
TEN = ["#332288", "#88CCEE", "#44AA99", "#117733", "#999933",
       "#DDCC77", "#CC6677", "#882255", "#AA4499", "#999999"]  # fmt: skip
CAPTION = f"""\
KMeans and Ridge are scikit-learn's, KernelKMeans and KernelRidge gramian's. The kernel is RBF \
with the default rule gamma="scale", not tuned. ARI: adjusted Rand index with the truth. R²: on \
held-out rows. Seconds and peak memory are of one fit. Of {N:,} rows the kernel matrix alone would \
take {8 * N**2 / 1e6:.0f} MB: there the kernel stands for its Nyström approximation.
"""
NEXT = """Try another kernel next, such as gramian.KernelKMeans(10, kernel="chi2"); to list them:
python -c "import gramian; print(gramian.kernel_names())"
"""


@dataclass
class Result:
    """A fitted model, how good it is, and what its fit took."""

    model: Any
    score: str
    seconds: float
    peak_bytes: int

    def __str__(self) -> str:
        return f"{type(self.model).__name__}: {self.score}"


def measure(model: Any, score: Any, *data: np.ndarray) -> Result:
    """Tracing memory takes time, so the clock runs in a fit of its own."""
    tracemalloc.start()  # NumPy reports its arrays to it, whichever thread makes them
    clone(model).fit(*data)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    seconds = timeit.timeit(lambda: model.fit(*data), number=1)
    return Result(model, score(model), seconds, peak_bytes)


def cluster(X: np.ndarray, truth: np.ndarray, k: int) -> list[Result]:
    def score(model: Any) -> str:
        return f"ARI {adjusted_rand_score(truth, model.labels_):z.2f}"

    methods = KMeans, gramian.KernelKMeans
    return [measure(method(k, n_init=10, random_state=0), score, X) for method in methods]


def regress(X: np.ndarray, y: np.ndarray, new_X: np.ndarray, new_y: np.ndarray) -> list[Result]:
    def score(model: Any) -> str:
        return f"R² {r2_score(new_y, model.predict(new_X), multioutput='variance_weighted'):.2f}"

    return [measure(each(random_state=0), score, X, y) for each in (Ridge, gramian.KernelRidge)]


def print_table(jobs: dict[str, list[Result]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=CAPTION, caption_justify="left")
    for column in ("job", "method", "score", "seconds", "memory"):
        table.add_column(column, justify="left" if column in ("job", "method") else "right")
    for job, results in jobs.items():
        for text, result in zip(job.split(": "), results, strict=True):
            kernel, size = getattr(result.model, "kernel_", None), result.peak_bytes / 1e6
            table.add_row(
                text,
                type(result.model).__name__ + (f" gamma={kernel.gamma_:.2g}" if kernel else ""),
                result.score,
                f"{result.seconds:.2f}",
                f"{size:.1f} MB" if size < 10 else f"{size:.0f} MB",
                style="bold" if kernel else None,
                end_section=kernel is not None,
            )
    Console().print(table)


def draw_clusters(ax: Any, images: np.ndarray, plane: np.ndarray, labels: np.ndarray) -> None:
    """Images as dots, and around them the mean image of each cluster, with a line to its middle."""
    ax.scatter(*plane.T, c=np.array(TEN)[labels], s=9, lw=0)
    middles = np.array([plane[labels == k].mean(axis=0) for k in range(10)])
    angles = np.arctan2(middles[:, 1], middles[:, 0])
    even, order = np.arange(10) * np.pi / 5, np.argsort(angles)
    turn = np.angle(np.exp(1j * (angles[order] - even)).sum())  # so that the lines are short
    radius = 1.25 * np.linalg.norm(plane, axis=1).max()
    for angle, k in zip(even + turn, order, strict=True):
        mean = OffsetImage(images[labels == k].mean(axis=0).reshape(8, 8), zoom=3.5, cmap="gray_r")
        place = radius * np.cos(angle), radius * np.sin(angle)
        frame, line = {"ec": TEN[k], "lw": 2.5}, {"arrowstyle": "-", "lw": 0.7}
        ax.add_artist(AnnotationBbox(mean, middles[k], place, bboxprops=frame, arrowprops=line))
    ends = -1.2 * radius, 1.2 * radius
    ax.set(xticks=[], yticks=[], xlim=ends, ylim=ends, aspect="equal")


def draw_halves(ax: Any, upper: np.ndarray, lower: dict[str, np.ndarray]) -> None:
    """A line of images for each way to fill the lower half."""
    lines = np.array([np.hstack([upper, half]).reshape(-1, 8, 8) for half in lower.values()])
    lines = np.pad(lines, [(0, 0), (0, 0), (1, 1), (1, 1)])
    middles = 10 * np.arange(len(lower)) + 4.5
    ax.imshow(np.block([list(line) for line in lines]), cmap="gray_r", vmin=0, vmax=1)
    ax.hlines(middles, -0.5, 10 * len(upper) - 0.5, color="black", lw=0.8)
    ax.set(xticks=[], yticks=middles, yticklabels=list(lower))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def main() -> None:
    rings, ring = make_circles(1000, factor=0.3, noise=0.08, random_state=0)
    images, digit = load_digits(return_X_y=True)
    images /= 16
    seen, new, _, new_digit = train_test_split(images, digit, random_state=0)
    up, low = slice(32), slice(32, None)  # the pixels of the upper and of the lower half
    X, y = make_friedman1(N + 2000, noise=1.0, random_state=0)
    y -= y[:N].mean()  # KernelRidge has no intercept

    jobs = {}
    # Threads of BLAS and OpenMP that wait for each other on a busy machine would spoil the clock;
    # gramian's own are not concerned.
    with threadpool_limits(1), gramian.config_context(progress=sys.stderr.isatty()):
        jobs["two noisy rings: 1,000 points"] = cluster(rings, ring, 2)
        jobs["handwritten digits: 1,797 images"] = cluster(images, digit, 10)
        split = seen[:, up], seen[:, low], new[:, up], new[:, low]
        jobs["lower half from upper: 1,347 images"] = regress(*split)
        jobs[f"Friedman's function: {N:,} rows"] = regress(X[:N], y[:N], X[N:], y[N:])
        plane = gramian.KernelPCA(2, random_state=0).fit_transform(images)
    print_table(jobs)

    plt.switch_backend("Agg")  # draws to files: no display is needed
    figure = plt.figure(figsize=(14, 8.2), layout="constrained")
    axes = figure.subplot_mosaic("AAAABBBBCCCC;DDDEEEFFFFFF", height_ratios=[1.3, 1])
    by_ring, by_digit, halves, functions = jobs.values()
    for name, result in zip("AB", by_ring, strict=True):
        labels = result.model.labels_
        inner = labels[np.linalg.norm(rings, axis=1).argmin()]  # so that colours mean the same
        axes[name].scatter(*rings.T, c=np.where(labels == inner, ORANGE, BLUE), s=10, lw=0)
        axes[name].set(title=f"Two rings\n{result}", xticks=[], yticks=[])
        axes[name].set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    draw_clusters(axes["C"], images, plane, by_digit[1].model.labels_)
    axes["C"].set_title(f"Digits in the plane of KernelPCA\n{by_digit[1]}")
    for name, result, colour in zip("DE", functions, (BLUE, ORANGE), strict=True):
        axes[name].scatter(y[N:], result.model.predict(X[N:]), c=colour, s=7, alpha=0.5, lw=0)
        axes[name].axline((0, 0), slope=1, color="black", lw=1)
        axes[name].set(title=f"Friedman's function, new rows\n{result}", aspect="equal")
        axes[name].set(xlabel="truth", ylabel="prediction", xlim=(-14, 14), ylim=(-14, 14))
    shown = np.unique(new_digit, return_index=True)[1]  # one new image of each digit
    fills = {str(each).replace(": ", "\n"): each.model.predict(new[shown, up]) for each in halves}
    draw_halves(axes["F"], new[shown, up], {"truth": new[shown, low], **fills})
    axes["F"].set_title("New digits: what is below the line is predicted from what is above")

    PICTURE.parent.mkdir(exist_ok=True)
    unfinished = PICTURE.with_suffix(".part")
    figure.savefig(unfinished, format="png", dpi=130)
    os.replace(unfinished, PICTURE)
    print(f"Picture: {os.path.relpath(PICTURE)}\n{NEXT}", end="")


if __name__ == "__main__":
    main()

"""Charts of measured results, as SVG files: drawn anew whenever the site is built."""

from pathlib import Path

import decisions
import matplotlib.pyplot as plt
import numpy as np
import results
from gallery_style import BLUE, GREEN, GREY, ORANGE, RED, STYLE


def _save(figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def peers(path: Path) -> None:
    """How many times as fast gramian is as each other library, job by job."""
    (table, *_) = results.measured()["peers"]
    ratio_at, contender_at = table.columns.index("ratio"), table.columns.index("contender")
    shown = [
        row
        for row in table.rows
        if row[ratio_at]
        and "float32" in row[0]
        and not row[contender_at].startswith(("gramian", "its "))
    ]
    shown.sort(key=lambda row: results.number(row[ratio_at]))
    ratios = np.array([results.number(row[ratio_at]) for row in shown])
    low, high = np.array([results.interval(row[ratio_at]) for row in shown]).T
    names = [f"{row[0].removesuffix(', float32')}  ·  {row[contender_at]}" for row in shown]
    figure, axes = plt.subplots(figsize=(9, 0.3 * len(shown) + 0.8))
    axes.barh(names, ratios, color=[BLUE if ratio >= 1 else RED for ratio in ratios], height=0.6)
    spread = [np.maximum(ratios - low, 0), np.maximum(high - ratios, 0)]
    axes.errorbar(ratios, range(len(shown)), xerr=spread, fmt="none", color="black", lw=0.8)
    axes.axvline(1, color=GREY, lw=1)
    axes.set(xscale="log", xlabel="times as fast as the other library (90 % of resampled ratios)")
    axes.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.tick_params(axis="y", labelsize=7.5)
    _save(figure, path)


def samplers(path: Path) -> None:
    """Error against time of every sampler, on covtype."""
    table = results.measured()["samplers"][1]
    names = [row[0] for row in table.rows]
    error, seconds = (
        [results.number(row[table.columns.index(column)]) for row in table.rows]
        for column in ("Frobenius", "fit + transform s")
    )
    figure, axes = plt.subplots(figsize=(7.5, 4))
    axes.scatter(seconds, error, color=[ORANGE if name == "kmeans" else BLUE for name in names])
    above = {"uniform", "csi", "recursive-leverage"}
    for x, y, name in zip(seconds, error, names, strict=True):
        offset = (5, 5) if name in above else (5, -11)
        axes.annotate(name, (x, y), offset, textcoords="offset points", fontsize=8.5)
    axes.set(xscale="log", yscale="log", xlabel="seconds to fit and transform")
    axes.set(ylabel="relative error (Frobenius)")
    axes.set_xlim(right=70)
    _save(figure, path)


def blocks(path: Path) -> None:
    """MEKA against Nyström at equal memory, as gamma grows, on each data set."""
    table = results.measured()["blocks"][2]
    names = list(dict.fromkeys(row[0] for row in table.rows if row[1] == "RBF"))
    figure, panels = plt.subplots(2, 4, figsize=(10, 4.6), sharey=True)
    for axes, name in zip(panels.flat, names, strict=False):
        rows = [row for row in table.rows if row[:2] == [name, "RBF"]]
        gamma = [results.number(row[2]) for row in rows]
        for column, colour in (("Nystroem k-means", BLUE), ("MEKA", ORANGE)):
            error = [results.number(row[table.columns.index(column)]) for row in rows]
            axes.loglog(gamma, error, "o-", color=colour, label=column, ms=4)
        axes.set_title(name.replace("_", " "), fontsize=10)
    for axes in panels.flat[len(names) :]:
        axes.axis("off")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    panels.flat[-1].legend(handles, labels, loc="center")
    figure.supxlabel("gamma", fontsize=10)
    figure.supylabel("relative error", fontsize=10)
    _save(figure, path)


def kmeans(path: Path) -> None:
    """The risk of kernel k-means and its agreement with the classes, by number of landmarks."""
    table = results.measured()["kmeans"][0]
    m, risk, agreement = (
        [results.number(row[column]) for row in table.rows] for column in range(3)
    )
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    left.semilogx(m, risk, "o-", color=BLUE)
    left.set(xlabel="landmarks", ylabel="risk on unseen images")
    right.semilogx(m, agreement, "o-", color=GREEN)
    right.set(xlabel="landmarks", ylabel="agreement with the digits (NMI)")
    for axes in (left, right):
        axes.axvline(100, color=GREY, lw=1, ls="--")
        axes.set_xticks(m, [f"{value:g}" for value in m])
        axes.minorticks_off()
    left.annotate("√n", (100, max(risk)), (4, -4), textcoords="offset points", color=GREY)
    _save(figure, path)


def reproduction(path: Path) -> None:
    """How many claims of each paper were reproduced."""
    found = {name: tables[0] for name, tables in results.reproduced().items() if tables}
    names = [name.split(": ", 1)[1] for name in found]
    figure, axes = plt.subplots(figsize=(9, 2.4))
    left = np.zeros(len(names))
    colours = {"reproduced": GREEN, "differs": RED, "inconclusive": ORANGE, "missing": GREY}
    for verdict, colour in colours.items():
        counts = [
            sum(row[table.columns.index("verdict")].strip("*") == verdict for row in table.rows)
            + (verdict == "missing") * results.missing(name)
            for name, table in found.items()
        ]
        if any(counts):
            axes.barh(names, counts, left=left, color=colour, label=verdict, height=0.55)
        left += counts
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8.5)
    axes.set_xlabel("figures, tables and theorems")
    axes.legend(loc="lower right")
    _save(figure, path)


def draw_all(folder: Path) -> None:
    with plt.rc_context(STYLE):
        for draw in (peers, samplers, blocks, kmeans, reproduction):
            draw(folder / f"{draw.__name__}.svg")
    (folder / "which.svg").write_text(decisions.chart())

"""How pictures of the gallery and the charts look."""

import matplotlib
import matplotlib.pyplot as plt

BLUE, ORANGE, GREEN, RED, GREY = "#2f6fb0", "#e08a1e", "#3d9a6b", "#c8463c", "#8a8f98"
PURPLE, PINK, BROWN, TEAL, OLIVE = "#7a5cb8", "#d977b0", "#8c6446", "#2aa5b5", "#a8a432"

STYLE = {
    "figure.constrained_layout.use": True,
    "figure.figsize": (7.5, 4.0),
    "font.size": 10,
    "axes.prop_cycle": matplotlib.cycler(
        color=[BLUE, ORANGE, GREEN, RED, PURPLE, TEAL, PINK, BROWN, OLIVE, GREY]
    ),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "image.cmap": "viridis",
    "svg.hashsalt": "gramian",
}


def reset(_gallery, _file, when="before"):
    plt.rcParams.update(STYLE)

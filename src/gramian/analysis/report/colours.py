"""One colour and one shape per approximation, the same in every chart.

People with any kind of colour blindness can tell the colours apart, on light and dark pages; tests
measure both. The shapes repeat the information.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Look(NamedTuple):
    light: str
    dark: str
    marker: str  # matplotlib's letter for the shape
    shape: str  # the same as an SVG path around (0, 0)


_CIRCLE = "M-4.2,0a4.2,4.2 0 1,0 8.4,0a4.2,4.2 0 1,0 -8.4,0z"
_SQUARE = "M-3.8,-3.8h7.6v7.6h-7.6z"
_UP = "M0,-5L4.8,3.6H-4.8z"
_DIAMOND = "M0,-5.4L5.4,0L0,5.4L-5.4,0z"
_DOWN = "M0,5L4.8,-3.6H-4.8z"
_PLUS = "M-1.7,-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z"
_LEFT = "M-5,0L3.6,-4.8V4.8z"
_RIGHT = "M5,0L-3.6,-4.8V4.8z"
_CROSS = "M-5,-2.6L-2.6,-5L0,-2.4L2.6,-5L5,-2.6L2.4,0L5,2.6L2.6,5L0,2.4L-2.6,5L-5,2.6L-2.4,0z"
_PENTAGON = "M0,-5.2L4.9,-1.6L3.1,4.2H-3.1L-4.9,-1.6z"
_HEXAGON = "M0,-5L4.3,-2.5V2.5L0,5L-4.3,2.5V-2.5z"
_NARROW = "M0,-5.8L3.4,0L0,5.8L-3.4,0z"
_STAR = "M0,-5.8L1.5,-1.9L5.5,-1.8L2.3,.8L3.4,4.7L0,2.4L-3.4,4.7L-2.3,.8L-5.5,-1.8L-1.5,-1.9z"
_BAR = "M-5.4,-1.6h10.8v3.2h-10.8z"

LOOKS = {
    "Nyström uniform": Look("#2a8bd2", "#63c3fc", "o", _CIRCLE),
    "Nyström k-means": Look("#a93608", "#f2702c", "s", _SQUARE),
    "Nyström RPCholesky": Look("#00705a", "#1fa678", "^", _UP),
    "MEKA": Look("#93339c", "#e07fd6", "D", _DIAMOND),
    "BKA": Look("#b08400", "#f2d544", "v", _DOWN),
    "Random Fourier": Look("#3b3f46", "#d9dce1", "P", _PLUS),
    "Local": Look("#7a1fe8", "#9d43f7", "d", _NARROW),
    "TensorSketch": Look("#4b2ca8", "#8f79ff", "<", _LEFT),
    "CRAFT": Look("#dd5a7a", "#fa9fb0", ">", _RIGHT),
    "Random Maclaurin": Look("#5b991c", "#b2ec7a", "h", _HEXAGON),
}
# What stands beside the approximations: one colour, and shapes that none of them has.
_SLATE = "#68727e", "#98a3b0"
BESIDE = {
    "Exact": Look(*_SLATE, "*", _STAR),
    "Gradient boosting": Look(*_SLATE, "X", _CROSS),
    "Linear model": Look(*_SLATE, "p", _PENTAGON),
    "Dummy": Look(*_SLATE, "_", _BAR),
}
# Where the looks above are taken: the same colours in other shapes.
SPARE = [
    look._replace(marker=marker, shape=shape)
    for marker, shape in (("X", _CROSS), ("p", _PENTAGON))
    for look in LOOKS.values()
]

# Methods from the papers; each borrows the look of one that never appears in the same chart.
ALIKE = {
    "Nyström": "Nyström uniform",
    "scikit-learn": "Nyström k-means",
    "leverage scores": "Nyström k-means",
    "Nyström k-DPP": "BKA",
    "Nyström CSI": "CRAFT",
    "Nyström, rank of W": "BKA",
    "exact": "Random Fourier",
    "Kernel-JL": "TensorSketch",
    "fast KPCA": "CRAFT",
    "k-means": "Random Fourier",
    "spectral": "TensorSketch",
    "random": "CRAFT",
    "effective dimension": "Random Maclaurin",
    "by chance": "Random Fourier",
    "bound": "Random Fourier",
    "best possible": "BKA",
    "measured": "Nyström uniform",
}


def looks(names: Iterable[str]) -> dict[str, Look]:
    """The look of each name: its own, or the next one that none of the names has.

    A new approximation needs no entry here.
    """
    wanted = list(dict.fromkeys(names))
    known = {**LOOKS, **BESIDE, **{name: LOOKS[like] for name, like in ALIKE.items()}}
    taken = {known[name] for name in wanted if name in known}
    free = [look for look in [*LOOKS.values(), *SPARE] if look not in taken]
    others = [name for name in wanted if name not in known]
    given = {name: free[i % len(free)] for i, name in enumerate(others)}
    return {name: known.get(name) or given[name] for name in wanted}

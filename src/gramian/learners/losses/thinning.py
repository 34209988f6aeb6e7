"""Few rows that stand for many in sums of second derivatives."""

from __future__ import annotations

import numpy as np

NEGLIGIBLE = 1e-12  # a weight, relative to the largest


def thinned(weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of up to ``most`` rows that stand for all, and their weights.

    Rows of large weight are taken. The others are taken in proportion to their weight, at equal
    distances along its sum, and all count alike. So a sum over the rows is about the same, and few
    of them are enough if few have most of the weight.
    """
    used = np.flatnonzero(weights > NEGLIGIBLE * np.max(weights, initial=0.0))
    if len(used) <= most:
        return used, weights[used]
    w = weights[used]
    falling = np.sort(w)[::-1]
    # If the k largest are taken, each other one stands for so much.
    shares = np.cumsum(falling[::-1])[::-1][:most] / (most - np.arange(most))
    share = shares[np.argmax(falling[:most] <= shares)]
    steps = np.floor(np.cumsum(np.minimum(w / share, 1.0)) + 0.5)
    taken = np.flatnonzero(np.diff(steps, prepend=0.0))
    return used[taken], np.maximum(w[taken], share)

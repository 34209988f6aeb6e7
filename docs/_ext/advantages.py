"""Three measured figures against scikit-learn, for the start page and the README."""

import results

ADVANTAGES = [
    # what, job, the other library
    (
        "Kernel k-means, covtype (581,012 rows), 300 landmarks",
        "kernel k-means, covtype, m = 300, k = 7, float32",
        "scikit-learn Nystroem + KMeans",
    ),
    (
        "Kernel ridge classification, covtype, 1,000 landmarks",
        "kernel ridge, covtype class 2 against the rest, m = 1,000, float32",
        "scikit-learn Nystroem + Ridge",
    ),
    (
        "Kernel PCA, MNIST (10,000 rows), 20 components",
        "kernel PCA, MNIST, 10,000 rows, 20 components, float32",
        "scikit-learn KernelPCA, arpack",
    ),
]


def table() -> str:
    """Three measured figures as a table: time, memory and the ratio of times."""
    (peers, *_) = results.measured()["peers"]
    lines = ["| | gramian | scikit-learn | |", "| --- | --: | --: | --- |"]
    for what, job, peer in ADVANTAGES:
        sides = []
        for contender in ("gramian", peer):
            seconds, peak = (
                results.number(peers.cell([job, contender], column))
                for column in ("seconds", "peak MB")
            )
            memory = f"{peak / 1000:.1f} GB" if peak >= 100 else f"{peak:.0f} MB"
            sides.append(f"{seconds:.1f}\N{NO-BREAK SPACE}s, {memory}")
        ratio = results.number(peers.cell([job, peer], "ratio"))
        lines.append(f"| {what} | {' | '.join(sides)} | **{ratio:.2g} times as fast** |")
    return "\n".join(lines) + "\n"

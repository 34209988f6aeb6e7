"""MEKA and BKA against Nyström: error, time and memory; ridge regression; growth with n."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.kernel_approximation

import gramian
from benchmarks.harness import command_line, interleaved, measure_growth, table
from gramian import MEKA, RBF, KernelRidge, Laplacian, Nystroem, datasets, relative_error


def rows(name: str) -> np.ndarray:
    """Columns in [0, 1], float32; ijcnn1 as it is, which is scaled already; a third of MNIST."""
    X = datasets.load(name).X
    if name == "mnist":
        return np.asarray(X.reshape(len(X), -1) / 255, dtype=np.float32)[:20_000]
    return X.astype(np.float32) if name == "ijcnn1" else datasets.scaled(X, np.float32)


def meka(gamma: float, rank: int, blocks: int, **options: Any) -> MEKA:
    return MEKA(RBF(gamma), rank, n_blocks=blocks, random_state=0, **options)


def theirs(gamma: float, m: int) -> Any:
    return sklearn.kernel_approximation.Nystroem(gamma=gamma, n_components=m, random_state=0)


def factorise(model: Any, X: np.ndarray) -> Any:
    """Fit, and keep the factors of all rows, as a learner does it."""
    data = gramian.as_rows(X)
    return model.fit(data).factor(data).persist()


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f}" if size < 1e8 else f"{size / 1e6:,.0f}"


def sampled_error(features: Callable[[np.ndarray], np.ndarray], X: np.ndarray, gamma: float) -> str:
    """The error of features that are no approximation of ours, on the rows relative_error uses."""
    n = len(X)
    sample = X[np.random.default_rng(0).choice(n, 2000, replace=False)]
    Z = features(sample).astype(np.float64)
    K = RBF(gamma)(sample.astype(np.float64))
    parts = []
    for M in (K - Z @ Z.T, K):
        on = (M.diagonal() ** 2).sum()
        parts.append(((M**2).sum() - on) * (n - 1) / (len(sample) - 1) + on)
    return f"{np.sqrt(parts[0] / parts[1]):.4f}"


# Run in a fresh process: what is returned is the call whose memory is measured.


def our_memory(name: str, gamma: float, rank: int, blocks: int) -> Callable[[], str]:
    X = rows(name)
    return lambda: str(factorise(meka(gamma, rank, blocks), X))


def fit_memory(name: str, gamma: float, rank: int, blocks: int) -> Callable[[], str]:
    X = rows(name)
    return lambda: str(meka(gamma, rank, blocks).fit(X))


def their_memory(name: str, gamma: float, m: int) -> Callable[[], str]:
    X = rows(name)
    return lambda: str(theirs(gamma, m).fit_transform(X).shape)


# Data, gamma, total rank, blocks, landmarks of scikit-learn's Nystroem.
LARGE = [
    ("ijcnn1", 1.0, 500, 10, 600),
    ("covtype", 2.0, 450, 80, 400),
    ("covtype", 10.0, 1700, 80, None),
]


def against_scikit_learn(repeats: int) -> None:
    lines = []
    for name, gamma, rank, blocks, m in LARGE:
        X = rows(name)
        sides: dict[str, Callable[[], Any]] = {
            "MEKA": lambda X=X, g=gamma, r=rank, c=blocks: factorise(meka(g, r, c), X)
        }
        if m is not None:
            sides["theirs"] = lambda X=X, g=gamma, m=m: theirs(g, m).fit_transform(X)
        times = interleaved(sides, repeats)
        model = meka(gamma, rank, blocks).fit(X)
        fit_growth = measure_growth(fit_memory, name, gamma, rank, blocks).counted
        growth = measure_growth(our_memory, name, gamma, rank, blocks).counted
        label = f"MEKA, rank {rank}, {blocks} blocks"
        a = times["MEKA"].median
        line = [name, f"{gamma:g}", label, str(relative_error(model, X))]
        line += [megabytes(model.nbytes_), f"{a:.2f}", "", ""]
        line += [megabytes(fit_growth), megabytes(growth)]
        lines.append(line)
        if m is None:  # Nyström's best at one gigabyte, ours
            best = Nystroem(RBF(gamma), int(1e9 / (4 * len(X))), random_state=0)
            start = time.perf_counter()
            best.fit(X)
            best.factor(X).persist()
            b, size, who = time.perf_counter() - start, best.nbytes_, "Nystroem, k-means centres"
            error, theirs_growth = str(relative_error(best, X)), ""
            m = len(best.landmarks_)
        else:
            fitted = theirs(gamma, m).fit(X)
            b, size, who = times["theirs"].median, 4 * m * len(X), "scikit-learn's Nystroem"
            error = sampled_error(fitted.transform, X, gamma)
            theirs_growth = megabytes(measure_growth(their_memory, name, gamma, m).counted)
        line = [name, f"{gamma:g}", f"{who}, m = {m}", error, megabytes(size), f"{b:.2f}"]
        lines.append([*line, f"{b / a:.1f}", f"{size / model.nbytes_:.1f}", "", theirs_growth])
    print("Fit, and the factors or features of all rows kept, in float32; columns in [0, 1].")
    print(f"Seconds: medians of {repeats} interleaved runs. Size: of the factors or features.")
    print("Growth: of resident memory in a fresh process, by the fit, and by fit and factors.\n")
    header = ["data", "gamma", "approximation", "Frobenius error", "size MB", "s", "s ratio"]
    print(table([*header, "size ratio", "fit growth MB", "growth MB"], lines))


def dropped_links() -> None:
    X = rows("ijcnn1")
    lines = []
    for fraction in (None, 0.1, 0.5, 1.0):
        model = meka(1.0, 500, 10, link_fraction=fraction).fit(X)
        likeness = model.kernel_(model.centres_)
        lines.append(
            [
                f"{fraction or 0:.0%}",
                int(np.triu(model.links_, 1).sum()),
                f"{float(relative_error(model, X)):.4f}",
                f"{likeness[np.triu_indices(len(likeness), 1)].min():.2f}",
            ]
        )
    print("\nijcnn1, gamma 1, rank 500, 10 blocks: links left out, of the centres least alike.\n")
    print(table(["left out", "links", "Frobenius error", "least k(centre, centre)"], lines))


# Data, kernel, gammas (where the matrix is of low rank first), total rank, blocks.
EQUAL = [
    ("ijcnn1", RBF, (0.1, 1.0, 4.0), 500, 10),
    ("covtype", RBF, (0.1, 2.0, 10.0), 600, 80),
    ("pendigits", RBF, (2.0**-3, 2.0, 16.0), 150, 5),
    ("pendigits", Laplacian, (2.0**-7, 2.0**-1, 2.0), 150, 3),
    ("cpusmall", RBF, (0.5, 10.0, 100.0), 150, 5),
    ("wine_quality", RBF, (0.5, 10.0, 100.0), 150, 5),
    ("cadata", RBF, (0.5, 10.0, 100.0), 300, 10),
    ("mnist", RBF, (0.0048, 0.02), 1500, 10),
]


def equal_memory() -> None:
    lines = []
    for name, kernel, gammas, rank, blocks in EQUAL:
        X = rows(name)
        for gamma in gammas:
            model = MEKA(kernel(gamma), rank, n_blocks=blocks, random_state=0).fit(X)
            m = max(1, round(model.nbytes_ / (4 * len(X))))
            ours = float(relative_error(model, X))
            nystroem = {
                landmarks: float(
                    relative_error(
                        Nystroem(kernel(gamma), m, landmarks=landmarks, random_state=0).fit(X), X
                    )
                )
                for landmarks in ("uniform", "kmeans")
            }
            best = min(nystroem.values())
            lines.append(
                [
                    name,
                    kernel.__name__,
                    f"{gamma:.3g}",
                    megabytes(model.nbytes_),
                    m,
                    *(f"{nystroem[landmarks]:.4f}" for landmarks in ("uniform", "kmeans")),
                    f"{ours:.4f}",
                    "MEKA" if ours < best else "Nystroem",
                ]
            )
    print("\nEqual memory, float32, columns in [0, 1]: relative Frobenius errors.\n")
    header = ["data", "kernel", "gamma", "MB", "Nystroem m", "Nystroem uniform"]
    print(table([*header, "Nystroem k-means", "MEKA", "less error"], lines))


def ridge() -> None:
    lines = []
    for name, gamma, alpha in (("wine_quality", 10.0, 0.5), ("cpusmall", 4.0, 0.1)):
        data = datasets.load(name)
        X = datasets.scaled(data.X, np.float32)
        y = data.y.astype(np.float64)
        order = np.random.default_rng(0).permutation(len(X))
        train, test = order[: 4 * len(X) // 5], order[4 * len(X) // 5 :]
        kernel, n = RBF(gamma), len(train)
        contenders: list[tuple[str, Any]] = []
        for rank in (50, 100, 200, 400):
            contenders += [
                ("Nystroem uniform", Nystroem(kernel, rank // 5, landmarks="uniform")),
                ("Nystroem uniform", Nystroem(kernel, rank, landmarks="uniform")),
                ("Nystroem CSI", Nystroem(kernel, rank // 5, landmarks="csi")),
                ("MEKA", MEKA(kernel, rank, n_blocks=5)),
            ]
        for label, approximation in contenders:
            errors, seconds = [], []
            for seed in range(3):
                approximation.set_params(random_state=seed)
                start = time.perf_counter()
                model = KernelRidge(alpha, kernel=approximation).fit(X[train], y[train])
                seconds.append(time.perf_counter() - start)
                left = model.predict(X[test]) - y[test]
                errors.append(np.linalg.norm(left) / np.linalg.norm(y[test]))
            size = model.approximation_.nbytes_
            lines.append(
                [
                    name,
                    label,
                    approximation.n_components,
                    f"{size / (4 * n):.0f}",
                    megabytes(size),
                    f"{np.mean(errors):.4f}",
                    f"{np.median(seconds):.2f}",
                ]
            )
    lines.sort(key=lambda line: (line[0], line[1], line[2]))
    print("\nKernel ridge regression (RBF, gamma 10 and 4; alpha 0.5 and 0.1; a fifth held out):")
    print("test error ||f - y|| / ||y||, mean of 3 seeds. Numbers a row: what is kept of each.\n")
    header = ["data", "approximation", "n_components", "numbers a row", "MB", "test error", "fit s"]
    print(table(header, lines))


def growth_with_n(repeats: int) -> None:
    X = rows("covtype")
    X = X[np.random.default_rng(0).permutation(len(X))]
    sizes = (50_000, 100_000, 200_000, 400_000)
    sides = {
        str(n): lambda n=n: factorise(meka(2.0, 450, 80, psd=None), X[:n])  # type: ignore[misc]
        for n in sizes
    }
    times = interleaved(sides, repeats)
    seconds = [times[str(n)].median for n in sizes]
    print("\ncovtype, gamma 2, rank 450, 80 blocks: fit and factors of n rows.\n")
    print(
        table(["rows", "s"], [[f"{n:,}", f"{t:.3f}"] for n, t in zip(sizes, seconds, strict=True)])
    )
    slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"\nThe time grows as n to the power of {slope:.2f}.")


def main(full: bool = False) -> None:
    repeats = 7 if full else 3
    with gramian.config_context(progress=False):
        against_scikit_learn(repeats)
        dropped_links()
        equal_memory()
        ridge()
        growth_with_n(repeats)


if __name__ == "__main__":
    command_line(main, __doc__)

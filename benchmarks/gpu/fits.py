"""Whole fits against a few lines of torch on the same device, in one run."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gramian
from benchmarks._data import rows
from benchmarks.gpu import sketches
from benchmarks.harness import table
from benchmarks.local.data import covtype
from gramian import (
    BLESS,
    MEKA,
    RBF,
    Exact,
    KernelJL,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Local,
    Nystroem,
    OnlineKernelKMeans,
    RPCholesky,
    datasets,
)

BUDGET = "100GB"  # of 141: the exact matrix of MNIST takes 14


@dataclass(frozen=True)
class Job:
    """A fit of gramian, the same in torch where there is a sketch, and the goal in seconds."""

    name: str
    goal: float
    ours: Callable[[], str]
    sketch: Callable[[], str] | None = None


def timed(torch: Any, call: Callable[[], str], repeats: int) -> tuple[float, str]:
    """The least seconds of some calls after one that compiles, and what the last one says."""
    taken, said = [], call()
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        said = call()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken), said


def clusters(torch: Any, n: int, d: int = 32, k: int = 1000) -> Any:
    """Rows around k centres."""
    torch.manual_seed(0)
    centres = torch.randn(k, d, device="cuda")
    labels = torch.randint(k, (n,), device="cuda")
    return centres[labels] + 0.3 * torch.randn(n, d, device="cuda")


def digits(torch: Any) -> tuple[Any, Any, Any, Any]:
    """MNIST on the device: pixels in [0, 1] and labels, to learn from and to test on."""
    data = datasets.load("mnist")
    X = torch.as_tensor(rows("mnist", "float32")).cuda()
    T = torch.as_tensor(data.X_test.reshape(len(data.X_test), -1) / 255.0).float().cuda()
    return X, torch.as_tensor(data.y).cuda(), T, torch.as_tensor(data.y_test).cuda()


def targets(torch: Any, y: Any) -> Any:
    """One column of -1 and 1 per class."""
    return 2.0 * torch.nn.functional.one_hot(y.long()).float() - 1.0


def error(predicted: Any, y: Any) -> str:
    return f"test error {100 * float((predicted != y).float().mean()):.2f} %"


def on_digits(torch: Any, full: bool) -> list[Job]:
    X, y, T, u = digits(torch)
    if not full:
        X, y = X[:10_000], y[:10_000]
    share = len(X) / 60_000
    gamma = 0.02  # a Gaussian of width 5
    Y = targets(torch, y)
    m, more = round(10_000 * share), round(5_000 * share)

    def exact() -> str:
        model = KernelRidge(1e-2, Exact(RBF(gamma)), tol=1e-2, random_state=0).fit(X, Y)
        return f"{error(model.predict(T).argmax(1), u)}, {model.n_iter_} iterations"

    def exact_sketch() -> str:
        scores = sketches.exact_ridge(torch, X, Y, T, gamma, more, 15)
        return error(scores.argmax(1), u)

    def path() -> str:
        kernel = Nystroem(RBF(gamma), m, landmarks="uniform")
        model = KernelRidgeClassifier("loo", kernel, solver="direct", random_state=0).fit(X, y)
        return f"alpha {model.alpha_:.1e}, {error(model.predict(T), u)}"

    def path_sketch() -> str:
        Z = sketches.nystroem(torch, X, m, gamma)
        return (
            f"alpha {sketches.leave_one_out(torch, Z, Y, torch.logspace(-4, 2, 25).tolist()):.1e}"
        )

    def centres() -> str:
        model = KernelRidgeClassifier(
            1e-2, Nystroem(RBF(gamma), more, landmarks="kmeans"), random_state=0
        )
        return error(model.fit(X, y).predict(T), u)

    return [
        Job("exact ridge, MNIST", 1.0, exact, exact_sketch),
        Job(f"ridge, alpha='loo', MNIST, m = {m:,}", 2.5, path, path_sketch),
        Job(f"k-means landmarks, MNIST, m = {more:,}, ridge", 1.0, centres),
    ]


def on_clusters(torch: Any, full: bool) -> list[Job]:
    n = 2_000_000 if full else 200_000
    X = clusters(torch, n)
    gamma = 0.02

    def features(m: int) -> Nystroem:
        return Nystroem(RBF(gamma), m, landmarks="uniform", random_state=0)

    def k_means(k: int) -> Callable[[], str]:
        def call() -> str:
            model = KernelKMeans(k, features(400), n_init=1, random_state=0).fit(X)
            return f"objective {float(model.inertia_):.5g}, {model.n_iter_} passes"

        return call

    def k_means_sketch() -> str:
        Z = sketches.nystroem(torch, X, 400, gamma)
        return f"objective {sketches.k_means(torch, Z, 1000, n // 5, 30):.5g}, 30 passes"

    def pca() -> str:
        model = KernelPCA(20, features(1000)).fit(X)
        return f"largest eigenvalue {float(model.eigenvalues_[0]):.5g}"

    def pca_sketch() -> str:
        Z = sketches.nystroem(torch, X, 1000, gamma)
        return f"variance {float(sketches.principal_components(torch, Z, 20)[:, -1].var()) * n:.5g}"

    def meka() -> str:
        factors = MEKA(RBF(gamma), 400, n_blocks=20, random_state=0).fit(X).factor(X).persist()
        return f"rank {factors.rank}"

    def kernel_jl() -> str:
        KernelJL(RBF(gamma), 100, random_state=0).fit(X).factor(X).persist()
        return ""

    def landmarks(sampler: Any) -> Callable[[], str]:
        def call() -> str:
            model = Nystroem(RBF(gamma), 400, landmarks=sampler, random_state=0).fit(X)
            return f"{len(model.landmarks_)} landmarks"

        return call

    def online() -> str:
        model = OnlineKernelKMeans(kernel=features(400), expected_clusters=20, random_state=0)
        return f"{model.fit(X).n_clusters_} clusters"

    size = f"{n / 1e6:g} million"
    return [
        Job(f"k-means, {size}, m = 400, k = 1,000", 4.0, k_means(1000), k_means_sketch),
        Job(f"k-means, {size}, m = 400, k = 10,000", float("nan"), k_means(10_000)),
        Job(f"kernel PCA, {size}, m = 1,000", 0.15, pca, pca_sketch),
        Job(f"MEKA, {size}, rank 400, 20 blocks", 0.3, meka),
        Job(f"Kernel-JL, {size}", 0.1, kernel_jl),
        Job(f"RPCholesky landmarks, {size}, m = 400", 0.15, landmarks(RPCholesky())),
        Job(f"BLESS landmarks, {size}, m = 400", 0.25, landmarks(BLESS())),
        Job(f"online k-means, {size}", 0.5, online),
    ]


def on_covtype(torch: Any, full: bool) -> list[Job]:
    split = covtype(0, 2)
    X, T = (torch.as_tensor(each).cuda() for each in (split.X, split.X_test))
    y, u = (torch.as_tensor(each).cuda() for each in (split.y, split.y_test))
    classes = torch.unique(y)
    Y = targets(torch, torch.searchsorted(classes, y))
    if not full:
        X, y, Y = X[:50_000], y[:50_000], Y[:50_000]
    blocks = max(round(60 * len(X) / 464_810), 2)

    def local() -> str:
        kernel = Local(RBF(60.0), blocks)
        model = KernelRidgeClassifier(0.03, kernel, random_state=0).fit(X, y)
        return error(model.predict(T), u)

    def local_sketch() -> str:
        scores = sketches.ridge_in_blocks(torch, X, Y, T, blocks, 60.0, 0.03)
        return error(classes[scores.argmax(1)], u)

    points = 20_000
    model = KernelRidgeClassifier(1e-2, Nystroem(Laplacian(2.0), points, landmarks="uniform"))
    some = X[:50_000]
    W = torch.randn(points, 2, device="cuda")

    def laplacian() -> str:
        if not hasattr(model, "classes_"):
            model.set_params(random_state=0).fit(some, y[:50_000])
        return error(model.predict(T), u)

    def laplacian_sketch() -> str:
        sketches.laplacian(torch, T, some[:points], W, 2.0)
        return ""

    return [
        Job("blocks, covtype class 2, fit and predict", 2.0, local, local_sketch),
        Job("Laplacian, predict 116,202 rows, m = 20,000", 0.3, laplacian, laplacian_sketch),
    ]


def line(torch: Any, job: Job, repeats: int) -> list[str]:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    ours, said = timed(torch, job.ours, repeats)
    peak = (torch.cuda.max_memory_allocated() - before) / 1e9
    torch.cuda.empty_cache()
    goal = "" if job.goal != job.goal else f"{job.goal:g}"
    cells = [job.name, f"{ours:.2f}", goal, said, f"{peak:.1f}"]
    if job.sketch is None:
        return [*cells, "", ""]
    theirs, told = timed(torch, job.sketch, repeats)
    return [*cells, f"{theirs:.2f}", told]


def main(torch: Any, full: bool, only: str = "") -> None:
    lines = []
    with gramian.config_context(memory_budget=BUDGET):
        for prepare in (on_digits, on_clusters, on_covtype):
            for job in prepare(torch, full):
                if not re.search(only, job.name):
                    continue
                try:
                    lines.append(line(torch, job, 2))
                except Exception as problem:  # the other lines are still worth their time
                    traceback.print_exc()
                    lines.append([job.name, "", "", f"failed: {problem}"[:60], "", "", ""])
                print(" | ".join(lines[-1]), flush=True)
    print("\nWhole fits with all rows on the device, and the same job in a few lines of torch")
    print("without budget, checks or choices. Seconds: the better of two after one that compiles.")
    print("Peak: of device memory beside the data.\n")
    header = ["fit", "s", "goal", "result", "peak GB", "torch s", "its result"]
    print(table(header, lines))

"""Ways to break gramian on purpose. A verdict that a break does not change proves nothing.

Each experiment lists the breaks that its verdict must notice, and :func:`table` tries them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from gramian import diagnostics, theory
from gramian.analysis.accuracy import ErrorEstimate
from gramian.approximations import local
from gramian.approximations.blocks import base as blockwise
from gramian.approximations.blocks import meka, partition
from gramian.approximations.blocks.partition import Partition
from gramian.approximations.kernel_jl import KernelJL
from gramian.approximations.nystroem import Nystroem
from gramian.approximations.projected import ProjectedKernel
from gramian.backend.typing import Array, DType
from gramian.diagnostics.structure import BlockRanks, PrincipalCosines
from gramian.kernels import RBF
from gramian.learners import KernelKMeans, KernelPCA, KernelRidge, KernelRidgeClassifier
from gramian.learners.kmeans.centres import KernelCentres
from gramian.learners.kmeans.clustering import Clustering
from gramian.matrices.gram import Gram
from gramian.samplers import Diagonal, Landmarks, Sampler, Uniform
from gramian.samplers.base import from_rows
from gramian.theory import sketching

NOISE, SHARE = 0.01, 0.1
Method: TypeAlias = Callable[..., Any]
Change: TypeAlias = tuple[object, str, Callable[[Method], Method]]  # owner, attribute, old to new
Pair: TypeAlias = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Break:
    """A named change of gramian's code.

    Attributes
    ----------
    name : str
    changes : tuple of (owner, attribute, function)
        Each attribute is replaced by what the function returns for its present value.
    """

    name: str
    changes: tuple[Change, ...]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Change the code; restore it at the end."""
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in self.changes]
        try:
            for owner, name, change in self.changes:
                setattr(owner, name, change(vars(owner)[name]))
            yield
        finally:
            for owner, name, value in before:
                setattr(owner, name, value)


def change(name: str, owner: object, attribute: str, function: Callable[[Method], Method]) -> Break:
    return Break(name, ((owner, attribute, function),))


def owner_of(kind: type, attribute: str) -> type:
    """Return the base class that defines an attribute."""
    return next(base for base in kind.__mro__ if attribute in vars(base))


def after(function: Method) -> Callable[[Method], Method]:
    """Return a change that passes each result through a function; it also gets the arguments."""

    def wrap(old: Method) -> Method:
        return lambda *args, **options: function(old(*args, **options), *args)

    return wrap


def times(factor: float) -> Callable[[Method], Method]:
    """Return a change that multiplies each result."""
    return after(lambda result, *_: factor * result)


# Features.


def _noisy(z: np.ndarray, *_: object) -> np.ndarray:
    size = NOISE * np.sqrt(np.mean(np.square(z)))
    seed = int(abs(np.sum(z)) * 1e6) % 2**32
    z += size * np.random.default_rng(seed).standard_normal(z.shape)
    return z


def _larger(z: np.ndarray, *_: object) -> np.ndarray:
    z *= 1.1
    return z


NOISY = change("1 % noise in features", ProjectedKernel, "features", after(_noisy))
LARGER = change("features times 1.1", ProjectedKernel, "features", after(_larger))
FEATURES = NOISY, LARGER

UNDERSTATED = change("errors understated by 10 %", ErrorEstimate, "__float__", times(0.9))

# Landmarks.


def _from_half(old: Method) -> Method:
    def select(
        self: Sampler, gram: Gram, m: int, rng: np.random.Generator, y: object = None
    ) -> Landmarks:
        half = max(m, (gram.shape[0] + 1) // 2)
        return from_rows(gram, np.sort(rng.choice(half, size=min(m, half), replace=False)))

    return select


def _repeated(chosen: Landmarks, self: Sampler, gram: Gram, *_: object) -> Landmarks:
    if chosen.indices is None or len(chosen) < 2:
        return chosen
    return from_rows(gram, np.resize(chosen.indices[: (len(chosen) + 1) // 2], len(chosen)))


def _half_of(chosen: Landmarks, self: Sampler, gram: Gram, *_: object) -> Landmarks:
    return from_rows(gram, np.asarray(chosen.indices)[: (len(chosen) + 1) // 2])


FROM_HALF = change("landmarks from half of the rows", Uniform, "select", _from_half)
REPEATED = change("half of the landmarks repeated", Uniform, "select", after(_repeated))
FEWER = change("half of the landmarks", Uniform, "select", after(_half_of))
LANDMARKS = FROM_HALF, REPEATED, FEWER


def uniform_for(kind: type[Sampler], name: str) -> Break:
    """Uniform landmarks in place of a sampler's."""

    def select(
        self: Sampler, gram: Gram, m: int, rng: np.random.Generator, y: object = None
    ) -> Landmarks:
        return Uniform().select(gram, m, rng)

    return change(f"uniform for {name}", owner_of(kind, "select"), "select", lambda old: select)


def _misscaled(old: Method) -> Method:
    def learn(self: Nystroem, gram: Gram, chosen: Landmarks) -> None:
        if chosen.probabilities is not None:
            wrong = np.linspace(1, 3, len(chosen.probabilities)) * chosen.probabilities
            chosen = replace(chosen, probabilities=wrong)
        return old(self, gram, chosen)

    return learn


def _weights_of_half(weights: np.ndarray, self: Sampler, gram: Gram, *_: object) -> np.ndarray:
    return np.where(np.arange(len(weights)) < len(weights) // 2, weights, 0.0)


DRAWN_FROM_HALF = change(
    "landmarks from half of the rows", Diagonal, "_weights", after(_weights_of_half)
)
MISSCALED = change("wrong probabilities", Nystroem, "_learn", _misscaled)

# Blocks and links.


def _shuffled(labels: np.ndarray, count: int) -> np.ndarray:
    """Random labels for a tenth of the rows."""
    rng, labels = np.random.default_rng(0), np.array(labels)
    some = rng.random(len(labels)) < SHARE
    labels[some] = rng.integers(0, count, some.sum())
    return labels


def _random_blocks(found: Partition, *_: object) -> Partition:
    return Partition(_shuffled(found.labels, len(found.centres)), found.centres)


def _one_step(old: Method) -> Method:
    return lambda sample, starts, steps, tol: old(sample, starts, steps=1)


ONE_PASS = change("blocks after one pass of Lloyd's", partition, "lloyd", _one_step)
RANDOM_BLOCKS = change("random blocks for 10 % of rows", blockwise, "split", after(_random_blocks))
NO_LINKS = change("no links", meka.MEKA, "_link", lambda old: lambda self, gram: _unlinked(self))


def _unlinked(model: meka.MEKA) -> None:
    count = len(model._bases)
    model.links_ = ~np.eye(count, dtype=bool)


def _half_links(S: np.ndarray, *_: object) -> np.ndarray:
    return np.asarray((S + np.diag(S.diagonal())) / 2)


HALF_LINKS = change("links halved", meka, "link_matrix", after(_half_links))
FEWER_LINKS = change(
    "half of the links",
    meka,
    "linked_blocks",
    after(lambda linked, *_: linked & (np.add.outer(*2 * [np.arange(len(linked))]) % 2 == 1)),
)
LINKS = NO_LINKS, HALF_LINKS


def _equal_ranks(old: Method) -> Method:
    return lambda rule, *rest: old("equal", *rest)


EQUAL_RANKS = change("equal ranks for all blocks", blockwise, "choose_ranks", _equal_ranks)

# Kernel-JL.


def _repeated_sketch(old: Method) -> Method:
    def project(self: KernelJL, KR: Array, means: Array, dtype: DType) -> Array:
        KR = np.array(KR)
        half = KR.shape[1] // 2
        KR[:, half : 2 * half] = KR[:, :half]
        return old(self, KR, means, dtype)

    return project


def _doubled_sketch(old: Method) -> Method:
    return lambda self, KR, means, dtype: old(self, 2 * KR, means, dtype)


REPEATED_SKETCH = change("half of the sketch repeated", KernelJL, "_project", _repeated_sketch)
DOUBLED_SKETCH = change("sketch times 2", KernelJL, "_project", _doubled_sketch)

SKETCH = REPEATED_SKETCH, DOUBLED_SKETCH


def _centred(old: Method) -> Method:
    def fit(self: KernelJL, *args: object) -> int:
        self.centred = True
        found = old(self, *args)
        self.centred = False
        return found

    return fit


UNCENTRED = change("centring that was not asked for", KernelJL, "_fit", _centred)

# Learners.


def _random_labels(model: KernelKMeans, *_: object) -> KernelKMeans:
    model.labels_ = _shuffled(model.labels_, model.n_clusters)
    return model


def _once(problem: Clustering, *_: object) -> Clustering:
    return replace(problem, max_iter=1, restarts=1)


def _moved(model: KernelKMeans, *_: object) -> KernelKMeans:
    """Centres a tenth of the way to the next."""
    model._learned = 0.9 * model._learned + 0.1 * np.roll(model._learned, 1, axis=1)
    return model


RANDOM_LABELS = change("random labels for 10 % of rows", KernelKMeans, "fit", after(_random_labels))
ONE_ITERATION = change("one pass of Lloyd's", KernelKMeans, "_pose", after(_once))
MOVED_CENTRES = change("centres moved by a tenth", KernelKMeans, "fit", after(_moved))
LESS_RISK = change("risk times 0.95", KernelCentres, "risk", times(0.95))
SHIFTED = change("predictions plus 1e-6", KernelRidge, "predict", after(lambda f, *_: f + 1e-6))
SCALED_COMPONENTS = change(
    "components times 1.01", KernelPCA, "fit_transform", after(lambda Z, *_: 1.01 * Z)
)
SHIFTED_COMPONENTS = change(
    "components plus 0.001", KernelPCA, "fit_transform", after(lambda Z, *_: Z + 1e-3)
)


def _stray(labels: np.ndarray, *_: object) -> np.ndarray:
    return _shuffled(labels, int(np.max(labels)) + 1)


STRAY_LABELS = change("random labels for 10 % of rows", KernelCentres, "predict", after(_stray))


def _doubled(old: Method) -> Method:
    def fit(self: BaseEstimator, *args: object, **options: object) -> BaseEstimator:
        self.alpha = 2 * self.alpha
        return old(self, *args, **options)

    return fit


DOUBLE_PENALTY = change("twice the penalty", KernelRidge, "fit", _doubled)
DOUBLE_PENALTY_OF_CLASSES = change("twice the penalty", KernelRidgeClassifier, "fit", _doubled)


def _in_first(old: Method) -> Method:
    return lambda centres, rows: lambda x: np.zeros(len(x), dtype=np.int32)


OTHER_BLOCKS = change("predictions of another block", local, "nearest_in", _in_first)
SMALLER_GAMMA = change("gamma times 0.9", owner_of(RBF, "_scale"), "_scale", times(0.9))

# Diagnostics.


def _more_ranks(found: BlockRanks, *_: object) -> BlockRanks:
    return replace(found, numerical=found.numerical + 2)


def _larger_cosines(found: PrincipalCosines, *_: object) -> PrincipalCosines:
    return replace(found, cosines={r: c**0.5 for r, c in found.cosines.items()})


MORE_RANKS = change("ranks plus 2", diagnostics, "block_ranks", after(_more_ranks))
LARGER_COSINES = change(
    "roots of cosines", diagnostics, "principal_cosines", after(_larger_cosines)
)

# Sampled columns.


def _scaled_pair(pair: Pair, *_: object) -> Pair:
    return 1.05 * pair[0], pair[1]


def _turned(pair: Pair, *_: object) -> Pair:
    """One column of H left out."""
    return pair[0][:, :-1], pair[1][:-1]


def _without_sizes(old: Method) -> Method:
    def draw(owner: str, sizes: np.ndarray, *rest: object) -> Pair:
        return old(owner, np.ones_like(sizes), *rest)

    return draw


WRONG_PRODUCT = change("C scaled by 1.05", theory, "approximate_product", after(_scaled_pair))
WRONG_SVD = change("H without a column", theory, "linear_time_svd", after(_turned))
UNIFORM_COLUMNS = change("uniform for columns' norms", sketching, "_draw", _without_sizes)

ALWAYS_PRESERVING = change(
    "every dictionary preserves", theory, "is_preserving", after(lambda *_: True)
)

# Bounds.


def bounds(*names: str) -> tuple[Break, ...]:
    """Functions of ``theory`` whose results are multiplied and divided by 3."""
    return tuple(
        Break(f"{names[0]} {word} 3", tuple((theory, name, times(factor)) for name in names))
        for word, factor in (("times", 3.0), ("divided by", 1 / 3))
    )

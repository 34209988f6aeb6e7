"""Compare fits of BKA and MEKA: numbers of blocks, link thresholds, partitions."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

from sklearn.base import clone

from gramian.analysis.accuracy import ErrorEstimate, relative_error
from gramian.approximations import BKA, MEKA
from gramian.backend.checks import not_negative, positive_integer
from gramian.backend.typing import ArrayLike
from gramian.diagnostics.table import Table
from gramian.estimators.base import generator

__all__ = ["link_thresholds", "partitions", "step_times"]

STEPS = "partition", "basis", "links", "psd"


class StepTimes(NamedTuple):
    """Seconds for each step of a fit; only MEKA has ``links`` and ``psd``."""

    n_blocks: int
    n_components: int
    partition: float
    basis: float
    links: float
    psd: float
    total: float


def step_times(
    approximation: BKA | MEKA,
    X: ArrayLike,
    n_blocks: Sequence[int],
    *,
    rank_per_block: int | None = None,
) -> Table:
    """Time of each step of the fit, for several numbers of blocks (002, figure 9).

    Parameters
    ----------
    approximation : BKA or MEKA
        The approximation to fit; it is not changed.
    X : array-like
    n_blocks : sequence of int
    rank_per_block : int, optional
        If given, the total rank is this times the number of blocks. By default it is always
        ``approximation.n_components``.

    Returns
    -------
    Table of (n_blocks, n_components, partition, basis, links, psd, total)

    See Also
    --------
    link_thresholds : time for several numbers of links.

    References
    ----------
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import MEKA, RBF
    >>> from gramian.diagnostics import step_times
    >>> table = step_times(MEKA(RBF(1.0), 20), load_iris().data, [2, 4], rank_per_block=5)
    >>> [(row.n_blocks, row.n_components) for row in table]
    [(2, 10), (4, 20)]
    """
    first = _template("step_times", approximation)
    if not isinstance(first.partition, str):
        raise ValueError(
            "step_times varies the number of blocks, which a partition given as labels fixes: use "
            "partition='kmeans'."
        )
    table = Table()
    for value in n_blocks:
        count = positive_integer("step_times", "n_blocks", value)
        model = clone(first).set_params(n_blocks=count)
        if rank_per_block is not None:
            each = positive_integer("step_times", "rank_per_block", rank_per_block)
            model.set_params(n_components=each * count)
        total = _seconds_of_fit(model, X)
        steps = {step: model.times_.get(step, 0.0) for step in STEPS}
        table.append(StepTimes(len(model.ranks_), model.n_components_, **steps, total=total))
    return table


class LinkThreshold(NamedTuple):
    """The links, error and time for one link threshold."""

    threshold: float
    links: int
    error: ErrorEstimate
    seconds: float


def link_thresholds(approximation: MEKA, X: ArrayLike, thresholds: Sequence[float]) -> Table:
    """Number of links, error and time of the fit for several thresholds (002, figure 8).

    All fits use the same seed, so only the links differ.

    Parameters
    ----------
    approximation : MEKA
        The approximation to fit; it is not changed. Its own rule for links is ignored.
    X : array-like
    thresholds : sequence of float
        ε: two blocks are not linked if the kernel value of their centres is at most ε.

    Returns
    -------
    Table of (threshold, links, error, seconds)
        ``links`` counts pairs of blocks; ``error`` is an :class:`gramian.ErrorEstimate`.

    See Also
    --------
    partitions : error for several partitions.

    References
    ----------
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import MEKA, RBF
    >>> from gramian.diagnostics import link_thresholds
    >>> approximation = MEKA(RBF(1.0), 20, n_blocks=4, random_state=0)
    >>> table = link_thresholds(approximation, load_iris().data, [0.0, 1.0])
    >>> [row.links for row in table], bool(table[0].error < table[1].error)
    ([6, 0], True)
    """
    first = _template("link_thresholds", approximation)
    if not isinstance(first, MEKA):
        raise TypeError(f"link_thresholds needs a MEKA, because BKA has no links; got {first!r}.")
    first.set_params(link_distance=None, link_fraction=None)
    table = Table()
    for value in thresholds:
        threshold = not_negative("link_thresholds", "thresholds", value)
        model = clone(first).set_params(link_threshold=threshold)
        seconds = _seconds_of_fit(model, X)
        links = int(model.links_.sum()) // 2
        table.append(LinkThreshold(threshold, links, relative_error(model, X), seconds))
    return table


class PartitionError(NamedTuple):
    """The error of an approximation for one partition, and the time for it and in total."""

    approximation: str
    partition: str
    error: ErrorEstimate
    partition_seconds: float
    seconds: float


def partitions(
    approximations: BKA | MEKA | Sequence[BKA | MEKA],
    X: ArrayLike,
    kinds: Sequence[str | ArrayLike] = ("kmeans", "spectral", "random"),
) -> Table:
    """Error of approximations for several partitions of the rows (002, figure 5).

    Parameters
    ----------
    approximations : BKA or MEKA, or a list of them
        The approximations to fit; they are not changed.
    X : array-like
    kinds : sequence, default=("kmeans", "spectral", "random")
        Values of the parameter ``partition`` of BKA and MEKA: names, or the label of each row.

    Returns
    -------
    Table of (approximation, partition, error, partition_seconds, seconds)

    See Also
    --------
    link_thresholds : error for several numbers of links.

    References
    ----------
    - Si, Hsieh and Dhillon, Memory efficient kernel approximation, ICML 2014 (002).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import BKA, RBF
    >>> from gramian.diagnostics import partitions
    >>> approximation = BKA(RBF(1.0), 30, n_blocks=3, random_state=0)
    >>> found = partitions(approximation, load_iris().data)
    >>> errors = {row.partition: float(row.error) for row in found}
    >>> errors["kmeans"] < 0.5 * errors["random"]
    True
    """
    several = approximations if isinstance(approximations, Sequence) else [approximations]
    table = Table()
    for first in [_template("partitions", each) for each in several]:
        for kind in kinds:
            model = clone(first).set_params(partition=kind)
            seconds = _seconds_of_fit(model, X)
            name = kind if isinstance(kind, str) else "given"
            shown = type(model).__name__, name, relative_error(model, X)
            table.append(PartitionError(*shown, model.times_["partition"], seconds))
    return table


def _template(owner: str, approximation: object) -> BKA | MEKA:
    """Return an unfitted copy with a fixed seed."""
    if not isinstance(approximation, BKA | MEKA):
        raise TypeError(f"{owner} needs a BKA or a MEKA; got {approximation!r:.100}.")
    first = clone(approximation)
    if first.random_state is None:
        first.set_params(random_state=int(generator(None).integers(2**31)))
    return first


def _seconds_of_fit(model: BKA | MEKA, X: ArrayLike) -> float:
    start = perf_counter()
    model.fit(X)
    return perf_counter() - start

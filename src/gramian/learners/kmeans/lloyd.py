"""Lloyd's iterations: on the exact kernel matrix, and on factors of it.

Several restarts advance together, so that they share each pass over the matrix or the features. A
single one looks again only at rows that could have changed their cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.progress import progress
from gramian.matrices.factors import Factors, norms_in
from gramian.matrices.gram import Gram


@dataclass(eq=False)
class Run:
    """One restart.

    ``learned`` is what a new row's kernel values (exact) or features are multiplied with to give
    its products with the centres, ``norms`` the centres' squared norms. On the exact matrix,
    ``members`` are the weights of each cluster's rows, and ``sums`` K times these. On factors,
    ``centres`` are those that the labels refer to, ``sums`` and ``masses`` those of each cluster's
    rows of Z, and ``means`` the centres of the next pass.
    """

    labels: Array
    means: Array = None
    centres: Array = None
    learned: Array = None
    norms: Array = None
    sums: Array = None
    members: Array = None
    masses: Array = None  # of each cluster's rows
    trace: float = 0.0  # of the weighted rows: rounding in the objective is relative to it
    history: list[float] = field(default_factory=list)
    done: bool = False

    @property
    def inertia(self) -> float:
        return self.history[-1]

    def objective(self) -> float:
        """The squared distances of the rows to their centres, summed up, from the sums alone."""
        xp = array_ops.namespace(self.sums)
        products = xp.sum(self.sums * xp.matrix_transpose(self.learned))
        return self.trace + float(xp.sum(self.masses * self.norms) - 2.0 * products)

    def record(self, inertia: float, unchanged: bool, tol: float) -> None:
        """Note the objective; done when no label changed or it hardly fell."""
        self.history.append(max(inertia, 0.0))
        if len(self.history) > 1:
            before, now = self.history[-2:]
            unchanged = unchanged or (tol > 0 and before - now <= tol * before)
        self.done = unchanged


def best_of(runs: list[Run]) -> Run:
    """The run of the least objective; of several that differ by rounding alone, the first."""
    least = min(run.inertia for run in runs)
    return next(run for run in runs if run.inertia <= least + 1e-10 * run.trace)


def on_matrix(
    gram: Gram, weights: Array, first: list[Array], k: int, *, max_iter: int, tol: float
) -> list[Run]:
    """From first labels; a centre is the mean of its rows' images, known by their weights."""
    xp = gram.rows.xp
    diagonal = array_ops.astype(gram.diag(), xp.float64)
    trace = float(xp.sum(weights * diagonal))
    runs = [Run(labels, trace=trace) for labels in first]
    with progress("kernel k-means", max_iter) as step:
        for _ in range(max_iter):
            going = [run for run in runs if not run.done]
            if not going:
                break
            members = [_members(run.labels, weights, k) for run in going]
            _add_up(gram, going, members)
            M = xp.concat(members, axis=1)
            mass = xp.sum(M, axis=0)
            V = M / xp.where(mass > 0, mass, xp.ones_like(mass))
            KV = xp.concat([run.sums for run in going], axis=1)
            KV = KV / xp.where(mass > 0, mass, xp.ones_like(mass))
            norms = xp.sum(V * KV, axis=0)
            norms = xp.where(mass == 0, xp.full_like(norms, xp.inf), norms)
            for i, run in enumerate(going):
                own = slice(i * k, (i + 1) * k)
                squared = norms[own] - 2.0 * KV[:, own]
                nearest = xp.min(squared, axis=1)
                labels = xp.argmin(squared, axis=1)
                unchanged = bool(xp.all(labels == run.labels))
                run.learned, run.norms = V[:, own], norms[own]
                run.labels, refilled = _refill(labels, nearest + diagonal, diagonal, weights, k)
                inertia = float(xp.sum(weights * nearest)) + trace
                run.record(inertia, unchanged and not refilled, 0.0 if refilled else tol)
            step()
    for run in runs:
        run.masses = array_ops.mass_by_label(run.labels, weights, k)
    return runs


def _members(labels: Array, weights: Array, k: int) -> Array:
    """The n × k matrix whose columns have the weights of each cluster's rows."""
    xp = array_ops.namespace(weights)
    numbers = array_ops.like(np.arange(k), weights)
    return array_ops.astype(labels[:, None] == numbers, xp.float64) * weights[:, None]


def _add_up(gram: Gram, runs: list[Run], members: list[Array]) -> None:
    """Bring the runs' ``sums``, K times their ``members``, up to date.

    Of a matrix that is kept, the columns of the rows that moved say how they change.
    """
    xp, k = gram.rows.xp, members[0].shape[1]
    if runs[0].sums is not None and gram.is_kept:
        change = xp.concat(
            [now - run.members for run, now in zip(runs, members, strict=True)], axis=1
        )
        moved = np.flatnonzero(array_ops.to_numpy(xp.any(change != 0, axis=1)))
        if 4 * len(moved) < change.shape[0]:
            gain = gram.matmul_of(moved, array_ops.take_rows(change, moved))
            for i, run in enumerate(runs):
                run.sums = run.sums + gain[:, i * k : (i + 1) * k]
                run.members = members[i]
            return
    sums = array_ops.astype(gram.matmul(xp.concat(members, axis=1)), xp.float64)
    for i, run in enumerate(runs):
        run.sums, run.members = sums[:, i * k : (i + 1) * k], members[i]


def _refill(
    labels: Array, squared: Array, diagonal: Array, weights: Array, k: int
) -> tuple[Array, bool]:
    """Give each empty cluster the row that is farthest from its centre, if there is any.

    This never raises the objective. The second value tells whether a row was moved.
    """
    host = array_ops.to_numpy(labels)
    counted = array_ops.to_numpy(weights) > 0
    sizes = np.bincount(host[counted], minlength=k)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return labels, False
    far = array_ops.to_numpy(squared)
    # Below this a distance is rounding: the row coincides with its centre.
    noise = 1e3 * array_ops.eps(diagonal.dtype) * float(np.max(array_ops.to_numpy(diagonal)))
    host, moved = host.copy(), False
    for row in np.argsort(-far):
        if not len(empty) or far[row] <= noise:
            break
        if counted[row] and sizes[host[row]] > 1:
            sizes[host[row]] -= 1
            host[row], empty = empty[0], empty[1:]
            moved = True
    return array_ops.like(host, labels), moved


def on_factors(
    factors: Factors,
    weights: Array,
    first: list[Array],
    sample: Factors,
    *,
    max_iter: int,
    tol: float,
) -> list[Run]:
    """From first centres in the space of the features; one pass over these per iteration.

    Centres are means of rows of Z, and distances those of the metric S: ||z - c||² is
    zᵀSz - 2 zᵀSc + cᵀSc. ``sample`` are some rows, of which an empty cluster takes the farthest.
    """
    weights = factors.arrange(weights)  # labels too are in the order of the parts, until the end
    runs = [Run(no_labels(weights), means=centres) for centres in first]
    single = len(runs) == 1 and first[0].shape[0] > 1
    doubt = Doubt(factors) if single and Doubt.is_possible(factors) else None
    begun = False
    with progress("kernel k-means", max_iter) as step:
        for _ in range(max_iter):
            going = [run for run in runs if not run.done]
            if not going:
                break
            changes, inertia, _ = assign(factors, weights, going, not begun, doubt)
            if not begun:  # the first pass tells the trace
                trace = inertia - runs[0].objective()
                for run in runs:
                    run.trace = trace
                begun = True
            for run, changed in zip(going, changes, strict=True):
                means = centre_of(run.sums, run.masses)
                run.means, refilled = fill_empty(means, run.masses, run.centres, sample)
                unchanged = changed == 0 and not refilled
                if doubt is not None:
                    doubt.move(run)
                run.record(run.objective(), unchanged, 0.0 if refilled else tol)
            step()
    for run in runs:
        run.labels = factors.restore(run.labels)
    return runs


def one_pass(factors: Factors, weights: Array, centres: Array) -> Run:
    """The rows at their nearest centres: labels, sums, masses and the objective."""
    weights = factors.arrange(weights)
    run = Run(no_labels(weights), means=centres)
    _, inertia, _ = assign(factors, weights, [run], measured=True)
    run.labels = factors.restore(run.labels)
    run.history = [max(inertia, 0.0)]
    return run


def no_labels(weights: Array) -> Array:
    """Labels of rows that are in no cluster yet."""
    xp = array_ops.namespace(weights)
    return xp.full_like(weights, -1, dtype=xp.int64)


class Doubt:
    """Which rows could have another nearest centre than before, in the order of the parts.

    Of each row a margin is known: by how much farther than its own centre the next one is, less the
    way that the centres have gone since it was looked at (Hamerly, 2010). While that is positive,
    the row's cluster is certain without its features.
    """

    def __init__(self, factors: Factors) -> None:
        self.margins = array_ops.astype(factors.parts.place.constant(0.0), np.float32)
        self.way: np.ndarray | None = None  # what lazy margins are still to shrink by

    @staticmethod
    def is_possible(factors: Factors) -> bool:
        """Whether distances obey the triangle inequality, and rows can be picked out."""
        return factors.core is None and not array_ops.is_foreign(factors.parts.example())

    def rows(self) -> np.ndarray | None:
        """The places of the rows in doubt; None where these are too many to be picked out.

        Where other processes hold the rows, each picks out its own.
        """
        return None if array_ops.is_lazy(self.margins) else doubtful(self.margins)

    def move(self, run: Run) -> None:
        """The centres go on to the means: margins shrink by the way of the own and of any other."""
        way = np.sqrt(np.sum((run.means - run.centres) ** 2, axis=1))
        farthest, second = np.argsort(-way)[:2].tolist()
        other = np.full(len(way), way[farthest])
        other[farthest] = way[second]
        way = (way + other).astype(np.float32)
        if array_ops.is_lazy(self.margins):
            self.way = way
        else:
            self.margins -= way[run.labels]

    @staticmethod
    def margin(products: np.ndarray, new: np.ndarray, own: np.ndarray) -> np.ndarray:
        """The margins of some rows from ||c||² - 2zᵀc, which is overwritten, and ||z||²."""
        places = np.arange(len(new))
        nearest = products[places, new]
        products[places, new] = np.inf
        beyond = products.min(axis=1) - nearest
        # Rounding is relative to the squared norms.
        beyond -= 32 * array_ops.eps(products.dtype) * (own + np.abs(nearest))
        near = np.sqrt(np.maximum(own + nearest, 0.0))
        return beyond / (near + np.sqrt(np.maximum(own + nearest + beyond, 0.0)) + 1e-30)


def doubtful(margins: np.ndarray) -> np.ndarray | None:
    """The places of margins that are used up; None where they are too many to be picked out."""
    used = margins <= 0
    return np.flatnonzero(used) if 2 * np.count_nonzero(used) < len(used) else None


class Pass(NamedTuple):
    """What one pass over the rows tells beside labels, sums and masses."""

    changed: list[int]  # rows with another label, for each of the runs
    inertia: float  # of the first run, where it was measured
    squared: Array | None  # distances of its rows to the nearest centre, where these were kept


def assign(
    factors: Factors,
    weights: Array,
    runs: list[Run],
    measured: bool = False,
    doubt: Doubt | None = None,
    squared: Array | None = None,
) -> Pass:
    """One pass: each row to the nearest of the ``means``, for each of the runs.

    The sums of the clusters follow from those before by the rows that changed alone, in late passes
    a few. They are exact: added up in float64, whatever the features are in. With ``measured``, the
    squared distances to the nearest centre of the first run are added up too, and written into
    ``squared`` where that is given; like weights and labels it is in the order of the parts. With
    ``doubt``, for a single run, only rows in doubt are looked at.
    """
    k, labels = runs[0].means.shape[0], [run.labels for run in runs]
    measured = measured or squared is not None
    kept = [] if squared is None else [squared]
    if doubt is not None:
        kept.append(doubt.margins)
    rows = None if doubt is None or measured else doubt.rows()
    how: Any = {"measured": measured, "doubt": doubt}
    if doubt is None or rows is None:
        told, state = _pass(factors, weights, runs, [*labels, *kept], **how)
        for run, own in zip(runs, state, strict=False):
            run.labels = own
        if doubt is not None:
            doubt.margins, doubt.way = state[-1], None
    else:
        some = [labels[0][rows], doubt.margins[rows]]
        chosen = Factors(factors.parts.choose(rows), factors.core)
        told, some = _pass(chosen, weights[rows], runs, some, **how)
        labels[0][rows], doubt.margins[rows] = some
        runs[0].masses = array_ops.mass_by_label(labels[0], weights, k)
    changed = [int(told[i]) for i in range(len(runs))]
    return Pass(changed, float(told[-1]), None if squared is None else state[len(runs)])


def _pass(
    factors: Factors,
    weights: Array,
    runs: list[Run],
    state: list[Array],
    *,
    measured: bool,
    doubt: Doubt | None,
) -> tuple[Array, list[Array]]:
    """A pass over all rows of the factors, and the state afterwards: labels, an array for each run,
    then squared distances where they are kept, at last margins where there is doubt.

    Returned are the numbers of rows that changed and, where ``measured``, the first run's inertia.
    """
    xp, dtype, k = factors.xp, factors.dtype, runs[0].means.shape[0]
    count = len(runs)
    C = xp.matrix_transpose(xp.concat([run.means for run in runs], axis=0))
    learned = factors.core_matmul(C)
    norms = xp.sum(C * learned, axis=0)
    right, offset = array_ops.astype(-2.0 * learned, dtype), array_ops.astype(norms, dtype)

    single = count == 1 and len(state) == 1 and not measured
    margins = doubt is not None
    way = None if doubt is None else doubt.way

    def prepare(columns: slice) -> Callable[..., tuple[Array, ...]]:
        mine, own = array_ops.contiguous(right[columns, :]), norms_in(factors, columns)

        def block(z: Array, w: Array, *state: Array) -> tuple[Array, ...]:
            if single and _fused_pass_serves(z, k):
                gain, masses, moved = _fused_pass(z, mine, offset, w, state[0])
                moved = array_ops.astype(moved, xp.float64)
                return gain, masses, xp.concat((moved, xp.zeros_like(moved)))
            z = array_ops.astype(z, dtype)
            products = array_ops.matmul(z, mine)
            products += offset
            gains, masses_of, told = [], [], []
            for i, old in enumerate(state[:count]):
                new = xp.argmin(products[:, i * k : (i + 1) * k], axis=1)
                gain, moved = _moved(z, w, old, new, k)
                gains.append(gain)
                masses_of.append(array_ops.mass_by_label(new, w, k))
                told.append(float(moved))
            inertia = 0.0
            outputs = state[count:]
            if measured or outputs:
                lengths = own(z)
            if measured:
                nearest = xp.min(products[:, :k], axis=1)
                distances = lengths + array_ops.astype(nearest, xp.float64)
                inertia = float(xp.sum(w * distances))
                for out in outputs[: len(outputs) - margins]:
                    out[...] = distances
            if margins:
                outputs[-1][...] = Doubt.margin(products, old, lengths)
            changes = array_ops.like(np.asarray([*told, inertia]), masses_of[0])
            return xp.concat(gains, axis=0), xp.concat(masses_of, axis=0), changes

        def sparing(z: Array, w: Array, labels: Array, left: Array) -> tuple[Array, ...]:
            """The same, of rows in doubt alone: the process that holds the rows picks them out."""
            assert way is not None
            left -= way[labels]
            rows = doubtful(left)
            if rows is None:
                return block(z, w, labels, left)
            some = [labels[rows], left[rows]]
            gain, _, changes = block(z[rows], w[rows], *some)
            labels[rows], left[rows] = some
            return gain, array_ops.mass_by_label(labels, w, k), changes

        return block if way is None else sparing

    fused = single and _fused_pass_serves(factors.parts.example(), k)
    by_part, state = factors.sum(
        prepare,
        weights,
        state=state,
        row_bytes=2 * k * count * array_ops.itemsize(dtype),
        result_bytes=8 * k * count * factors.rank,
        label="Lloyd",
        stored=fused,
    )
    sums, masses, told = zip(*by_part, strict=True)
    sums, masses = xp.concat(sums, axis=1), sum(masses)
    for i, run in enumerate(runs):
        own = slice(i * k, (i + 1) * k)
        run.centres, run.learned, run.norms = run.means, learned[:, own], norms[own]
        run.sums = sums[own, :] if run.sums is None else run.sums + sums[own, :]
        run.masses = masses[own]
    return sum(told), state


def _fused_pass_serves(z: Array, k: int) -> bool:
    if not array_ops.runs_triton(z) or array_ops.float_dtype(z) != array_ops.namespace(z).float32:
        return False
    from gramian.backend import triton_programs  # imports torch and triton

    return k <= triton_programs.MOST_CENTRES


def _fused_pass(
    z: Array, right: Array, offset: Array, weights: Array, labels: Array
) -> tuple[Array, ...]:
    from gramian.backend.triton_programs import lloyd_pass

    return lloyd_pass(z, right, offset, weights, labels)


def _moved(z: Array, w: Array, old: Array, new: Array, k: int) -> tuple[Array, int]:
    """What the sums gain by the rows that moved, and how many these are; new labels become old."""
    moved = array_ops.namespace(new).nonzero(new != old)[0]
    gain = _gain(z, w, old, new, moved, k)
    old[...] = new
    return gain, int(moved.shape[0])


def _gain(z: Array, w: Array, old: Array, new: Array, moved: Array, k: int) -> Array:
    """What the sums of the clusters gain by the rows that moved, of shape (k, columns)."""
    if moved.shape[0] == 0:
        return array_ops.like(np.zeros((k, z.shape[1])), z)
    if moved.shape[0] < z.shape[0]:
        z, w, old, new = (array_ops.take_rows(a, moved) for a in (z, w, old, new))
    # In the first pass no row comes from anywhere.
    return array_ops.sum_by_label(z, new, w, k, None if int(old[0]) < 0 else old)


def centre_of(sums: Array, masses: Array) -> Array:
    """The mean of each cluster; of an empty one, 0."""
    xp = array_ops.namespace(sums)
    return sums / xp.where(masses > 0, masses, xp.ones_like(masses))[:, None]


def fill_empty(means: Array, masses: Array, before: Array, sample: Factors) -> tuple[Array, bool]:
    """The means; where a cluster is empty, the sampled row farthest from all centres.

    The second value tells whether there was one. Where all rows coincide with centres, an empty
    cluster's stays as it was before.
    """
    masses = array_ops.to_numpy(masses)
    empty = np.flatnonzero(masses == 0)
    if not len(empty):
        return means, False
    xp = array_ops.namespace(means)
    means, refilled = array_ops.copy(means), False
    kept = [means[int(j), :] for j in np.flatnonzero(masses > 0)]
    diagonal = sample.diagonal()
    noise = 1e3 * array_ops.eps(sample.dtype) * float(xp.max(diagonal))
    for j in empty:
        filled = xp.matrix_transpose(xp.stack(kept))
        learned = sample.core_matmul(filled)
        squared = xp.sum(filled * learned, axis=0) - 2.0 * sample.features_matmul(learned)
        nearest = xp.min(squared, axis=1) + diagonal
        far = int(xp.argmax(nearest))
        if float(nearest[far]) <= noise:
            means[int(j), :] = before[int(j), :]
            continue
        point = sample.coordinates(np.asarray([far]))[0, :]
        means[int(j), :] = point
        kept.append(point)
        refilled = True
    return means, refilled

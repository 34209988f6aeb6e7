"""Run experiments: measure what is not stored yet, then compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from difflib import get_close_matches
from time import perf_counter, process_time

from gramian.approximations.base import warnings_as_notes
from gramian.backend.checks import positive_integer
from gramian.backend.progress import progress
from gramian.backend.threads import one_blas_thread
from gramian.backend.typing import PathLike
from gramian.experiments.base import Experiment, Settings, Unit
from gramian.experiments.catalogue import EXPERIMENTS
from gramian.experiments.machines import machine
from gramian.experiments.outcomes import Outcome, Reproduction
from gramian.experiments.pieces import measure_in_pieces
from gramian.experiments.results import Results
from gramian.experiments.store import Measured, Store


def find(names: Iterable[str] = ("all",)) -> list[Experiment]:
    """Find experiments: ``"all"``, a paper (``"003"``), or one of them (``"003/figure-1"``).

    Examples
    --------
    >>> from gramian.experiments import find
    >>> [each.name for each in find(["001"])]
    ['001/ridge', '001/k-means', '001/pca']
    """
    chosen: set[str] = set()
    for name in [names] if isinstance(names, str) else names:
        found = [
            each.name
            for each in EXPERIMENTS
            if name in ("all", each.name) or each.name.startswith(f"{name}/")
        ]
        if not found:
            every = [each.name for each in EXPERIMENTS]
            papers = sorted({one.partition("/")[0] for one in every})
            near = get_close_matches(name, every, n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(
                f"There is no experiment {name!r}.{hint} Use all, a paper ({', '.join(papers)}), "
                "or a name from gramian reproduce list."
            )
        chosen.update(found)
    return [each for each in EXPERIMENTS if each.name in chosen]


def reproduce(
    names: Iterable[str] = ("all",),
    *,
    quick: bool = False,
    rows: int | None = None,
    cache: PathLike | None = None,
    processes: int = 1,
    callback: Callable[[Outcome], None] | None = None,
) -> Reproduction:
    """Measure what the papers show, and compare it with what they say.

    Parameters
    ----------
    names : iterable of str, default=("all",)
        See :func:`find`.
    quick : bool, default=False
        Use data that ships with scikit-learn, which takes about three minutes on two cores.
        Otherwise use the papers' data sets, from the folder in the environment variable
        ``GRAMIAN_DATA``; an experiment whose data is missing is not run, and says so.
    rows : int, optional
        Number of deformed digits for 003/figure-2 and 003/rank-restricted; 100,000 by default.
    cache : path, optional
        Folder for measured units; by default ``gramian/experiments`` in the user's cache folder.
    processes : int, default=1
        Processes that measure at once, each on its own share of the cores and of the memory budget.
        A script that uses several must begin its work below ``if __name__ == "__main__":``.
    callback : callable, optional
        Called with each :class:`Outcome` as soon as it is known.

    Examples
    --------
    >>> import tempfile
    >>> from gramian.experiments import reproduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(["001/ridge"], quick=True, cache=folder)
    >>> found.outcomes[0].reproduced
    True
    """
    if rows is not None:
        rows = positive_integer("reproduce", "rows", rows)
    processes = positive_integer("reproduce", "processes", processes)
    settings, store = Settings(quick, rows), Store(cache)
    experiments, outcomes = find(names), []
    if processes > 1:
        measure_in_pieces(experiments, settings, store, processes)
    for experiment in experiments:
        outcomes.append(outcome(experiment, settings, store))
        if callback is not None:
            callback(outcomes[-1])
    return Reproduction(settings, outcomes)


def outcome(experiment: Experiment, settings: Settings, store: Store) -> Outcome:
    """Run one experiment: reuse stored units, measure and store the others."""
    units = experiment.units(settings)
    said = experiment.name, experiment.title, experiment.claim, experiment.note, _in_short(units)
    found: list[Measured] = []
    try:
        # Most matrices are small: with all cores, BLAS would mostly wait for itself.
        with progress(experiment.name, len(units)) as step, one_blas_thread():
            for unit in units:
                found.append(measured(experiment, unit, store))
                step()
    except OSError as error:  # a data set is not available
        return Outcome(*said, word="not run", verdict="", reason=str(error))
    results = Results({**u, **each.numbers} for u, each in zip(units, found, strict=True))
    return Outcome(
        *said,
        *experiment.verdict(results),
        replicates=len(results.replicates(experiment.per_run)),
        results=results,
        figures=list(experiment.figures(results)),
        seconds=sum(each.seconds for each in found),
        cpu_seconds=sum(each.cpu_seconds for each in found),
        machines=list(dict.fromkeys(each.machine for each in found)),
        measured=max(each.day for each in found),
        notes=list(dict.fromkeys(note for each in found for note in each.notes)),
    )


def measured(experiment: Experiment, unit: Unit, store: Store) -> Measured:
    """Return a stored unit, or measure and store it."""
    found = store.get(experiment, unit)
    if found is None:
        found = _measure(experiment, unit)
        store.put(experiment, unit, found)
    return found


def _measure(experiment: Experiment, unit: Unit) -> Measured:
    notes: list[str] = []
    start, cpu_start = perf_counter(), process_time()
    with warnings_as_notes(notes):
        numbers = experiment.measure(**unit)
    seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_start
    return Measured(numbers, seconds, cpu_seconds, str(date.today()), machine(), notes)


def _in_short(units: list[Unit]) -> dict[str, object]:
    """Summarise the settings of all units; for seeds and the like, only their number."""
    short: dict[str, object] = {}
    for name in dict.fromkeys(name for unit in units for name in unit):
        values = list(dict.fromkeys(_hashable(unit[name]) for unit in units if name in unit))
        if name == "seed":
            short["runs"] = len(values)
        else:
            short[name] = values[0] if len(values) == 1 else values
    return short


def _hashable(value: object) -> object:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value

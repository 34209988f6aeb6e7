"""Break methods on purpose, and see which verdicts notice it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

from gramian.approximations.base import warnings_as_notes
from gramian.backend.config import config_context
from gramian.backend.threads import one_blas_thread
from gramian.backend.wording import counted
from gramian.experiments.audits import STANDARDS, Standard, agreement
from gramian.experiments.base import Check, Experiment, Unit
from gramian.experiments.breaks import Break
from gramian.experiments.results import Results
from gramian.experiments.run import find


class Trial(NamedTuple):
    """A break, and the check of an experiment that noticed it.

    ``noticed`` is the sentence of the first check that holds without the break and fails with it;
    None if there is none. Comparisons of times do not count.
    """

    experiment: str
    broken: str
    noticed: str | None


@contextmanager
def alone() -> Iterator[None]:
    """Measure with one thread, and keep warnings quiet."""
    with warnings_as_notes([]), one_blas_thread(), config_context(n_threads=1):
        yield


def measured(experiment: Experiment, unit: Unit) -> Results:
    """Measure one unit, without the store."""
    return Results([{**unit, **experiment.measure(**unit)}])


def first_failure(whole: list[Check], broken: list[Check]) -> str | None:
    """Return the sentence of the first check that held before and fails now."""
    if len(whole) != len(broken):
        return f"{len(broken)} checks instead of {len(whole)}."
    for before, now in zip(whole, broken, strict=True):
        if before.is_passed and not now.holds and not before.is_time:
            return now.text
    return None


def of_each_run(results: Results) -> list[Check]:
    """Return the audits that fail if they fail in one run, whatever the others find."""
    names = [name for name, standard in STANDARDS.items() if type(standard) is Standard]
    return agreement(Results({name: unit.get(name) for name in names} for unit in results))


def at_first_glance(experiment: Experiment, unit: Unit, before: Results) -> str | None:
    """Measure the first run of a unit, and return the sentence of an audit that fails on it.

    That run is the same among more of them, so an audit of each run fails on all of them, too.
    """
    if unit.get("runs", 1) == 1 or not all(check.holds for check in of_each_run(before)):
        return None
    try:
        found = of_each_run(measured(experiment, {**unit, "runs": 1}))
    except (ArithmeticError, ValueError, IndexError):  # perhaps one run is too few
        return None
    return next((check.text for check in found if not check.holds), None)


def noticed(experiment: Experiment, units: list[Unit], whole: Results) -> str | None:
    """Measure anew, and return the sentence of the first check that fails only now.

    An audit that fails on one unit fails on all of them: then the others need not be measured.
    """
    found = Results()
    for unit, numbers in zip(units, whole, strict=True):
        before = Results([numbers])
        if failure := at_first_glance(experiment, unit, before):
            return failure
        found += (now := measured(experiment, unit))
        if failure := first_failure(agreement(before), agreement(now)):
            return failure
    return first_failure(experiment.verdict(whole).checks, experiment.verdict(found).checks)


def attempt(experiment: Experiment, units: list[Unit], whole: Results, one: Break) -> Trial:
    """Try one break on an experiment; a fit that raises an error is noticed, too."""
    with one.applied(), alone():
        try:
            found = noticed(experiment, units, whole)
        except (ArithmeticError, ValueError, IndexError) as error:
            found = f"{type(error).__name__}: {error}"
    return Trial(experiment.name, one.name, found)


def table(
    names: Iterable[str] = ("all",), callback: Callable[[Trial], None] | None = None
) -> list[Trial]:
    """Try every break that the experiments list, on data that ships with scikit-learn.

    Parameters
    ----------
    names : iterable of str, default=("all",)
        See :func:`gramian.experiments.find`.
    callback : callable, optional
        Called with each :class:`Trial` as soon as it is known.
    """
    found = []
    for experiment in find(names):
        units = experiment.trial()
        with alone():
            whole = Results(chain.from_iterable(measured(experiment, unit) for unit in units))
        for one in experiment.breaks:
            found.append(attempt(experiment, units, whole, one))
            if callback is not None:
                callback(found[-1])
    return found


def markdown(trials: list[Trial]) -> str:
    """Return the table as a page, in Markdown."""
    missed = sum(each.noticed is None for each in trials)
    lines = [
        "# Methods broken on purpose",
        "",
        "A verdict that a broken method does not change proves nothing. So each experiment of "
        "[the papers](reproduction.md) lists ways to break what it measures, and its verdict must "
        "notice every one of them. `gramian reproduce --breaks --summary breaks.md` breaks the "
        "methods, on small data, and writes this page. *Noticed by* is the first check that holds "
        "without the break and fails with it.",
        "",
        f"{counted(len(trials), 'break')} tried; {missed} went unnoticed.",
        "",
        "| experiment | break | noticed by |",
        "| --- | --- | --- |",
    ]
    for each in trials:
        said = each.noticed or "**nothing**"
        cells = (each.experiment, each.broken, said.replace("|", "\\|").replace("<", "&lt;"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"

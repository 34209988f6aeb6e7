"""Run jobs: their data in files, their contenders in processes, their goals judged."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from benchmarks.harness import circumstances
from benchmarks.peers import limits
from benchmarks.peers.data import Scale
from benchmarks.peers.job import Data, Job
from benchmarks.peers.judge import compared, disagreement, judge
from benchmarks.peers.noise import Watch
from benchmarks.peers.play import Patience, attempt, play
from benchmarks.peers.record import Entry, JobRecord, RunRecord
from benchmarks.peers.worker import Worker, load, save

FULL = Patience()
QUICK = Patience(least=1, enough=2, most=2, seconds=5.0)


def run(jobs: Sequence[Job], scale: Scale, keep: Callable[[RunRecord], None]) -> RunRecord:
    """All these jobs, one after the other. What happens is told on stderr.

    ``keep`` is given the record after each job, so that nothing is lost where a run ends early.
    """
    start = time.perf_counter()
    packages = {each.package for job in jobs for each in job.contenders} | {"numba"}
    versions = {package: _version(package) for package in sorted(packages)}
    record = RunRecord(scale.name, circumstances(), versions, limits.rates(), [])
    with tempfile.TemporaryDirectory() as folder:
        shelf = _Shelf(Path(folder), jobs)
        for number, job in enumerate(jobs, 1):
            _say(f"[{number}/{len(jobs)}] {job.name}")
            try:
                with shelf.lent(job.data) as files:
                    record.jobs.append(run_job(job, scale, files))
            except OSError as error:  # a data set that is not there, a disk that is full
                record.jobs.append(_not_run(job, f"not run, {error}"))
            _say(f"    {_summary(record.jobs[-1])}")
            record.seconds = time.perf_counter() - start
            keep(record)
    record.rates = limits.best(record.rates, limits.rates())
    keep(record)
    return record


def run_job(job: Job, scale: Scale, files: Path) -> JobRecord:
    """One job; the processes of its contenders end with it. Only at full size goals are judged."""
    record = _not_run(job)
    found = job.find(load(files)) if job.find else {}
    watch = Watch()
    with ExitStack() as stack:
        workers = {}
        for contender, entry in zip(job.contenders, record.entries, strict=True):
            if contender.is_installed:
                worker = Worker(scale.name, job.name, contender.name, files, found)
                workers[contender.name] = stack.enter_context(worker)
            else:
                entry.problem = "not installed"
        for name, worker in workers.items():
            attempt(record.entry(name), worker.wait)

        def decided() -> bool:
            return all(judge(goal, record, None).is_clear for goal in job.goals)

        play(record, workers, FULL if scale.name == "full" else QUICK, decided)
    record.others = watch.others()
    if scale.name == "full":
        record.verdicts = [judge(goal, record, job.quality) for goal in job.goals]
    record.disagreement = disagreement(record, job.quality)
    return record


def _not_run(job: Job, problem: str = "") -> JobRecord:
    """The record of a job before it is run, or of one that cannot be."""
    quality = job.quality.name if job.quality else ""
    entries = [Entry(each.name, problem) for each in job.contenders]
    return JobRecord(job.name, quality, entries)


class _Shelf:
    """Files of data, each made when a job first needs it and removed after the last."""

    def __init__(self, folder: Path, jobs: Sequence[Job]) -> None:
        self._folder = folder
        self._wanted = Counter(job.data.key for job in jobs)

    @contextmanager
    def lent(self, data: Data) -> Iterator[Path]:
        files = self._folder / data.key.replace(" ", "-")
        if not files.exists():
            save(files, data.make())
        yield files
        self._wanted[data.key] -= 1
        if not self._wanted[data.key]:
            shutil.rmtree(files)


def _version(package: str) -> str:
    try:
        return version(packages_distributions().get(package, [package])[0])
    except PackageNotFoundError:
        return "not installed"


def _summary(record: JobRecord) -> str:
    ours, *others = record.entries
    if ours.problem:
        return ours.problem
    told = [f"{ours.median:.3g} s, {len(ours.seconds)} rounds"]
    for entry in others:
        ratio = compared(ours.seconds, entry.seconds)[0] if not entry.problem else None
        told.append(f"{entry.contender} {entry.problem or f'{ratio:.2f}'}")
    told += [f"{verdict.goal} {verdict.verdict}" for verdict in record.verdicts]
    told += [f"others took {record.others:.0%} of the cores"] if record.others else []
    return "; ".join(told)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)

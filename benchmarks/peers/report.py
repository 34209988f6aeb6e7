"""A run as text: who took how long, what was asked for, and how far the machine's limits are."""

from __future__ import annotations

from textwrap import fill

from benchmarks.harness import table
from benchmarks.peers import limits
from benchmarks.peers.job import OURS
from benchmarks.peers.judge import compared
from benchmarks.peers.record import Entry, JobRecord, RunRecord, Verdict


def report(run: RunRecord) -> str:
    parts = [_introduction(run), _main_table(run)]
    if run.scale == "full":
        parts.append(_tally(run))
    wrong = [f"{job.name}: {job.disagreement}" for job in run.jobs if job.disagreement]
    if wrong:
        parts.append("Results that do not pass:\n\n" + "\n".join(f"- {each}" for each in wrong))
    return "\n\n".join([*parts, _limits(run)])


def _introduction(run: RunRecord) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in run.contenders.items())
    text = [
        "All contenders of a job run in turns, each in a process of its own, with all cores, as "
        "their libraries come. Seconds: medians (quartiles). Ratio: a peer's seconds over "
        "gramian's or, beside a variant of gramian, the first peer's over the variant's; in "
        "brackets where 90 % of resampled ratios lie. Peak memory: growth of resident memory in MB "
        "by the first call, the result included, which is not timed. Processes keep memory that "
        "they free, since a virtual machine may need seconds to get a gigabyte back from its host. "
        "A question mark: the interval includes the goal.",
        f"Contenders: {versions}.",
        f"The run took {run.seconds / 60:.0f} minutes.{_noise(run)}",
    ]
    if run.scale != "full":
        text.append(
            "A QUICK RUN: a tenth of the rows that the names of the jobs say, few repeats. It "
            "shows that everything works; goals are not judged by it."
        )
    return "\n\n".join(fill(each, 100, break_on_hyphens=False) for each in text)


def _noise(run: RunRecord) -> str:
    shares = {job.name: job.others for job in run.jobs if job.others is not None}
    if not shares:
        return ""
    worst = max(shares, key=lambda name: shares[name])
    middle = sorted(shares.values())[len(shares) // 2]
    return (
        f" Other processes took {middle:.0%} of the cores during a typical job, and at most "
        f"{shares[worst]:.0%} ({worst})."
    )


def _main_table(run: RunRecord) -> str:
    header = ["job", "contender", "seconds", "ratio", "goal", "verdict", "peak MB", "quality"]
    lines = [
        [job.name if entry is job.entries[0] else "", entry.contender, *_cells(job, entry)]
        for job in run.jobs
        for entry in job.entries
    ]
    return table(header, lines)


def _cells(job: JobRecord, entry: Entry) -> list[str]:
    if entry.problem:
        return [entry.problem, "", "", "", "", ""]
    low, high = entry.quartiles
    verdicts = [each for each in job.verdicts if _row_of(each) == entry.contender]
    memory = "" if entry.memory is None else f"{entry.memory / 1e6:,.0f}"
    if entry.size is not None:
        memory += f" (keeps {entry.size / 1e6:,.1f})"
    return [
        f"{_digits(entry.median)} ({_digits(low)}-{_digits(high)})",
        _ratio(job, entry),
        ", ".join(each.goal for each in verdicts),
        ", ".join(_outcome(each) for each in verdicts),
        memory,
        "" if entry.quality is None else f"{job.quality} {entry.quality:.4g}",
    ]


def _row_of(verdict: Verdict) -> str:
    """Goals of gramian itself stand beside the peer, those of its variants beside these."""
    return verdict.against if verdict.by == OURS else verdict.by


def _outcome(verdict: Verdict) -> str:
    if verdict.reached is None or verdict.of == "seconds":
        return verdict.verdict
    unit = " s" if verdict.of == "added seconds" else ""
    return f"{verdict.verdict} ({verdict.reached:.3g}{unit})"


def _ratio(job: JobRecord, entry: Entry) -> str:
    """Of a peer against gramian; of a variant of gramian, the first peer against it."""
    ours, theirs = job.entries[0], entry
    if entry is ours:
        return ""
    if entry.contender.startswith(OURS):
        peer = _first_peer(job)
        if peer is None:
            return ""
        ours, theirs = entry, peer
    if ours.problem:
        return ""
    ratio, low, high = compared(ours.seconds, theirs.seconds)
    return f"{ratio:.2f} [{low:.2f}, {high:.2f}]"


def _first_peer(job: JobRecord) -> Entry | None:
    """The first contender that is no variant of gramian, if there is one."""
    peers = (e for e in job.entries if not e.contender.startswith(OURS) and not e.problem)
    return next(peers, None)


def _tally(run: RunRecord) -> str:
    said = [verdict.verdict for job in run.jobs for verdict in job.verdicts]
    counts = {word: said.count(word) for word in ("met", "met?", "missed?", "missed")}
    other = len(said) - sum(counts.values())
    told = [f"{count} {word}" for word, count in counts.items() if count]
    told += [f"{other} not decided"] if other else []
    return f"Goals: {', '.join(told)}."


def _limits(run: RunRecord) -> str:
    rates = run.rates
    text = (
        f"What the machine can do, all cores at work: {rates['GEMM float32'] / 1e9:.0f} GFLOP/s "
        f"in float32 and {rates['GEMM float64'] / 1e9:.0f} in float64 (matrix products of 3,000 "
        f"rows and columns), {rates['copy'] / 1e9:.1f} GB/s (copies, bytes read and written), "
        f"{rates['exp float32'] / 1e9:.2f} and {rates['exp float64'] / 1e9:.2f} billion "
        "exponentials a second in float32 and float64 (NumPy, in cache). Limit: the longer of a "
        "job's products and exponentials at these rates, one after the other, and its bytes; then, "
        "in the same way, what passes over its features take. "
        "Possible: the ratio to the first peer that a job at its limit would have; no code can "
        "reach a goal above it on this machine."
    )
    lines = []
    for job in run.jobs:
        entry = job.entries[0]
        if entry.work is None or entry.problem:
            continue
        limit, by = limits.least(entry.work, rates)
        peer = _first_peer(job)
        lines.append(
            [
                job.name,
                f"{(entry.work.flops + entry.work.pass_flops) / 1e9:,.1f}",
                f"{(entry.work.bytes + entry.work.pass_bytes) / 1e9:.2f}",
                by,
                _digits(limit),
                _digits(entry.median),
                f"{100 * limit / entry.median:.0f} %",
                "" if peer is None else f"{peer.median / limit:.1f}",
            ]
        )
    header = ["job", "GFLOP", "GB", "limited by", "limit s", "gramian s", "reached", "possible"]
    return fill(text, 100, break_on_hyphens=False) + "\n\n" + table(header, lines)


def _digits(seconds: float) -> str:
    """Three digits, never in powers of ten."""
    decimals = sum(seconds < bound for bound in (10, 1, 0.1)) + 1
    return f"{seconds:.{decimals}f}"

"""The benchmarks: that jobs are what they say, and that what is measured is judged rightly."""

import itertools
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the benchmarks are no installed package

from benchmarks import coverage  # noqa: E402
from benchmarks.__main__ import write_section  # noqa: E402
from benchmarks.harness import measure_here, table, write_whole  # noqa: E402
from benchmarks.peers import run as runner  # noqa: E402
from benchmarks.peers.catalogue import jobs  # noqa: E402
from benchmarks.peers.data import SCALES  # noqa: E402
from benchmarks.peers.job import OURS, Contender, Data, Goal, Quality, Work  # noqa: E402
from benchmarks.peers.judge import compared, disagreement, judge  # noqa: E402
from benchmarks.peers.limits import least  # noqa: E402
from benchmarks.peers.noise import Watch  # noqa: E402
from benchmarks.peers.play import Patience, play  # noqa: E402
from benchmarks.peers.record import Entry, JobRecord, RunRecord  # noqa: E402
from benchmarks.peers.report import report  # noqa: E402
from benchmarks.peers.worker import ContenderFailedError, Outcome, Seat, load, save  # noqa: E402

TINY = SCALES["tiny"]
JOBS = {job.name: job for job in jobs(TINY)}
# On 200 rows chance decides more than the method; blocks of five rows do not suit MEKA.
SLACK = {"MEKA, covtype, rank 450, 80 blocks, float32": 3.0}


# The jobs.


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_jobs_have_names_of_their_own_and_goals_that_name_their_contenders(scale):
    found = jobs(scale)
    assert len({job.name for job in found}) == len(found) > 10
    for job in found:
        names = [contender.name for contender in job.contenders]
        assert names[0] == OURS and len(set(names)) == len(names)
        for goal in job.goals:
            assert {goal.by, goal.against} <= set(names), job.name
        assert not any(goal.of == "size" for goal in job.goals) or job.has_size


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in JOBS if name != "start-up"])
def test_contenders_of_a_job_solve_the_same_problem(name):
    job = JOBS[name]
    inputs = job.data.make()
    inputs |= job.find(inputs) if job.find else {}
    reached = {}
    for contender in job.contenders:
        # KeOps would compile its formula, which takes a while and a compiler.
        if not contender.is_installed or contender.package == "pykeops":
            continue
        with warnings.catch_warnings():
            if contender.package != OURS:
                warnings.simplefilter("ignore")  # of other packages
            seat = Seat(job, contender.name, inputs)
            outcomes = [seat.first(0), *(seat.again(seed, True) for seed in (1, 2))]
        first = outcomes[0]
        assert first.seconds > 0 and first.memory >= 0
        assert (first.size is not None) == job.has_size
        assert (first.work is not None) == (contender.name == OURS)
        if contender.is_limit:
            assert first.quality is None
            continue
        reached[contender.name] = float(np.mean([each.quality for each in outcomes]))
        assert job.quality.meets_limit(reached[contender.name])
    if job.quality.limit is None:
        for other in reached.values():
            assert job.quality.no_worse(reached[OURS], other, SLACK.get(name, 0.1)), reached
            if name.startswith("Nyström, "):  # with the same landmarks
                assert reached[OURS] == pytest.approx(other, rel=1e-3)


def test_a_result_of_another_problem_does_not_pass():
    job = JOBS["RBF block 100,000 by 500, d = 16, float32"]
    inputs = job.data.make()
    quality = job.quality.prepare(inputs)
    right = Seat(job, "scikit-learn", inputs)._call(0)
    assert job.quality.meets_limit(quality(right))
    wrong = Seat(job, "scikit-learn", inputs | {"gamma": 1.01 * inputs["gamma"]})._call(0)
    assert not job.quality.meets_limit(quality(wrong))


def test_inputs_come_back_from_their_files(tmp_path):
    inputs = {"X": np.eye(3, dtype=np.float32), "gamma": 0.5, "fewer": 7}
    save(tmp_path / "data", inputs)
    found = load(tmp_path / "data")
    assert found.keys() == inputs.keys()
    assert found["X"].dtype == np.float32 and (found["X"] == inputs["X"]).all()
    assert (found["gamma"], found["fewer"]) == (0.5, 7)


# Contenders in turns.


class Scripted:
    """A contender that takes the seconds it is told to, and keeps who was called when."""

    def __init__(self, name, log, seconds, fails_at=None):
        self.name, self.log, self.fails_at = name, log, fails_at
        self.seconds = itertools.cycle(seconds)

    def first(self, seed):
        self.log.append((self.name, "first", seed))
        return Outcome(next(self.seconds), memory=5, quality=1.0, work=Work(1.0, 1.0, "float32"))

    def again(self, seed, judge):
        self.log.append((self.name, seed, judge))
        if seed == self.fails_at:
            raise ContenderFailedError("MemoryError: too large")
        return Outcome(next(self.seconds), quality=0.5 if judge else None)


def scripted(names="ab", seconds=(1.0,), **options):
    log = []
    record = JobRecord("job", "error", [Entry(name) for name in names])
    return record, {name: Scripted(name, log, seconds, **options) for name in names}, log


def test_contenders_take_turns_and_nobody_always_comes_second():
    record, players, log = scripted()
    play(record, players, Patience(3, 3, 3), lambda: True, pause=0)
    assert log[:2] == [("a", "first", 0), ("b", "first", 0)]
    assert log[2:] == [
        ("a", 1, True), ("b", 1, True), ("b", 2, True), ("a", 2, True), ("a", 3, False),
        ("b", 3, False),
    ]  # fmt: skip
    entry = record.entry("a")
    assert entry.seconds == [1.0] * 3 and entry.memory == 5
    assert entry.qualities == [1.0, 0.5, 0.5]


def test_rounds_go_on_until_the_goals_are_decided():
    for decides_at in (2, 7, 100):
        record, players, _ = scripted()

        def decided(record=record, decides_at=decides_at):
            return len(record.entries[0].seconds) >= decides_at

        play(record, players, Patience(3, 5, 9), decided, pause=0)
        assert len(record.entries[1].seconds) == min(max(decides_at, 5), 9)


def test_no_more_than_the_least_rounds_where_time_is_over():
    record, players, _ = scripted()
    play(record, players, Patience(3, 5, 9, seconds=-1.0), lambda: False, pause=0)
    assert len(record.entries[0].seconds) == 3


def test_first_calls_do_not_count_however_long_they_take():
    record, players, log = scripted(seconds=(100.0, 1.0, 1.0, 1.0))
    play(record, players, Patience(3, 3, 3), lambda: True, pause=0)
    assert record.entries[0].seconds == [1.0] * 3
    assert [call[1] for call in log if call[0] == "a"] == ["first", 1, 2, 3]


def test_who_fails_is_left_out_and_the_others_go_on():
    record, players, log = scripted("abc")
    players["b"].fails_at = 2
    play(record, players, Patience(4, 4, 4), lambda: True, pause=0)
    assert record.entry("b").problem == "failed, MemoryError: too large"
    assert len(record.entry("a").seconds) == len(record.entry("c").seconds) == 4
    assert [call[1] for call in log if call[0] == "b"] == ["first", 1, 2]


# Judging.


def test_a_ratio_of_medians_and_its_interval():
    ratio, low, high = compared([1.0, 2.0, 3.0], [4.0, 8.0, 9.0])
    assert ratio == 4.0 and low <= ratio <= high and (low, high) == (3.0, 4.0)
    assert compared([2.0] * 5, [5.0] * 5).tolist() == [2.5] * 3
    difference, low, high = compared([1.5, 1.6, 1.4], [1.0, 1.1, 1.2], difference=True)
    assert difference == pytest.approx(0.4) and low < difference < high


def test_a_round_that_was_slow_for_both_does_not_widen_the_interval():
    ours, slow = np.array([1.0, 3.0, 1.0, 2.0, 5.0]), 2.0
    assert np.ptp(compared(list(ours), list(slow * ours))) == 0


def record_of(ours, theirs, memory=(None, None), qualities=((), ())):
    entries = [
        Entry(name, seconds=seconds, memory=size, qualities=list(values))
        for name, seconds, size, values in zip(
            (OURS, "peer"), (ours, theirs), memory, qualities, strict=True
        )
    ]
    return JobRecord("job", "error", entries)


ERROR = Quality("error", lambda inputs: float, slack=0.1)


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        ([3.0, 3.1, 3.2], "met"),
        ([1.0, 1.1, 1.2], "missed"),
        ([1.5, 2.1, 3.0], "met?"),
        ([1.5, 1.9, 3.0], "missed?"),
    ],
)
def test_verdicts_say_whether_the_interval_decides(theirs, verdict):
    found = judge(Goal("peer", 2.0), record_of([1.0] * 3, theirs), None)
    assert found.verdict == verdict and found.is_clear == (not verdict.endswith("?"))
    assert found.low <= found.reached <= found.high


def test_goals_of_memory_and_of_added_seconds():
    record = record_of([1.5] * 3, [1.3] * 3, memory=(100, 250))
    assert judge(Goal("peer", 2.0, of="memory"), record, None).verdict == "met"
    assert judge(Goal("peer", 4.0, of="memory"), record, None).verdict == "missed"
    assert judge(Goal("peer", 0.3, of="added seconds"), record, None).verdict == "met"
    assert judge(Goal("peer", 0.1, of="added seconds"), record, None).verdict == "missed"


def test_no_goal_is_met_by_a_worse_result():
    goal = Goal("peer", 2.0)
    for ours, verdict in ((1.05, "met"), (1.2, "worse error")):
        record = record_of([1.0] * 3, [3.0] * 3, qualities=([ours], [1.0]))
        assert judge(goal, record, ERROR).verdict == verdict
    record = record_of([1.0] * 3, [3.0] * 3, qualities=([1.05], [1.0]))
    assert judge(replace(goal, slack=0.0), record, ERROR).verdict == "worse error"
    accuracy = Quality("accuracy", lambda inputs: float, more_is_better=True, slack=0.1)
    record = record_of([1.0] * 3, [3.0] * 3, qualities=([0.8], [0.95]))
    assert judge(goal, record, accuracy).verdict == "worse accuracy"


def test_what_keeps_to_no_limit_is_named():
    quality = Quality("difference", lambda inputs: float, limit=1e-4)
    record = record_of([1.0], [1.0], qualities=([1e-6], [1e-3]))
    assert disagreement(record, quality) == "peer: difference 1.00e-03 beyond 0.0001"
    assert disagreement(record, None) == ""


def test_a_peer_that_is_not_there_decides_nothing():
    record = record_of([1.0] * 3, [])
    record.entry("peer").problem = "not installed"
    assert judge(Goal("peer", 2.0), record, ERROR).verdict == "peer: not installed"


# Whole runs.


def a_run(scale="full"):
    seconds = [1.0, 1.1, 1.2], [3.0, 3.1, 3.2]
    first = record_of(*seconds, memory=(10**6, 10**7), qualities=([0.1, 0.2], [0.15]))
    first.entries[0].work = Work(5e9, 1e9, "float32", values=2e8)
    first.verdicts = [judge(Goal("peer", 2.0), first, ERROR)]
    first.verdicts.append(judge(Goal("peer", 20.0, of="memory"), first, ERROR))
    second = record_of([1.0], [])
    second.entries[1].problem = "not installed"
    rates = {"GEMM float32": 1e10, "GEMM float64": 5e9, "copy": 1e10}
    rates |= {"exp float32": 1e9, "exp float64": 5e8}
    first.others = 0.25
    return RunRecord(scale, "today; a machine", {"peer": "1.0"}, rates, [first, second], 60.0)


def test_a_run_comes_back_from_json(tmp_path):
    run = a_run()
    run.save(tmp_path / "new" / "run.json")
    found = RunRecord.load(tmp_path / "new" / "run.json")
    assert found == run and report(found) == report(run)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run.json"]


def test_the_report_tells_ratios_verdicts_and_limits():
    lines = report(a_run()).splitlines()
    (peer,) = (line for line in lines if line.startswith("|") and "3.10 (3.05-3.15)" in line)
    cells = [cell.strip() for cell in peer.strip("|").split("|")]
    assert cells[3].startswith("2.82 [") and cells[4] == "≥ 2, ≥ 20 memory"
    assert cells[5:] == ["met, missed (10)", "10", "error 0.15"]
    assert any("not installed" in line for line in lines)
    assert "Goals: 1 met, 1 missed." in lines
    limit = next(line for line in lines if "64 %" in line)
    assert "operations" in limit and "0.700" in limit and limit.rstrip(" |").endswith("4.4")


def test_a_limit_is_of_arithmetic_or_of_memory_and_then_of_passes():
    rates = a_run().rates
    assert least(Work(5e9, 1e9, "float64", values=1e9), rates) == (1.0 + 2.0, "operations")
    assert least(Work(1e9, 2e10, "float32"), rates) == (2.0, "bytes")
    passes = {"pass_flops": 1e10, "pass_bytes": 5e10}
    assert least(Work(2e10, 1e10, "float32", **passes), rates) == (2.0 + 5.0, "bytes")


def test_a_quick_run_says_so_and_judges_nothing():
    run = a_run("quick")
    run.jobs = [replace(job, verdicts=[]) for job in run.jobs]
    text = report(run)
    assert "QUICK RUN" in text and "Goals:" not in text


@pytest.mark.slow
def test_a_job_runs_in_processes_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "QUICK", Patience(2, 2, 2))
    job = JOBS["RBF block 100,000 by 500, d = 4, float32"]
    missing = Contender("a peer", lambda inputs: None, "no_such_package")
    job = replace(job, contenders=(job.contenders[0], missing))
    save(tmp_path / "data", job.data.make())
    record = runner.run_job(job, TINY, tmp_path / "data")
    ours, nobody = record.entries
    assert len(ours.seconds) == 2 and len(ours.qualities) == 3 and not ours.problem
    assert ours.work.flops == 2 * 200 * 40 * 6 and ours.memory >= 0
    assert nobody.problem == "not installed" and not record.disagreement
    assert 0.0 <= record.others <= 1.0


@pytest.mark.slow
def test_a_job_without_its_data_is_told_and_the_run_goes_on(tmp_path, monkeypatch):
    rates = a_run().rates
    monkeypatch.setattr(runner.limits, "rates", lambda: rates)

    def missing():
        raise FileNotFoundError("no such data set")

    job = next(iter(JOBS.values()))
    kept = []
    found = runner.run([replace(job, data=Data("none", missing))], TINY, kept.append)
    assert kept == [found, found] and found.rates == rates
    assert {entry.problem for entry in found.jobs[0].entries} == {"not run, no such data set"}
    assert "not run, no such data set" in report(found)


@pytest.mark.slow
def test_a_contender_that_fails_is_told_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "QUICK", Patience(1, 1, 1))
    job = JOBS["kernel product 100,000 by 1,000, d = 54, float32"]
    job = replace(job, contenders=job.contenders[:1])
    save(tmp_path / "data", job.data.make() | {"Y": np.zeros((3, 2), dtype=np.float32)})
    record = runner.run_job(job, TINY, tmp_path / "data")
    assert record.entries[0].problem.startswith("failed, ValueError: ")


# What all benchmarks share.


def test_growth_sees_what_a_call_held():
    def call():
        held = np.ones(90_000_000 // 8)  # too large for malloc to serve from what was freed before
        return str(held[-1])

    growth = measure_here(call)
    assert growth.remark == "1.0" and 85e6 < growth.largest < 200e6


def test_columns_of_words_are_left_aligned():
    lines = table(["job", "s"], [["one", "1.5"], ["", "10.5"]]).splitlines()
    assert lines == ["| job |    s |", "| --- | ---: |", "| one |  1.5 |", "|     | 10.5 |"]


def test_a_section_of_the_results_is_replaced(tmp_path):
    path = tmp_path / "RESULTS.md"
    for name, text in (("a", "one"), ("b", "two"), ("a", "three")):
        write_section(path, name, text)
    assert path.read_text() == "# Benchmark results\n\n## a\n\nthree\n\n## b\n\ntwo\n"


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "file"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \ud800")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_the_share_of_others_is_a_share():
    watch = Watch()
    sum(range(10**6))
    assert watch.others() is None or 0.0 <= watch.others() <= 1.0


def test_the_coverage_table_goes_between_the_marks_of_its_page(tmp_path):
    page = tmp_path / "errors.md"
    page.write_text(f"before\n\n{coverage.BEGIN}\n\nold\n\n{coverage.END}\n\nafter\n")
    coverage.write_between_marks(page, "| new |")
    assert page.read_text() == (
        f"before\n\n{coverage.BEGIN}\n\n| new |\n\n{coverage.END}\n\nafter\n"
    )
    page.write_text("no marks")
    with pytest.raises(ValueError, match="must have the lines"):
        coverage.main(["--page", str(page)])

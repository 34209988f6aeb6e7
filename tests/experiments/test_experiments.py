"""The papers' experiments: the mechanism, each of them on a small scale, and verdicts that turn."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

import gramian
from gramian.analysis.report.colours import looks
from gramian.analysis.report.reproduction import page
from gramian.command import main
from gramian.command.errors import UsageError
from gramian.command.reproduce import check_device
from gramian.experiments import (
    EXPERIMENTS,
    Outcome,
    Reproduction,
    Settings,
    find,
    pieces,
    reproduce,
)
from gramian.experiments.base import Check, Experiment, crossed
from gramian.experiments.breaks import Break, after, change
from gramian.experiments.catalogue import FULL_SIZE
from gramian.experiments.measuring import mutual_information
from gramian.experiments.pieces import BLAS
from gramian.experiments.results import Results, costs, interval, ratios, slope
from gramian.experiments.run import outcome
from gramian.experiments.store import Store, code
from gramian.experiments.trials import alone, attempt, first_failure, measured

QUICK = Settings(quick=True)
ASTRAY = {"rows astray": [1.0]}


@pytest.fixture
def small(monkeypatch):
    """The units on which breaks are tried."""
    for experiment in EXPERIMENTS:
        units = experiment.trial()
        monkeypatch.setattr(type(experiment), "units", lambda self, settings, units=units: units)


class Squares(Experiment):
    name = "test/squares"
    title = "<Squares>"
    claim = "They grow."

    measured = 0

    def units(self, settings):
        return crossed(x=[1, 2, 3], seed=range(2))

    def measure(self, *, x, seed):
        type(self).measured += 1
        if x == 3 and type(self).interrupted:
            raise KeyboardInterrupt
        return {"y": x**2 + seed}

    interrupted = False

    def checks(self, results):
        power = slope(results.medians("y", "x"))
        return [Check(power > 1, f"The power is {power:.1f}."), Check(True, "Yes.")]

    def figures(self, results):
        return []


@pytest.fixture
def squares(monkeypatch):
    monkeypatch.setattr(Squares, "measured", 0)
    return Squares()


def test_units_are_measured_once(squares, tmp_path):
    store = Store(tmp_path)
    first = outcome(squares, QUICK, store)
    again = outcome(squares, QUICK, store)
    assert Squares.measured == 6
    assert first.results == again.results and first.reproduced
    assert first.verdict == "The power is 1.7. Yes."
    assert first.notes == []
    assert first.settings == {"x": [1, 2, 3], "runs": 2}


def test_an_interruption_loses_nothing(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(Squares, "interrupted", True)
    with pytest.raises(KeyboardInterrupt):
        outcome(squares, QUICK, Store(tmp_path))
    monkeypatch.setattr(Squares, "interrupted", False)
    assert Squares.measured == 5
    outcome(squares, QUICK, Store(tmp_path))
    assert Squares.measured == 7


@pytest.mark.slow
def test_a_signal_loses_nothing(tmp_path, monkeypatch, capsys):
    """A real signal to a real process, in the middle of its measurements."""
    monkeypatch.chdir(tmp_path)
    arguments = ["reproduce", "000/figure-2", "--quick", "--cache", "cache", "--quiet"]
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    with subprocess.Popen(
        [sys.executable, "-m", "gramian", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
        preexec_fn=lambda: os.nice(5),  # on a busy machine too, it must not finish unwatched
    ) as process:
        while process.poll() is None and len(list(tmp_path.rglob("*.json"))) < 3:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err == "gramian reproduce: interrupted\n"
    assert os.listdir() == ["cache"]
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    assert 3 <= len(kept) < 12 and all(json.loads(path.read_text()) for path in kept)
    assert main(arguments) == 0
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 12
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # none measured again


@pytest.mark.parametrize("content", ["", "{", "[]", '{"numbers": 3}', '{"unit": {}}'])
def test_a_damaged_file_is_measured_again(squares, tmp_path, content):
    outcome(squares, QUICK, Store(tmp_path))
    next(tmp_path.rglob("*.json")).write_text(content)
    outcome(squares, QUICK, Store(tmp_path))
    assert Squares.measured == 7


def test_other_code_measures_again(squares, tmp_path, monkeypatch):
    outcome(squares, QUICK, Store(tmp_path))
    monkeypatch.setattr("gramian.experiments.store._library", lambda: "another version")
    outcome(squares, QUICK, Store(tmp_path))
    assert Squares.measured == 12


def test_the_code_of_an_experiment_is_what_measures(monkeypatch):
    from gramian.experiments import store

    before = {each.name: code(each) for each in find("001")}
    assert len(set(before.values())) == 1  # one module
    source = store.inspect.getsource

    def changed(old, new):
        store._measuring.cache_clear()
        monkeypatch.setattr(store.inspect, "getsource", lambda m: source(m).replace(old, new))
        found = code(find("001/ridge")[0])
        monkeypatch.setattr(store.inspect, "getsource", source)
        store._measuring.cache_clear()
        return found

    assert changed("It agrees with the formula", "It is the formula's") == before["001/ridge"]
    assert changed("Kernel ridge regression", "Ridge") == before["001/ridge"]
    assert changed("np.sin(x) + noise", "np.sin(x) - noise") != before["001/ridge"]


def test_numbers_are_read_off():
    results = Results([{"m": 1, "e": [1.0, 3.0]}, {"m": 2, "e": 5.0}, {"m": 2, "e": None}])
    assert results.medians("e", "m") == {1: 2.0, 2: 5.0}
    assert results.curve("m", "e", m=1)[0].y == 2.0
    with pytest.raises(KeyError, match="No 'f' was measured"):
        results.values("f", m=1)
    mean, half = interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2.0 and half == pytest.approx(2.484, abs=1e-3)  # t = 4.303 over √3
    assert slope({x: 3 * x**-0.5 for x in (1, 10, 100)}) == pytest.approx(-0.5)


def test_curves_are_compared_where_both_are():
    a = [(x, 3 * x**-0.5) for x in (1.0, 7.0, 100.0)]
    b = [(x, x**-0.5) for x in (20.0, 1000.0)]
    assert ratios(a, b) == pytest.approx([3.0] * 5)
    assert ratios(a, [(200.0, 1.0), (300.0, 1.0)]) == []
    # A method that errs more for more time is judged by what it could do in less.
    assert costs([(3.0, 0.2), (1.0, 0.5), (2.0, 0.6)]) == [(0.5, 1.0), (0.2, 3.0)]
    points = Results([{"t": [1.0, 9.0, 2.0], "e": 0.5}, {"t": 4.0, "e": [0.1, 0.3]}])
    assert points.points("t", "e") == [(2.0, 0.5), (4.0, 0.2)]
    assert points.over("t", "e")[1] == (4.0, 0.2, pytest.approx(0.12), pytest.approx(0.28))


def test_experiments_are_found():
    names = [each.name for each in EXPERIMENTS]
    assert len(set(names)) == len(names)
    assert {f"000/figure-{i}" for i in range(1, 10)} <= set(names)
    assert {name.partition("/")[0] for name in names} == {f"00{i}" for i in range(6)}
    assert [each.name for each in find(["003", "003/figure-1"])] == [
        n for n in names if n[:3] == "003"
    ]
    with pytest.raises(ValueError, match=r"no experiment '003/figure-9'. Did you mean"):
        find(["003/figure-9"])
    with pytest.raises(ValueError, match="rows of reproduce"):
        reproduce(["001"], rows=0)
    assert all(each.claim.endswith(".") and len(each.claim) < 250 for each in EXPERIMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_every_experiment_is_shown_and_notices_its_breaks(experiment, small, tmp_path):
    """On a small scale: numbers, a verdict from them, and figures; then the table of breaks."""
    with alone():
        found = reproduce([experiment.name], quick=True, cache=tmp_path)
    is_shown(found, tmp_path / "report.html")
    (whole,) = found.outcomes
    units = experiment.units(QUICK)
    tried = [attempt(experiment, units, whole.results, one) for one in experiment.breaks]
    assert [each for each in tried if each.noticed is None] == []


def is_shown(found, path):
    """A page, JSON and a summary, with all that was measured."""
    text = found.report(path).read_text(encoding="utf-8")
    for each in found.outcomes:
        assert each.reproduced is not None, each.reason
        assert re.search(r"\d", each.verdict) and "nan" not in each.verdict
        assert each.figures and each.name in text
        for drawn in each.figures:  # no two of a picture look alike
            assert len(set(looks(drawn.names).values())) == len(drawn.names), drawn.names
    names = [each.name for each in found.outcomes]
    numbers = json.loads(path.with_suffix(".json").read_text())
    assert [each["name"] for each in numbers["experiments"]] == names
    assert all(each["results"] for each in numbers["experiments"])
    assert all(check["text"] for each in numbers["experiments"] for check in each["checks"])
    assert all(each["measured"] >= "2026" for each in numbers["experiments"])
    lines = found.summary().splitlines()
    rows = [line for line in lines if re.match(r"\| 00\d/", line)]
    assert len(rows) == len(names) and all(line.count(" | ") == 5 for line in rows)
    differing = [each.name for each in found.outcomes if not each.reproduced]
    assert [name for name in differing if f"**{name}.**" in found.summary()] == differing


@pytest.mark.slow
def test_several_experiments_on_one_page(small, tmp_path):
    found = reproduce(["005", "001"], quick=True, cache=tmp_path)
    assert [each.name for each in found.outcomes] == [e.name for e in find(["001", "005"])]
    is_shown(found, tmp_path / "report.html")


@pytest.mark.slow
def test_several_processes_find_the_same(tmp_path):
    names = ["001/ridge", "001/pca"]
    before = {name: os.environ.get(name) for name in BLAS}
    parallel = reproduce(names, quick=True, cache=tmp_path / "pieces", processes=2)
    assert {name: os.environ.get(name) for name in BLAS} == before
    whole = reproduce(names, quick=True, cache=tmp_path / "whole")
    for one, other in zip(parallel.outcomes, whole.outcomes, strict=True):
        assert one.word == other.word == "reproduced"
        assert one.machines and one.cpu_seconds > 0
    folders = tmp_path / "pieces", tmp_path / "whole"
    stored = [sorted(each.name for each in folder.rglob("*.json")) for folder in folders]
    assert stored[0] == stored[1]


def test_shares_of_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 8, 9}, raising=False)
    assert pieces._shares(3, 2) == [[0, 1], [2, 3], [8, 9]]
    assert pieces._shares(8, 1) == [[0], [1], [2], [3], [8], [9], [0], [1]]


# Verdicts turn where a method is broken.


class Coins(Experiment):
    name = "test/coins"
    title = "Coins"
    claim = "They are fair."
    per_run = ("heads",)
    breaks = (change("always heads", math, "floor", lambda old: lambda x: 1),)

    def units(self, settings):
        return crossed(runs=20, side=["left", "right"])

    def measure(self, *, runs, side):
        return {"heads": [math.floor(2 * (i % 10) / 10) for i in range(runs)], "rows astray": [0.0]}

    def checks(self, results):
        share = results.mean("heads")
        return [Check(0.4 < share < 0.6, f"{share:.0%} heads.")]

    def figures(self, results):
        return []


class Fair(Coins):
    """Judged on all runs together."""

    per_run = ()
    units_measured = 0

    def measure(self, *, runs, side):
        type(self).units_measured += 1
        return super().measure(runs=runs, side=side)


def whole(experiment):
    return Results([measured(experiment, unit)[0] for unit in experiment.units(QUICK)])


def test_a_verdict_counts_replicates():
    found = Coins().verdict(whole(Coins()))
    # Replicates 0 to 4 see tails only, 5 to 9 heads only: none sees a fair coin.
    assert (found.word, found.rate) == ("inconclusive", 0.0)
    assert found.checks[0].holds and found.checks[0].is_open
    assert found.text.startswith("Open, in 0% of the replicates: 50% heads.")


class Spread(Coins):
    def checks(self, results):
        deviation = float(np.std(results.values("heads")))
        return [Check(deviation > 0.4, f"{deviation:.2f}.", is_spread=True)]


def test_spread_is_judged_on_the_runs_of_the_other_replicates():
    found = Spread().verdict(whole(Spread()))
    # Each replicate sees tails only, or heads only; without it, five of nine or four are heads.
    assert (found.word, found.rate) == ("reproduced", 1.0)


def test_replicates_and_the_others():
    results = Results([{"m": 1, "error": [*range(12)], "all": [7, 8]}])
    parts = results.replicates(("error",))
    others = results.replicates(("error",), others=True)
    assert [part[0]["error"] for part in parts][:3] == [[0, 10], [1, 11], [2]]
    for part, rest in zip(parts, others, strict=True):
        assert sorted(part[0]["error"] + rest[0]["error"]) == [*range(12)]
        assert rest[0]["all"] == [7, 8]
    seeded = Results({"seed": seed} for seed in range(3))
    assert seeded.replicates((), others=True)[1] == [{"seed": 0}, {"seed": 2}]


def test_a_device_is_for_experiments_that_take_one():
    check_device(["003/figure-2", "003/rank-restricted"], "cuda")
    check_device(["all"], "cpu")
    with pytest.raises(UsageError, match=r"for 003/figure-2 and 003/rank-restricted; got .* other"):
        check_device(["003"], "cuda")


def test_mutual_information(rng):
    y, labels = rng.integers(0, 4, 500), rng.integers(0, 3, 500)
    labels[y == 2] = 0
    wanted = normalized_mutual_info_score(y, labels)
    assert mutual_information(y, labels) == pytest.approx(wanted, rel=1e-12)
    assert mutual_information(np.zeros(5), np.zeros(5)) == 1.0


def test_the_page_names_machines_and_what_is_missing():
    outcome = Outcome("003/figure-2", "t", "c", "", {}, "reproduced", "v", machines=["Abacus"])
    some, every = (Reproduction(Settings(rows=n), [outcome]) for n in (100, 8_100_000))
    assert " on Abacus, with gramian " in some.summary()
    assert FULL_SIZE in some.missing and FULL_SIZE in some.summary()
    assert FULL_SIZE not in every.missing and FULL_SIZE not in every.summary()


@pytest.mark.parametrize(
    ("holds", "rate", "word"),
    [
        (True, 1.0, "reproduced"),
        (True, 0.9, "reproduced"),
        (True, 0.8, "inconclusive"),
        (False, 0.6, "inconclusive"),
        (False, 0.5, "differs"),
        (False, None, "differs"),
        (True, None, "reproduced"),
    ],
)
def test_three_verdicts(holds, rate, word):
    check = Check(holds, "Yes.", rate)
    assert (check.is_passed, check.is_open) == (word == "reproduced", word == "inconclusive")


def test_a_break_is_undone():
    with pytest.raises(RuntimeError), Coins.breaks[0].applied():
        assert math.floor(0.5) == 1
        raise RuntimeError
    assert math.floor(0.5) == 0


def test_what_goes_unnoticed_is_told():
    fair = Fair()
    units, results = fair.units(QUICK), whole(fair)
    assert attempt(fair, units, results, Break("nothing", ())).noticed is None
    assert attempt(fair, units, results, fair.breaks[0]).noticed == "100% heads."
    held = [Check(True, "a"), Check(True, "time", is_time=True)]
    assert first_failure(held, [Check(True, "a"), Check(False, "time", is_time=True)]) is None
    assert first_failure(held, [Check(False, "b"), held[1]]) == "b"


def test_the_first_audit_that_fails_decides(monkeypatch):
    """The other units are not measured."""
    fair = Fair()
    results = whole(fair)
    monkeypatch.setattr(Fair, "units_measured", 0)
    astray = change("astray", Coins, "measure", after(lambda found, *_: {**found, **ASTRAY}))
    found = attempt(fair, fair.units(QUICK), results, astray).noticed
    assert found == "Every row is in the block of its nearest centre."
    assert Fair.units_measured == 1
    results = Results({**unit, **ASTRAY} for unit in results)  # they were astray before
    assert attempt(fair, fair.units(QUICK), results, astray).noticed is None


# The report and the command.


def test_text_is_escaped(squares, tmp_path):
    found = gramian.experiments.Reproduction(QUICK, [outcome(squares, QUICK, Store(tmp_path))])
    text = page(found)
    assert "<Squares>" not in text and "&lt;Squares&gt;" in text
    assert "Content-Security-Policy" in text


@pytest.mark.slow
def test_the_command_writes_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["reproduce", "001/ridge", "--quick", "--cache", "cache"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert said.count("reproduced   ") == 1 and "→ reproduction.html" in said
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 10  # one for each seed
    assert main(arguments) == 2
    assert "use --force to replace it" in capsys.readouterr().err
    assert main([*arguments, "--force", "--quiet", "--summary", "verdicts.md"]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "verdicts.md").read_text().count("| reproduced | 10 of 10 |") == 1


def test_the_command_tries_breaks(capsys, monkeypatch, tmp_path):
    page = tmp_path / "breaks.md"
    arguments = ["reproduce", "001/ridge", "--breaks", "--summary", str(page)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "predictions plus 1e-6" in said and "2 tried, 2 noticed" in said
    text = page.read_text(encoding="utf-8")
    assert "2 breaks tried; 0 went unnoticed." in text
    assert text.count("| 001/ridge | ") == 2
    assert main(arguments) == 2  # the page is there
    assert "use --force to replace it" in capsys.readouterr().err
    monkeypatch.setattr("gramian.experiments.exact.Ridge.breaks", (Break("nothing", ()),))
    assert main([*arguments, "--force"]) == 2
    assert "| nothing | **nothing** |" in page.read_text(encoding="utf-8")
    assert "1 break went unnoticed: 001/ridge (nothing)" in capsys.readouterr().err


def test_the_command_lists(capsys):
    assert main(["reproduce", "list", "004"]) == 0
    assert "004/table-2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["006"], "There is no experiment '006'"),
        (["001", "--output", "x.pdf"], "must end in .html"),
        (["001", "--summary", "x.txt"], "must end in .md"),
        (["001", "--summary", "nowhere/x.md"], "There is no folder 'nowhere'"),
        (["001", "--output", "nowhere/x.html"], "There is no folder 'nowhere'"),
        (["003/figure-2", "--rows", "0"], "rows of reproduce"),
    ],
)
def test_wrong_arguments(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments, "--cache", "cache"]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_data_that_is_missing_leaves_the_rest(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAMIAN_DATA", str(tmp_path))
    names = ["001/ridge", "002/figure-9"]
    assert main(["reproduce", *names, "--cache", "cache"]) == 2
    told = capsys.readouterr()
    assert "1 of 2 experiments could not be run" in told.err and "ijcnn1.npz" in told.err
    assert "not run" in (tmp_path / "reproduction.html").read_text()

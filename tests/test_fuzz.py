"""The campaign of ``make fuzz`` in its short form, and that it sees what it looks for."""

import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the campaign is no installed package

from fuzz import (  # noqa: E402
    crafted,
    faulty_files,
    laws,
    limited,
    model_files,
    mutants,
    numerics,
    rights,
)
from fuzz.__main__ import PARTS  # noqa: E402
from fuzz.forks import forked  # noqa: E402

import gramian  # noqa: E402
from gramian.rows.files.formats import RowFile  # noqa: E402

pytestmark = pytest.mark.slow


def test_model_files():
    outcomes, failures = limited.campaign("fuzz.model_files", 5, range(40))
    assert not failures
    assert outcomes.total() == 40 and len(outcomes) == 3  # refused, used, and raised in use


def test_crafted_model_files():
    numbers = range(model_files.CRAFTED, model_files.CRAFTED + len(crafted.FILES))
    outcomes, failures = limited.campaign("fuzz.model_files", 0, numbers)
    assert not failures and outcomes == {"refused": len(crafted.FILES)}


def test_laws():
    outcomes, failures = limited.campaign("fuzz.laws", 5, range(7))
    assert not failures and outcomes["the same"] > 3


@pytest.mark.parametrize(
    ("part", "attempts", "outcome"),
    [
        ("numerics", 10, "kernel, float32"),
        ("faulty_files", 9, "refused, truncated"),
        ("interruptions", 5, "a save, SIGKILL"),
        ("rights", 6, "refused in a sentence"),
    ],
)
def test_other_parts(part, attempts, outcome):
    outcomes, failures = limited.campaign(f"fuzz.{part}", 5, range(attempts))
    assert not failures
    assert outcomes.total() == attempts and outcomes[outcome]


def test_every_part_is_run():
    found = {each.stem for each in (ROOT / "fuzz").glob("*.py") if "def run(" in each.read_text()}
    assert found == set(PARTS)


def test_a_seed_gives_the_same_files():
    first, again = ([mutants.mutant(3, number) for number in range(20)] for _ in range(2))
    assert first == again and len(set(first)) == 20
    assert first != [mutants.mutant(4, number) for number in range(20)]


def test_errors_of_the_size_of_rounding_are_seen(monkeypatch):
    """Kernel values that are off by a little more than rounding."""
    exact = gramian.RBF.__call__

    def off(self, *rows):
        return exact(self, *rows) * (1 + 1e-4)

    numbers = [n for n in range(60) if numerics.attempt(0, n).startswith("kernel")]
    monkeypatch.setattr(gramian.RBF, "__call__", off)
    found = [numerics.attempt(0, n) for n in numbers]
    assert any(each.startswith("FAILED: kernel, RBF") for each in found)


def test_a_change_that_goes_unseen_is_reported(monkeypatch):
    monkeypatch.setattr(RowFile, "_check_unchanged", lambda self: None)
    assert any("went unseen" in faulty_files.attempt(0, number) for number in range(30))


def test_a_file_that_is_left_behind_is_seen(tmp_path):
    (tmp_path / "out").mkdir()
    assert not rights._wrong(0, "0 ", tmp_path, {})
    (tmp_path / "out" / ".model.1.part").write_bytes(b"")
    assert "left behind" in rights._wrong(0, "0 ", tmp_path, {})
    assert "hangs" in rights._wrong(None, "", tmp_path, {})
    assert "no sentence" in rights._wrong(0, "2 Traceback", tmp_path, {})


def test_forks_end():
    assert forked(lambda: "said") == (0, "said")
    assert forked(lambda: time.sleep(60) or "", seconds=0.1).status is None
    assert forked(lambda: time.sleep(60) or "", signal.SIGTERM).status == -signal.SIGTERM
    status, said = forked(lambda: str(1 / 0))
    assert status == 1 and "ZeroDivisionError" in said


def test_differences_are_seen():
    one = {"predict": np.array([1.0, 2.0]), "transform": np.array([np.inf, 1.0])}
    assert not laws.differences("law", one, one, 0.0)
    other = {**one, "predict": np.array([1.0, 2.1])}
    assert laws.differences("law", one, other, 0.01) and not laws.differences("", one, other, 0.1)
    assert laws.differences("law", one, {**one, "transform": np.array([np.nan, 1.0])}, 0.1)


HARM = {
    "crash": "os.kill(os.getpid(), signal.SIGSEGV)",
    "hang": "[None for _ in itertools.count() if False]",
    "memory": "b'x' * (limited.GROWTH + 10**7)",
}


@pytest.mark.parametrize(
    ("harm", "message"),
    [("crash", "ended with -11"), ("hang", "longer than 1 s"), ("memory", "MB more")],
)
def test_harm_is_seen(harm, message, monkeypatch, tmp_path):
    """The fourth attempt does harm; the campaign sees it and goes on."""
    (tmp_path / "bad.py").write_text(
        "import itertools, os, signal, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from fuzz import limited\n"
        f"attempt = lambda number: str({HARM[harm]})[:0] if number == 3 else 'good'\n"
        f"limited.serve(attempt, *map(int, sys.argv[2:]), seconds={1 if harm == 'hang' else 60})\n"
    )
    monkeypatch.setattr(limited, "ROOT", tmp_path)
    outcomes, failures = limited.campaign("bad", 0, range(6))
    assert [failure.number for failure in failures] == [3]
    assert message in str(failures[0])
    assert outcomes.total() == 6 and outcomes["good"] == 5

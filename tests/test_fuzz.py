"""The campaign of ``make fuzz`` in its short form, and that it sees what it looks for."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the campaign is no installed package

from fuzz import crafted, laws, limited, model_files, mutants  # noqa: E402

pytestmark = pytest.mark.slow


def test_model_files():
    outcomes, failures = limited.campaign("fuzz.model_files", 5, range(150))
    assert not failures
    assert outcomes.total() == 150 and len(outcomes) == 3  # refused, used, and raised in use


def test_crafted_model_files():
    numbers = range(model_files.CRAFTED, model_files.CRAFTED + len(crafted.FILES))
    outcomes, failures = limited.campaign("fuzz.model_files", 0, numbers)
    assert not failures and outcomes == {"refused": len(crafted.FILES)}


def test_laws():
    outcomes, failures = limited.campaign("fuzz.laws", 5, range(25))
    assert not failures and outcomes["the same"] > 15


def test_a_seed_gives_the_same_files():
    first, again = ([mutants.mutant(3, number) for number in range(20)] for _ in range(2))
    assert first == again and len(set(first)) == 20
    assert first != [mutants.mutant(4, number) for number in range(20)]


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

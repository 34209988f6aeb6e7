"""A command on a small table imports what it uses."""

import os
import subprocess
import sys

import pytest
from command_examples import FRAME

import gramian
from gramian.command import imports

CODE = """
import sys
from gramian.command import main
assert main(["cluster", "rows.csv", "--quiet"]) == 0
rare = ["scipy.stats", "pandas", "sklearn.metrics", "rich", "dask", "torch", "numba"]
assert not [name for name in rare if name in sys.modules]
import pandas, scipy, sklearn.metrics  # they can still be imported
assert scipy.stats.norm.cdf(0) == 0.5
"""


@pytest.mark.slow
def test_what_is_seldom_used_is_not_imported(here):
    FRAME.to_csv("rows.csv", index=False)
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    subprocess.run(
        [sys.executable, "-c", CODE], check=True, env={**os.environ, "PYTHONPATH": source}
    )


def test_a_module_that_is_imported_later():
    stands_in = imports._Later("fractions")
    assert stands_in.Fraction(1, 2) == 0.5
    with pytest.raises(AttributeError, match="nothing"):
        stands_in.nothing  # noqa: B018


def test_modules_that_are_imported_already_stay():
    pandas = sys.modules["pandas"]
    with imports.quick():
        import pandas as again
    assert again is pandas
    assert not [one for one in sys.meta_path if isinstance(one, imports._Without)]

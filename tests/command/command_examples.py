"""Data and helpers that the tests of the command share."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd

import gramian
from gramian.testing.examples import example_rows

X = example_rows(200, 4)
NAMES = ["length", "width", "height", "mass"]
SPECIES = np.array(["setosa", "virginica", "other"])[np.arange(200) % 3]
PRICE = X[:, 0] + np.sin(X[:, 1])
FRAME = pd.DataFrame(X, columns=NAMES)


def real(*arguments, **options):
    """The command as a process of its own."""
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(
        [sys.executable, "-m", "gramian", *arguments],
        capture_output=True, text=True, env=environment, **options,
    )  # fmt: skip


def assert_says(text, pattern):
    assert re.search(pattern, text), f"{pattern!r} is not in {text!r}"

"""A column that decides all distances is named."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gramian import KernelKMeans, KernelRidge, KernelWarning, Nystroem, as_rows
from gramian.estimators.base import warn_if_one_column_dominates

X = np.random.default_rng(0).standard_normal((300, 3))
LARGE = X * [1, 1000, 1]


def test_the_column_is_named():
    with pytest.warns(KernelWarning, match=r"Column 1 has more than 99\.9%.*StandardScaler"):
        KernelRidge(kernel="linear").fit(LARGE, X[:, 0])
    with pytest.warns(KernelWarning, match="Column 'income' has"):
        KernelRidge(kernel="linear").fit(pd.DataFrame(LARGE, columns=["a", "income", "c"]), X[:, 0])


def test_it_is_said_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KernelKMeans(2, kernel=Nystroem("rbf", 20), random_state=0).fit(LARGE)
    assert sum("decides the distances" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize("data", [X, X[:, :1], X * [1, 10, 1], X * [0, 1, 0], LARGE[:2] * 0])
def test_others_are_not(data):
    """Neither columns of like size, nor one column alone, be it beside constants."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelWarning)
        KernelRidge(kernel="linear").fit(data, np.arange(len(data)))


def test_squares_that_overflow_in_float32():
    with pytest.warns(KernelWarning, match="Column 1 has more"):
        warn_if_one_column_dominates(as_rows((1e21 * LARGE).astype(np.float32)), None)

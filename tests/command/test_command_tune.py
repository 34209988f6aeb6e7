"""``gramian tune``."""

import re
from functools import wraps

import numpy as np
import pandas as pd
import pytest
from command_examples import FRAME, PRICE, SPECIES, assert_says
from sklearn.preprocessing import StandardScaler

import gramian
from gramian import BlockTransformer, FeatureRows, FileRows, tune

SMALL = slice(None, None, 2)


def test_tune_prints_what_it_found_and_code_that_makes_it_again(run, here):
    table = FRAME.assign(price=PRICE)[SMALL]
    table.to_csv(here / "goods.csv", index=False)
    out = run("tune goods.csv --target price")
    assert_says(out, r"score +R² [01]\.\d+, root mean squared error .* on \d+ held-out rows")
    assert_says(out, r"by importance: width \d+%, length")
    assert_says(out, r"(laplacian|rbf|matern) +(equal|learned)")
    space = {}
    exec(out[out.index("from gramian") :], space)
    assert space["model"].score(space["X"], space["y"]) > 0.8


def test_tune_classifies_text(run, here):
    FRAME.assign(species=SPECIES)[SMALL].to_csv(here / "goods.csv", index=False)
    out = run("tune goods.csv --target species --time 1")
    assert float(re.search(r"accuracy ([\d.]+)", out)[1]) > 0.9


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_saved_pipeline_predicts(on_disk, run, here, monkeypatch):
    if on_disk:  # as if the file were large
        monkeypatch.setattr(FileRows, "persist", lambda rows: rows)
        monkeypatch.setattr(FeatureRows, "persist", lambda rows: rows)
    FRAME.assign(price=PRICE)[SMALL].to_csv(here / "goods.csv", index=False)
    run("tune goods.csv --target price --time 0.1 --save goods.gramian --quiet")
    first = gramian.load("goods.gramian").estimator[0]
    assert isinstance(first, BlockTransformer if on_disk else StandardScaler)
    out = run("predict goods.gramian goods.csv")
    assert float(re.search(r"R² ([\d.]+)", out)[1]) > 0.8
    assert_says(run("tune goods.csv --target price --save goods.gramian", status=2), "--force")


def test_the_score_is_of_rows_that_nothing_was_learned_from(run, here, monkeypatch):
    """The preparation learns the scale of columns from the rows that are tuned on alone."""
    FRAME.assign(price=PRICE)[SMALL].to_csv(here / "goods.csv", index=False)
    seen = []

    def spying(X, y, **options):
        seen.append(X)
        return tune(X, y, **options)

    monkeypatch.setattr(gramian, "tune", wraps(tune)(spying))
    run("tune goods.csv --target price --holdout 0.5 --time 0.1")
    (X,) = seen
    assert len(X) == round(0.5 * len(FRAME[SMALL]))
    np.testing.assert_allclose(X[:, :2].mean(axis=0), 0.0, atol=1e-12)


def test_tune_needs_a_target(run, here):
    pd.DataFrame(np.eye(5), columns=list("abcde")).to_csv(here / "a.csv", index=False)
    assert_says(run("tune a.csv", status=2), "name the column to predict with --target COLUMN")

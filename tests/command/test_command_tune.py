"""``gramian tune``."""

import re

import numpy as np
import pandas as pd
from command_examples import FRAME, PRICE, SPECIES, assert_says

SMALL = slice(None, None, 2)


def test_tune_prints_what_it_found_and_code_that_makes_it_again(run, here):
    table = FRAME.assign(price=PRICE)[SMALL]
    table.to_csv(here / "goods.csv", index=False)
    out = run("tune goods.csv --target price --holdout 0.2")
    assert_says(out, r"score +R² [01]\.\d+ on rows that were held out")
    assert_says(out, r"by importance: width \d+%, length")
    assert_says(out, r"(laplacian|rbf|matern) +(equal|learned)")
    space = {}
    exec(out[out.index("from gramian") :], space)
    assert space["model"].score(space["X"], space["y"]) > 0.8


def test_tune_classifies_text(run, here):
    FRAME.assign(species=SPECIES)[SMALL].to_csv(here / "goods.csv", index=False)
    out = run("tune goods.csv --target species --time 1")
    assert float(re.search(r"accuracy ([\d.]+)", out)[1]) > 0.9


def test_tune_needs_a_target(run, here):
    pd.DataFrame(np.eye(5), columns=list("abcde")).to_csv(here / "a.csv", index=False)
    assert_says(run("tune a.csv", status=2), "name the column to predict with --target COLUMN")

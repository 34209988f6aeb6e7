"""Tables as they are, through the command: gaps, text, identifiers, what is carried over."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_examples import FRAME, NAMES, PRICE, SPECIES, X, assert_says
from sklearn.preprocessing import StandardScaler

import gramian
from gramian import Exact, KernelRidge, Laplacian, Matern, Nystroem, learners
from gramian.backend.progress import Display
from gramian.command import forecast
from gramian.command.screen import Screen
from gramian.rows import ArrayRows

GERMAN = FRAME.assign(id=[f"K{i:03}" for i in range(200)], Art=SPECIES, Preis=PRICE)


@pytest.fixture
def german():
    """Semicolons, decimal commas, an identifier, text, two gaps and a row without a target."""
    frame = GERMAN.copy()
    frame.loc[3, "mass"] = np.nan
    frame.loc[8, "Art"] = None
    frame.loc[150, "Preis"] = np.nan
    frame.to_csv("tabelle.csv", sep=";", decimal=",", index=False)
    return frame


def test_a_european_table(run, german):
    said = run("ridge tabelle.csv --target Preis", status=2)
    assert_says(said, r"'mass' 1 \(line 5\); 'Art' 1 \(line 10\). Fill.*--impute.*--drop-missing")
    out = run("ridge tabelle.csv --target Preis --impute median --holdout 0 --alpha 0.1 --model m")
    for shown in (
        "199 rows, 7 columns from 'tabelle.csv'",
        "format    semicolon-separated, decimal comma, UTF-8",
        "columns   'Art' encoded as categories",
        "left out 'id': it is an identifier",
        "rows      left out 1 row without 'Preis'",
        "missing numbers filled with the median",
        "4 numeric columns scaled to mean 0 and variance 1 (--scale none turns this off)",
    ):
        assert shown in out, shown
    known = german.dropna(subset="Preis")
    filled = known[NAMES].fillna(known[NAMES].median())
    kinds = pd.get_dummies(known["Art"].fillna(known["Art"].mode()[0]), dtype=float)
    rows = np.hstack((StandardScaler().fit_transform(filled), kinds))
    expected = KernelRidge(0.1, random_state=0).fit(rows, known["Preis"]).predict(rows)
    found = pd.read_csv("tabelle.predictions.csv")
    assert list(found.columns) == ["id", "prediction"]
    assert list(found["id"]) == list(known["id"])
    np.testing.assert_allclose(found["prediction"], expected)


def test_predict_fills_what_the_model_knows(run, german):
    run("ridge tabelle.csv --target Preis --impute mean --holdout 0 --model m")
    new = GERMAN[:5].assign(mass=None, Art="unheard")
    new.to_csv("new.csv", index=False)
    out = run("predict m new.csv --keep id,length")
    assert "5 rows with a value of 'Art' that the fit had not seen: ignored" in out
    found = pd.read_csv("new.predictions.csv")
    assert list(found.columns) == ["id", "length", "prediction"]
    assert list(found["id"]) == list(new["id"])
    np.testing.assert_allclose(found["length"], new["length"])
    said = run("predict m new.csv --keep prediction --force", status=2)
    assert_says(said, "no column 'prediction'")
    assert_says(run("predict m new.csv --unknown error --force", status=2), "'Art' has 5 rows")


def test_rows_that_are_left_out_keep_their_numbers(run):
    frame = FRAME.copy()
    frame.loc[[0, 7], "mass"] = np.nan
    frame.to_csv("rows.csv", index=False)
    out = run("cluster rows.csv --drop-missing --model m")
    assert "left out 2 rows with missing values" in out and "198 rows" in out
    kept = [i for i in range(1, 201) if i not in (1, 8)]
    assert list(pd.read_csv("rows.labels.csv")["row"]) == kept
    assert "left out 2 rows" in run("predict m rows.csv -o again.csv")
    again = pd.read_csv("again.csv")
    assert list(again["row"]) == kept
    assert list(again["cluster"]) == list(pd.read_csv("rows.labels.csv")["cluster"])
    assert len(gramian.load("m").predict("rows.csv")) == 198


def test_a_gap_that_the_model_cannot_fill(run):
    FRAME.to_csv("rows.csv", index=False)
    run("cluster rows.csv --model m")
    FRAME[:9].assign(mass=None).to_csv("new.csv", index=False)
    assert_says(
        run("predict m new.csv", status=2), "'mass' 9 .*lines 2, 3, 4, 5, 6, ....*fit it with"
    )


def test_formulas_are_inert(run):
    evil = np.array(["=1+2", "@SUM(A1)", "-5", "plain"])[np.arange(200) % 4]
    FRAME.assign(**{"=name": evil}).to_csv("rows.csv", index=False)
    run("ridge rows.csv --target =name --holdout 0 --model m")
    run("predict m rows.csv --keep =name -o kept.tsv")
    run("predict m rows.csv -o exact.parquet")
    labels = set(pd.read_csv("rows.predictions.csv", dtype=str)["prediction"])
    assert labels <= {"'=1+2", "'@SUM(A1)", "-5", "plain"} and len(labels) > 1
    assert "'=name" in Path("kept.tsv").read_text().partition("\n")[0]
    assert set(pd.read_parquet("exact.parquet")["prediction"]) <= set(evil)


def test_results_of_two_compressions_have_two_names(run):
    FRAME.to_csv("rows.csv", index=False)
    Path("rows.csv.gz").write_bytes(gzip.compress(Path("rows.csv").read_bytes()))
    run("cluster rows.csv")
    run("cluster rows.csv.gz")
    labels = [pd.read_csv(f"rows{end}.labels.csv")["cluster"] for end in ("", "-gz")]
    assert list(labels[0]) == list(labels[1])


def test_inputs_are_checked_before_outputs(run):
    Path("rows.labels.csv").write_text("here")
    assert_says(run("cluster rows.csv", status=2), "no file, folder or data set 'rows.csv'")
    said = run("cluster nowhere.csv -o missing/x.csv", status=2)
    assert_says(said, "no file, folder or data set 'nowhere.csv'")


def test_notation_can_be_given(run):
    FRAME.to_csv("rows.txt", sep="|", index=False)
    assert "bar-separated" in run("cluster rows.txt --separator | --encoding utf-8 --decimal .")


def test_columns_are_used_when_asked(run):
    FRAME.assign(day=pd.date_range("2024-01-01", periods=200)).to_csv("rows.csv", index=False)
    assert "left out 'day': it holds dates (--include COLUMN uses it)" in run("pca rows.csv")
    assert "200 rows, 11 columns" in run("pca rows.csv --include day --force")


def test_many_whole_numbers_are_a_regression(run):
    target = np.arange(200) * 7 % 429
    FRAME.assign(y=target).to_csv("rows.csv", index=False)
    assert "R²" in run("ridge rows.csv --target y")


def test_a_column_that_dominates_is_named(capsys, here):
    pd.DataFrame(X * [1, 1e4, 1, 1], columns=NAMES).to_csv("rows.csv", index=False)
    from gramian.command import main

    assert main(["pca", "rows.csv", "--scale", "none"]) == 0
    assert "has more than 99.9% of the variance" in (err := capsys.readouterr().err)
    assert "(--scale standard)" in err
    assert main(["pca", "rows.csv", "--force"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_forecast_before_long_fits(run, here, monkeypatch):
    monkeypatch.setattr(forecast, "LONG", 2000)
    rows = np.random.default_rng(0).standard_normal((2100, 3)).astype(np.float32)
    np.save("rows.npy", rows)
    expected = r"expected  2,100 rows, 30 landmarks, \S+ .B of memory, about \d+ s\n"
    for command in ("embed", "cluster"):
        assert_says(run(f"{command} rows.npy --approximation nystroem:n_components=30"), expected)
    assert os.path.exists("rows.features.npy")


LEARNERS = [cls for name in learners.__all__ if hasattr(cls := getattr(learners, name), "fit")]


@pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
def test_every_learner_has_a_forecast(cls, capsys, monkeypatch):
    monkeypatch.setattr(forecast, "LONG", 10)
    rows = ArrayRows(np.random.default_rng(0).standard_normal((2001, 2)))
    for kernel, count in ((Nystroem(n_components=7), 7), (Exact(), 2001)):
        assert forecast.landmarks(cls(kernel=kernel), rows) == count
    learning = Matern("loo", nu="loo", scales="learn") + Laplacian(bandwidth="loo")
    forecast.show(Screen(), cls(kernel=Nystroem(learning, 7)), rows)
    assert_says(capsys.readouterr().out, r"expected  2,001 rows, 7 landmarks, .* about \d+ s")


class Bar:
    """What a display draws on."""

    def __init__(self):
        self.said = []

    def add_task(self, label, total):
        return 0

    def remove_task(self, task):
        self.said.append("end")

    def update(self, task, description, completed):
        self.said.append((description, round(completed, 3)))


def test_one_bar_for_nested_loops():
    display = Display(bar := Bar())
    with display.loop("k-means", 4) as outer:
        outer()
        with display.loop("features", 2) as inner:
            inner()
        outer()
    assert bar.said == [
        ("k-means 1 of 4", 0.0), ("k-means 2 of 4", 0.25),
        ("k-means 2 of 4, features 1 of 2", 0.25), ("k-means 2 of 4, features 2 of 2", 0.375),
        ("k-means 3 of 4", 0.5), "end",
    ]  # fmt: skip
    display.expect(100)
    with display.loop("ridge", 2):
        pass
    assert bar.said[-2][0].startswith("ridge 1 of 2, about ") and "s left" in bar.said[-2][0]

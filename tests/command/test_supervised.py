"""Classification and regression with any loss, through the command."""

import numpy as np
import pandas as pd
import pytest
from command_examples import FRAME, PRICE, SPECIES, X, assert_says
from sklearn.preprocessing import StandardScaler

import gramian
from gramian import KernelLogisticRegression, KernelQuantileRegressor
from gramian.command import classify, regress

ROWS = StandardScaler().fit_transform(X)
WHOLE = ["--holdout", "0", "--model", "m"]


@pytest.fixture
def table():
    count = np.random.default_rng(0).poisson(np.exp(PRICE / 2))
    FRAME.assign(kind=SPECIES, price=PRICE, count=count).to_csv("rows.csv", index=False)


def features(target):
    others = [name for name in ("kind", "price", "count") if name != target]
    return ["--target", target, *(part for name in others for part in ("--exclude", name))]


@pytest.mark.slow
def test_probabilities(run, table):
    out = run("classify rows.csv --alpha 0.1 --proba", *features("kind"), *WHOLE)
    assert "kind: 3 classes\n" in out and "score" not in out
    model = KernelLogisticRegression(0.1, random_state=0).fit(ROWS, SPECIES)
    found = pd.read_csv("rows.predictions.csv")
    names = [f"probability_{label}" for label in model.classes_]
    assert list(found.columns) == ["row", "prediction", *names]
    np.testing.assert_allclose(found[names], model.predict_proba(ROWS), rtol=1e-6)
    assert list(found["prediction"]) == list(model.predict(ROWS))
    places = np.searchsorted(model.classes_, SPECIES)
    loss = -np.log(model.predict_proba(ROWS)[np.arange(200), places])
    out = run("predict m rows.csv --proba --keep kind -o again.csv")
    assert f"log loss {loss.mean():.4f} on 200 rows" in out
    again = pd.read_csv("again.csv")
    assert list(again.columns) == ["kind", "prediction", *names]
    np.testing.assert_allclose(again[names], found[names])
    assert "log loss" not in run("predict m rows.csv -o plain.csv")
    assert list(pd.read_csv("plain.csv").columns) == ["row", "prediction"]


def test_models_without_probabilities(run, table):
    options = ["--loss", "squared-hinge", *features("kind")]
    said = "KernelSVC has no probabilities.*classify --loss logistic"
    assert_says(run("classify rows.csv --proba", *options, status=2), said)
    assert_says(run("classify rows.csv --model m", *options), "accuracy .* held-out rows")
    assert_says(run("predict m rows.csv --proba -o p.csv", status=2), said)
    run("cluster rows.csv --model c", "--exclude", "kind")
    assert_says(run("predict c rows.csv --proba -o p.csv", status=2), "no probabilities")


@pytest.mark.slow
def test_quantiles(run, table):
    out = run("regress rows.csv --quantiles 0.25,0.75 --alpha 0.1", *features("price"), *WHOLE)
    assert "price: numbers from" in out
    model = KernelQuantileRegressor(0.1, quantile=[0.25, 0.75], random_state=0).fit(ROWS, PRICE)
    found = pd.read_csv("rows.predictions.csv")
    assert list(found.columns) == ["row", "prediction_0.25", "prediction_0.75"]
    np.testing.assert_allclose(found.iloc[:, 1:], model.predict(ROWS), rtol=1e-6)
    below = [f"{np.mean(model.predict(ROWS)[:, i] > PRICE):.1%}" for i in range(2)]
    out = run("predict m rows.csv -o again.csv")
    assert f"below each prediction: 0.25: {below[0]}, 0.75: {below[1]} on 200 rows" in out
    run("regress rows.csv --loss expectile --quantiles 0.9 --force", *features("price"), *WHOLE)
    assert gramian.load("m").estimator.level == [0.9]


@pytest.mark.parametrize("loss", classify.LOSSES)
def test_losses_of_classes(run, table, loss):
    run(f"classify rows.csv --approximation nystroem:n_components=20 --loss {loss}", "--model", "m",
        *features("kind"))  # fmt: skip
    made = gramian.load("m").estimator
    cls, parameters = classify.LOSSES[loss]
    assert type(made) is cls and parameters.items() <= made.get_params().items()


@pytest.mark.parametrize("loss", regress.LOSSES)
def test_losses_of_numbers(run, table, loss):
    target = "count" if loss == "poisson" else "price"
    out = run(f"regress rows.csv --approximation nystroem:n_components=20 --loss {loss}", "--model",
              "m", *features(target))  # fmt: skip
    assert type(gramian.load("m").estimator) is regress.LOSSES[loss]
    assert ("R²" in out) == (loss not in regress.LEVELS)
    assert len(pd.read_csv("rows.predictions.csv")) == 200


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("regress rows.csv --target kind", "contains text: use gramian classify"),
        ("classify rows.csv --target price", "fractions: use gramian regress"),
        ("regress rows.csv --target price --loss huber --quantiles 0.5", "quantile or expectile"),
        ("regress rows.csv --target price --quantiles 0.5,0.5", "different numbers between 0 and"),
        ("regress rows.csv --target price --quantiles 1", "different numbers between 0 and 1"),
        ("regress rows.csv --target price --epsilon 2", "--epsilon does not apply: KernelRidge"),
        ("regress rows.csv --target price --loss poisson", "at least 0"),
    ],
)
def test_what_does_not_go_together(run, table, command, said):
    assert_says(run(command, status=2), said)


def test_defaults_that_depend_on_the_loss(run):
    out = " ".join(run("regress --help").split())
    assert out.count("The default depends on the loss.") == 4  # alpha, tol, max_iter, epsilon

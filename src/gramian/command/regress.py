"""``gramian regress``: regression with a loss of your choice."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

import numpy as np
from sklearn.base import BaseEstimator

from gramian.command import arguments, estimators, supervised
from gramian.command.errors import UsageError
from gramian.command.screen import Screen
from gramian.learners import (
    KernelExpectileRegressor,
    KernelHuberRegressor,
    KernelPoissonRegressor,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVR,
)

LOSSES: dict[str, type[BaseEstimator]] = {
    "squared": KernelRidge,
    "huber": KernelHuberRegressor,
    "epsilon": KernelSVR,
    "quantile": KernelQuantileRegressor,
    "expectile": KernelExpectileRegressor,
    "poisson": KernelPoissonRegressor,
}
LEVELS = {"quantile": "quantile", "expectile": "level"}  # the parameters that --quantiles sets


def add_options(parser: arguments.Parser) -> None:
    group = supervised.add_options(
        parser, "learner", list(LOSSES.values()), skip=list(LEVELS.values())
    )
    group.add_argument(
        "--loss",
        choices=list(LOSSES),
        help="what an error costs: its square (the default), or linearly beyond a scale (huber) or "
        "a margin (epsilon), for outliers; quantile or expectile, for other parts of the "
        "distribution than the mean; poisson, for counts. For huber, epsilon and quantile, large "
        "targets need a small --alpha, such as 1e-6 for ten thousands",
    )
    group.add_argument(
        "--quantiles",
        type=_levels,
        metavar="LEVEL,...",
        help="numbers between 0 and 1, such as 0.1,0.5,0.9, for --loss quantile (then the default) "
        "or expectile; one column of predictions for each. Default: 0.5",
    )


def _levels(text: str) -> list[float]:
    try:
        levels = [float(part) for part in text.split(",")]
    except ValueError:
        levels = []
    if not levels or not all(0 < level < 1 for level in levels) or len({*levels}) < len(levels):
        raise ArgumentTypeError(
            f"expected different numbers between 0 and 1, such as 0.1,0.5,0.9; got {text!r}"
        )
    return levels


def run(args: Namespace, screen: Screen) -> None:
    loss = args.loss or ("squared" if args.quantiles is None else "quantile")
    parameters = {}
    if args.quantiles is not None:
        if loss not in LEVELS:
            raise UsageError(f"--quantiles needs --loss {' or '.join(LEVELS)}; got --loss {loss}.")
        parameters[LEVELS[loss]] = args.quantiles

    def model_for(y: np.ndarray) -> BaseEstimator:
        return estimators.estimator(args, LOSSES[loss], **parameters)

    supervised.run(args, screen, model_for)

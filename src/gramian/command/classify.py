"""``gramian classify``: classification with a loss of your choice."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
from sklearn.base import BaseEstimator

from gramian.command import arguments, estimators, supervised
from gramian.command.errors import UsageError
from gramian.command.results import add_proba
from gramian.command.screen import Screen
from gramian.learners import KernelLogisticRegression, KernelRidgeClassifier, KernelSVC

LOSSES: dict[str, tuple[type[BaseEstimator], dict[str, str]]] = {
    "logistic": (KernelLogisticRegression, {}),
    "hinge": (KernelSVC, {"loss": "hinge"}),
    "squared-hinge": (KernelSVC, {"loss": "squared_hinge"}),
    "ridge": (KernelRidgeClassifier, {}),
}


def add_options(parser: arguments.Parser) -> None:
    # The first one describes what all have; only ridge chooses alpha by itself.
    classes = KernelRidgeClassifier, KernelLogisticRegression, KernelSVC
    group = supervised.add_options(parser, "learner", classes, skip=["loss"])
    group.add_argument(
        "--loss",
        choices=list(LOSSES),
        default="logistic",
        help="what a wrong class costs: logistic regression (the default), the hinge of support "
        "vector machines or its square, or squares as in ridge",
    )
    add_proba(group)


def run(args: Namespace, screen: Screen) -> None:
    cls, parameters = LOSSES[args.loss]

    def model_for(y: np.ndarray) -> BaseEstimator:
        if y.dtype.kind == "f" and (y != np.floor(y)).any():
            raise UsageError("The target has numbers with fractions: use gramian regress.")
        return estimators.estimator(args, cls, **parameters)

    supervised.run(args, screen, model_for)

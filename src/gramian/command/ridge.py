"""``gramian ridge``: kernel ridge regression or classification."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
from sklearn.base import BaseEstimator

from gramian.command import arguments, estimators, supervised
from gramian.command.screen import Screen
from gramian.learners import KernelRidge, KernelRidgeClassifier


def add_options(parser: arguments.Parser) -> None:
    group = supervised.add_options(parser, "ridge", (KernelRidge, KernelRidgeClassifier))
    group.add_argument(
        "--task",
        choices=["auto", "regress", "classify"],
        default="auto",
        help="by default, text and whole numbers with at most "
        f"{supervised.MOST_CLASSES} distinct values are classified, and other numbers are "
        "regressed on",
    )


def run(args: Namespace, screen: Screen) -> None:
    def model_for(y: np.ndarray) -> BaseEstimator:
        classes = supervised.is_classes(y) if args.task == "auto" else args.task == "classify"
        return estimators.estimator(args, KernelRidgeClassifier if classes else KernelRidge)

    supervised.run(args, screen, model_for)

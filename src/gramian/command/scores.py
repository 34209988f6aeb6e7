"""How good predictions are, in a line."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from gramian.command.results import Columns, levels_of
from gramian.command.screen import Screen

LEAST = 1e-15  # a probability of 0 for what happened would be infinitely bad


def show_scores(
    screen: Screen, model: BaseEstimator, y: np.ndarray, columns: Columns, where: str
) -> None:
    """Print how well the columns of predictions agree with the true values."""
    if screen.quiet:
        return
    if is_classifier(model):
        said = f"accuracy {np.mean(y == columns['prediction']):.1%}{_log_loss(model, y, columns)}"
    elif (levels := levels_of(model)) is not None:
        pairs = zip(levels, columns.values(), strict=True)
        below = [f"{level:g}: {np.mean(y < predicted):.1%}" for level, predicted in pairs]
        said = f"true values below each prediction: {', '.join(below)}"
    else:
        said = _of_numbers(y.astype(float), columns["prediction"])
    screen.line("score", f"{said} on {where}")


def _of_numbers(y: np.ndarray, predicted: np.ndarray) -> str:
    error, spread = float(np.mean((y - predicted) ** 2)), float(np.var(y))
    explained = f"R² {1 - error / spread:.4f}, " if spread > 0 else ""
    return f"{explained}root mean squared error {np.sqrt(error):.4g}"


def _log_loss(model: BaseEstimator, y: np.ndarray, columns: Columns) -> str:
    """Return the mean log loss of probabilities, if there are any."""
    found = [values for name, values in columns.items() if name != "prediction"]
    numbers = {label: i for i, label in enumerate(model.classes_.tolist())}
    known = np.array([label in numbers for label in y.tolist()])
    if not found or not known.any():
        return ""
    places = [numbers[label] for label in y[known].tolist()]
    chances = np.stack(found, axis=1)[known, places]
    return f", log loss {-np.mean(np.log(np.maximum(chances, LEAST))):.4f}"

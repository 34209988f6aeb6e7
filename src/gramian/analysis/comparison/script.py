"""The recommendation as a complete script: it reads, splits, fits and scores as was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramian.analysis.comparison.measurements import Baseline, Measurement
from gramian.analysis.comparison.source import Source
from gramian.learners.base import KernelLearner

if TYPE_CHECKING:
    from gramian.analysis.comparison.result import Comparison


def code(comparison: Comparison, result: Measurement | Baseline) -> str:
    source = Source()
    parts = [_data(comparison, source)]
    if comparison.data.held_out:
        parts += [_split(comparison, source), _model(result, source), _predict(comparison)]
    elif comparison.learner is not None:
        parts += [_sample(comparison, source), _model(result, source)]
        parts += [_cluster(comparison, source)]
    else:
        parts += [_sample(comparison, source), _features(comparison, result, source)]
    if source.unknown:
        parts.insert(0, f"# {', '.join(sorted(source.unknown))}: your function")
    return "\n\n".join([source.header(), *(part for part in parts if part)]) + "\n"


def _data(comparison: Comparison, source: Source) -> str:
    reading, data = comparison.reading, comparison.data
    y = "\n# y: your target" if data.held_out else ""
    if reading is not None:
        source.lines.update(reading.imports)
        return reading.code if data.held_out else f"{reading.code}\n{reading.prepare}"
    if data.is_path:
        source.imports.add(("gramian", "open_rows"))
        return f"X = open_rows({source.of(data.source)}).collect(){y}"
    return "# X and y: your rows and target" if y else "# X: your rows"


def _split(comparison: Comparison, source: Source) -> str:
    data, reading = comparison.data, comparison.reading
    source.imports.add(("sklearn.model_selection", "train_test_split"))
    by_class = ", stratify=y" if data.by_class else ""
    said = f"# Fit {data.measured:,} rows, and score {data.held_out:,} others.\n"
    options = (
        f"train_size={data.measured}, test_size={data.held_out}, "
        f"random_state={comparison.settings['seed']}{by_class}"
    )
    if reading is None and not comparison.kernel.is_matrix:
        return f"{said}X_train, X_test, y_train, y_test = train_test_split(\n    X, y, {options}\n)"
    source.imports.add(("", "numpy as np"))
    lines = [f"{said}train, test = train_test_split(\n    np.arange(len(y)), {options}\n)"]
    if reading is not None:
        lines += ["# Learn how to prepare rows from the training rows alone.", reading.prepare]
    parts = "X[np.ix_(train, train)], X[np.ix_(test, train)]"
    lines.append(
        f"X_train, X_test = {parts if comparison.kernel.is_matrix else 'X[train], X[test]'}"
    )
    return "\n".join([*lines, "y_train, y_test = y[train], y[test]"])


def _sample(comparison: Comparison, source: Source) -> str:
    data = comparison.data
    if data.rows == data.measured:
        return "X_sample = X"
    source.imports.add(("", "numpy as np"))
    return (
        f"# The comparison measured {data.measured:,} of the {data.rows:,} rows.\n"
        f"rng = np.random.default_rng({comparison.settings['seed']})\n"
        f"X_sample = X[np.sort(rng.choice({data.rows}, size={data.measured}, replace=False))]"
    )


def _model(result: Measurement | Baseline, source: Source) -> str:
    """Give each part of the model a line of its own."""
    model, lines = result.model, []
    if isinstance(result, Measurement) and not result.is_exact:
        lines.append(source.named("approximation", model.kernel))
        if not isinstance(model, KernelLearner):  # it needs a function of rows
            lines[0] += ".fit(X_train)"
    return "\n".join([*lines, source.named("model", model)])


def _predict(comparison: Comparison) -> str:
    return (
        "model.fit(X_train, y_train)\n"
        f'print(f"{comparison.score_name}: {{model.score(X_test, y_test):.3f}}")\n\n'
        "# For use: model.fit(X, y) learns from all rows, model.predict predicts new ones."
    )


def _cluster(comparison: Comparison, source: Source) -> str:
    source.imports.add(("gramian.analysis.clusters", "explained_variance"))
    kernel = source.of(comparison.kernel)
    return (
        "labels = model.fit_predict(X_sample)\n"
        f"share = explained_variance(X_sample, labels, {kernel})\n"
        f'print(f"{comparison.score_name}: {{share:.3f}}")\n\n'
        "# For use: model.fit_predict(X) gives a cluster for each row."
    )


def _features(comparison: Comparison, result: Any, source: Source) -> str:
    if result.approximation is None:
        source.imports.add(("gramian", "KernelKMeans"))
        source.imports.add(("gramian", "Exact"))
        return (
            f"kernel = Exact({source.of(comparison.kernel)})\n"
            "model = KernelKMeans(8, kernel=kernel)  # or another learner\n"
            "labels = model.fit_predict(X)"
        )
    source.imports.add(("gramian", "relative_error"))
    return (
        f"approximation = {source.of(result.approximation)}\n"
        "approximation.fit(X_sample)\n"
        'print(f"error: {relative_error(approximation, X_sample).value:.3g}")\n\n'
        "# For use, pass it to a learner as its kernel: KernelKMeans(8, kernel=approximation)."
    )

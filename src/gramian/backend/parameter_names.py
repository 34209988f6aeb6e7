"""The names of an estimator's parameters, looked up once for each class."""

from __future__ import annotations

from functools import cache


class ParameterNames:
    """Mixin that keeps the names of the parameters; it must precede ``BaseEstimator``.

    scikit-learn reads the signature of the class whenever parameters are read or copied, which a
    small fit does many times.
    """

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        return super()._get_param_names()  # type: ignore[misc]

"""What all learners share: the parameter ``kernel``, and how new rows meet what was learned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Exact
from gramian.approximations.base import Plan
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.wording import counted
from gramian.estimators.base import KernelEstimator, generator
from gramian.kernels import Kernel, as_kernel
from gramian.matrices.factors import Factors, keepable
from gramian.matrices.gram import Gram
from gramian.rows import Rows

LEAST_LANDMARKS = 100  # of a default approximation, whatever the memory budget


class Training(NamedTuple):
    """What a learner learns from: the exact matrix or factors of it, and the rows' weights."""

    matrix: Gram | Factors
    rows: Rows  # those of the matrix
    weights: Array | None
    given: Rows  # as they came: where the matrix is exact, ``rows`` are those in this process


class NewRows(NamedTuple):
    """New rows, and the product of their kernel values, or features, with what was learned."""

    rows: Rows
    product: Array  # in float64
    factors: Factors | None
    dtype: Any


class KernelLearner(KernelEstimator, BaseEstimator):
    """Base of the learners. A subclass has the parameter ``kernel``: a name, a function, a kernel,
    an approximation of one, or :class:`gramian.Exact`.

    A bare kernel is used exactly while its matrix is small enough to be kept, and beyond through
    the approximation that ``_default_approximation`` gives. After the fit, ``kernel_`` is the
    kernel with its parameters worked out, ``approximation_`` the approximation in use or None, and
    ``points_`` what is kept of the training rows where there is none.
    """

    solver: str
    solves_factors = False  # whether ``solver`` may also be given with an approximation
    kernel_: Kernel
    approximation_: Approximation | None
    points_: Rows | None

    @abstractmethod
    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Learn from rows X, and y where there is a target."""

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        """What stands for a bare kernel on n rows, too many for the exact matrix.

        It is not asked for, nor is ``_exact_steps``, where ``_fits_features`` gives something.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement _default_approximation.")

    def _wants_exact(self) -> bool:
        """Whether the learner's other parameters ask for the exact matrix of a bare kernel."""
        return getattr(self, "solver", "auto") != "auto"

    def _training(
        self,
        X: Any,
        rng: np.random.Generator,
        sample_weight: Any = None,
        y: Any = None,
        stands_for: Callable[[Kernel, int], Approximation] | None = None,
    ) -> Training:
        """Check X, work out the kernel or its approximation on it, and give the matrix.

        ``stands_for`` says what a bare kernel stands for whatever the number of rows, where
        something needs features. By default that is left to the size of the exact matrix.
        """
        came = rows = self._read(X, reset=True, min_rows=2)
        weights = as_weights(sample_weight, rows)
        given = self._stand_in(rows, stands_for)
        if not isinstance(given, Approximation):
            rows = came.place.here(came)  # the matrix is made in one piece
        if rows is not came:
            weights = None if weights is None else rows.place.align(weights)
            config.hold(rows.shape[0] * rows.row_bytes)
        shape: tuple[int, ...] = getattr(y, "shape", ())
        self._check_memory(
            rows,
            "Use an approximation with fewer n_components",
            given=given,
            n_targets=shape[1] if len(shape) > 1 else 1,
        )
        if isinstance(given, Approximation):
            return self._approximate(given, rows, rng, weights, y)
        # A generator of its own: what the kernel draws changes nothing for the learner.
        given.fit_rows(rows, np.random.default_rng(rng.integers(2**63)), weights)
        self.kernel_, self.approximation_ = given, None
        self.points_ = given.points(rows)
        return Training(Gram(given, rows), rows, weights, came)

    def _stand_in(
        self, rows: Rows, stands_for: Callable[[Kernel, int], Approximation] | None
    ) -> Kernel | Approximation:
        """What the fit works with: the kernel on its exact matrix, or an approximation."""
        given = self.kernel
        if isinstance(given, Approximation):
            if self._wants_exact() and not self.solves_factors:
                raise ValueError(
                    f"solver={self.solver!r} of {type(self).__name__} is for the exact matrix; "
                    "leave it 'auto' with an approximation, or use kernel=Exact(...)."
                )
            return given
        kernel = clone(as_kernel(given.kernel if isinstance(given, Exact) else given))
        exactly = isinstance(given, Exact) or kernel.is_matrix or self._wants_exact()
        if stands_for is not None and isinstance(given, Exact):
            raise ValueError(
                f"{type(self).__name__} works on features here, which an exact kernel does not "
                f"have: use kernel={given.kernel!r}, or an approximation of it."
            )
        if stands_for is None:
            small = Gram(kernel, rows).fits
            if exactly or (small() and self._estimate(rows, given=kernel).fits()):
                return kernel
            stands_for = self._default_approximation
        return self._affordable(stands_for(kernel, rows.shape[0]), rows)

    def _affordable(self, default: Any, rows: Rows) -> Approximation:
        """The default with as many landmarks as the memory budget has room for."""
        while default.n_components > LEAST_LANDMARKS:
            if self._estimate(rows, given=default).fits():
                break
            fewer = max(int(0.9 * default.n_components), LEAST_LANDMARKS)
            default = clone(default).set_params(n_components=fewer)
        return default

    # What a fit takes in memory.

    def _steps(
        self,
        rows: Rows,
        *,
        given: Kernel | Approximation | None = None,
        n_targets: int = 1,
        **about: Any,
    ) -> list[Amounts]:
        given = self._stand_in(rows, self._fits_features()) if given is None else given
        if not isinstance(given, Approximation):
            return self._exact_steps(Gram(given, rows), n_targets)
        plan = given.plan(rows)
        config.hold(sum(plan.kept.values()))
        own = self._factored_steps(plan, n_targets)
        return [*plan.steps, *({**plan.kept, **step} for step in own)]

    def _fits_features(self) -> Callable[[Kernel, int], Approximation] | None:
        """What stands for a bare kernel in ``fit`` whatever the number of rows, if anything."""
        return None

    def _exact_steps(self, gram: Gram, n_targets: int) -> list[Amounts]:
        """What the fit on an exact matrix takes, at each of its steps."""
        raise NotImplementedError(f"{type(self).__name__} must implement _exact_steps.")

    @abstractmethod
    def _factored_steps(self, plan: Plan, n_targets: int) -> list[Amounts]:
        """What the fit on factors takes, at each of its steps, beside what is kept of the plan."""

    def _keeping(
        self, factors: Factors, beside: Amounts, *, partly: bool = False, half: bool = False,
        name: str = "features",
    ) -> Amounts:  # fmt: skip
        """``beside``, and as much of Z as the fit then keeps: see ``_room``."""
        count = keepable(factors, self._room(beside), partly=partly, half=half)
        n = factors.shape[0]
        name = name if count == n else f"{name} of {100 * count // n} % of the rows"
        return {name: factors.parts.kept_bytes(count, half=half), **beside}

    @staticmethod
    def _room(beside: Amounts) -> int:
        """What is left of the memory budget for features."""
        return max(config.memory_budget() - sum(beside.values()), 0)

    def _approximate(
        self,
        given: Approximation,
        rows: Rows,
        rng: np.random.Generator,
        weights: Array | None,
        y: Any,
    ) -> Training:
        """Factors of the rows; an approximation that is fitted already is used as it is."""
        if not hasattr(given, "n_components_"):
            own = rng if given.random_state is None else generator(given.random_state)
            kept = given.plan(rows).kept
            given = clone(given).fit_rows(rows, own, y, weights)
            config.hold(sum(kept.values()))
        self.kernel_, self.approximation_, self.points_ = given.kernel_, given, None
        return Training(given.factor_rows(rows), rows, weights, rows)

    def _batch(
        self,
        X: Any,
        rng: np.random.Generator,
        *,
        first: bool,
        sample_weight: Any = None,
        y: Any = None,
    ) -> Training:
        """The factors of a batch of rows; the first one fits the approximation."""
        if not first:
            rows = self._read(X, reset=False)
            assert self.approximation_ is not None
            factors = self.approximation_.factor_rows(rows)
            return Training(factors, rows, as_weights(sample_weight, rows), rows)
        name, given = type(self).__name__, self.kernel
        if isinstance(given, Exact):
            raise ValueError(
                f"partial_fit of {name} needs features: give an approximation, such as "
                f"kernel=Nystroem(kernel, 1000), in place of {given!r}."
            )
        known = hasattr(given, "n_components_")
        rows = self._read(X, reset=True, min_rows=1 if known else 2)
        if not isinstance(given, Approximation):
            given = self._default_approximation(as_kernel(given), rows.shape[0])
        return self._approximate(given, rows, rng, as_weights(sample_weight, rows), y)

    def _new_rows(self, X: Any, learned: Array) -> NewRows:
        """Check new rows and multiply their kernel values, or features, with what was learned."""
        check_is_fitted(self, "kernel_")
        rows = self._read(X, reset=False)
        if self.approximation_ is not None:
            factors = self.approximation_.factor_rows(rows)
            return NewRows(rows, factors.features_matmul(learned), factors, factors.dtype)
        gram = Gram(self.kernel_, rows, self.points_)
        product = gram.matmul(learned)
        product = array_ops.astype(product, array_ops.namespace(product).float64)
        return NewRows(rows, product, None, gram.dtype)


def as_targets(owner: Any, y: Any, rows: Rows) -> Array:
    """y as floating-point numbers of the rows' array library, one entry or line for each row."""
    check_target(owner, y)
    y = rows.place.targets(y, owner)
    check_consistent_length(rows, y)
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions; got shape {tuple(y.shape)}.")
    return rows.place.align(y, rows.xp.float64)


def missing_target(owner: Any) -> NoReturn:
    raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")


def check_target(owner: Any, y: Any) -> None:
    """Refuse a y that is missing, or holds text, before anything that takes long."""
    if y is None:
        missing_target(owner)
    text = _text_in(y)
    if text is not None:
        raise ValueError(
            f"y of {type(owner).__name__} must hold numbers; got text{text}. For classes, use "
            "KernelRidgeClassifier."
        )


def _text_in(y: Any) -> str | None:
    """What to say of text among targets, " such as 'a'" or nothing; None where there is none."""
    if array_ops.is_foreign(y):  # of which some libraries know text, and torch has no kinds
        return "" if getattr(y.dtype, "kind", "f") in "US" else None
    if array_ops.issparse(y) or np.asarray(y).dtype.kind not in "OUST":
        return None
    texts = [v for v in np.asarray(y, dtype=object).ravel() if isinstance(v, str | bytes)]
    words = [text for text in texts if not _is_number(text)]
    if not words and np.asarray(y).dtype.kind == "O":  # scikit-learn reads '1.5' as a number there
        return None
    return f" such as {(words or texts)[0]!r:.40}"


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def as_weights(sample_weight: Any, rows: Rows) -> Array | None:
    """Sample weights as float64, one for each row; None stays None."""
    if sample_weight is None:
        return None
    weights = array_ops.settled(rows.place.column(sample_weight, np.float64))
    if weights.ndim == 0:
        weights = np.full(rows.shape[0], float(weights))
    if weights.shape != (rows.shape[0],):
        raise ValueError(
            f"sample_weight must have one number for each of the {counted(rows.shape[0], 'row')}; "
            f"got shape {weights.shape}."
        )
    if not array_ops.all_finite(weights) or bool((weights < 0).any()):
        raise ValueError("sample_weight must be finite and not negative.")
    if not bool(weights.any()):
        raise ValueError("sample_weight must not be zero for every row.")
    return rows.place.align(weights, rows.xp.float64)

"""Base class of all learners: the parameter ``kernel``, fits by strategies, and new rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Exact
from gramian.approximations.base import Plan
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array, DType
from gramian.backend.memory import Amounts
from gramian.backend.wording import counted
from gramian.estimators.base import KernelEstimator, generator
from gramian.estimators.parameters import KernelLike, RowsLike
from gramian.kernels import Kernel, as_kernel
from gramian.learners.strategy import Problem, Strategy
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import Rows

LEAST_LANDMARKS = 100  # of a default approximation, even if they exceed the memory budget

LearnerKernel: TypeAlias = KernelLike | Approximation | Exact
# Returns the approximation of a plain kernel for a number of rows.
Approximate: TypeAlias = Callable[[Kernel, int], Approximation]


class NewRows(NamedTuple):
    """New rows, and the product of their kernel values or features with what was learned."""

    rows: Rows
    product: Array  # (n, columns of what was learned), in float64
    factors: Factors | None
    dtype: DType


class KernelLearner(KernelEstimator, BaseEstimator):
    """Base class of learners.

    A subclass has the parameter ``kernel``: a name, a function, a kernel, an approximation, or
    :class:`gramian.Exact`. A plain kernel is used exactly while its matrix is small enough to
    store, and otherwise through the approximation that ``_default_approximation`` returns. After
    the fit, ``kernel_`` is the kernel with its parameters fitted, ``approximation_`` the
    approximation in use or None, and ``points_`` the training rows if there is no approximation.
    """

    strategies: ClassVar[Sequence[Strategy[Any]]]  # in order of preference
    solver: str
    solves_factors = False  # whether ``solver`` may also be set with an approximation
    kernel_: Kernel
    approximation_: Approximation | None
    points_: Rows | None

    @abstractmethod
    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Fit to the rows X, and to y if there is a target."""

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        """Return the approximation of a plain kernel on n rows, too many for the exact matrix.

        It is not called if ``_fits_features`` returns a function.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement _default_approximation.")

    def _wants_exact(self) -> bool:
        """Whether the learner's other parameters require the exact matrix of a plain kernel."""
        return getattr(self, "solver", "auto") != "auto"

    def _has_features(self) -> bool:
        """Whether rows have features: not with the exact matrix, or one that is exact in blocks."""
        return getattr(self.kernel, "has_features", True)

    def _check_features(self, what: str) -> None:
        if not self._has_features():
            raise ValueError(
                f"{what} of {type(self).__name__} needs features: use an approximation, such as "
                f"kernel=Nystroem(kernel, 1000), instead of {self.kernel!r}."
            )

    # The problem of a fit: rows, weights, and the exact or approximate kernel matrix.

    def _problem(
        self,
        X: RowsLike,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
        y: Array | None = None,
        approximate: Approximate | None = None,
    ) -> Any:
        """Check X, fit the kernel or its approximation, and pose the problem.

        ``approximate`` returns the approximation of a plain kernel for any number of rows, for fits
        that need features; by default it is that of ``_fits_features``.
        """
        input_rows = rows = self._read(X, reset=True, min_rows=2)
        weights = as_weights(sample_weight, rows)
        planned = self._planned(rows, approximate or self._fits_features())
        if isinstance(planned, Gram):
            rows = input_rows.place.here(input_rows)  # one process computes the exact matrix
            if rows is not input_rows:
                weights = None if weights is None else rows.place.align(weights)
                config.hold(rows.shape[0] * rows.row_bytes)
                planned = Gram(planned.kernel, rows)
        shape: tuple[int, ...] = getattr(y, "shape", ())
        n_targets = shape[1] if len(shape) > 1 else 1
        costs = self._estimates(rows, planned=planned, n_targets=n_targets)
        advice = partial(self._advice, planned, n_targets)
        too_large = self._check_memory(costs, rows, advice)
        return self._pose(
            matrix=self._matrix(planned, rng, weights, y),
            n_targets=n_targets,
            rows=rows,
            input_rows=input_rows,
            weights=weights,
            rng=rng,
            too_large=too_large,
        )

    def _advice(self, planned: Gram | Plan, n_targets: int) -> str:
        """Return what to do if a fit takes too much memory."""
        if isinstance(planned, Plan):
            return planned.approximation.advice()
        return "Use an approximation with fewer n_components"

    def _pose(self, **known: Any) -> Problem:
        """Make the problem of this learner from what is known of it, and the parameters."""
        return Problem(**known)

    def _choose(self, problem: Problem) -> Strategy[Any]:
        """Return the first strategy that serves the problem and fits the memory budget."""
        first = None
        for strategy in self.strategies:
            if strategy.serves(problem):
                if strategy not in problem.too_large:
                    return strategy
                first = first or strategy
        assert first is not None, "no strategy serves the problem"
        return first

    def _planned(self, rows: Rows, approximate: Approximate | None) -> Gram | Plan:
        """Return the exact matrix, or the plan of the approximation, that the fit will use."""
        param = self.kernel
        if approximate is not None and not self._has_features():
            raise ValueError(
                f"{type(self).__name__} needs features here, which {type(param).__name__} does not "
                f"have: use kernel={param.kernel!r}, or an approximation of it."
            )
        if isinstance(param, Approximation):
            if self._wants_exact() and not self.solves_factors:
                raise ValueError(
                    f"solver={self.solver!r} of {type(self).__name__} is for the exact matrix; "
                    "leave it 'auto' with an approximation, or use kernel=Exact(...)."
                )
            return param.plan(rows)
        kernel = clone(as_kernel(param.kernel if isinstance(param, Exact) else param))
        if approximate is None:
            gram = Gram(kernel, rows)
            exactly = isinstance(param, Exact) or kernel.is_matrix or self._wants_exact()
            if exactly or (gram.fits() and self._estimate(rows, planned=gram).fits()):
                return gram
            approximate = self._default_approximation
        return self._affordable(approximate(kernel, rows.shape[0]), rows)

    def _affordable(self, default: Any, rows: Rows) -> Plan:
        """Plan the default approximation with as many landmarks as fit the memory budget."""
        while True:
            plan, count = default.plan(rows), default.n_components
            if count <= LEAST_LANDMARKS or self._estimate(rows, planned=plan).fits():
                return plan
            fewer = max(int(0.9 * count), LEAST_LANDMARKS)
            default = clone(default).set_params(n_components=fewer)

    def _fits_features(self) -> Approximate | None:
        """Return what approximates a plain kernel in ``fit`` even for few rows, if anything."""
        return None

    def _ways(
        self, rows: Rows, *, planned: Gram | Plan | None = None, n_targets: int = 1, **known: Any
    ) -> Mapping[Hashable, Sequence[Amounts]]:
        if planned is None:
            planned = self._planned(rows, self._fits_features())
        elif planned.rows is not rows:  # an estimate may replace the rows by planned ones
            if isinstance(planned, Gram):
                planned = Gram(planned.kernel, rows)
            else:
                planned = planned.approximation.plan(rows)
        fitted: Amounts = {}
        before: Sequence[Amounts] = ()
        matrix: Gram | Factors
        if isinstance(planned, Gram):
            matrix = planned
        else:
            matrix, fitted, before = planned.factors, planned.kept, planned.steps
            config.hold(sum(fitted.values()))
        problem = self._pose(matrix=matrix, rows=rows, n_targets=n_targets)
        ways: dict[Hashable, Sequence[Amounts]] = {}
        for strategy in self.strategies:
            if strategy.serves(problem):
                steps = [{**fitted, **step} for step in strategy.memory(problem)]
                ways[strategy] = [*before, *steps]
        return ways

    def _matrix(
        self, planned: Gram | Plan, rng: np.random.Generator, weights: Array | None, y: Array | None
    ) -> Gram | Factors:
        """Fit the kernel or the approximation, and return its exact matrix or its factors."""
        if isinstance(planned, Plan):
            return self._factors(planned, rng, weights, y)
        kernel, rows = planned.kernel, planned.rows
        # A separate generator, so that the learner's draws do not depend on the kernel's.
        kernel.fit_rows(rows, np.random.default_rng(rng.integers(2**63)), weights, y)
        kernel.check_values(rows)
        self.kernel_, self.approximation_ = kernel, None
        self.points_ = kernel.points(rows)
        return Gram(kernel, rows)

    def _factors(
        self, plan: Plan, rng: np.random.Generator, weights: Array | None, y: Array | None
    ) -> Factors:
        """Return the factors of the rows; fits the approximation unless it is fitted already."""
        fitted, rows = plan.approximation, plan.rows
        if not hasattr(fitted, "n_components_"):
            draws = rng if fitted.random_state is None else generator(fitted.random_state)
            fitted = clone(fitted).fit_rows(rows, draws, y, weights, plan)
        config.hold(sum(plan.kept.values()))
        fitted = fitted.trained_on(rows)
        self.kernel_, self.approximation_, self.points_ = fitted.kernel_, fitted, None
        return fitted.factor_rows(rows)

    def _batch(
        self,
        X: RowsLike,
        rng: np.random.Generator | None,
        *,
        first: bool,
        sample_weight: Array | None = None,
        y: Array | None = None,
    ) -> Any:
        """Pose the problem of a batch of rows, with factors; the first fits the approximation."""
        self._check_features("partial_fit")
        if first:
            assert rng is not None
            rows, factors, weights = self._first_batch_of(X, rng, sample_weight, y)
        else:
            rows = self._read(X, reset=False)
            assert self.approximation_ is not None
            factors, weights = (
                self.approximation_.factor_rows(rows),
                as_weights(sample_weight, rows),
            )
        return self._pose(matrix=factors, rows=rows, input_rows=rows, weights=weights, rng=rng)

    def _first_batch_of(
        self, X: RowsLike, rng: np.random.Generator, sample_weight: Array | None, y: Array | None
    ) -> tuple[Rows, Factors, Array | None]:
        param = self.kernel
        fitted = hasattr(param, "n_components_")
        rows = self._read(X, reset=True, min_rows=1 if fitted else 2)
        if not isinstance(param, Approximation):
            param = self._default_approximation(as_kernel(param), rows.shape[0])
        weights = as_weights(sample_weight, rows)
        plan = param.plan(rows) if fitted else param.checked_plan(rows)
        return rows, self._factors(plan, rng, weights, y), weights

    def _function(self, learned: Any) -> Any:
        """Return what was learned in the form that new rows are multiplied with.

        It is another form only for coefficients of training rows in blocks.
        """
        return learned if self.approximation_ is None else self.approximation_.expressed(learned)

    def _new_rows(self, X: RowsLike, learned: Any) -> NewRows:
        """Check new rows, and multiply their kernel values or features with what was learned.

        ``learned`` has shape (points, columns) or (features, columns).
        """
        check_is_fitted(self, "kernel_")
        rows = self._read(X, reset=False)
        if self.approximation_ is not None:
            product, factors = self.approximation_.values(rows, learned)
            return NewRows(rows, self._finite(product), factors, rows.dtype)
        gram = Gram(self.kernel_, rows, self.points_)
        product = gram.matmul(learned)
        product = self._finite(array_ops.astype(product, array_ops.namespace(product).float64))
        return NewRows(rows, product, None, rows.dtype)


def as_targets(owner: object, y: Array | None, rows: Rows) -> Array:
    """Convert y to float64 in the rows' array library; shape (n,) or (n, n_targets)."""
    check_target(owner, y)
    y = rows.place.targets(y, owner)
    check_consistent_length(rows, y)
    if y.ndim > 2:
        raise ValueError(f"y must have one or two dimensions; got shape {tuple(y.shape)}.")
    return rows.place.align(y, rows.xp.float64)


def missing_target(owner: object) -> NoReturn:
    raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None.")


def check_target(owner: object, y: Array | None) -> None:
    """Raise an error if y is missing or contains text, before any long computation."""
    if y is None:
        missing_target(owner)
    text = _text_in(y)
    if text is not None:
        raise ValueError(
            f"y of {type(owner).__name__} must be numeric; got text{text}. For classes, use "
            "KernelRidgeClassifier."
        )


def _text_in(y: Array) -> str | None:
    """Return an example of text among the targets, as " such as 'a'" or ""; None without text."""
    if array_ops.is_foreign(y):  # some libraries have text; dtypes of torch have no kinds
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


def as_weights(sample_weight: Array | None, rows: Rows) -> Array | None:
    """Check sample weights and convert them to float64, shape (n,); None stays None."""
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

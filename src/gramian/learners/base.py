"""What all learners share: the parameter ``kernel``, and how new rows meet what was learned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Exact, Local
from gramian.approximations.base import Plan
from gramian.backend import array_ops, config
from gramian.backend.array_ops import Array
from gramian.backend.memory import Amounts
from gramian.backend.wording import counted
from gramian.estimators.base import KernelEstimator, affordable, generator
from gramian.kernels import Kernel, as_kernel
from gramian.learners.strategy import Problem, Strategy
from gramian.matrices.block_function import BlockFunction
from gramian.matrices.factors import Factors
from gramian.matrices.gram import Gram
from gramian.rows import Rows

LEAST_LANDMARKS = 100  # of a default approximation, whatever the memory budget


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

    strategies: ClassVar[Sequence[Strategy[Any]]]  # in order of preference
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

        It is not asked for where ``_fits_features`` gives something.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement _default_approximation.")

    def _wants_exact(self) -> bool:
        """Whether the learner's other parameters ask for the exact matrix of a bare kernel."""
        return getattr(self, "solver", "auto") != "auto"

    # What the fit is about: rows, weights, and what stands for the kernel.

    def _problem(
        self,
        X: Any,
        rng: np.random.Generator,
        sample_weight: Any = None,
        y: Any = None,
        stands_for: Callable[[Kernel, int], Approximation] | None = None,
    ) -> Any:
        """Check X, work out the kernel or its approximation on it, and pose the problem.

        ``stands_for`` says what a bare kernel stands for whatever the number of rows, where
        something needs features. By default that is left to ``_fits_features``.
        """
        given = rows = self._read(X, reset=True, min_rows=2)
        weights = as_weights(sample_weight, rows)
        planned = self._stand_in(rows, stands_for or self._fits_features())
        if isinstance(planned, Gram):
            rows = given.place.here(given)  # the matrix is made in one piece
            if rows is not given:
                weights = None if weights is None else rows.place.align(weights)
                config.hold(rows.shape[0] * rows.row_bytes)
                planned = Gram(planned.kernel, rows)
        shape: tuple[int, ...] = getattr(y, "shape", ())
        n_targets = shape[1] if len(shape) > 1 else 1
        costs = self._estimates(rows, planned=planned, n_targets=n_targets)
        self._check_memory(affordable(costs), rows, "Use an approximation with fewer n_components")
        return self._pose(
            matrix=self._matrix(planned, rng, weights, y),
            n_targets=n_targets,
            rows=rows,
            given=given,
            weights=weights,
            rng=rng,
            too_large=frozenset(way for way, cost in costs.items() if not cost.fits()),
        )

    def _pose(self, **known: Any) -> Problem:
        """The problem of this learner: what is known of it, and the parameters."""
        return Problem(**known)

    def _choose(self, problem: Any) -> Strategy[Any]:
        """The first strategy that serves the problem and fits the memory budget."""
        serving = [strategy for strategy in self.strategies if strategy.serves(problem)]
        return next((each for each in serving if each not in problem.too_large), serving[0])

    def _stand_in(
        self, rows: Rows, stands_for: Callable[[Kernel, int], Approximation] | None
    ) -> Gram | Plan:
        """What the fit works with: the exact matrix, or an approximation as it is planned."""
        given = self.kernel
        if stands_for is not None and isinstance(given, Exact | Local):
            raise ValueError(
                f"{type(self).__name__} works on features here, which {type(given).__name__} does "
                f"not have: use kernel={given.kernel!r}."
            )
        if isinstance(given, Approximation):
            if self._wants_exact() and not self.solves_factors:
                raise ValueError(
                    f"solver={self.solver!r} of {type(self).__name__} is for the exact matrix; "
                    "leave it 'auto' with an approximation, or use kernel=Exact(...)."
                )
            return given.plan(rows)
        kernel = clone(as_kernel(given.kernel if isinstance(given, Exact) else given))
        if stands_for is None:
            gram = Gram(kernel, rows)
            exactly = isinstance(given, Exact) or kernel.is_matrix or self._wants_exact()
            if exactly or (gram.fits() and self._estimate(rows, planned=gram).fits()):
                return gram
            stands_for = self._default_approximation
        return self._affordable(stands_for(kernel, rows.shape[0]), rows)

    def _affordable(self, default: Any, rows: Rows) -> Plan:
        """The default with as many landmarks as the memory budget has room for."""
        while True:
            plan, count = default.plan(rows), default.n_components
            if count <= LEAST_LANDMARKS or self._estimate(rows, planned=plan).fits():
                return plan
            fewer = max(int(0.9 * count), LEAST_LANDMARKS)
            default = clone(default).set_params(n_components=fewer)

    def _fits_features(self) -> Callable[[Kernel, int], Approximation] | None:
        """What stands for a bare kernel in ``fit`` whatever the number of rows, if anything."""
        return None

    def _ways(
        self, rows: Rows, *, planned: Gram | Plan | None = None, n_targets: int = 1, **known: Any
    ) -> Mapping[Any, Sequence[Amounts]]:
        if planned is None:
            planned = self._stand_in(rows, self._fits_features())
        elif planned.rows is not rows:  # planned rows may stand for those of the fit
            if isinstance(planned, Gram):
                planned = Gram(planned.kernel, rows)
            else:
                planned = planned.approximation.plan(rows)
        kept: Amounts = {}
        before: Sequence[Amounts] = ()
        matrix: Gram | Factors
        if isinstance(planned, Gram):
            matrix = planned
        else:
            matrix, kept, before = planned.factors, planned.kept, planned.steps
            config.hold(sum(kept.values()))
        problem = self._pose(matrix=matrix, rows=rows, n_targets=n_targets)
        return {
            strategy: [*before, *({**kept, **step} for step in strategy.memory(problem))]
            for strategy in self.strategies
            if strategy.serves(problem)
        }

    def _matrix(
        self, planned: Gram | Plan, rng: np.random.Generator, weights: Array | None, y: Any
    ) -> Gram | Factors:
        """The exact matrix of the fitted kernel, or factors of the fitted approximation."""
        if isinstance(planned, Plan):
            return self._factors(planned, rng, weights, y)
        kernel, rows = planned.kernel, planned.rows
        # A generator of its own: what the kernel draws changes nothing for the learner.
        kernel.fit_rows(rows, np.random.default_rng(rng.integers(2**63)), weights)
        self.kernel_, self.approximation_ = kernel, None
        self.points_ = kernel.points(rows)
        return Gram(kernel, rows)

    def _factors(
        self, plan: Plan, rng: np.random.Generator, weights: Array | None, y: Any
    ) -> Factors:
        """Factors of the rows; an approximation that is fitted already is used as it is."""
        fitted, rows = plan.approximation, plan.rows
        if not hasattr(fitted, "n_components_"):
            own = rng if fitted.random_state is None else generator(fitted.random_state)
            fitted = clone(fitted).fit_rows(rows, own, y, weights, plan)
            config.hold(sum(plan.kept.values()))
        self.kernel_, self.approximation_, self.points_ = fitted.kernel_, fitted, None
        return fitted.factor_rows(rows)

    def _batch(
        self,
        X: Any,
        rng: np.random.Generator | None,
        *,
        first: bool,
        sample_weight: Any = None,
        y: Any = None,
    ) -> Any:
        """The problem of a batch of rows, on factors; the first one fits the approximation."""
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
        return self._pose(matrix=factors, rows=rows, given=rows, weights=weights, rng=rng)

    def _first_batch_of(
        self, X: Any, rng: np.random.Generator, sample_weight: Any, y: Any
    ) -> tuple[Rows, Factors, Array | None]:
        name, given = type(self).__name__, self.kernel
        if isinstance(given, Exact | Local):
            raise ValueError(
                f"partial_fit of {name} needs features: give an approximation, such as "
                f"kernel=Nystroem(kernel, 1000), in place of {given!r}."
            )
        fitted = hasattr(given, "n_components_")
        rows = self._read(X, reset=True, min_rows=1 if fitted else 2)
        if not isinstance(given, Approximation):
            given = self._default_approximation(as_kernel(given), rows.shape[0])
        weights = as_weights(sample_weight, rows)
        plan = given.plan(rows) if fitted else given.checked_plan(rows)
        return rows, self._factors(plan, rng, weights, y), weights

    def _function(self, learned: Any) -> Any:
        """What was learned in the form that new rows are multiplied with.

        That is the same, except where coefficients of training rows meet blocks of them.
        """
        if isinstance(self.approximation_, Local) and not isinstance(learned, BlockFunction):
            return self.approximation_.expressed(learned)
        return learned

    def _new_rows(self, X: Any, learned: Any) -> NewRows:
        """Check new rows and multiply their kernel values, or features, with what was learned."""
        check_is_fitted(self, "kernel_")
        rows = self._read(X, reset=False)
        if isinstance(self.approximation_, Local):
            values = self.approximation_.values(rows, self._function(learned))
            return NewRows(rows, values, None, self.approximation_._feature_dtype(rows))
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

"""Base class of kernel ridge regression and classification: parameters and strategies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Nystroem
from gramian.approximations.base import Plan
from gramian.approximations.nystroem import NystroemPlan
from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.backend.checks import choice, is_real, not_negative, positive_integer
from gramian.backend.memory import MemoryEstimate
from gramian.backend.wording import counted
from gramian.estimators.base import planned
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner
from gramian.learners.ridge.alpha_path import (
    ExactPath,
    FactoredPath,
    factored_path,
    warn_at_an_edge,
)
from gramian.learners.ridge.alpha_search import ExactSearch
from gramian.learners.ridge.blockwise import Blockwise
from gramian.learners.ridge.exact import ExactDirect, ExactIterative
from gramian.learners.ridge.factored import Factored, Sums, factored_direct
from gramian.learners.ridge.falkon import Streamed
from gramian.learners.ridge.landmark_count import LandmarkCount, most_landmarks
from gramian.learners.ridge.local import LocalDirect, LocalPath
from gramian.learners.ridge.rounding import (
    in_double,
    may_round_too_much,
    rounding_shows,
    rounds_too_much,
    sums_allow,
)
from gramian.learners.ridge.sampled import Sampled
from gramian.learners.ridge.systems import AlphaPath, Rule, Solution, System
from gramian.learners.strategy import Strategy
from gramian.matrices.factors import Factors, in_single

# With alphas that are set, in order of preference.
SOLVERS: tuple[Strategy[System], ...] = (
    LocalDirect(),
    ExactDirect(),
    ExactIterative(),
    Streamed(),
    Blockwise(),
    Factored(),
)


class RidgeLearner(KernelLearner):
    """The linear system (K + alpha I) a = y - b, and f(x) = Σ k(x, x_i) a_i + b."""

    strategies = (
        LocalPath(),
        ExactSearch(),
        ExactPath(),
        FactoredPath(),
        *(Sampled(solver) for solver in SOLVERS),
        *SOLVERS,
    )
    solves_factors = True
    _calibrates = False  # whether scores of left-out rows are wanted
    _one_alpha = False  # whether one alpha is chosen for all targets

    alpha: float | Array | tuple | Literal["loo", "gcv"]
    fit_intercept: bool
    tol: float
    max_iter: int
    validation_fraction: float | None
    random_state: RandomState

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        return Nystroem(kernel, most_landmarks(n))

    def _factors(
        self, plan: Plan, rng: np.random.Generator, weights: Array | None, y: Array | None
    ) -> Factors:
        if isinstance(self.kernel, Approximation) or not isinstance(plan, NystroemPlan):
            return super()._factors(plan, rng, weights, y)
        rule = self._rule()
        alphas = self._positive(self.alpha) if rule is None else rule.grid
        count = LandmarkCount(alphas, plan.count, weights)
        factors = super()._factors(replace(plan, settle=count), rng, weights, y)
        assert isinstance(self.approximation_, Nystroem)
        self.approximation_.n_components = len(self.approximation_.landmarks_)
        return factors

    def estimate_memory(
        self, n: int, d: int, *, dtype: DType = "float64", on_disk: bool = False, n_targets: int = 1
    ) -> MemoryEstimate:
        """Estimate the peak memory of ``fit``, in addition to its data.

        See :meth:`gramian.KernelKMeans.estimate_memory`. ``n_targets`` is the number of columns of
        y, or of classes.
        """
        t = positive_integer("estimate_memory", "n_targets", n_targets)
        return self._estimate(planned(n, d, dtype, on_disk), n_targets=t)

    def _pose(self, **known: Any) -> System:
        rule, matrix = self._rule(), known["matrix"]
        # A smaller tolerance than the rounding of products with the matrix cannot be reached.
        dtype = np.float64 if isinstance(matrix, Factors) else matrix.dtype
        return System(
            **known,
            solver=self.solver,
            rule=rule,
            intercept=bool(self.fit_intercept),
            calibrates=self._calibrates,
            alphas=np.ones(np.size(self.alpha)) if rule is None else np.empty(0),
            tol=max(self.tol, 50 * array_ops.eps(dtype)),
            max_iter=self.max_iter,
            validates=self.validation_fraction is not None,
        )

    def _with_targets(self, system: System, Y: Array) -> System:
        """Return the system for the columns of Y, shape (n, n_targets), in float64."""
        t = Y.shape[1]
        alphas = self._alphas(t) if system.rule is None else system.alphas
        return replace(system, Y=Y, n_targets=t, alphas=alphas)

    def _sharpened(self, system: System) -> System:
        """Return the system in float64 if float32 rows determine more than float32 can compute."""
        if array_ops.itemsize(system.matrix.dtype) == 8:
            return system
        if system.is_exact and not system.is_local:
            if isinstance(self._choose(system), ExactIterative):
                return system
            double = in_double(system)
            if double is not system:
                self.points_ = double.gram.points
            return double
        assert self.approximation_ is not None
        if not may_round_too_much(system):
            return system
        precise = self.approximation_.in_double(system.rows)
        if precise is None:
            return replace(system, rounds=True)
        if not system.is_local:
            if not rounding_shows(system, precise.factor_rows):
                return replace(system, rounds=True)
            # Kernel values lose most when they are computed, little when they are stored.
            stored = in_single(precise.factor_rows(system.rows))
            rounded = None if stored is None else replace(system, matrix=stored, rounds=True)
            if rounded is not None and not rounding_shows(rounded, precise.factor_rows):
                self.approximation_ = precise
                return rounded
        return self._in_double(system, precise)

    def _in_double(self, system: System, precise: Approximation) -> System:
        self.approximation_ = precise
        return replace(system, matrix=precise.factor_rows(system.rows))

    def _solve(self, system: System) -> Solution:
        """Solve the system with the preferred strategy, keep the solution and return it."""
        system, path = self._settled(system)
        system, means = self._sharpened(system).centred()
        solution = self._choose(system).solve(system)
        if path is not None:
            solution = solution._replace(path=path)
        precise = None
        default = system.rule is not None and system.rule.grid is None
        if default and solution.at_lower_end and self.approximation_ is not None:
            precise = self.approximation_.in_double(system.rows)
        if precise is not None:  # in float32, the path ended where rounding begins
            system = self._in_double(system, precise)
            solution = self._choose(system).solve(system)
        if solution.intercepts is not None:
            solution = solution._replace(intercepts=solution.intercepts + means)
        if solution.left_out is not None:
            solution = solution._replace(left_out=solution.left_out + means)
        self._keep(solution, system)
        return solution

    def _settled(self, system: System) -> tuple[System, AlphaPath | None]:
        """Set alpha if a sample of the rows chooses it; with the path that it is chosen from."""
        if system.rule is None:
            return system, None
        strategy = self._choose(system)
        if not isinstance(strategy, Sampled):
            return system, None
        found = strategy.solve(system)
        too_large = frozenset(each.solver for each in system.too_large if isinstance(each, Sampled))
        return replace(system.settled(found.alphas), too_large=too_large), found.path

    # All rows at once.

    def _check_parameters(self) -> None:
        """Check the parameters before any long computation."""
        name, fraction = type(self).__name__, self.validation_fraction
        solver = choice(self, "solver", self.solver, ("auto", "direct", "iterative"))
        not_negative(self, "tol", self.tol)
        positive_integer(self, "max_iter", self.max_iter)
        if self._rule() is None:
            self._positive(self.alpha)
        if fraction is None:
            return
        if not is_real(fraction) or not 0 < fraction < 1:
            raise ValueError(
                f"validation_fraction of {name} must be None or a number between 0 and 1; got "
                f"{fraction!r}."
            )
        if solver == "direct":
            raise ValueError(
                "validation_fraction stops an iteration early, but solver='direct' does not "
                "iterate: leave out one of them."
            )

    def _holding_out(self, system: System) -> System:
        """Split the weights between training rows and held-out rows; each is 0 for the other."""
        fraction = self.validation_fraction
        if fraction is None:
            return system
        rows = system.rows
        weights = np.ones(rows.shape[0])
        if system.weights is not None:
            weights = np.asarray(array_ops.to_numpy(system.weights))
        usable = np.flatnonzero(weights)
        count = max(round(fraction * len(usable)), 1)
        if count >= len(usable):
            raise ValueError(
                f"validation_fraction={fraction} leaves none of {counted(len(usable), 'row')} for "
                "training."
            )
        chosen = np.zeros(len(weights), dtype=bool)
        chosen[system.rng.choice(usable, count, replace=False)] = True
        parts = (np.where(chosen, 0.0, weights), np.where(chosen, weights, 0.0))
        training, held_out = (rows.place.align(part, rows.xp.float64) for part in parts)
        return replace(system, weights=training, held_out=held_out)

    # Batch by batch.

    def _add(self, system: System) -> None:
        """Add a batch to the sums, and solve for the coefficients."""
        if self.validation_fraction is not None:
            raise ValueError(
                f"partial_fit of {type(self).__name__} does not iterate: leave out "
                "validation_fraction, which applies only to fit."
            )
        # The rows of earlier batches are gone, so that none can be left out.
        rule = None if system.rule is None else system.rule._replace(error="gcv")
        factors, before = system.factors, self.__dict__.get("_sums")
        if before is not None and before.right.shape[1] != system.n_targets:
            raise ValueError(
                f"y has {counted(system.n_targets, 'target')}, but earlier batches had "
                f"{before.right.shape[1]}."
            )
        seen = 0 if before is None else before.rows
        given: Any = (factors, system.least_alpha, system.weights)
        precise = rounds_too_much(*given, seen=seen)
        late = precise and sums_allow(*given, seen=seen)
        precise = precise and not late
        sums = Sums.over(factors, system.Y, system.weights, precise=precise, late=late)
        sums = sums if before is None else before.plus(sums)
        if rule is None:
            theta, intercepts = factored_direct(
                sums, factors.core, system.alphas, intercept=system.intercept
            )
            solution = Solution(system.local(theta), intercepts)
        else:
            solution = factored_path(rule, sums, system)
        self._keep(solution, system)
        self._sums = sums

    # Alpha, and the fitted attributes.

    def _rule(self) -> Rule | None:
        """Return how alpha is chosen, or None if it is set."""
        alpha, grid = self.alpha, None
        if isinstance(alpha, tuple | list) and len(alpha) == 2 and isinstance(alpha[0], str):
            alpha, grid = alpha[0], self._positive(alpha[1])
        if not isinstance(alpha, str) or alpha not in ("loo", "gcv"):
            return None
        return Rule(alpha, grid, self._one_alpha)

    def _alphas(self, n_targets: int) -> np.ndarray:
        alphas = self._positive(self.alpha)
        if is_real(self.alpha):
            return np.full(n_targets, alphas[0])
        if len(alphas) != n_targets:
            raise ValueError(
                f"alpha has {counted(len(alphas), 'number')}, but y has "
                f"{counted(n_targets, 'target')}: pass one for each, or a single number."
            )
        return alphas

    def _positive(self, values: Array) -> np.ndarray:
        try:
            alphas = np.atleast_1d(np.asarray(array_ops.to_numpy(values)))
        except ValueError:  # lists of different lengths
            alphas = np.empty((0, 0))
        good = alphas.ndim == 1 and alphas.size and alphas.dtype.kind in "iuf"
        if not good or not np.isfinite(alphas).all() or (alphas <= 0).any():
            raise ValueError(
                f"alpha of {type(self).__name__} must be positive: a number, or one for each "
                "target; or 'loo' or 'gcv', alone or with positive numbers to choose from, as in "
                f"('loo', [0.1, 1.0]); got {self.alpha!r}."
            )
        return alphas.astype(np.float64)

    def _keep(self, solution: Solution, system: System) -> None:
        """Store the solution: as ``dual_coef_`` if K is exact, as ``coef_`` if approximated."""
        for name in ("coef_", "dual_coef_", "_sums"):  # of an earlier fit
            self.__dict__.pop(name, None)
        name = "dual_coef_" if system.is_exact else "coef_"
        learned = self._finite(solution.coefficients)
        setattr(self, name, learned)
        function = self._function(learned) if solution.function is None else solution.function
        self._learned = None if function is learned else function
        none = np.zeros(system.n_targets)
        self.intercept_: Any = none if solution.intercepts is None else solution.intercepts
        self.n_iter_ = solution.iterations
        self.residuals_ = np.array(solution.residuals)
        self.validation_errors_ = None if solution.errors is None else np.array(solution.errors)
        self.alpha_: Any = system.alphas if solution.alphas is None else solution.alphas
        self.path_ = solution.path
        if self._one_alpha and (solution.path is not None or is_real(self.alpha)):
            self._keep_one()
        warn_at_an_edge(solution, system.rule)
        if not solution.met:
            warnings.warn(
                f"Kernel ridge stopped after {counted(solution.iterations, 'iteration')} at a "
                f"relative residual of {solution.residuals[-1]:.1e}; requested "
                f"tol={system.tol:.1e}. Increase max_iter, tol or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep_one(self) -> None:
        """Reduce alpha_ to one number, for a single target or if all targets share it."""
        self.alpha_ = float(self.alpha_[0])
        if self.path_ is not None:
            self.path_ = self.path_._replace(errors=self.path_.errors.mean(axis=1))

    def _values(self, X: RowsLike, convert: Callable[[Array], Array] | None = None) -> Array:
        """Return K(X, training rows) @ dual_coef_ or features @ coef_, plus the intercept."""
        check_is_fitted(self, "n_iter_")
        coefficients = self.dual_coef_ if hasattr(self, "dual_coef_") else self.coef_
        learned = self.__dict__.get("_learned")
        new = self._new_rows(X, coefficients if learned is None else learned)
        if new.product.ndim > coefficients.ndim:
            new = new._replace(product=new.product[:, 0])
        values = new.product + array_ops.beside(self.intercept_, new.product)
        values = values if convert is None else convert(values)
        return new.rows.place.hand_back(array_ops.astype(values, new.dtype))

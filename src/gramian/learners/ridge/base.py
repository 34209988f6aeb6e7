"""What kernel ridge regression and classification share: parameters, and which way to solve."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Nystroem
from gramian.approximations.base import Plan
from gramian.backend import array_ops
from gramian.backend.array_ops import Array
from gramian.backend.checks import choice, is_real, not_negative, positive_integer
from gramian.backend.memory import Amounts, MemoryEstimate
from gramian.backend.wording import counted
from gramian.estimators.base import planned
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner, Training
from gramian.learners.ridge import factored, memory, systems
from gramian.learners.ridge.alpha_path import AlphaPath, Chosen, Rule, exact_path, factored_path
from gramian.learners.ridge.factored import Sums
from gramian.learners.ridge.falkon import iteration_pays, streamed_iteration, streams
from gramian.learners.ridge.systems import Solution, System
from gramian.matrices.factors import Factors, projected
from gramian.matrices.gram import Gram

MOST_ITERATIONS = 150  # over factors, where these were not asked for: a direct solution follows
LARGE_CORE = 4000  # beyond this many columns of Z, a system with links is solved by iteration


def _has_large_core(factors: Factors) -> bool:
    return factors.core is not None and factors.rank > LARGE_CORE


class RidgeLearner(KernelLearner):
    """The linear system (K + alpha I) a = y, and f(x) = Σ k(x, x_i) a_i."""

    solves_factors = True
    _one_alpha = False  # whether the targets belong together, so that one alpha is chosen for all

    alpha: Any
    tol: float
    max_iter: int
    validation_fraction: float | None
    random_state: Any

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        return Nystroem(kernel, max(int(n**0.5 * np.log(n)), 1))

    # What a fit takes in memory.

    def estimate_memory(
        self, n: int, d: int, *, dtype: Any = "float64", on_disk: bool = False, n_targets: int = 1
    ) -> MemoryEstimate:
        """The memory that ``fit`` takes beside its data, at its peak.

        See :meth:`gramian.KernelKMeans.estimate_memory`. ``n_targets`` are the columns of y, or the
        classes.
        """
        t = positive_integer("estimate_memory", "n_targets", n_targets)
        return self._estimate(planned(n, d, dtype, on_disk), n_targets=t)

    def _exact_steps(self, gram: Gram, n_targets: int) -> list[Amounts]:
        path, direct = self._rule() is not None, self._directly(gram)
        return memory.exact_steps(gram, n_targets, path=path, direct=direct)

    def _factored_steps(self, plan: Plan, n_targets: int) -> list[Amounts]:
        factors = plan.factors
        steps = self._solution_steps(factors, n_targets)
        steps = [{**memory.targets(factors, n_targets), **step} for step in steps]
        beside = memory.beside_iteration(factors, n_targets)
        if self._may_iterate(factors, n_targets, self._room(beside)):
            C = projected(factors) or factors
            steps.append(self._keeping(C, beside, partly=True, name="kernel values"))
        return steps

    def _solution_steps(self, factors: Factors, n_targets: int) -> list[Amounts]:
        """Those of any solution but passes over kernel values."""
        if self._rule() is not None:
            return memory.path_steps(factors, n_targets)
        if self._asks_for_iteration():
            return [] if streams(factors) else memory.blockwise_steps(factors)
        if self.solver == "auto" and _has_large_core(factors):
            return memory.blockwise_steps(factors)
        return memory.direct_steps(factors, np.size(self.alpha))

    def _may_iterate(self, factors: Factors, n_targets: int, room: int) -> bool:
        """Whether a fit may have passes over kernel values; rounding decides some cases."""
        if not streams(factors) or self._rule() is not None or self.solver == "direct":
            return False
        return self._asks_for_iteration() or any(
            iteration_pays(factors, n_targets, room, precise=p) for p in (False, True)
        )

    def _asks_for_iteration(self) -> bool:
        return self.solver == "iterative" or self.validation_fraction is not None

    # All rows at once.

    def _check_parameters(self) -> None:
        """Before anything that takes long."""
        name, rule, fraction = type(self).__name__, self._rule(), self.validation_fraction
        solver = choice(self, "solver", self.solver, ("auto", "direct", "iterative"))
        not_negative(self, "tol", self.tol)
        positive_integer(self, "max_iter", self.max_iter)
        if rule is None:
            self._positive(self.alpha)
        elif solver == "iterative" or fraction is not None:
            raise ValueError(
                f"alpha={rule.error!r} of {name} needs a decomposition: leave out "
                "solver='iterative' and validation_fraction, or give alpha as a number."
            )
        if fraction is None:
            return
        if not is_real(fraction) or not 0 < fraction < 1:
            raise ValueError(
                f"validation_fraction of {name} must be None or a number between 0 and 1; got "
                f"{fraction!r}."
            )
        if solver == "direct":
            raise ValueError(
                "validation_fraction ends an iteration early, and solver='direct' does not "
                "iterate: leave out one of them."
            )

    def _solve(self, training: Training, Y: Array, rng: np.random.Generator) -> None:
        """Learn the coefficients for the columns of Y, in float64."""
        self.__dict__.pop("_sums", None)
        rule, system = self._rule(), self._system(training, Y, rng)
        if rule is not None:
            chosen = self._solve_path(rule, system)
            self._keep(Solution(chosen.coefficients), chosen.alphas, chosen.path)
            return
        on_factors = isinstance(training.matrix, Factors)
        solution = (self._solve_factors if on_factors else self._solve_exact)(system)
        self._keep(solution, system.alphas, None)
        if not solution.met:
            warnings.warn(
                f"Kernel ridge stopped after {counted(solution.iterations, 'iteration')} at a "
                f"relative residual of {solution.residuals[-1]:.1e}; asked for was "
                f"{system.tol:.1e}. Raise max_iter, tol or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _system(self, training: Training, Y: Array, rng: np.random.Generator) -> System:
        # No finer than products with the matrix can be.
        on_factors = isinstance(training.matrix, Factors)
        tol = max(self.tol, 50 * array_ops.eps(np.float64 if on_factors else training.matrix.dtype))
        alphas = np.empty(0) if self._rule() else self._alphas(Y.shape[1])
        weights, held_out = self._split(training, rng)
        return System(training.matrix, Y, alphas, weights, held_out, tol, self.max_iter, rng)

    def _split(
        self, training: Training, rng: np.random.Generator
    ) -> tuple[Array | None, Array | None]:
        """The weights of rows to learn from, and of those held out; 0 for the others."""
        fraction = self.validation_fraction
        if fraction is None:
            return training.weights, None
        rows = training.rows
        weights = np.ones(rows.shape[0])
        if training.weights is not None:
            weights = np.asarray(array_ops.to_numpy(training.weights))
        usable = np.flatnonzero(weights)
        count = max(round(fraction * len(usable)), 1)
        if count >= len(usable):
            raise ValueError(
                f"validation_fraction={fraction} leaves none of {counted(len(usable), 'row')} to "
                "learn from."
            )
        held = np.zeros(len(weights), dtype=bool)
        held[rng.choice(usable, count, replace=False)] = True
        parts = (np.where(held, 0.0, weights), np.where(held, weights, 0.0))
        learned, checked = (rows.place.align(part, rows.xp.float64) for part in parts)
        return learned, checked

    def _solve_exact(self, system: System) -> Solution:
        if self._directly(system.matrix):
            return systems.exact_direct(system)
        return systems.exact_iteration(system)

    def _directly(self, gram: Gram) -> bool:
        """Whether the exact matrix is to be factorised."""
        if self.solver == "auto":
            return self.validation_fraction is None and gram.fits()
        return self.solver == "direct"

    def _solve_factors(self, system: System) -> Solution:
        factors: Factors = system.matrix
        one_part, n_targets = streams(factors), system.Y.shape[1]
        precise = one_part and factored.rounds_too_much(system, system.alphas.min())
        room = self._room(memory.beside_iteration(factors, n_targets)) if one_part else 0
        if self._asks_for_iteration():
            if one_part:
                return streamed_iteration(system, room, precise=precise)
            return factored.factored_iteration(system)
        if self.solver == "auto":
            if one_part and iteration_pays(factors, n_targets, room, precise=precise):
                most = min(system.max_iter, MOST_ITERATIONS)
                solution = streamed_iteration(system._replace(max_iter=most), room, precise=precise)
                if solution.met:
                    return solution
            elif _has_large_core(factors):
                return factored.factored_iteration(system)
        sums = Sums.over(factors, system.Y, system.weights, precise=precise)
        theta = factored.factored_direct(sums, factors.core, system.alphas)
        return Solution(system.local(theta))

    def _solve_path(self, rule: Rule, system: System) -> Chosen:
        factors = system.matrix
        if not isinstance(factors, Factors):
            return exact_path(rule, system)
        least = None if rule.grid is None else float(rule.grid.min())
        precise = factored.rounds_too_much(system, least)
        sums = Sums.over(factors, system.Y, system.weights, precise=precise)
        chosen = factored_path(rule, sums, factors.core, factors.dtype, system, precise=precise)
        return chosen._replace(coefficients=system.local(chosen.coefficients))

    # Batch by batch.

    def _add(self, training: Training, Y: Array) -> None:
        """Add a batch to the sums, and learn from them."""
        rule = self._rule()
        if self.validation_fraction is not None:
            raise ValueError(
                f"partial_fit of {type(self).__name__} does not iterate: leave out "
                "validation_fraction, which is for fit."
            )
        if rule is not None and rule.error == "loo":
            raise ValueError(
                "alpha='loo' needs all rows at once; with partial_fit, use alpha='gcv'."
            )
        factors, before = training.matrix, self.__dict__.get("_sums")
        assert isinstance(factors, Factors)
        if before is not None and before.right.shape[1] != Y.shape[1]:
            raise ValueError(
                f"y has {counted(Y.shape[1], 'target')}, but earlier batches had "
                f"{before.right.shape[1]}."
            )
        alphas = np.empty(0) if rule else self._alphas(Y.shape[1])
        least = float(alphas.min()) if rule is None else None
        if rule is not None and rule.grid is not None:
            least = float(rule.grid.min())
        system = System(factors, Y, alphas, training.weights, None, 0.0, 1, np.random.default_rng())
        seen = 0 if before is None else before.rows
        precise = factored.rounds_too_much(system, least, seen=seen)
        sums = Sums.over(factors, Y, training.weights, precise=precise)
        sums = sums if before is None else before.plus(sums)
        path = None
        if rule is None:
            theta = factored.factored_direct(sums, factors.core, alphas)
        else:
            theta, alphas, path = factored_path(rule, sums, factors.core, factors.dtype)
        self._keep(Solution(system.local(theta)), alphas, path)
        self._sums = sums

    # What is known of alpha, and what is kept.

    def _rule(self) -> Rule | None:
        """How alpha is to be chosen, or None where it is given."""
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
                f"{counted(n_targets, 'target')}: give one for each, or a single number."
            )
        return alphas

    def _positive(self, values: Any) -> np.ndarray:
        try:
            alphas = np.atleast_1d(np.asarray(array_ops.to_numpy(values)))
        except ValueError:  # lists of different lengths
            alphas = np.empty((0, 0))
        good = alphas.ndim == 1 and alphas.size and alphas.dtype.kind in "iuf"
        if not good or not np.isfinite(alphas).all() or (alphas <= 0).any():
            raise ValueError(
                f"alpha of {type(self).__name__} must be positive, a number or one for each "
                "target; or 'loo' or 'gcv', alone or with positive numbers to choose from, as in "
                f"('loo', [0.1, 1.0]); got {self.alpha!r}."
            )
        return alphas.astype(np.float64)

    def _keep(self, solution: Solution, alphas: np.ndarray, path: AlphaPath | None) -> None:
        """As ``dual_coef_`` where K is exact, as ``coef_`` where it is approximated."""
        for name in ("coef_", "dual_coef_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        name = "dual_coef_" if self.approximation_ is None else "coef_"
        setattr(self, name, solution.coefficients)
        self.n_iter_ = solution.iterations
        self.residuals_ = np.array(solution.residuals)
        self.validation_errors_ = None if solution.errors is None else np.array(solution.errors)
        self.alpha_: Any = alphas
        self.path_ = path
        if self._one_alpha and (path is not None or is_real(self.alpha)):
            self._keep_one()

    def _keep_one(self) -> None:
        """State one alpha, and one error of each, where there is a single target or one for all."""
        self.alpha_ = float(self.alpha_[0])
        if self.path_ is not None:
            self.path_ = self.path_._replace(errors=self.path_.errors.mean(axis=1))

    def _values(self, X: Any) -> Array:
        """K(X, training rows) @ dual_coef_, or the features of X @ coef_."""
        check_is_fitted(self, "n_iter_")
        new = self._new_rows(X, self.dual_coef_ if self.approximation_ is None else self.coef_)
        return new.rows.place.hand_back(array_ops.astype(new.product, new.dtype))

"""Base class of the learners with a loss: parameters, strategies and predictions."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from gramian.approximations import Approximation, Nystroem
from gramian.backend import array_ops
from gramian.backend.array_ops import Array, DType
from gramian.backend.checks import is_real, positive, positive_integer
from gramian.backend.memory import MemoryEstimate
from gramian.backend.wording import counted, shown
from gramian.estimators.base import planned
from gramian.estimators.parameters import RandomState, RowsLike
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner, as_targets, check_target
from gramian.learners.losses.exact import ExactNewton
from gramian.learners.losses.exact_features import ExactFeatures
from gramian.learners.losses.factored import Summed
from gramian.learners.losses.iterated import Iterated
from gramian.learners.losses.kinks import InteriorPoints
from gramian.learners.losses.leaving_out import default_alphas
from gramian.learners.losses.local import LocalNewton
from gramian.learners.losses.loss import Loss
from gramian.learners.losses.problem import LossProblem, LossSolution
from gramian.learners.losses.support_vectors import SupportVectors
from gramian.learners.losses.units import in_unit, out_of_unit, unit_of
from gramian.matrices.block_function import BlockFunction
from gramian.rows import Rows


class LossLearner(KernelLearner):
    """The minimum of Σ w ℓ(y, f(x)) + ½ alpha ‖f‖², with f(x) = Σ k(x, x_i) a_i + b.

    The intercept b has no penalty. A subclass defines ``_loss``.
    """

    strategies = (
        SupportVectors(LocalNewton(), ExactNewton(), InteriorPoints(), Summed()),
        LocalNewton(),
        ExactFeatures(ExactNewton()),
        ExactNewton(),
        InteriorPoints(),
        Iterated(),
        Summed(),
    )

    alpha: float | tuple | Literal["loo"]
    fit_intercept: bool
    tol: float
    max_iter: int
    random_state: RandomState

    @abstractmethod
    def _loss(self, n_targets: int) -> Loss:
        """Return the loss, for this number of targets or classes."""

    def _default_approximation(self, kernel: Kernel, n: int) -> Approximation:
        return Nystroem(kernel, max(int(n**0.5 * np.log(n)), 1))

    def estimate_memory(
        self, n: int, d: int, *, dtype: DType = "float64", on_disk: bool = False, n_targets: int = 1
    ) -> MemoryEstimate:
        """Estimate the peak memory of ``fit``, in addition to its data.

        See :meth:`gramian.KernelKMeans.estimate_memory`. ``n_targets`` is the number of classes of
        a classifier.
        """
        t = positive_integer("estimate_memory", "n_targets", n_targets)
        return self._estimate(planned(n, d, dtype, on_disk), n_targets=t)

    def _check_parameters(self) -> None:
        """Check the parameters before any long computation."""
        self._grid()
        positive(self, "tol", self.tol)
        positive_integer(self, "max_iter", self.max_iter)

    def _chooses(self) -> bool:
        """Whether alpha is chosen."""
        alpha = self.alpha
        chosen_from = isinstance(alpha, tuple | list) and len(alpha) == 2
        return isinstance(alpha[0] if chosen_from else alpha, str)  # type: ignore[index]

    def _grid(self) -> np.ndarray | None:
        """Return alpha, or those to choose from, descending; None if they follow from the rows."""
        alpha: Any = self.alpha
        if is_real(alpha) and alpha > 0:
            return np.array([float(alpha)])
        values: Any = None
        if self._chooses():
            rule, values = (alpha, None) if isinstance(alpha, str) else alpha
            if rule == "loo" and values is None:
                return None
            values = values if rule == "loo" else None
        try:
            grid = np.sort(np.asarray(values, dtype=np.float64))[::-1]
        except (TypeError, ValueError):
            grid = np.empty(0)
        if grid.ndim != 1 or not grid.size or not (np.isfinite(grid) & (grid > 0)).all():
            raise ValueError(
                f"alpha of {type(self).__name__} must be a positive number, 'loo', or 'loo' with "
                f"positive numbers to choose from, as in ('loo', [0.1, 1.0]); got {shown(alpha)}."
            )
        return grid

    def _pose(self, **known: Any) -> LossProblem:
        loss, grid = self._loss(known.pop("n_targets", 1)), self._grid()
        return LossProblem(
            **known,
            n_targets=loss.outputs,
            loss=loss,
            alpha=1.0 if grid is None else float(grid[-1]),
            alphas=grid,
            leaves_out=self._chooses(),
            patient=grid is None,
            intercept=bool(self.fit_intercept),
            tol=self.tol,
            max_iter=self.max_iter,
        )

    def _solved(self, problem: LossProblem) -> LossSolution:
        """Solve the problem; raise an error for a result that is not finite, and warn if poor."""
        if problem.alphas is None:
            problem = replace(problem, alphas=default_alphas(problem.trace()))
        solution = self._choose(problem).solve(problem)
        finite = np.isfinite(solution.values).all() and np.isfinite(solution.intercepts).all()
        if not finite or not array_ops.all_finite(solution.coefficients):
            raise ValueError(
                f"{type(self).__name__} found no finite minimum: its targets, weights or features "
                "are too large. Scale them, or use a larger alpha."
            )
        if not solution.met:
            warnings.warn(
                f"{type(self).__name__} stopped after {counted(solution.iterations, 'step')}, "
                f"where its objective may be {solution.accuracy:.1e} above the minimum; requested "
                f"tol={problem.tol:.1e}. Increase max_iter, tol or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return solution

    def _keep(self, solution: LossSolution) -> None:
        """Store the solution: as ``dual_coef_`` if K is exact, as ``coef_`` if approximated."""
        for name in ("coef_", "dual_coef_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        setattr(self, self._coefficients, solution.coefficients)
        function = self._function_of(solution)
        self._learned = None if function is solution.coefficients else function
        self.intercept_: Any = solution.intercepts
        self.n_iter_ = solution.iterations
        self.objective_: Any = solution.values
        self.accuracy_ = solution.accuracy
        self.alpha_ = float(self.alpha) if solution.alpha is None else solution.alpha  # type: ignore[arg-type]
        self.path_ = solution.path

    def _function_of(self, solution: LossSolution) -> Any:
        if solution.blocks is None:
            return self._function(solution.coefficients)
        return BlockFunction.of(solution.blocks, solution.coefficients)

    @property
    def _coefficients(self) -> str:
        """The attribute with the coefficients: of training rows, or of features."""
        has_features = self.approximation_ is not None and self.approximation_.has_features
        return "coef_" if has_features else "dual_coef_"

    def _scores(self, X: RowsLike) -> tuple[Array, Rows, DType]:
        """Return f (n, outputs) in float64, the rows, and the dtype of results."""
        check_is_fitted(self, "n_iter_")
        coefficients = getattr(self, self._coefficients)
        new = self._new_rows(X, coefficients if self._learned is None else self._learned)
        if self._learned is not None and coefficients.ndim == 1:
            new = new._replace(product=new.product[:, 0])
        intercepts = array_ops.beside(self.intercept_, new.product)
        return new.product + intercepts, new.rows, new.dtype

    def _outputs(self, X: RowsLike, convert: Any = None) -> Array:
        """Return f, or what ``convert`` makes of it, in the caller's array type."""
        f, rows, dtype = self._scores(X)
        f = f if convert is None else convert(f)
        return rows.place.hand_back(array_ops.astype(f, dtype))


class NumberLearner(LossLearner):
    """Base class of regressions with one target."""

    def _fit(self, X: RowsLike, y: Array, sample_weight: Array | None, rng: Any) -> None:
        self._check_parameters()
        check_target(self, y)
        problem = self._problem(X, rng, sample_weight, y)
        y = as_targets(self, y, problem.rows)
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Please change the "
                "shape of y to (n_samples,), for example using ravel().",
                DataConversionWarning,
                stacklevel=4,
            )
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(
                f"{type(self).__name__} fits one target: y must have shape (n,); got "
                f"{tuple(y.shape)}."
            )
        xp, weights = array_ops.namespace(y), problem.weights
        problem.loss.check(self, float(xp.min(y)), float(xp.max(y)))
        total = _weighted(y, weights)
        with np.errstate(over="ignore"):
            squares = float(xp.sum(y * total))
        if not np.isfinite(squares):
            raise ValueError(
                f"y of {type(self).__name__} is too large: the sum of its squares overflows. Use "
                "another unit."
            )
        mean = float(xp.sum(total)) / problem.weight
        spread = float(xp.sum(_weighted(xp.abs(y - mean), weights))) / problem.weight
        start = problem.loss.start(np.array([mean]))
        problem = replace(problem, y=y[:, None], start=start)
        unit = unit_of(problem.loss, spread, mean)
        self._keep(out_of_unit(self._solved(in_unit(problem, unit)), unit))


def _weighted(values: Array, weights: Array | None) -> Array:
    return values if weights is None else values * weights

"""Kernel ridge on many rows: iterations over factors, paths of alphas, early stopping, batches."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    ArrayRows,
    Exact,
    Factors,
    FeatureRows,
    KernelRidge,
    KernelRidgeClassifier,
    Laplacian,
    Nystroem,
    RandomFourier,
    Sigmoid,
)
from gramian.approximations.projected import ProjectedKernel
from gramian.backend import numba_loops
from gramian.backend.config import memory_budget
from gramian.learners.ridge import base, falkon, systems
from gramian.learners.ridge.systems import PATIENCE
from gramian.matrices.factors import unprojected
from gramian.testing import check_learner

NYSTROEM = Nystroem(RBF(0.5), 25, random_state=0)


def table(n=1500, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 3))
    clean = np.column_stack((np.sin(2 * X[:, 0]) * X[:, 1], X[:, 2] ** 2))
    return X.astype(dtype), clean + 0.2 * rng.standard_normal(clean.shape)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


class TestStreamed:
    @pytest.mark.slow
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize(
        "approximation",
        [
            Nystroem(RBF(0.5), 60, landmarks="uniform", random_state=0),
            Nystroem(Laplacian(0.3), 60, rank=40, random_state=0),
            RandomFourier(RBF(0.5), 60, random_state=0),
            BKA(RBF(0.5), 60, n_blocks=3, random_state=0),
            MEKA(RBF(0.5), 60, n_blocks=3, random_state=0),
        ],
    )
    def test_iterations_reach_the_direct_solution(self, approximation, weighted):
        X, Y = table()
        weights = np.random.default_rng(1).exponential(1.0, len(X)) if weighted else None
        fitted = clone(approximation).fit(X)
        model = KernelRidge([1e-2, 3.0], fitted, fit_intercept=False, tol=1e-11, random_state=0)
        direct = clone(model).set_params(solver="direct").fit(X, Y, weights)
        iterative = model.set_params(solver="iterative").fit(X, Y, weights)
        assert direct.n_iter_ == 1 and len(direct.residuals_) == 0
        if type(fitted) is BKA:  # without links the preconditioner is the inverse
            assert iterative.n_iter_ == 1
        else:
            assert 1 < iterative.n_iter_ < 100
        assert len(iterative.residuals_) == iterative.n_iter_
        assert iterative.residuals_[-1] <= 1e-11
        assert_allclose(iterative.predict(X), direct.predict(X), atol=1e-8)
        dense = fitted(X)
        w = np.ones(len(X)) if weights is None else weights
        for j, alpha in enumerate((1e-2, 3.0)):
            values = dense @ np.linalg.solve(
                w[:, None] * dense + alpha * np.eye(len(X)), w * Y[:, j]
            )
            assert_allclose(direct.predict(X)[:, j], values, atol=1e-7)

    def test_sums_for_the_preconditioner_are_as_rough_as_it_allows(self, monkeypatch):
        X, Y = table(4000)
        X, Y = X.astype(np.float32), Y.astype(np.float32)
        rough, measured = [], []
        of, roughness = falkon._Sample.of, falkon._roughness
        monkeypatch.setattr(
            falkon._Sample,
            "of",
            lambda *a, **options: rough.append(options["rough"]) or of(*a, **options),
        )
        monkeypatch.setattr(
            falkon, "_roughness", lambda *a: measured.append(roughness(*a)) or measured[-1]
        )
        kernel = Nystroem(RBF(0.5), 60, random_state=0)
        model = KernelRidge(1.0, kernel, solver="iterative", random_state=0)
        first = model.fit(X, Y)
        assert rough == [True] and 0 < measured[0] < falkon.ROUGH
        steps, values = first.n_iter_, first.predict(X)
        monkeypatch.setattr(falkon, "ROUGH", measured[0] / 2)
        other = model.fit(X, Y)
        assert rough == [True, True, False] and other.n_iter_ <= steps + 1
        assert_allclose(other.predict(X), values, atol=1e-3)  # iterations end where they are close

    def test_sums_that_float32_would_spoil_are_not_tried(self, monkeypatch):
        X, Y = table(4000, dtype=np.float32)
        rough, of = [], falkon._Sample.of
        monkeypatch.setattr(
            falkon._Sample,
            "of",
            lambda *a, **options: rough.append(options["rough"]) or of(*a, **options),
        )
        kernel = Nystroem(RBF(0.005), 60, random_state=0)  # smooth: P is large
        model = KernelRidge(0.1, kernel, solver="iterative", random_state=0).fit(X, Y)
        assert rough == [False]
        monkeypatch.setattr(falkon, "single_may_do", lambda *a: True)
        monkeypatch.setattr(falkon, "_roughness", None)  # of an indefinite matrix it is not needed
        tried = clone(model).fit(X, Y)
        assert rough == [False, True, False]
        assert_allclose(model.predict(X), tried.predict(X), atol=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("fraction", [None, 0.2])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_compiled_loops_give_the_same_solution(self, dtype, fraction, weighted, monkeypatch):
        pytest.importorskip("numba", reason="numba is not installed")
        X, Y = table(3000, dtype=dtype)
        Y = np.column_stack((Y, Y**2))  # more columns than are multiplied one by one
        weights = np.random.default_rng(1).exponential(1.0, len(X)) if weighted else None
        fitted = clone(NYSTROEM).fit(X)
        model = KernelRidge(
            0.1, fitted, solver="iterative", validation_fraction=fraction, random_state=0
        )
        plain = clone(model).fit(X, Y, weights)
        used, loop = [], numba_loops.both_sides
        monkeypatch.setattr(numba_loops, "LEAST_ENTRIES", 1)
        monkeypatch.setattr(numba_loops, "both_sides", lambda *a: used.append(1) or loop(*a))
        compiled = clone(model).fit(X, Y, weights)
        assert used
        # Products in float32 round by the machine; an early stop leaves more of the difference.
        rough = fraction or dtype == np.float32
        assert_allclose(compiled.predict(X), plain.predict(X), atol=2e-4 if rough else 2e-5)

    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_starts_from_the_solution_for_the_sampled_rows(self, intercept, weighted, monkeypatch):
        X, Y = table(6000)
        weights = np.random.default_rng(1).exponential(1.0, len(X)) if weighted else None
        fitted = Nystroem(RBF(0.5), 30, landmarks="uniform", random_state=0).fit(X)
        model = KernelRidge(0.1, fitted, fit_intercept=intercept, solver="iterative", tol=1e-9)
        model.set_params(random_state=0)
        started = clone(model).fit(X, 5.0 + Y, weights)
        solve, sizes = falkon.linalg.conjugate_gradients, []

        def from_zero(apply, B, precondition, *, start, **options):
            image = apply(start[0])
            sizes.append(np.abs(start[1] - (B - image)).max() / np.abs(B).max())
            sizes.append((np.linalg.norm(start[1], axis=0) / np.linalg.norm(B, axis=0)).max())
            return solve(apply, B, precondition, **options)

        monkeypatch.setattr(falkon.linalg, "conjugate_gradients", from_zero)
        whole = clone(model).fit(X, 5.0 + Y, weights)
        assert sizes[0] < 1e-11 and sizes[1] < 0.2  # the residual is known, and small
        assert started.n_iter_ < whole.n_iter_
        assert_allclose(started.coef_, whole.coef_, rtol=1e-6, atol=1e-7)

    def test_one_alpha_for_each_of_many_targets(self, digits):
        X, Y = digits[0], np.eye(10)[digits[1]]
        fitted = Nystroem(RBF(0.05), 100, random_state=0).fit(X)
        alphas = np.geomspace(1e-3, 10, 10)
        models = [
            KernelRidge(alphas, fitted, solver=solver, tol=1e-11, random_state=0).fit(X, Y)
            for solver in ("direct", "iterative")
        ]
        assert models[1].n_iter_ > 3
        assert_allclose(models[1].coef_, models[0].coef_, atol=1e-7)
        single = KernelRidge(alphas[3], fitted).fit(X, Y[:, 3])
        assert_allclose(models[0].coef_[:, 3], single.coef_, atol=1e-9)

    def test_kernel_values_are_computed_anew_where_they_do_not_fit(self, monkeypatch):
        X, Y = table(4000)
        fitted = clone(NYSTROEM).fit(X)
        model = KernelRidge(1e-3, fitted, solver="iterative", tol=1e-10, random_state=0)
        rows = []
        values = ProjectedKernel.values

        def counted(self, x, out=None):
            rows.append(len(x))
            return values(self, x, out)

        monkeypatch.setattr(ProjectedKernel, "values", counted)
        kept = clone(model).fit(X, Y)
        assert sum(rows) <= len(X)
        rows.clear()
        with gramian.config_context(memory_budget=8 * 25 * 4000 // 3):
            computed = clone(model).fit(X, Y)
        assert sum(rows) >= (computed.n_iter_ + 1) * len(X)
        assert_allclose(computed.coef_, kept.coef_, rtol=1e-7)

    def test_costs_decide(self):
        def features(n, r, m=None, dtype=np.float32):
            rows = ArrayRows(np.empty((n, 1), dtype))
            values = FeatureRows(rows, None, m or r, dtype)
            return Factors(
                FeatureRows(rows, None, r, dtype, product=(values, np.empty((m or r, r))))
            )

        def pays(factors, targets=1):
            room = memory_budget() // 2
            return falkon.iteration_pays(factors, targets, room, precise=False)

        with gramian.config_context(memory_budget="20GB"):
            assert pays(features(500_000, 1000))
            assert not pays(features(500_000, 100))  # a small matrix is soon decomposed
            assert not pays(features(4000, 1000))  # few rows: no smaller sample of them
            assert not pays(features(500_000, 1000), targets=200)
            assert pays(features(500_000, 500), targets=7)
            assert not pays(features(30_000, 500), targets=7)
            assert not pays(features(10_000, 500))
        with gramian.config_context(memory_budget="100MB"):
            assert not pays(features(500_000, 500))  # would be computed again and again
        assert not pays(Factors([ArrayRows(np.empty((9, 9)))] * 2))

    def test_a_slow_iteration_is_given_up(self, monkeypatch):
        X, Y = table(dtype=np.float32)
        fitted = clone(NYSTROEM).fit(X)
        direct = KernelRidge(1e-3, fitted, solver="direct").fit(X, Y)
        monkeypatch.setattr(falkon, "iteration_pays", lambda *a, **k: True)
        assert KernelRidge(1e-3, fitted, random_state=0).fit(X, Y).n_iter_ > 3
        monkeypatch.setattr(falkon, "MOST_ITERATIONS", 3)
        model = KernelRidge(1e-3, fitted, random_state=0).fit(X, Y)  # without a warning
        assert model.n_iter_ == 1
        assert_allclose(model.coef_, direct.coef_)
        asked = KernelRidge(1e-3, fitted, solver="iterative", max_iter=3, random_state=0)
        with pytest.warns(ConvergenceWarning, match="3 iterations at a relative residual of"):
            asked.fit(X, Y)

    @pytest.mark.parametrize("solver", ["direct", "iterative"])
    def test_float32_features_that_rounding_would_spoil(self, solver, monkeypatch):
        X, Y = table(2000)
        kernel = RBF(0.02)  # smooth: features are small differences of kernel values
        # Without float64 features there are still products of float32 ones in float64.
        monkeypatch.setattr(Nystroem, "in_double", lambda self, rows: None)
        fitted = Nystroem(kernel, 120, landmarks=X[:120]).fit(X.astype(np.float32))
        C, P = unprojected(fitted.factor(X.astype(np.float32)))
        Z = C.parts.values().astype(np.float64) @ P
        exact = Z @ np.linalg.solve(Z.T @ Z + 1e-4 * np.eye(Z.shape[1]), Z.T @ Y)
        model = KernelRidge(1e-4, fitted, fit_intercept=False, solver=solver, random_state=0)
        error = np.abs(clone(model).fit(X.astype(np.float32), Y).predict(X) - exact).max()
        assert error < 2e-3
        monkeypatch.setattr(systems, "rounds_too_much", lambda *a, **k: False)
        monkeypatch.setattr(base, "may_round_too_much", lambda *a: False)
        if solver == "direct":
            spoilt = np.abs(clone(model).fit(X.astype(np.float32), Y).predict(X) - exact).max()
            assert spoilt > 10 * error

    def test_exact_asks_for_the_matrix_and_solver_for_the_way(self):
        X, Y = table(200)
        for solver in ("direct", "iterative"):
            assert KernelRidge(solver=solver).fit(X, Y).approximation_ is None
            assert KernelRidge(kernel=Exact("rbf"), solver=solver).fit(X, Y).approximation_ is None
            model = KernelRidge(kernel=NYSTROEM, solver=solver).fit(X, Y)
            assert isinstance(model.approximation_, Nystroem)


def leave_one_out(fit, X, Y, weights):
    """Squared errors of refits without each row, weighted and averaged."""
    total = np.zeros(Y.shape[1])
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        model = fit(X[others], Y[others], weights[others])
        total += weights[i] * (Y[i] - model.predict(X[i : i + 1])[0]) ** 2
    return total / weights.sum()


class TestPath:
    ALPHAS = (0.03, 0.3, 3.0)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "approximation",
        [
            None,
            Nystroem(RBF(0.5), 12, random_state=0),
            MEKA(RBF(0.5), 12, n_blocks=3, random_state=0),
            BKA(RBF(0.5), 12, n_blocks=3, random_state=0),
        ],
    )
    def test_leaving_out_each_row(self, approximation):
        X, Y = table(50)
        weights = np.random.default_rng(1).exponential(1.0, 50)
        weights[7] = 0.0
        kernel = RBF(0.5) if approximation is None else clone(approximation).fit(X)
        model = KernelRidge(("loo", self.ALPHAS), kernel).fit(X, Y, weights)
        for alpha, errors in zip(self.ALPHAS, model.path_.errors, strict=True):

            def fit(*data, alpha=alpha):
                return KernelRidge(alpha, kernel, solver="direct").fit(*data)

            assert_allclose(errors, leave_one_out(fit, X, Y, weights), rtol=1e-7)
        assert_allclose(model.path_.alphas, self.ALPHAS)
        assert_allclose(model.alpha_, np.array(self.ALPHAS)[model.path_.errors.argmin(axis=0)])
        again = KernelRidge(model.alpha_, kernel, solver="direct").fit(X, Y, weights)
        assert_allclose(model.predict(X), again.predict(X), atol=1e-9)
        assert again.path_ is None
        assert_allclose(again.alpha_, model.alpha_)

    @pytest.mark.parametrize("kernel", [RBF(0.5), NYSTROEM, MEKA(RBF(0.5), 12, random_state=0)])
    def test_generalised_cross_validation(self, kernel):
        X, Y = table(80)
        weights = np.random.default_rng(1).exponential(1.0, 80)
        fitted = kernel if kernel == RBF(0.5) else clone(kernel).fit(X)
        model = KernelRidge(("gcv", self.ALPHAS), fitted, fit_intercept=False).fit(X, Y, weights)
        K = fitted(X) * np.sqrt(np.outer(weights, weights))
        targets = np.sqrt(weights)[:, None] * Y
        for alpha, errors in zip(self.ALPHAS, model.path_.errors, strict=True):
            residue = np.eye(80) - K @ np.linalg.inv(K + alpha * np.eye(80))
            squares = ((residue @ targets) ** 2).sum(axis=0) / weights.sum()
            assert_allclose(errors, squares / (np.trace(residue) / 80) ** 2, rtol=1e-8)

    def test_the_default_grid_finds_the_noise(self):
        X, Y = table(400)
        y = Y[:, 0]
        for rule in ("loo", "gcv"):
            for kernel in (RBF(0.5), Nystroem(RBF(0.5), 100, random_state=0)):
                model = KernelRidge(rule, kernel, fit_intercept=False).fit(X, y)
                alphas, errors = model.path_
                largest = np.linalg.eigvalsh(RBF(0.5)(X))[-1]
                if isinstance(kernel, Nystroem):  # the exact matrix needs only a part of the grid
                    assert alphas[0] == pytest.approx(100 * largest, rel=0.02)
                    assert alphas[-1] == pytest.approx(1e-12 * alphas[0])
                assert errors.shape == alphas.shape
                assert isinstance(model.alpha_, float)
                assert 1e-9 < model.alpha_ / largest < 0.1
                assert errors.min() == pytest.approx(0.2**2, rel=0.8)

    def test_each_target_has_its_alpha_and_classes_share_one(self, digits):
        X, Y = table(200)
        Y[:, 1] = np.random.default_rng(0).standard_normal(200)  # noise alone
        model = KernelRidge("loo", RBF(0.5)).fit(X, Y)
        assert model.alpha_[1] > 10 * model.alpha_[0]
        X, y = digits[0][:500], digits[1][:500]
        targets = np.where(np.eye(10, dtype=bool)[y], 1.0, -1.0)
        classifier = KernelRidgeClassifier("loo", RBF(0.05)).fit(X, y)
        path = ("loo", classifier.path_.alphas)
        separate = KernelRidge(path, RBF(0.05)).fit(X, targets)
        again = KernelRidgeClassifier(path, RBF(0.05)).fit(X, y)
        assert_allclose(again.path_.errors, separate.path_.errors.mean(axis=1))
        best = classifier.path_.errors.argmin()
        assert classifier.alpha_ == classifier.path_.alphas[best]
        assert classifier.score(*(a[500:1000] for a in digits)) > 0.93

    def test_float32_is_close(self):
        X, Y = table(600)
        double = KernelRidge(("loo", self.ALPHAS), clone(NYSTROEM).fit(X)).fit(X, Y)
        single = KernelRidge(("loo", self.ALPHAS), NYSTROEM).fit(X.astype(np.float32), Y)
        assert_allclose(single.path_.errors, double.path_.errors, rtol=1e-3)

    def test_indefinite_matrices(self):
        X, Y = table(60)
        kernel = Sigmoid(2.0, coef0=-1.0)
        least = -np.linalg.eigvalsh(kernel(X))[0]
        assert least > 0.1
        model = KernelRidge(("loo", [0.5 * least, 2 * least]), kernel).fit(X, Y)
        assert np.isinf(model.path_.errors[0]).all()
        assert_allclose(model.alpha_, 2 * least)

        def fit(*data):
            return KernelRidge(2 * least, kernel).fit(*data)

        expected = leave_one_out(fit, X, Y, np.ones(60))
        assert_allclose(model.path_.errors[1], expected, rtol=1e-6)
        with pytest.raises(ValueError, match="not positive definite"):
            KernelRidge(("gcv", [0.5 * least]), kernel).fit(X, Y)

    @pytest.mark.parametrize(
        "model",
        [
            KernelRidge("loo", Exact(RBF(0.5))),
            KernelRidge("gcv", RBF(0.5), solver="iterative"),
            KernelRidge(("loo", [0.01, 0.1, 1.0]), RBF(0.5), solver="iterative"),
            KernelRidge("loo", NYSTROEM, solver="iterative"),
            KernelRidge("loo", MEKA(RBF(0.5), 12, n_blocks=2), solver="iterative"),
            KernelRidgeClassifier("loo", Exact(RBF(0.5))),
        ],
    )
    def test_iterations_take_the_alpha_of_a_sample(self, model, monkeypatch):
        X, Y = table(400)
        y = Y[:, 0] > 0 if isinstance(model, KernelRidgeClassifier) else Y
        monkeypatch.setattr(gramian.matrices.gram, "KEPT_BYTES", 100_000)
        monkeypatch.setattr(gramian.learners.ridge.sampled, "SAMPLED", 200)
        model = clone(model).set_params(random_state=0).fit(X, y)
        numbers = np.sort(np.random.default_rng(0).choice(400, 200, replace=False))
        fitted = model.kernel_ if model.approximation_ is None else model.approximation_
        sample = type(model)(model.alpha, "precomputed", solver="direct", random_state=0)
        sample.fit(fitted(X[numbers]), y[numbers])
        assert_allclose(model.alpha_, sample.alpha_, rtol=1e-6)
        assert_allclose(model.path_.errors, sample.path_.errors, rtol=1e-4)
        again = clone(model).set_params(alpha=model.alpha_).fit(X, y)
        assert_allclose(model.predict(X), again.predict(X))

    def test_in_a_grid_search(self):
        X, Y = table(120)
        grid = {"alpha": ["gcv", ("loo", [0.1, 1.0])], "kernel__gamma": [0.1, 0.5]}
        search = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=3).fit(X, Y)
        assert search.best_estimator_.path_.errors.shape[1] == 2


class TestEarlyStopping:
    def overfitting(self, n=600):
        rng = np.random.default_rng(0)
        X = rng.uniform(-2, 2, (n, 2))
        return X, np.sin(2 * X[:, 0]) + rng.standard_normal(n)

    def test_the_best_iterate_of_the_exact_system(self):
        X, y = self.overfitting()
        weights = np.random.default_rng(1).exponential(1.0, len(X))
        # A poor preconditioner, so that the iteration goes slowly from smooth to rough.
        with gramian.config_context(memory_budget=4 * 8 * 600 * 12):
            model = KernelRidge(1e-5, Exact(RBF(20.0)), validation_fraction=0.25, random_state=0)
            model.fit(X, y, weights)
        held_out = model.dual_coef_ == 0
        assert held_out.sum() == 150
        errors = model.validation_errors_
        assert len(errors) == len(model.residuals_) == model.n_iter_
        assert model.n_iter_ == errors.argmin() + 1 + PATIENCE
        missed = weights * (y - model.predict(X)) ** 2
        assert errors.min() == pytest.approx(missed[held_out].sum() / weights[held_out].sum())

    @pytest.mark.parametrize("approximation", [NYSTROEM, MEKA(RBF(0.5), 20, random_state=0)])
    def test_the_best_iterate_on_factors(self, approximation, monkeypatch):
        X, Y = table()
        X, Y = X[:, :3], np.column_stack((Y, Y[:, 0] + np.random.default_rng(0).normal(0, 2, 1500)))
        split = KernelRidge._holding_out
        parts = []
        monkeypatch.setattr(
            KernelRidge, "_holding_out", lambda *a: parts.append(split(*a)) or parts[-1]
        )
        model = KernelRidge(1e-6, approximation, validation_fraction=0.1, random_state=0).fit(X, Y)
        learned, held_out = parts[0].weights, parts[0].held_out
        assert (held_out > 0).sum() == 150 and ((learned > 0) ^ (held_out > 0)).all()
        errors = model.validation_errors_
        assert len(errors) == model.n_iter_ > 1
        missed = ((Y - model.predict(X)) ** 2)[held_out > 0]
        assert errors.min() == pytest.approx(missed.mean(), rel=1e-6)
        to_the_end = KernelRidge(1e-6, model.approximation_, tol=1e-12, solver="iterative")
        to_the_end.fit(X, Y, learned)
        assert to_the_end.validation_errors_ is None
        at_the_end = ((Y - to_the_end.predict(X)) ** 2)[held_out > 0].mean()
        assert errors.min() <= at_the_end * (1 + 1e-9)

    def test_it_ends_when_the_error_no_longer_falls(self):
        watch = systems.Watch(lambda X, length: X)
        history = [3.0, 2.0, 2.5, 1.0, *[1.1] * PATIENCE]
        stops = [watch(error, 1.0, 0.5) for error in history]
        assert stops == [False] * (len(history) - 1) + [True]
        solution = watch.solution(1.1, 0.5, 1e-6)
        assert solution.coefficients == 1.0 and solution.met
        assert solution.errors == tuple(history)

    def test_a_classifier(self, digits):
        X, y = digits
        model = KernelRidgeClassifier(
            1e-2, Nystroem(RBF(0.05), 80), validation_fraction=0.1, random_state=0
        ).fit(X, y)
        assert model.validation_errors_[-1] < model.validation_errors_[0]
        assert model.score(X, y) > 0.95


class TestBatches:
    @pytest.mark.parametrize(
        "approximation",
        [
            NYSTROEM,
            RandomFourier(RBF(0.5), 40, random_state=0),
            BKA(RBF(0.5), 30, n_blocks=3, random_state=0),
            MEKA(RBF(0.5), 30, n_blocks=3, random_state=0),
        ],
    )
    def test_batches_give_what_all_rows_do(self, approximation):
        X, Y = table(1000)
        weights = np.random.default_rng(1).exponential(1.0, 1000)
        fitted = clone(approximation).fit(X)
        whole = KernelRidge([0.1, 2.0], fitted).fit(X, Y, weights)
        model = KernelRidge([0.1, 2.0], fitted)
        for start, stop in ((0, 1), (1, 300), (300, 700), (700, 1000)):
            batch = slice(start, stop)
            model.partial_fit(X[batch], Y[batch], weights[batch])
            assert model.predict(X[:5]).shape == (5, 2)
        assert_allclose(model.predict(X), whole.predict(X), atol=1e-8)
        assert model.n_iter_ == 1 and model.validation_errors_ is None
        again = pickle.loads(pickle.dumps(model)).partial_fit(X, Y)
        twice = KernelRidge([0.1, 2.0], fitted).fit(
            np.concatenate((X, X)), np.concatenate((Y, Y)), np.concatenate((weights, np.ones(1000)))
        )
        assert_allclose(again.predict(X), twice.predict(X), atol=1e-8)

    def test_the_first_batch_fits_the_approximation(self):
        X, Y = table(1000)
        y = Y[:, 0]
        model = KernelRidge(0.1, NYSTROEM, random_state=0)
        first = clone(NYSTROEM).fit(X[:400])
        model.partial_fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
        assert_allclose(model.predict(X), KernelRidge(0.1, first).fit(X, y).predict(X), atol=1e-8)
        assert model.coef_.shape == (25,) and model.alpha_ == 0.1
        bare = KernelRidge(0.1, RBF(0.5), random_state=0).partial_fit(X[:400], y[:400])
        assert len(bare.approximation_.landmarks_) == int(400**0.5 * np.log(400))
        # After a fit of all rows a first batch begins anew, and a fit forgets the batches.
        anew = KernelRidge(0.1, first).fit(X[500:], y[500:]).partial_fit(X[:400], y[:400])
        expected = KernelRidge(0.1, first).fit(X[:400], y[:400]).predict(X)
        assert_allclose(anew.predict(X), expected, atol=1e-9)
        forgot = model.set_params(kernel=first).fit(X[:400], y[:400])
        assert_allclose(forgot.predict(X), expected, atol=1e-9)

    def test_alpha_by_generalised_cross_validation(self):
        X, Y = table(500)
        fitted = clone(NYSTROEM).fit(X)
        whole = KernelRidge("gcv", fitted).fit(X, Y)
        model = KernelRidge("gcv", fitted).partial_fit(X[:100], Y[:100])
        early = model.alpha_
        model.partial_fit(X[100:], Y[100:])
        assert_allclose(model.path_.errors, whole.path_.errors, rtol=1e-7)
        assert_allclose(model.alpha_, whole.alpha_)
        assert not np.array_equal(early, model.alpha_)

    def test_classes_that_come_later(self, digits):
        X, y = digits
        names = np.array([f"digit {i}" for i in range(10)])[y]
        order = np.argsort(y, kind="stable")
        fitted = Nystroem(RBF(0.05), 80, random_state=0).fit(X)
        weights = {name: 1.0 + i for i, name in enumerate(np.unique(names))}
        whole = KernelRidgeClassifier(0.1, fitted, class_weight=weights).fit(X, names)
        model = KernelRidgeClassifier(0.1, fitted, class_weight=weights)
        for i, part in enumerate(np.array_split(order, 6)):
            model.partial_fit(X[part], names[part], classes=np.unique(names) if i == 0 else None)
        assert (model.classes_ == whole.classes_).all()
        assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-8)
        with pytest.raises(
            ValueError, match=r"not among the classes 'digit 0', .*'digit 9': 'digit 11'"
        ):
            model.partial_fit(X[:2], ["digit 1", "digit 11"])
        with pytest.raises(ValueError, match="not those of the first call"):
            model.partial_fit(X[:2], names[:2], classes=["digit 1", "digit 2"])
        two = KernelRidgeClassifier(0.1, fitted).partial_fit(X[:9], y[:9] > 4, classes=[0, 1])
        assert two.decision_function(X).shape == (len(X),)

    def test_float32(self):
        X, Y = table(800, dtype=np.float32)
        fitted = clone(NYSTROEM).fit(X)
        whole = KernelRidge(0.1, fitted).fit(X, Y)
        model = KernelRidge(0.1, fitted).partial_fit(X[:300], Y[:300]).partial_fit(X[300:], Y[300:])
        assert model.predict(X).dtype == np.float32
        assert_allclose(model.predict(X), whole.predict(X), atol=2e-4)

    def test_a_failed_batch_changes_nothing(self):
        X, Y = table(200)
        model = KernelRidge(0.1, NYSTROEM).partial_fit(X, Y)
        before = dict(vars(model))
        for batch in ((X[:, :2], Y), (np.full_like(X, np.nan), Y), (X, Y[:, 0]), (X, Y[:50])):
            with pytest.raises(ValueError):
                model.partial_fit(*batch)
        assert all(vars(model)[name] is value for name, value in before.items())

    @pytest.mark.parametrize("library", ["torch", "array_api_strict"])
    def test_other_arrays(self, library):
        xp = pytest.importorskip(library)
        X, Y = table(200)
        ours = KernelRidge("gcv", NYSTROEM).partial_fit(X[:99], Y[:99]).partial_fit(X[99:], Y[99:])
        theirs = KernelRidge("gcv", NYSTROEM)
        for part in (slice(0, 99), slice(99, 200)):
            theirs.partial_fit(xp.asarray(X[part]), xp.asarray(Y[part]))
        values = theirs.predict(xp.asarray(X))
        assert type(values) is type(xp.asarray(X))
        assert_allclose(np.from_dlpack(values), ours.predict(X), atol=1e-8)


LEARNERS = [
    KernelRidge(0.1, Nystroem(RBF(0.1), 15, landmarks="uniform"), solver="iterative", tol=1e-12),
    KernelRidge(0.1, RBF(0.1), validation_fraction=0.2, tol=1e-10),
    KernelRidge(
        0.1, Nystroem(RBF(0.1), 15, landmarks="uniform"), validation_fraction=0.2, tol=1e-10
    ),
    KernelRidge("loo", Nystroem(RBF(0.1), 15, landmarks="uniform")),
    KernelRidge("loo", RBF(0.1)),
    KernelRidgeClassifier("loo", MEKA(RBF(0.1), 12, n_blocks=2)),
    KernelRidgeClassifier("gcv", RandomFourier(RBF(0.1), 20)),
]


@pytest.mark.parametrize("learner", LEARNERS)
def test_laws(learner):
    check_learner(learner)


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_laws_on_other_arrays(learner, library):
    pytest.importorskip(library)
    check_learner(learner, library=library)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelRidge(("loo", [])), "alpha of KernelRidge must be positive"),
        (KernelRidge(("loo", [1.0, -1.0])), "alpha of KernelRidge must be positive"),
        (KernelRidge(("loocv", [1.0])), r"must be positive.*\('loo', \[0.1, 1.0\]\); got"),
        (KernelRidge("cv"), "must be positive.*got 'cv'"),
        (KernelRidge(validation_fraction=0.1, solver="direct"), "'direct' does not iterate"),
        (KernelRidge(validation_fraction=1.0), "None or a number between 0 and 1; got 1.0"),
        (KernelRidge(validation_fraction=True), "None or a number between 0 and 1; got True"),
        (KernelRidge(validation_fraction=0.99), "leaves none of 20 rows for training"),
        (KernelRidge(kernel=Nystroem(), solver="cg"), "solver of KernelRidge must be one of"),
    ],
)
def test_errors(model, message):
    X, Y = table(20)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelRidge(kernel=Exact("rbf")), r"needs features: use an approximation, such as"),
        (KernelRidge(validation_fraction=0.1), "does not iterate: leave out validation_fraction"),
        (KernelRidgeClassifier(), "classes must be passed on the first call"),
    ],
)
def test_errors_of_batches(model, message):
    X, _ = table(20)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, np.arange(20) % 2)


def test_balanced_classes_need_all_rows():
    with pytest.raises(AttributeError) as error:
        KernelRidgeClassifier(class_weight="balanced").partial_fit(*table(20))
    assert "needs all rows at once" in str(error.value.__cause__)
    assert hasattr(KernelRidgeClassifier(class_weight={0: 2.0}), "partial_fit")


@pytest.mark.parametrize("intercept", [False, True])
def test_a_singular_system_says_what_to_do(intercept):
    X = np.repeat(np.eye(3), 3, axis=0)
    model = KernelRidge(1e-30, kernel=Exact(RBF(1.0)), fit_intercept=intercept)
    with pytest.raises(np.linalg.LinAlgError, match=r"alpha=1e-30.*Use a larger alpha"):
        model.fit(X, np.arange(9.0))

"""What messages say: whose parameter, how many of what, and what was expected."""

import inspect
import warnings

import numpy as np
import pandas
import pytest

import gramian
from gramian import (
    BKA,
    RBF,
    KernelKMeans,
    KernelRidge,
    KernelRidgeClassifier,
    Linear,
    Nystroem,
    Product,
    Scaled,
    Sum,
)
from gramian.approximations import Approximation
from gramian.backend.wording import counted, shown
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner
from gramian.learners.kmeans.centres import KernelCentres
from gramian.learners.ridge.base import RidgeLearner
from gramian.learners.strategy import Strategy
from gramian.samplers import Sampler


@pytest.fixture(name="X")
def few_rows(rng):
    return rng.standard_normal((6, 2))


class TestAbstractClasses:
    @pytest.mark.parametrize(
        ("cls", "method"),
        [
            (Kernel, "against"),
            (Sampler, "select"),
            (Approximation, "_fit"),
            (gramian.Rows, "collect"),
            (KernelLearner, "fit"),
            (RidgeLearner, "fit"),
            (KernelCentres, "fit"),
            (Strategy, "memory"),
        ],
    )
    def test_they_cannot_be_made(self, cls, method):
        with pytest.raises(TypeError, match=f"abstract class {cls.__name__} .*{method}"):
            cls()

    def test_no_other_export_is_one(self):
        exported = (getattr(gramian, name) for name in gramian.__all__)
        abstract = {cls.__name__ for cls in exported if inspect.isabstract(cls)}
        assert abstract == {"Kernel", "Rows", "Sampler", "Approximation"}


class TestKernelsOfKernels:
    @pytest.mark.parametrize(
        ("kernel", "message"),
        [
            (Scaled(0.5, RBF()), r"kernel of Scaled must be a kernel.*0\.5.*Scaled\(kernel, fac"),
            (Sum(RBF(), 2.0), r"right of Sum must be a kernel.*got 2\.0.*left \+ right"),
            (Sum("rbf", RBF()), r"left of Sum must be a kernel.*got 'rbf'"),
            (Product(RBF, Linear()), r"left of Product must be a kernel.*left \* right"),
        ],
        ids=str,
    )
    def test_of_something_else(self, kernel, message, X):
        for use in (
            lambda: kernel(X),
            lambda: kernel.psd,
            lambda: KernelRidge(kernel=kernel).fit(X, X[:, 0]),
        ):
            with pytest.raises(TypeError, match=message):
                use()

    @pytest.mark.parametrize("factor", [-1.0, 0, float("nan"), np.float64("inf")])
    def test_factors_that_make_no_kernel(self, factor, X):
        with pytest.raises(ValueError, match="factor of Scaled must be a positive number; got"):
            (factor * RBF(1.0))(X)

    @pytest.mark.parametrize("other", ["a", True, None, RBF, np.ones(2)], ids=repr)
    def test_products_with_what_is_no_number(self, other):
        with pytest.raises(TypeError):
            RBF() * other
        with pytest.raises(TypeError):
            other * RBF()

    def test_numbers_of_numpy(self, X):
        for two in (np.float64(2), np.float32(2), np.int64(2)):
            np.testing.assert_array_equal((two * RBF(1.0))(X), (RBF(1.0) * 2.0)(X))


class TestTargets:
    @pytest.mark.parametrize(
        "y",
        [
            ["a", "b"] * 3,
            np.array(["a", "b"] * 3, dtype=object),
            pandas.Series(["a", "b"] * 3),
            pandas.Series(["a", "b"] * 3, dtype="category"),
            [[1.0, "a"]] * 6,
            [1, 2, 3, 4, 5, "a"],
        ],
        ids=["list", "objects", "series", "categories", "table", "mixed"],
    )
    def test_text(self, y, X):
        message = "y of KernelRidge must be numeric; got text such as 'a'.*KernelRidgeClassifier"
        for method in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match=message):
                getattr(KernelRidge(), method)(X, y)

    def test_nothing_is_computed_before(self, X, monkeypatch):
        monkeypatch.setattr(RBF, "against", None)
        with pytest.raises(ValueError, match="must be numeric"):
            KernelRidge(kernel=Nystroem(RBF(1.0), 3)).fit(X, list("abcdef"))

    def test_missing_entries(self, X):
        with pytest.raises(ValueError, match="y contains NaN"):
            KernelRidge().fit(X, [1.0, None, 2.0, 3.0, 4.0, 5.0])

    @pytest.mark.parametrize(
        ("label", "said"), [(3, "3"), (np.int64(3), "3"), ("cat", "'cat'"), (True, "True")]
    )
    def test_one_class(self, label, said, X):
        with pytest.raises(ValueError, match=f"Classifier needs .* only one class: {said}\\.$"):
            KernelRidgeClassifier().fit(X, [label] * 6)
        with pytest.raises(ValueError, match=f"only one class: {said}\\.$"):
            KernelRidgeClassifier().partial_fit(X, [label] * 6, classes=[label])

    def test_unknown_classes(self, X):
        with pytest.raises(ValueError, match=r"not among the classes 'a', 'c': 'b'\."):
            KernelRidgeClassifier().partial_fit(X, ["a", "b"] * 3, classes=["a", "c"])

    def test_values_of_numpy(self, X):
        with pytest.raises(ValueError, match=r"must be a positive integer; got 2\.5\."):
            KernelKMeans(np.float64(2.5)).fit(X)


class TestNames:
    @pytest.mark.parametrize(
        ("call", "name"),
        [
            (lambda: KernelRidge(gama=1.0), "KernelRidge.__init__"),
            (lambda: KernelRidgeClassifier(gama=1.0), "KernelRidgeClassifier.__init__"),
        ],
    )
    def test_errors_of_python(self, call, name):
        with pytest.raises(TypeError, match=rf"^{name}\(\)"):
            call()


class TestCounts:
    def test_one_and_many(self):
        assert counted(1, "row") == "1 row"
        assert counted(0, "row") == "0 rows"
        assert counted(2000, "class", ",") == "2,000 classes"
        assert counted(3, "pass") == "3 passes"

    def test_values(self):
        assert [shown(v) for v in (np.int64(3), np.str_("a"), 2.5)] == ["3", "'a'", "2.5"]

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda X: Nystroem(RBF(1.0), 5).fit(np.ones((9, 2))), "uses 1 landmark instead of 5"),
            (lambda X: KernelKMeans(2).fit(np.ones((9, 2))), "Found only 1 distinct cluster for"),
            (lambda X: BKA(RBF(1.0), 4, n_blocks=2).fit(np.ones((9, 2))), "leaves 1 block"),
            (lambda X: Nystroem(RBF(1.0), 1, rank=2).fit(X), "exceeds the 1 landmark of"),
            (lambda X: KernelRidge([1.0]).fit(X, X), r"alpha has 1 number, but y has 2 targets:"),
            (lambda X: KernelRidge([1.0, 2.0]).fit(X, X[:, 0]), "but y has 1 target:"),
            (lambda X: gramian.Gram(Linear(), X, X[:1]).matmul(X), "K has 1 column, so V"),
            (lambda X: repr(gramian.compare(X[:, :1], sizes=[2], repeats=1)), "rows, 1 column>"),
        ],
    )
    def test_messages(self, call, said, X):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                texts = [str(call(X))]
            except ValueError as error:
                texts = [str(error)]
        texts += [str(each.message) for each in caught]
        assert any(said in text for text in texts), texts

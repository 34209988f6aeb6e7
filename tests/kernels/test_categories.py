"""Kernels of categories, and of some of the columns."""

import numpy as np
import pytest

import gramian
from gramian import RBF, Categorical, Columns, KernelRidgeClassifier, Laplacian, Nystroem
from gramian.testing import check_kernel


def mixed(n=120, seed=0):
    rng = np.random.default_rng(seed)
    numbers, categories = rng.standard_normal((n, 2)), rng.integers(0, 4, (n, 2)).astype(float)
    return np.hstack((numbers, categories)), (categories[:, 0] % 2 == 0) ^ (numbers[:, 0] > 0)


def test_categories_are_equal_or_not():
    X = np.array([[0.0, 1.0, 5.0], [0.0, 2.0, 5.0], [7.0, 2.0, -3.0]])
    differ = (X[:, None] != X[None]) @ np.array([1.0, 0.5, 2.0])
    kernel = Categorical(0.7, scales=[1.0, 0.5, 2.0])
    np.testing.assert_allclose(kernel(X), np.exp(-0.7 * differ))
    np.testing.assert_allclose(Categorical(0.7)(X), np.exp(-0.7 * (X[:, None] != X[None]).sum(2)))


def test_names_of_categories_do_not_matter():
    X, _ = mixed()
    renamed = X.copy()
    renamed[:, 2:] = np.array([30.0, -1.0, 7.0, 2.5])[X[:, 2:].astype(int)]
    for kernel in (Categorical(), Categorical("median", scales=[0.0, 0.0, 1.0, 3.0])):
        if kernel.scales is None:
            kernel = Columns(kernel, [2, 3])
        first, second = (kernel.fit(rows)(rows) for rows in (X, renamed))
        np.testing.assert_array_equal(first, second)


def test_rules_measure_weights_that_differ():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert Categorical("median").fit(X).gamma_ == 1.0
    assert Categorical("median", scales=[4.0, 4.0]).fit(X).gamma_ == 0.25


def test_a_kernel_of_some_columns_is_the_kernel_of_these_columns():
    X, _ = mixed()
    for columns in ([0, 1], [3, 0]):
        found = Columns(Laplacian("median"), columns).fit(X)
        alone = Laplacian("median").fit(X[:, columns])
        assert found.kernel.gamma_ == pytest.approx(alone.gamma_)
        np.testing.assert_allclose(found(X), alone(X[:, columns]), rtol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Categorical(0.5, scales=[1.0, 2.0, 0.0, 1.0, 0.5]), Columns(RBF(0.3), [4, 1])]
)
def test_they_obey_the_laws(kernel):
    check_kernel(kernel)


def test_a_mixed_table_needs_no_one_hot_encoding(tmp_path):
    X, y = mixed(200)
    new, truth = mixed(200, seed=1)
    numbers, categories = Columns(RBF("loo"), [0, 1]), Columns(Categorical("loo"), [2, 3])
    for kernel in (numbers * categories, Nystroem(numbers * categories, 100, random_state=0)):
        model = KernelRidgeClassifier("loo", kernel, random_state=0).fit(X, y)
        assert model.score(new, truth) > 0.85
    gramian.save(model, tmp_path / "model")
    np.testing.assert_array_equal(gramian.load(tmp_path / "model").predict(new), model.predict(new))


def test_bad_columns_and_weights_are_refused():
    X, y = mixed()
    for columns in ([0, 9], [-1], [], [0.5], "ab"):
        with pytest.raises(ValueError, match="numbers of columns from 0 to 3"):
            Columns(RBF(1.0), columns)(X)
    with pytest.raises(TypeError, match="must be a kernel, such as RBF"):
        Columns("rbf", [0]).fit(X)
    with pytest.raises(ValueError, match="at least 0, for each of the 4 columns"):
        Categorical(1.0, scales=[1.0, -1.0, 1.0, 1.0])(X)
    with pytest.raises(ValueError, match="scales='learn' is for kernels of the Euclidean"):
        Categorical(scales="learn").fit(X, y)
    with pytest.raises(ValueError, match="Categorical has no gamma='scale'"):
        Categorical("scale").fit(X)

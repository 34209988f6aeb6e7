"""``random_state`` means what it means in scikit-learn."""

import numpy as np
import pytest

from gramian import KernelKMeans, KernelPCA, Nystroem


@pytest.mark.parametrize("estimator", [Nystroem(n_components=5), KernelPCA(kernel=Nystroem())])
def test_the_global_seed_makes_a_fit_without_random_state_repeatable(estimator, rng):
    X = rng.standard_normal((200, 3))
    results = []
    for seed in (1, 1, 2):
        np.random.seed(seed)  # noqa: NPY002, it is what users of scikit-learn call
        results.append(estimator.fit(X).transform(X[:3]))
    np.testing.assert_array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_a_generator_is_advanced_by_each_fit(rng):
    X = rng.standard_normal((200, 3))
    draws = np.random.default_rng(0)
    first = KernelKMeans(4, random_state=draws).fit(X).labels_
    again = KernelKMeans(4, random_state=np.random.default_rng(0)).fit(X).labels_
    np.testing.assert_array_equal(first, again)
    assert draws.bit_generator.state != np.random.default_rng(0).bit_generator.state

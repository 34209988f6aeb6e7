"""Leading eigenpairs by block Lanczos, against a dense decomposition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.backend import lanczos


def matrix(rng, values):
    basis = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return basis @ (np.asarray(values)[:, None] * basis.T)


@given(
    n=st.integers(1, 60),
    k=st.integers(1, 8),
    width=st.integers(1, 10),
    decay=st.floats(0.3, 0.95),
    rank=st.integers(1, 60),
    seed=st.integers(0, 99),
)
def test_as_by_decomposition(n, k, width, decay, rank, seed):
    rng, k, width = np.random.default_rng(seed), min(k, n), min(width, n)
    A = matrix(rng, np.where(np.arange(n) < rank, decay ** np.arange(n), 0.0))
    start = rng.standard_normal((n, width))
    values, vectors, met, _ = lanczos.top_eigenpairs(
        lambda V: A @ V, start, k, tol=1e-9, max_passes=100
    )
    assert met
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[::-1][:k], atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-10)
    assert np.linalg.norm(A @ vectors - vectors * values, axis=0).max() <= 2e-9


@pytest.mark.parametrize("width", [3, 12])
def test_says_when_it_was_stopped(rng, width):
    A = matrix(rng, 1.0 / np.arange(1, 201))
    start = rng.standard_normal((200, width))
    values, vectors, met, passes = lanczos.top_eigenpairs(
        lambda V: A @ V, start, 2, tol=1e-12, max_passes=3
    )
    assert (met, passes, vectors.shape, values.shape) == (False, 3, (200, 2), (2,))
    # A Ritz value is never above the eigenvalue.
    assert (values <= np.linalg.eigvalsh(A)[::-1][:2] + 1e-12).all()


def test_a_narrow_block_applies_the_operator_to_fewer_vectors(rng):
    A = matrix(rng, 0.9 ** np.arange(300))
    taken = {}
    for width in (5, 40):
        start = rng.standard_normal((300, width))
        passes = lanczos.top_eigenpairs(lambda V: A @ V, start, 10, tol=1e-8, max_passes=60)[3]
        taken[width] = passes * width
    assert taken[5] < taken[40]


def test_it_looks_after_few_passes_and_stops_little_later(monkeypatch, rng):
    A, start = matrix(rng, 0.97 ** np.arange(300)), rng.standard_normal((300, 4))
    largest, looks = lanczos.largest_eigenpairs, []

    def counted(*args):
        looks.append(args)
        return largest(*args)

    def passes():
        looks.clear()
        return lanczos.top_eigenpairs(lambda V: A @ V, start, 10, tol=1e-8, max_passes=70)[3]

    monkeypatch.setattr(lanczos, "largest_eigenpairs", counted)
    found = passes()
    assert len(looks) < found / 2
    monkeypatch.setattr(lanczos, "_next_look", lambda looks: 0)
    assert passes() <= found <= 4 / 3 * passes() + 1

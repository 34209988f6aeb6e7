"""Products of a matrix with itself, and rows in the order of their labels."""

import numpy as np
import pytest

from gramian.backend import array_ops
from gramian.backend.array_ops import arithmetic
from gramian.rows.arrays import by_label


@pytest.mark.parametrize("columns", [17, 63])
def test_self_product_of_torch_in_panels(rng, monkeypatch, columns):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(arithmetic, "PANEL", 8)
    z = rng.standard_normal((50, columns))
    product = array_ops.self_product(torch.as_tensor(z)).numpy()
    np.testing.assert_allclose(product, z.T @ z, atol=1e-12)
    np.testing.assert_array_equal(product, product.T)


def test_self_product_of_numpy(rng):
    z = rng.standard_normal((50, 600))
    np.testing.assert_allclose(array_ops.self_product(z), z.T @ z, atol=1e-12)


@pytest.mark.parametrize("count", [1, 255, 256, 300, 70_000])
def test_rows_by_label(rng, count):
    labels = rng.integers(count, size=2000).astype(np.int32)
    labels[:3] = count - 1
    order, edges = by_label(labels, count)
    np.testing.assert_array_equal(order, np.argsort(labels, kind="stable"))
    np.testing.assert_array_equal(edges, np.searchsorted(labels[order], np.arange(count), "right"))

"""Where tests of GPU code put their tensors: on the GPU if there is one, else on the host."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def tensor(array):
    return torch.as_tensor(array, device=DEVICE)


def host(array):
    return array.cpu().numpy() if torch.is_tensor(array) else array


def assert_close(actual, expected, **tolerances):
    np.testing.assert_allclose(host(actual), host(expected), **tolerances)


def assert_equal(actual, expected):
    np.testing.assert_array_equal(host(actual), host(expected))

"""What must be set before NumPy, SciPy and Triton are imported, for tests and doctests alike."""

import gc
import os

import pytest

gc.disable()  # until the tests are collected: all that is imported stays

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's array API checks ask for it

if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:  # every core has a worker already
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

    import threadpoolctl

    threadpoolctl.threadpool_limits(1)  # of libraries that a plugin of pytest has already loaded


def has_gpu():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


if not has_gpu():  # Triton's interpreter then runs the programs; it is chosen on their definition
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Spare the garbage collector what lives as long as the tests; many of them call it."""
    gc.collect()
    gc.freeze()
    gc.enable()

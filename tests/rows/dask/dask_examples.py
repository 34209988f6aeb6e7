"""Data, approximations and helpers that the tests of dask share."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from gramian import BKA, CRAFT, MEKA, RBF, KernelJL, Nystroem, Polynomial, RandomFourier

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'gramian[dask]'")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

# A closed cluster leaves sockets to the garbage collector.
QUIET = pytest.mark.filterwarnings(
    "ignore:unclosed.*:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

N, D = 2400, 5
X, GROUPS = make_blobs(N, D, centers=4, cluster_std=1.0, random_state=3)
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
KERNEL = RBF(0.02)

APPROXIMATIONS = {
    "nystroem": Nystroem(KERNEL, 30, random_state=1),
    "rpcholesky": Nystroem(KERNEL, 30, landmarks="rpcholesky", rank=20, random_state=1),
    "meka": MEKA(KERNEL, 40, n_blocks=3, random_state=1),
    "bka": BKA(KERNEL, 40, n_blocks=3, partition="random", random_state=1),
    "fourier": RandomFourier(KERNEL, 60, random_state=1),
    "jl": KernelJL(KERNEL, 30, random_state=1),
    "craft": CRAFT(Polynomial(2, gamma=0.01), 30, random_state=1),
}
ALPHA = {"jl": 1e-8}  # its values are small


# What a cluster does beside its work: samples of stacks, ticks of loops, counts of the system.
CALM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "2s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.pause": False,  # a worker without room ends; it would wait forever
}


@cache
def at_rest():
    """Return the bytes of a process that has imported what a worker may need.

    They differ widely: torch alone takes from 0.2 to more than 1 GB.
    """
    imports = "import contextlib, dask.dataframe, distributed, gramian, psutil"
    torch = "with contextlib.suppress(ImportError): import torch"
    code = f"{imports}\n{torch}\nprint(psutil.Process().memory_info().rss)"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)


def usual_limit():
    """Return the memory limit of a worker; it has room below 60 %, where it would use the disk."""
    return 2 * at_rest() + 700_000_000


def new_cluster(**options):
    options = {"n_workers": 2, "processes": True, **options}
    options.setdefault("memory_limit", usual_limit())
    with dask.config.set(CALM):  # the workers take it over
        return distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", **options)


def spread(a, chunk=900):
    return da.from_array(a, chunks=(chunk, *a.shape[1:]))


def refuse(*args, **kwargs):
    raise AssertionError("something was computed")

"""One cluster of two worker processes for all tests of dask, and the choice of a scheduler."""

import gc
import warnings
from contextlib import ExitStack

import pytest

collect_ignore = ["conftest.py"]  # has no doctests, and a module name that others share


CLUSTER = ExitStack()


@pytest.fixture(scope="session")
def running():
    import distributed
    from dask_examples import new_cluster

    cluster = CLUSTER.enter_context(new_cluster())
    with CLUSTER:  # unless it is closed before
        yield CLUSTER.enter_context(distributed.Client(cluster, set_as_default=False))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Close the cluster after its group: it would take time beside all tests to come."""
    if item.nodeid.endswith("@cluster") and not (nextitem or item).nodeid.endswith("@cluster"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # sockets are left to the collector
            CLUSTER.close()
            gc.collect()


@pytest.fixture
def client(running):
    with running.as_current():
        yield running


@pytest.fixture(params=["threads", "cluster"])
def scheduler(request):
    """Where dask computes."""
    if request.param == "cluster":
        request.getfixturevalue("client")
    yield request.param

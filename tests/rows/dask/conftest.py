"""One cluster of two worker processes for all tests of dask, and the choice of a scheduler."""

import pytest

collect_ignore = ["conftest.py"]  # has no doctests, and a module name that others share


@pytest.fixture(scope="session")
def running():
    import distributed
    from dask_examples import new_cluster

    with new_cluster() as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


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

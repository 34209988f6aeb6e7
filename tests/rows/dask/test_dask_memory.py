"""Memory and traffic of fits on rows of dask."""

import numpy as np
import pytest
from dask_examples import (
    APPROXIMATIONS,
    KERNEL,
    QUIET,
    D,
    X,
    at_rest,
    da,
    distributed,
    new_cluster,
    spread,
    usual_limit,
)
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import gramian
from gramian import (
    RBF,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    Nystroem,
    OnlineKernelKMeans,
    as_rows,
)
from gramian.learners.kmeans import lloyd

pytestmark = QUIET


class TestMemory:
    """What grows with the rows is where they are; what does not counts here."""

    def test_rows_do_not_count(self):
        rows = as_rows(da.zeros((10**9, 20), chunks=(10**7, 20), dtype=np.float32))
        for learner in (KernelKMeans(10), KernelRidge(1.0), KernelPCA(5), OnlineKernelKMeans()):
            learner.set_params(kernel=Nystroem(KERNEL, 1000))
            with gramian.config_context(memory_budget="1GB", n_threads=2):
                assert learner._estimate(rows).fits()

    def test_landmarks_do(self):
        with gramian.config_context(memory_budget="20MB"), pytest.raises(MemoryError, match="budg"):
            KernelKMeans(4, kernel=Nystroem(KERNEL, 2000)).fit(spread(X))

    def test_the_budget_of_each_worker(self, client):
        rows = as_rows(spread(X))
        with gramian.config_context(memory_budget="50MB"):
            assert rows.place.room() == 100_000_000
        free = rows.place.room()  # of two workers, up to where dask writes to disk
        assert 0.2e9 < free < 2 * 0.6 * usual_limit()


def test_bytes_of_a_pass_do_not_grow_with_the_rows(client):
    """By the workers' own counters. Now and then dask moves a chunk: the middle pass counts."""
    k, m, chunk = 4, 30, 20_000
    approximation = clone(APPROXIMATIONS["nystroem"]).fit(X)

    def moved(chunks):
        rows = as_rows(spread(np.resize(X, (chunks * chunk, D)), chunk).persist())
        factors, weights = approximation.factor_rows(rows).persist(), rows.place.constant(1.0)
        first = factors.coordinates(np.arange(k))
        doubt = lloyd.Doubt(factors)
        run = lloyd.FeaturedRun(lloyd.no_labels(weights), next_centres=first)
        lloyd.assign(factors, weights, [run], True, doubt)
        counts = [sent()]
        for _ in range(7):
            run.next_centres = run.next_centres + 1e-3
            doubt.move(run)
            lloyd.assign(factors, weights, [run], False, doubt)
            counts.append(sent())
        return np.median(np.diff(counts))

    def sent():
        counted = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        return sum(counted.values())

    small, large = moved(4), moved(12)
    sums = 8 * k * (m + 1)
    assert 0 < large < 2 * small
    assert large < 10 * sums  # of two workers; messages have their own size


def _made(rows, columns, block_info=None):
    """Rows that no one keeps."""
    number = block_info[None]["chunk-location"][0]
    noise = np.random.default_rng(number).random((1000, columns), dtype=np.float32)
    noise += 4.0 * np.eye(4, columns, dtype=np.float32)[np.arange(1000) % 4]
    return np.tile(noise, (rows // 1000, 1))


def spilled(dask_scheduler):
    return sum(sum(w.metrics["spilled_bytes"].values()) for w in dask_scheduler.workers.values())


@pytest.mark.cluster
def test_more_data_than_a_worker_has_memory():
    rows, columns = 11_000, 200
    limit = at_rest() + 330_000_000
    chunks = limit // (4 * rows * columns) + 1
    data = da.map_blocks(
        _made, rows, columns, chunks=((rows,) * chunks, (columns,)), dtype=np.float32
    )
    assert data.nbytes > limit
    kernel = Nystroem(RBF(0.1), 10, landmarks="uniform", random_state=0)
    with (
        new_cluster(n_workers=1, memory_limit=limit) as cluster,
        distributed.Client(cluster) as client,
    ):
        model = KernelKMeans(4, kernel=kernel, init=range(4), max_iter=2, tol=1e-2).fit(data)
        expected = np.arange(rows) % 4
        assert adjusted_rand_score(expected, model.labels_[-rows:]) == 1.0
        ridge = KernelRidge(1.0, kernel=model.approximation_).fit(data, data[:, 0])
        error = (ridge.predict(data[:rows]) - data[:rows, 0]).std().compute()
        assert error < data[:rows, 0].std().compute() / 2
        assert client.run_on_scheduler(spilled) == 0

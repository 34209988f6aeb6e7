"""Clusters that fail, and the command on a cluster."""

import os
import signal
import threading

import numpy as np
import pytest
from dask_examples import APPROXIMATIONS, QUIET, X, dask, distributed, new_cluster, pd, spread
from numpy.testing import assert_allclose, assert_array_equal

import gramian
from gramian import (
    KernelKMeans,
)
from gramian.command import main
from gramian.learners.kmeans import lloyd
from gramian.rows.dask.rows import spread_rows

pytestmark = QUIET


def test_a_worker_is_killed_in_the_middle(client, monkeypatch):
    killed, assign = [], lloyd.assign
    expected = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], tol=0, random_state=0).fit(X)

    def killing(factors, *arguments, **options):
        result = assign(factors, *arguments, **options)
        if factors.parts.arrays() is None and not killed:
            workers = client.run(os.getpid)
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)
        return result

    monkeypatch.setattr(lloyd, "assign", killing)
    model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], tol=0, random_state=0)
    model.fit(spread(X, 300))
    assert killed
    assert_array_equal(model.labels_, expected.labels_)
    assert model.inertia_ == pytest.approx(expected.inertia_, rel=1e-9)
    client.wait_for_workers(2)  # the tests that follow have both again


@pytest.mark.cluster
def test_a_scheduler_that_is_gone_is_an_error(monkeypatch):
    assign, raised = lloyd.assign, []
    patience = {"distributed.comm.timeouts.connect": "3s"}  # of dask itself, by default 30 s
    # Its worker is a thread: it ends with the cluster, takes no time to start, and must not pause
    # because of the memory that earlier tests left to this process.
    new = new_cluster(processes=False, protocol="tcp://", n_workers=1, memory_limit="16GB")
    with dask.config.set(patience), new as cluster, distributed.Client(cluster):

        def closing(factors, *arguments, **options):
            if factors.parts.arrays() is None:
                cluster.sync(cluster.scheduler.close)
            return assign(factors, *arguments, **options)

        monkeypatch.setattr(lloyd, "assign", closing)
        model = KernelKMeans(4, kernel=APPROXIMATIONS["nystroem"], random_state=0)

        def fit():
            try:
                model.fit(spread(X))
            except Exception as error:
                raised.append(error)

        thread = threading.Thread(target=fit, daemon=True)
        thread.start()
        thread.join(timeout=60)
        assert not thread.is_alive(), "it hangs"
        assert isinstance(raised[0], ConnectionError)
        assert "scheduler" in str(raised[0])
        assert not hasattr(model, "labels_")


@pytest.fixture
def in_parts(tmp_path, monkeypatch):
    """Writes the rows to files of a kind, of which a worker reads a part, and names them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gramian.rows.dask.places.CHUNK_BYTES", 50_000)

    def write(kind):
        if kind == "npy":
            np.save("rows.npy", X[:1200])
            return "rows.npy"
        os.mkdir("rows")
        rows = pd.DataFrame(X[:1200], columns=list("abcde"))
        for i, part in enumerate((rows[:500], rows[500:])):
            getattr(part, f"to_{kind}")(f"rows/{i}.{kind}", index=False)
        return "rows"

    return write


@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
def test_workers_read_files(client, in_parts, kind):
    rows = gramian.open_rows(in_parts(kind))
    spread_out = spread_rows(rows)
    assert spread_out.data.numblocks[0] > 1
    assert_array_equal(spread_out.collect(), rows.collect())
    assert_allclose(spread_out.sum(column_sums), X[:1200].sum(axis=0))


def column_sums(x):
    return x.sum(axis=0)


class TestCommand:
    """``gramian cluster --scheduler``: workers read the files."""

    def test_files(self, running, in_parts, capsys):
        data = in_parts("csv")
        options = ["cluster", data, "--n-clusters", "4", "--approximation", "nystroem"]
        options += ["--scale", "standard", "--quiet", "-o"]
        assert main([*options, "here.csv"]) == 0
        address = running.scheduler.address
        there = [*options, "there.csv", "--model", "model.gramian", "--scheduler", address]
        assert main(there) == 0, capsys.readouterr().err
        labels = [pd.read_csv(f"{name}.csv")["cluster"] for name in ("here", "there")]
        assert_array_equal(*labels)
        assert_array_equal(gramian.load("model.gramian").predict(data), labels[0])

    @pytest.mark.slow
    def test_a_scheduler_that_is_not_there(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        np.save("rows.npy", X)
        monkeypatch.setattr("gramian.rows.dask.rows.PATIENCE", "1s")
        assert main(["cluster", "rows.npy", "--scheduler", "tcp://127.0.0.1:1"]) == 2
        assert "No dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err
        assert main(["cluster", "-", "--scheduler", "tcp://127.0.0.1:1"]) == 2
        assert "standard input" in capsys.readouterr().err

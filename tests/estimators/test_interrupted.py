"""Fits that are interrupted, or whose file fails, in the middle: the model is as it was before."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info

import gramian
from gramian import (
    MEKA,
    RBF,
    Exact,
    KernelJL,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    OnlineKernelKMeans,
    open_rows,
)


class Wire:
    """Counts tiles of kernel values, and does something at one of them."""

    def __init__(self):
        self.count, self.at, self.action = 0, None, None
        self.lock = threading.Lock()

    def touch(self):
        with self.lock:
            self.count += 1
            trips = self.count == self.at
        if trips:
            self.action()

    def set(self, at=None, action=None):
        self.count, self.at, self.action = 0, at, action


WIRE = Wire()


class Tripped(RBF):
    def against(self, points):
        tile = super().against(points)

        def touched(x, out=None):
            WIRE.touch()
            return tile(x, out)

        return touched


KERNEL = Tripped(0.2)
NYSTROEM = Nystroem(KERNEL, 30, random_state=0)
MODELS = [
    KernelKMeans(3, kernel=Exact(KERNEL), random_state=0),
    KernelKMeans(3, kernel=NYSTROEM, random_state=0),
    KernelKMeans(3, kernel=NYSTROEM, batch_size=100, random_state=0),
    OnlineKernelKMeans(0.8, kernel=NYSTROEM, random_state=0),
    KernelRidge(1.0, Exact(KERNEL), solver="direct"),
    KernelRidge(kernel=Exact(KERNEL), solver="iterative", random_state=0),
    KernelRidge(1.0, NYSTROEM, solver="direct"),
    KernelRidge(kernel=NYSTROEM, solver="iterative", random_state=0),
    KernelRidge("loo", kernel=NYSTROEM),
    KernelRidgeClassifier(kernel=NYSTROEM),
    KernelPCA(2, kernel=Exact(KERNEL), solver="iterative", random_state=0),
    KernelPCA(2, kernel=NYSTROEM),
    Nystroem(KERNEL, 30, landmarks="rpcholesky", random_state=0),
    MEKA(KERNEL, 30, n_blocks=3, random_state=0),
    KernelJL(KERNEL, 20, n_samples=100, random_state=0),
]
BATCHES = [MODELS[1], MODELS[3], MODELS[6], MODELS[9]]
READERS = [model for model in MODELS if not isinstance(model, KernelJL)]  # to the end of a fit
every_model = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(gramian.rows.arrays, "CACHE_BYTES", 2**14)
    monkeypatch.setattr(gramian.rows.arrays, "LEAST_ROWS", 32)
    yield
    WIRE.set()


def table(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) + 3 * (np.arange(n) % 3)[:, None]
    return X, np.arange(n) % 3


def outputs(model, X):
    names = ("predict", "transform", "decision_function")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


class Unharmed:
    """A fitted model: what it gives, its state, the settings and BLAS stay as they are."""

    def __init__(self, model):
        self.X, y = table(300, seed=0)
        self.model = clone(model).fit(self.X, y)
        self.before, self.given = dict(vars(self.model)), outputs(self.model, self.X)
        self.config, self.threads = gramian.get_config(), self.blas()

    @staticmethod
    def blas():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    def check(self):
        assert set(vars(self.model)) == set(self.before)
        assert all(vars(self.model)[name] is value for name, value in self.before.items())
        assert gramian.get_config() == self.config
        assert self.blas() == self.threads
        for name, values in outputs(self.model, self.X).items():
            np.testing.assert_array_equal(values, self.given[name], err_msg=name)


def middle(model, X, y):
    """Half of the tiles that a fit computes."""
    WIRE.set()
    clone(model).fit(X, y)
    assert WIRE.count >= 4
    return WIRE.count // 2


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_in_a_block(model, threads):
    X, y = table(400, seed=1)

    def interrupt():
        raise KeyboardInterrupt

    with gramian.config_context(n_threads=threads):
        unharmed = Unharmed(model)
        WIRE.set(middle(model, X, y), interrupt)
        with pytest.raises(KeyboardInterrupt):
            unharmed.model.fit(X, y)
        WIRE.set()
        unharmed.check()


@pytest.mark.parametrize("model", BATCHES)
def test_an_interrupt_of_a_further_batch(model):
    X, y = table(400, seed=1)
    model = clone(model)
    first = {"classes": [0, 1, 2]} if isinstance(model, KernelRidgeClassifier) else {}
    model.partial_fit(X[:200], y[:200], **first)
    before, given = dict(vars(model)), model.predict(X)

    def interrupt():
        raise KeyboardInterrupt

    WIRE.set(3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[200:], y[200:])
    WIRE.set()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.predict(X), given)


@pytest.mark.slow
@pytest.mark.parametrize("model", READERS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_ends_in_the_middle(model, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(gramian.rows.files.rows, "BATCH_BYTES", 2**11)
    X, y = table(400, seed=1)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    with gramian.config_context(n_threads=threads):
        unharmed = Unharmed(model)
        at = middle(model, open_rows(path), y) // 2  # rows are read ahead of their tiles
        WIRE.set(at, lambda: os.truncate(path, path.stat().st_size // 3))
        with pytest.raises(OSError, match=r"rows\.npy' could not be read: it (ends|has changed)"):
            unharmed.model.fit(open_rows(path), y)
        WIRE.set()
        unharmed.check()


@pytest.mark.slow
def test_ctrl_c():
    """The signal itself, while threads compute: in a process of its own."""
    code = f"""
    import os, signal, sys
    sys.path.insert(0, {os.path.dirname(__file__)!r})
    import pytest
    import gramian
    from test_interrupted import MODELS, WIRE, Unharmed, middle, table

    gramian.set_config(n_threads=2)
    gramian.rows.arrays.CACHE_BYTES, gramian.rows.arrays.LEAST_ROWS = 2**14, 32
    X, y = table(400, seed=1)
    for model in MODELS:
        unharmed = Unharmed(model)
        WIRE.set(middle(model, X, y), lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            unharmed.model.fit(X, y)
        except KeyboardInterrupt:
            WIRE.set()
            unharmed.check()
            print("interrupted")
    """
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr[-3000:]
    assert child.stdout.split() == ["interrupted"] * len(MODELS)

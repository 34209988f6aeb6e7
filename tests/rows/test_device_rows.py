"""Rows of the host that are computed with on a GPU; torch on the host stands for a missing one."""

import numpy as np
import pytest
import scipy.sparse
from on_device import DEVICE, assert_close, assert_equal, tensor, torch

import gramian
from gramian import (
    MEKA,
    RBF,
    Exact,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Nystroem,
    OnlineKernelKMeans,
    RandomFourier,
    relative_error,
)
from gramian.backend import config
from gramian.rows import ArrayRows
from gramian.rows.device import DeviceRows
from gramian.testing import check_rows


@pytest.fixture
def device(monkeypatch):
    """A device named by the settings, as set_config would."""
    monkeypatch.setattr(config, "device", lambda: DEVICE)


def clusters(rng):
    return rng.normal(size=(300, 4)) + 6 * rng.integers(3, size=(300, 1))


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int64", "uint16", ">f4"])
def test_blocks_are_those_of_the_host(dtype, rng):
    data = rng.integers(0, 200, (50, 3)).astype(dtype)
    host = ArrayRows(data)
    rows = DeviceRows(host, DEVICE)
    for one in (rows, rows.persist()):
        assert_equal(one.collect(), host.collect())
        assert str(one.dtype).endswith(str(np.dtype(host.dtype)))
        assert_equal(one.take([4, 1]), host.take([4, 1]))
        assert_equal(one.choose(np.array([7, 2])).collect(), host.take([7, 2]))


def test_the_laws_of_rows(rng):
    data = rng.normal(size=(40, 3))
    check_rows(DeviceRows(ArrayRows(data), DEVICE), data)
    check_rows(DeviceRows(ArrayRows(data), DEVICE).persist(), data)


def test_sparse_rows_and_files(rng, tmp_path):
    data = rng.normal(size=(90, 5)) * (rng.random((90, 5)) < 0.3)
    np.save(tmp_path / "rows.npy", data)
    for rows in (ArrayRows(scipy.sparse.csr_array(data)), gramian.open_rows(tmp_path / "rows.npy")):
        there = DeviceRows(rows, DEVICE)
        assert_close(there.collect(), data)
        assert_close(there.sum(lambda x: x.T @ x), data.T @ data)


def test_rows_stay_as_they_are_stored(rng):
    data = rng.integers(0, 200, (50, 3)).astype(np.uint8)
    kept = DeviceRows(ArrayRows(data), DEVICE).persist()
    assert kept.rows.data.dtype == torch.uint8
    assert kept.kept_bytes == 150
    with gramian.config_context(memory_budget=200):
        assert DeviceRows(ArrayRows(data), DEVICE).persist().kept_bytes == 0


def test_results_are_written_back_block_by_block(rng, monkeypatch):
    monkeypatch.setattr("gramian.rows.arrays.DEVICE_BYTES", 1)
    monkeypatch.setattr("gramian.rows.arrays.LEAST_ROWS", 7)
    data, out = rng.normal(size=(50, 3)), np.empty((50, 2))
    rows = DeviceRows(ArrayRows(data), DEVICE)
    back = rows.map(lambda x, out: x[:, :2] * 2, width=2, into=out)
    assert back is out
    assert_close(out, 2 * data[:, :2])


def test_what_fails_while_reading_is_raised(rng):
    class Broken(ArrayRows):
        def block(self, start, stop):
            raise OSError("the file is gone")

    with pytest.raises(OSError, match="gone"):
        DeviceRows(Broken(rng.normal(size=(9, 2))), DEVICE).collect()


LEARNERS = [
    KernelKMeans(3, kernel=Nystroem(RBF(0.1), 20), random_state=0),
    KernelKMeans(3, kernel=Exact(RBF(0.1)), random_state=0),
    KernelKMeans(3, kernel=MEKA(RBF(0.1), 20, n_blocks=2), random_state=0),
    KernelKMeans(3, kernel=Nystroem(RBF(0.1), 20), batch_size=50, random_state=0),
    OnlineKernelKMeans(kernel=Nystroem(RBF(0.1), 20), random_state=0),
    KernelRidge(kernel=Nystroem(RBF(0.1), 20), random_state=0),
    KernelRidge(kernel=RandomFourier(RBF(0.1), 40), random_state=0),
    KernelRidge(kernel=RBF(0.1)),
    KernelRidgeClassifier(kernel=RBF(0.1)),
    KernelPCA(2, kernel=Nystroem(RBF(0.1), 20), random_state=0),
    KernelPCA(2, kernel=RBF(0.1), fit_inverse_transform=True),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_answer_as_on_the_host(learner, streamed, rng, monkeypatch):
    X = clusters(rng)
    y = (X[:, 0] > 6).astype(int)
    expected = answers(learner.fit(X, y), X)
    monkeypatch.setattr(config, "device", lambda: DEVICE)
    if streamed:
        monkeypatch.setattr(DeviceRows, "persist", lambda self: self)
    found = answers(learner.fit(X, y), X)
    for name, values in expected.items():
        assert isinstance(found[name], np.ndarray), name
        assert found[name].dtype == values.dtype
        assert_close(found[name], values, atol=1e-6, err_msg=name)
    # What was fitted there stays there, whatever the settings say later.
    monkeypatch.setattr(config, "device", lambda: None)
    again = answers(learner, X)
    method = "predict" if "predict" in again else "transform"
    assert_equal(again[method], found[method])


def answers(model, X):
    names = ("predict", "transform", "decision_function")
    found = {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
    if hasattr(model, "labels_"):
        found["labels_"] = model.labels_
    if hasattr(model, "eigenvectors_"):
        found["eigenvectors_"] = model.eigenvectors_
    if getattr(model, "fit_inverse_transform", False):
        found["inverse_transform"] = model.inverse_transform(found["transform"])
    return found


def test_approximations_answer_as_on_the_host(rng, device, monkeypatch):
    X = clusters(rng)
    approximation = Nystroem(RBF(0.1), 20, random_state=0).fit(X)
    features = approximation.transform(X)
    assert isinstance(features, np.ndarray)
    assert isinstance(approximation.landmarks_.points, torch.Tensor)
    assert_close(approximation(X), features @ features.T, atol=1e-10)
    assert_close(approximation.diag(X), (features**2).sum(axis=1), atol=1e-10)
    there = float(relative_error(approximation, X))
    monkeypatch.setattr(config, "device", lambda: None)
    plain = Nystroem(RBF(0.1), 20, random_state=0).fit(X)
    assert_close(plain(X), features @ features.T, atol=1e-10)  # a GPU finds other pivots first
    assert there == pytest.approx(float(relative_error(plain, X)), rel=1e-6)


def test_a_fitted_approximation_stays_where_it_is(rng, monkeypatch):
    X = clusters(rng)
    plain = Nystroem(RBF(0.1), 20, random_state=0).fit(X)
    monkeypatch.setattr(config, "device", lambda: DEVICE)
    model = KernelKMeans(3, kernel=plain, random_state=0).fit(X)
    assert isinstance(model.centres_, np.ndarray)
    moved = Nystroem(RBF(0.1), 20, random_state=0).fit(X)
    monkeypatch.setattr(config, "device", lambda: None)
    model = KernelKMeans(3, kernel=moved, random_state=0).fit(X)
    assert isinstance(model.centres_, torch.Tensor)
    assert isinstance(model.labels_, np.ndarray)


def test_a_comparison_on_the_device(rng, monkeypatch):
    X, found = rng.normal(size=(60, 3)), []
    y = X[:, 0] ** 2 + X[:, 1]
    for device in (None, DEVICE):
        monkeypatch.setattr(config, "device", lambda device=device: device)
        comparison = gramian.compare(
            X, y, kernel=gramian.RBF(0.2), approximations=["nystroem uniform", "meka"], sizes=[12],
            repeats=1, baselines=False, random_state=0,
        )  # fmt: skip
        found.append([(one.name, one.error, one.score) for one in comparison.results])
    for one, other in zip(*found, strict=True):
        assert one[0] == other[0]
        np.testing.assert_allclose(one[1:], other[1:], rtol=1e-4, atol=1e-10)


def test_tensors_are_given_tensors(rng, device):
    X = clusters(rng)
    model = KernelKMeans(3, kernel=Nystroem(RBF(0.1), 20), random_state=0).fit(X)
    assert isinstance(model.predict(tensor(X)), torch.Tensor)
    assert isinstance(model.fit(tensor(X)).labels_, torch.Tensor)


def test_batches(rng, device):
    X = clusters(rng)
    y = X[:, 0]
    for model in (
        KernelRidge(kernel=Nystroem(RBF(0.1), 20), random_state=0),
        KernelKMeans(3, kernel=Nystroem(RBF(0.1), 20), random_state=0),
        KernelPCA(2, kernel=Nystroem(RBF(0.1), 20), random_state=0),
    ):
        model.partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
        method = model.predict if hasattr(model, "predict") else model.transform
        assert isinstance(method(X), np.ndarray)


def test_saved_models_come_back_on_the_host(rng, device, tmp_path):
    X = clusters(rng)
    model = KernelKMeans(3, kernel=Nystroem(RBF(0.1), 20), random_state=0).fit(X)
    gramian.save(model, tmp_path / "model.gramian")
    back = gramian.load(tmp_path / "model.gramian")
    assert isinstance(back.centres_, np.ndarray)
    assert_equal(back.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("value", "said"), [("gpu", "'cuda'"), (0, "'cuda'"), ("cuda:x", "'cuda'"), ("mps", "'cuda'")]
)
def test_names_of_devices(value, said):
    with pytest.raises(ValueError, match=said):
        gramian.set_config(device=value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu():
    with pytest.raises(ValueError, match=r"torch finds no CUDA device here. Use device='cpu'"):
        gramian.set_config(device="cuda")


def test_without_torch(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"gramian\[gpu\]"):
        gramian.set_config(device="cuda")
    with gramian.config_context(device="cpu"):
        assert gramian.get_config()["device"] is None

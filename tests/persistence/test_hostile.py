"""Model files that were made to do harm: each is refused, at once and in little memory."""

import io
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import gramian
from gramian import RBF, KernelKMeans, KernelRidge, ModelFileError
from gramian.persistence import archive, generators, models, states
from gramian.tables import TableModel

sys.path.insert(0, str(Path(__file__).parents[2]))  # the campaign is no installed package

from fuzz import crafted


def loaded(data, folder):
    path = folder / "crafted.gramian"
    path.write_bytes(data)
    return gramian.load(path)


@pytest.mark.parametrize("name", crafted.FILES)
def test_crafted_files_are_refused(name, tmp_path):
    data = crafted.FILES[name]()
    states.classes()  # imports modules once, which takes memory
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            loaded(data, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200e6 + 2 * len(data)


def test_the_same_parts_without_harm_are_read(tmp_path):
    """What the crafted files are built of is right but for one thing each."""
    for data in (
        crafted.build(crafted.RBF),
        crafted.pooled(4)(),
        crafted.twister(624)(),
        crafted.philox(4)(),
        crafted.doubling(3),
        crafted.sparse(crafted.ONE, np.arange(4), crafted.POINTERS, (4, 4))(),
        crafted.sharing(1),
        crafted.build(crafted.pipeline()),
    ):
        assert isinstance(loaded(data, tmp_path), states.BaseEstimator)


@pytest.mark.parametrize("name", generators.NAMES)
@pytest.mark.parametrize("old", [False, True])
def test_generators_go_on(name, old, tmp_path):
    bits = getattr(np.random, name)(5)
    random = np.random.RandomState(bits) if old else np.random.Generator(bits)
    random.standard_normal(3)
    random.choice(10)
    path = tmp_path / "model"
    gramian.save(KernelKMeans(random_state=random), path)
    again = gramian.load(path).random_state
    assert again.standard_normal() == random.standard_normal()
    np.testing.assert_array_equal(again.permutation(50), random.permutation(50))


def test_seed_sequences_of_users(tmp_path):
    for entropy in (7, 2**400, [1, 2, 3], np.arange(5)):
        seeds = np.random.SeedSequence(entropy, spawn_key=(3, 4), pool_size=8)
        random = np.random.default_rng(seeds)
        gramian.save(KernelKMeans(random_state=random), tmp_path / "model")
        again = gramian.load(tmp_path / "model").random_state
        assert again.spawn(1)[0].random() == random.spawn(1)[0].random()


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "csr_matrix", "csc_matrix"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_matrices_come_back(kind, index, tmp_path):
    matrix = getattr(scipy.sparse, kind)(np.diag([1.0, 0.0, 2.0])[:2])
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    gramian.save(KernelRidge(alpha=matrix), tmp_path / "model")
    again = gramian.load(tmp_path / "model").alpha
    assert type(again) is type(matrix) and again.indices.dtype == index
    np.testing.assert_array_equal(again.toarray(), matrix.toarray())


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 0)),
        np.zeros((0, 5), np.float32),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([True, False]),
        np.array(["é", "\U0010ffff"]),
        np.array(["é"]).astype(">U3"),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([1, 2], "m8[25s]"),
        np.array(3.5),
        np.arange(3, dtype=">i2"),
        np.array([b"ab"]),
        np.ones((2, 1, 3), np.complex64),
    ],
    ids=lambda a: a.dtype.str,
)
def test_arrays_come_back(array, tmp_path):
    gramian.save(KernelRidge(alpha=array), tmp_path / "model")
    again = gramian.load(tmp_path / "model").alpha
    assert again.dtype == array.dtype and again.shape == array.shape
    np.testing.assert_array_equal(again, array)


def test_save_has_the_limits_of_load(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MOST_VALUES", 1000)
    with pytest.raises(ValueError, match=r"too large.*numbers and strings; at most 1000"):
        gramian.save(KernelRidge(alpha=[1.0] * 1001), tmp_path / "model")
    monkeypatch.setattr(archive, "MOST_ARRAYS", 3)
    with pytest.raises(ValueError, match=r"too large.*4 arrays; at most 3"):
        gramian.save(KernelRidge(alpha=[np.ones(1)] * 4 + [np.ones(i) for i in range(3)]), "x")
    assert not list(tmp_path.iterdir())


def test_only_models_are_saved(tmp_path):
    rows = gramian.ArrayRows(np.eye(3))
    for part in (gramian.BlockCore(np.eye(2)), rows, states.classes()["Strategy"]):
        with pytest.raises(TypeError, match="Expected a learner"):
            models.write(part, io.BytesIO())
    assert TableModel in states.MODELS and isinstance(RBF(), states.MODELS)

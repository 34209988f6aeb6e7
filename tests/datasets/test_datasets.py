"""Data sets by name. Nothing here downloads anything."""

import numpy as np
import pytest

from gramian import datasets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAMIAN_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("GRAMIAN_DATA", raising=False)


X = np.arange(12, dtype=np.int16).reshape(6, 2)
y = np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8)


def test_a_file_is_loaded_as_it_is_stored(folder):
    np.savez_compressed(folder / "mine.npz", X=X, y=y, remark=np.array("not a part"))
    data = datasets.load("mine")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.X.dtype == np.int16 and data.y.dtype == np.uint8
    assert data.X_test is None and data.y_test is None


def test_an_official_split_is_kept(folder):
    np.savez(folder / "mine.npz", X_train=X[:4], y_train=y[:4], X_test=X[4:], y_test=y[4:])
    data = datasets.load("mine")
    assert data.X.shape == (4, 2) and data.y.shape == (4,)
    np.testing.assert_array_equal(data.X_test, X[4:])
    np.testing.assert_array_equal(data.y_test, y[4:])
    assert repr(data) == (
        "Dataset(X=(4, 2) int16, y=(4,) uint8, X_test=(2, 2) int16, y_test=(2,) uint8)"
    )


def test_a_training_part_alone_is_enough(folder):
    np.savez(folder / "w8a.npz", X_train=X, y_train=y)
    data = datasets.load("w8a")
    np.testing.assert_array_equal(data.X, X)
    assert data.X_test is None and data.y_test is None


def test_the_folder_comes_before_scikit_learn(folder):
    np.savez(folder / "iris.npz", X=X, y=y)
    assert datasets.load("iris").X.shape == (6, 2)
    assert datasets.load("wine").X.shape == (178, 13)  # not in the folder


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("breast_cancer", (569, 30)),
        ("diabetes", (442, 10)),
        ("digits", (1797, 64)),
        ("iris", (150, 4)),
        ("wine", (178, 13)),
    ],
)
def test_sets_that_ship_with_scikit_learn_need_no_folder(no_folder, name, shape):
    data = datasets.load(name)
    assert data.X.shape == shape and data.y.shape == shape[:1]
    assert data.X_test is None


def test_names(folder):
    np.savez(folder / "mine.npz", X=X, y=y)
    np.savez(folder / "shapes.npz", first_X=X, first_y=y)
    (folder / "broken.npz").write_bytes(b"no archive")
    names = datasets.names()
    assert names == sorted(names)
    assert {"mine", "iris", "covtype", "mnist", "ijcnn1"} <= set(names)
    assert not {"shapes", "broken"} & set(names)


def test_an_unknown_name_suggests_the_nearest(no_folder):
    with pytest.raises(ValueError, match="Did you mean 'pendigits'") as e:
        datasets.load("pendigit")
    assert "covtype, " in str(e.value)
    with pytest.raises(ValueError, match="Did you mean 'mnist'"):
        datasets.load("MNIST")
    with pytest.raises(ValueError, match=r"No data set 'zzzzzz'\. The names are: "):
        datasets.load("zzzzzz")


def test_names_in_the_folder_are_suggested_too(folder):
    np.savez(folder / "flowers.npz", X=X, y=y)
    with pytest.raises(ValueError, match="Did you mean 'flowers'"):
        datasets.load("flower")


def test_a_set_without_public_source_says_where_to_put_it(folder):
    with pytest.raises(FileNotFoundError, match=r"ijcnn1\.npz") as e:
        datasets.load("ijcnn1")
    assert "GRAMIAN_DATA" in str(e.value) and str(folder) in str(e.value)


def test_a_set_without_public_source_and_no_folder(no_folder):
    with pytest.raises(FileNotFoundError, match=r"GRAMIAN_DATA names \(which is not set\)"):
        datasets.load("ijcnn1")


def test_a_folder_that_does_not_exist(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAMIAN_DATA", str(tmp_path / "nowhere"))
    assert datasets.load("iris").X.shape == (150, 4)
    assert "iris" in datasets.names()
    with pytest.raises(FileNotFoundError, match="where there is no folder"):
        datasets.load("ijcnn1")


def test_files_that_are_no_data_set(folder):
    np.savez(folder / "shapes.npz", first_X=X, first_y=y)
    (folder / "broken.npz").write_bytes(b"no archive")
    for name in ("shapes", "broken"):
        with pytest.raises(ValueError, match=f"{name}.npz is not a data set"):
            datasets.load(name)


def test_pickles_are_refused(folder):
    np.savez(folder / "mine.npz", X=np.array([[object()]]), y=y)
    with pytest.raises(ValueError, match="allow_pickle"):
        datasets.load("mine")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [np.uint8, np.int8, np.int16, np.int64, np.float32])
def test_scaled(stored, dtype):
    values = np.array([[0, 7, 3], [1, 7, 4], [0, 7, 5]], dtype=stored)
    before = values.copy()
    out = datasets.scaled(values, dtype=dtype)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, [[0, 0, 0], [1, 0, 0.5], [0, 0, 1]])
    np.testing.assert_array_equal(values, before)


def test_scaled_takes_zeros_and_ones():
    out = datasets.scaled(np.array([[True, False], [True, True]]))
    np.testing.assert_array_equal(out, [[0, 0], [0, 1]])


def test_scaled_does_not_overflow_or_cancel():
    small = np.array([[-128], [127], [0]], dtype=np.int8)
    np.testing.assert_allclose(datasets.scaled(small)[:, 0], [0, 1, 128 / 255])
    far = np.array([[1e9], [1e9 + 1], [1e9 + 4]])
    np.testing.assert_array_equal(datasets.scaled(far, np.float32)[:, 0], [0, 0.25, 1])


def test_scaled_needs_a_floating_point_type():
    with pytest.raises(ValueError, match="floating-point"):
        datasets.scaled(X, dtype=np.int16)

"""Deformed images: how far pixels move, what stays the same, and the file that they go to."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import map_coordinates
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from gramian import config_context, datasets
from gramian.datasets import deformations, deformed, write_deformed

STILL = {"displacement": 0.0, "rotation": 0.0, "shift": 0.0}
HEIGHT, WIDTH = 40, 50
INSIDE = np.s_[:, 12:-12, 12:-12]  # far enough from the edges, where images become 0


def ramps(axis, n, **options):
    """Images whose values are row or column numbers: where each pixel came from."""
    ramp = np.indices((HEIGHT, WIDTH))[axis].astype(float)
    values = deformed(ramp[None], n, **{**STILL, **options}).reshape(n, HEIGHT, WIDTH)
    return values[INSIDE], ramp[None][INSIDE]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64", "bool"])
def test_without_a_deformation_images_stay(rng, dtype):
    images = rng.integers(0, 2 if dtype == "bool" else 256, (3, 5, 7)).astype(dtype)
    rows = deformed(images, 1300, **STILL)
    assert rows.dtype == dtype
    assert_array_equal(rows, images.reshape(3, 35)[np.arange(1300) % 3])
    assert_array_equal(deformed(images.reshape(3, 35), 8, shape=(5, 7), **STILL), rows[:8])


def test_values_between_pixels_are_scipys(rng):
    images = rng.standard_normal((4, 6, 9))
    y, x = rng.uniform(-3, 8, (4, 50)), rng.uniform(-3, 11, (4, 50))
    expected = [
        map_coordinates(image, (a, b), order=1, mode="grid-constant")
        for image, a, b in zip(images, y, x, strict=True)
    ]
    assert_allclose(deformations._at(images, y, x), expected, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_pixels_move_as_far_as_asked_and_together(axis):
    for displacement in (0.02, 0.05):
        values, own = ramps(axis, 400, displacement=displacement, smoothness=0.14)
        moved = values - own
        assert_allclose(np.sqrt(np.mean(moved**2)), displacement * HEIGHT, rtol=0.1)
        # A Gaussian filter of deviation s leaves neighbours at a distance of 1/(√2 s) of their size
        step = np.diff(moved, axis=2)
        expected = displacement * HEIGHT / (np.sqrt(2) * 0.14 * HEIGHT)
        assert_allclose(np.sqrt(np.mean(step**2)), expected, rtol=0.1)


@pytest.mark.slow
def test_rotation():
    values, _ = ramps(1, 600, rotation=10.0)
    slopes = np.diff(values, axis=1)[:, :, 1:], np.diff(values, axis=2)[:, 1:]  # -sin and cos
    angles = np.rad2deg(np.arctan2(-slopes[0], slopes[1]))
    assert_allclose(angles, np.broadcast_to(angles[:, :1, :1], angles.shape), atol=0.01)
    assert 9.5 < np.max(angles) <= 10.01 and -10.01 <= np.min(angles) < -9.5
    rows, _ = ramps(0, 600, rotation=10.0)  # turned as columns are, not sheared
    assert_allclose(np.diff(rows, axis=2)[:, 1:], -slopes[0], atol=1e-4)
    assert_allclose(np.diff(rows, axis=1)[:, :, 1:], slopes[1], atol=1e-4)
    middle = deformed(np.indices((9, 9))[1][None].astype(float), 50, **{**STILL, "rotation": 30.0})
    assert_allclose(middle.reshape(50, 9, 9)[:, 4, 4], 4.0, atol=1e-5)


def test_shift():
    values, own = ramps(0, 600, shift=0.1)
    moved = values - own
    assert_allclose(moved, np.broadcast_to(moved[:, :1, :1], moved.shape), atol=1e-4)
    assert 3.9 < np.max(moved) <= 4.001 and -4.001 <= np.min(moved) < -3.9


def test_the_same_seed_gives_the_same(rng):
    images = rng.integers(0, 256, (7, 9, 8), dtype=np.uint8)
    with config_context(n_threads=1):
        rows = deformed(images, 1500, random_state=3)
    with config_context(n_threads=3):
        assert_array_equal(deformed(images, 1500, random_state=3), rows)
    assert_array_equal(deformed(images, 700, random_state=3), rows[:700])
    assert_array_equal(deformed(images, 700, random_state=np.random.default_rng(3)), rows[:700])
    assert np.mean(deformed(images, 700, random_state=4) != rows[:700]) > 0.5
    copies = deformed(images[:1], 1500)
    assert len(np.unique(copies, axis=0)) == 1500, "no two are the same"


def test_whole_numbers_are_rounded(rng):
    images = rng.integers(0, 256, (5, 9, 8), dtype=np.uint8)
    exact = deformed(images.astype(float), 300)
    assert_array_equal(deformed(images, 300), np.rint(exact.astype(np.float32)))


def test_digits_stay_what_they_are():
    digits = load_digits()
    neighbours = KNeighborsClassifier(5).fit(digits.data, digits.target)
    labels = digits.target[np.arange(3000) % len(digits.target)]
    rows = deformed(digits.images, 3000)
    assert neighbours.score(rows, labels) > 0.95
    assert np.mean(np.abs(rows - digits.data[np.arange(3000) % 1797])) > 0.5
    wild = deformed(digits.images, 3000, displacement=0.3)
    assert neighbours.score(wild, labels) < 0.6


class TestWriting:
    def test_the_file_holds_what_deformed_gives(self, tmp_path, rng):
        images = rng.integers(0, 256, (7, 9, 8), dtype=np.uint8)
        path = write_deformed(str(tmp_path / "x.npy"), images, 1500, rotation=3.0, random_state=1)
        assert path == tmp_path / "x.npy"
        expected = deformed(images, 1500, rotation=3.0, random_state=1)
        found = np.load(path)
        assert found.dtype == np.uint8
        assert_array_equal(found, expected)
        assert datasets.write_deformed is write_deformed
        assert [file.name for file in tmp_path.iterdir()] == ["x.npy"]

    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
    def test_it_is_there_whole_or_not_at_all(self, tmp_path, rng, monkeypatch, error):
        images = rng.standard_normal((7, 9, 8))
        path = write_deformed(tmp_path / "x.npy", images, 100)
        before = path.read_bytes()
        original = deformations._block

        def fails(maker, span):
            if span[0] > 1000:
                assert path.read_bytes() == before
                raise error("no more")
            return original(maker, span)

        monkeypatch.setattr(deformations, "_block", fails)
        for threads in (1, 2):
            with config_context(n_threads=threads), pytest.raises(error, match="no more"):
                write_deformed(path, images, 5000)
        assert [file.name for file in tmp_path.iterdir()] == ["x.npy"]
        assert path.read_bytes() == before

    def test_wrong_paths(self, tmp_path):
        with pytest.raises(ValueError, match=r"end in '\.npy'; got 'x\.csv'"):
            write_deformed("x.csv", np.ones((1, 2, 2)), 3)
        with pytest.raises(FileNotFoundError, match=r"no folder .*none"):
            write_deformed(tmp_path / "none" / "x.npy", np.ones((1, 2, 2)), 3)


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.ones((3, 12)), {}, r"with shape=\(height, width\); got shape \(3, 12\)"),
        (np.ones((3, 12)), {"shape": (5, 2)}, r"got shape \(3, 12\).*shape=\(5, 2\)"),
        (np.ones(3), {}, r"got shape \(3,\)"),
        (np.ones((0, 3, 4)), {}, r"got shape \(0, 3, 4\)"),
        (np.ones((1, 3, 4), complex), {}, "complex128"),
        (np.ones((1, 3, 4)), {"displacement": -1}, "displacement of deformed .* got -1"),
        (np.ones((1, 3, 4)), {"smoothness": None}, "smoothness of deformed .* got None"),
        (np.ones((1, 3, 4)), {"rotation": "10"}, "rotation of deformed .* got '10'"),
        (np.ones((1, 3, 4)), {"shift": np.nan}, "shift of deformed .* got nan"),
        (np.ones((1, 3, 4)), {"n": 0}, "n of deformed must be a positive integer; got 0"),
    ],
)
def test_wrong_ones(images, options, message):
    with pytest.raises(ValueError, match=message):
        deformed(images, **{"n": 5, **options})

"""Generate any number of images by small deformations of given ones.

Each result is a given image after a smooth random displacement (Simard, Steinkraus and Platt, 2003)
and a small rotation and shift. Displacements are mixed from a fixed bank of smooth fields, as in
infinite MNIST (Loosli, Canu and Bottou, 2007), so an image costs microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter

from gramian.backend import config
from gramian.backend.checks import not_negative, positive_integer
from gramian.backend.threads import in_order
from gramian.backend.typing import ArrayLike, PathLike, RandomState
from gramian.backend.writing import whole_file
from gramian.estimators.base import generator

__all__ = ["deformed", "write_deformed"]

FIELDS = 256  # in the bank; two of them are mixed for each image
BLOCK = 512  # images that share a random generator, whatever n is


def deformed(
    images: ArrayLike,
    n: int,
    *,
    shape: tuple[int, int] | None = None,
    displacement: float = 0.02,
    smoothness: float = 0.14,
    rotation: float = 5.0,
    shift: float = 0.02,
    random_state: RandomState = 0,
) -> np.ndarray:
    """Return n deformed images as rows; the k-th is made from ``images[k % len(images)]``.

    Parameters
    ----------
    images : array of shape (N, height, width), or rows of shape (N, height * width)
        Of any real dtype; the result has the same. Beyond their edges, images are 0.
    n : int
        Number of images. Their labels are ``y[np.arange(n) % len(y)]``.
    shape : tuple of int, optional
        Height and width, if images are passed as rows.
    displacement : float, default=0.02
        Root mean square displacement of pixels in each direction, as a fraction of the shorter
        side. With 0.05, digits become much harder to tell apart.
    smoothness : float, default=0.14
        Standard deviation of the Gaussian filter, in the same unit: pixels closer than about this
        move together.
    rotation : float, default=5.0
        Largest rotation, in degrees.
    shift : float, default=0.02
        Largest shift in each direction, as a fraction of the shorter side.
    random_state : int, Generator or None, default=0
        The same seed gives the same images, whatever the number of threads. A larger n only appends
        images.

    Returns
    -------
    array of shape (n, height * width)

    See Also
    --------
    write_deformed : the same in a file, for any number of images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gramian.datasets import deformed
    >>> digits = load_digits()
    >>> X = deformed(digits.images, 5000)
    >>> X.shape, bool(X.min() >= 0), bool(X.max() <= 16)
    ((5000, 64), True, True)
    """
    maker = _maker(images, shape, displacement, smoothness, rotation, shift, random_state)
    n = positive_integer("deformed", "n", n)
    out = np.empty((n, maker.height * maker.width), dtype=maker.images.dtype)
    start = 0
    for block in _blocks(maker, n):
        out[start : start + len(block)] = block
        start += len(block)
    return out


def write_deformed(path: PathLike, images: ArrayLike, n: int, **options: Any) -> Path:
    """Write the images of :func:`deformed` to an NPY file, block by block.

    The images are never all in memory. The file appears only when it is complete; a failure leaves
    no partial file.

    Parameters
    ----------
    path : path or str
        Must end in ``.npy``. An existing file is replaced.
    images, n, **options
        As in :func:`deformed`.

    Returns
    -------
    Path
        The path of the file, which learners accept as rows.

    See Also
    --------
    deformed : the same as an array.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from gramian import KernelKMeans, Nystroem
    >>> from gramian.datasets import write_deformed
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_deformed(f"{folder}/digits.npy", load_digits().images, 5000)
    ...     labels = KernelKMeans(10, Nystroem("rbf", 50), random_state=0).fit_predict(path)
    >>> labels.shape
    (5000,)
    """
    path = Path(path)
    if path.suffix != ".npy":
        raise ValueError(f"path must end in '.npy'; got {str(path)!r}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} to write to.")
    n = positive_integer("write_deformed", "n", n)
    maker = _maker(images, **options)
    header = {
        "descr": np.lib.format.dtype_to_descr(maker.images.dtype),
        "fortran_order": False,
        "shape": (n, maker.height * maker.width),
    }
    with whole_file(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in _blocks(maker, n):
            file.write(block.data)
    return path


class _Maker(NamedTuple):
    """All that determines the images: the originals, the bank of fields, the limits, the seed."""

    images: np.ndarray  # of shape (N, height, width)
    fields: np.ndarray  # of shape (FIELDS, 2, height * width), in pixels
    angle: float  # in radians
    shift: float  # in pixels
    seed: int

    @property
    def height(self) -> int:
        return self.images.shape[1]

    @property
    def width(self) -> int:
        return self.images.shape[2]


def _maker(
    images: ArrayLike,
    shape: tuple[int, int] | None = None,
    displacement: float = 0.02,
    smoothness: float = 0.14,
    rotation: float = 5.0,
    shift: float = 0.02,
    random_state: RandomState = 0,
) -> _Maker:
    images = _checked_images(images, shape)
    height, width = images.shape[1:]
    side = min(height, width)
    limits = {"displacement": displacement, "smoothness": smoothness, "shift": shift}
    limits = {name: side * not_negative("deformed", name, limits[name]) for name in limits}
    angle = np.deg2rad(not_negative("deformed", "rotation", rotation))
    rng = generator(random_state)
    seed = int(rng.integers(2**63))
    noise = rng.standard_normal((FIELDS, 2, height, width))
    fields = gaussian_filter(noise, limits["smoothness"], mode="wrap", axes=(2, 3))
    fields *= limits["displacement"] / np.sqrt(np.mean(fields**2))
    fields = fields.reshape(FIELDS, 2, height * width).astype(np.float32)
    return _Maker(images, fields, float(angle), limits["shift"], seed)


def _checked_images(images: ArrayLike, shape: tuple[int, int] | None) -> np.ndarray:
    images = np.asarray(images)
    if images.ndim == 2 and shape is not None and images.shape[1] == shape[0] * shape[1]:
        images = images.reshape(-1, *shape)
    if images.ndim != 3 or 0 in images.shape or images.dtype.kind not in "biuf":
        raise ValueError(
            "images must be an array of numbers of shape (N, height, width), or of shape "
            f"(N, height * width) with shape=(height, width); got shape {images.shape}, dtype "
            f"{images.dtype} and shape={shape!r}."
        )
    return images


def _blocks(maker: _Maker, n: int) -> Iterator[np.ndarray]:
    """Yield the rows of n images, block by block, in order."""
    spans = [(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    return in_order(partial(_block, maker), spans, config.n_threads(), "deformed images")


def _block(maker: _Maker, span: tuple[int, int]) -> np.ndarray:
    """Make the images of a span that starts at a multiple of BLOCK."""
    start, stop = span
    rng = np.random.default_rng([maker.seed, start // BLOCK])
    # Draw for the whole block, so that its images do not depend on n.
    pairs = rng.integers(FIELDS, size=(BLOCK, 2))
    mix = rng.uniform(0, 2 * np.pi, BLOCK)
    angle = rng.uniform(-maker.angle, maker.angle, BLOCK)
    shift = rng.uniform(-maker.shift, maker.shift, (2, BLOCK, 1)).astype(np.float32)
    size = stop - start
    pairs, mix, angle, shift = pairs[:size], mix[:size], angle[:size], shift[:, :size]

    # The source of each pixel: rotated about the middle, shifted and displaced. Mixing two fields
    # by cosine and sine keeps the size of the displacement.
    cos, sin = (f(angle).astype(np.float32)[:, None] for f in (np.cos, np.sin))
    near, far = (f(mix).astype(np.float32)[:, None, None] for f in (np.cos, np.sin))
    source = near * maker.fields[pairs[:, 0]]
    source += far * maker.fields[pairs[:, 1]]
    y, x = _pixels(maker.height, maker.width)
    middle_y, middle_x = (maker.height - 1) / 2, (maker.width - 1) / 2
    source[:, 0] += cos * (y - middle_y) + sin * (x - middle_x) + (shift[0] + middle_y)
    source[:, 1] += cos * (x - middle_x) - sin * (y - middle_y) + (shift[1] + middle_x)

    images = maker.images[np.arange(start, stop) % len(maker.images)]
    values = _at(images, source[:, 0], source[:, 1])
    if maker.images.dtype.kind in "biu":
        np.rint(values, out=values)
    return values.astype(maker.images.dtype)


def _pixels(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.divmod(np.arange(height * width), width)
    return rows.astype(np.float32), columns.astype(np.float32)


def _at(images: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Interpolate each image bilinearly between its pixels."""
    n, height, width = images.shape
    kind = np.float32 if images.dtype.itemsize < 4 or images.dtype == np.float32 else np.float64
    framed = np.pad(images.astype(kind), ((0, 0), (1, 2), (1, 2)))  # 0 beyond the edges
    y, x = np.clip(y + 1, 0, height + 1), np.clip(x + 1, 0, width + 1)
    row, column = y.astype(np.int32), x.astype(np.int32)
    y, x = (y - row).astype(kind), (x - column).astype(kind)
    step = width + 3
    corner = row * step + column + (np.arange(n) * ((height + 3) * step))[:, None]
    flat = framed.ravel()
    upper = flat[corner]
    upper += x * (flat[corner + 1] - upper)
    corner += step
    lower = flat[corner]
    lower += x * (flat[corner + 1] - lower)
    lower -= upper
    lower *= y
    upper += lower
    return upper

"""DaskRows: rows of a dask array or dataframe, in this process or on a cluster.

One task walks each chunk in blocks that fit the cache, like rows of an array in this process. The
result is a sum, added in a tree, or a lazy array with one entry per row. Functions are sent to the
workers once per pass; large arrays in them are sent once for all passes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import sklearn

from gramian.backend import array_ops, config, optional
from gramian.backend.array_ops import Array
from gramian.backend.typing import Aligned, ArrayLike, BlockSum, Indices, State, Sums
from gramian.backend.wording import counted
from gramian.rows import ArrayRows, Rows, Walk
from gramian.rows.dask import chunks
from gramian.rows.files.rows import FileRows

with optional.needed("dask", "Working on dask collections"):
    import dask.array as da
    from dask.delayed import delayed

    from gramian.rows.dask import places
    from gramian.rows.dask.graphs import as_matrix, joined, names_of
    from gramian.rows.dask.places import Cluster
    from gramian.rows.dask.workers import Sender

__all__ = ["DaskRows"]

GATHERED_BYTES = 64 * 1024**2  # up to this size, chosen rows are gathered in this process
PATIENCE = "10s"  # how long to wait for a scheduler


class DaskRows(Rows):
    """Rows of a dask array or dataframe, walked on their workers by one task per chunk.

    Every learner and approximation accepts dask collections directly; use this class only to set
    ``device``. If there is a :class:`distributed.Client`, tasks run on its cluster, otherwise in
    dask's threads. Each task uses one thread.

    Parameters
    ----------
    data : dask array of shape (n, d), or dask dataframe with numeric columns
        Unknown chunk sizes take one computation. Every pass computes the rows again, so persist
        them if they fit the workers' memory. NaN, infinity and missing values raise an error when a
        chunk is computed.
    device : str, optional
        Device that workers use, such as "cuda": each moves its blocks there, as torch tensors.
    name : str, default="X"
        The name of the data in error messages.

    Examples
    --------
    >>> import dask.array as da
    >>> from gramian.rows.dask.rows import DaskRows
    >>> rows = DaskRows(da.arange(6, chunks=6).reshape(3, 2).rechunk((2, 2)))
    >>> rows.map(lambda block, out: block.sum(axis=1)).compute()
    array([1., 5., 9.])
    >>> rows.sum(lambda block: block.T @ block)
    array([[20., 26.],
           [26., 35.]])
    """

    place: Cluster

    def __init__(self, data: ArrayLike, *, device: str | None = None, name: str = "X") -> None:
        array = as_matrix(data, name)
        checked = array.dtype.kind != "f" or sklearn.get_config()["assume_finite"]
        self._set(Cluster(array, device, checked, Sender(), name))
        self.names = names_of(data)

    def _set(self, place: Cluster) -> None:
        self.place = place
        self.xp = place.xp
        self.data = place.data  # a dask array of shape (n, d)
        self.shape = (place.n, int(place.data.shape[1]))
        self.dtype = place.reference.dtype

    @classmethod
    def _at(cls, place: Cluster) -> DaskRows:
        rows = cls.__new__(cls)
        rows._set(place)
        return rows

    def __repr__(self) -> str:
        pieces = counted(len(self.place.lengths), "chunk")
        return f"DaskRows(shape={self.shape}, dtype={self.data.dtype}, {pieces})"

    def _map(self, function: Callable[..., Array], aligned: Aligned, walk: Walk) -> Array:
        if walk.into is not None:
            raise ValueError("Results of dask rows are lazy and cannot be written to an array.")
        return self.place.map_chunks(partial(chunks.map_here, function, walk), aligned, walk)

    def _sum(self, function: BlockSum, aligned: Aligned, state: State, walk: Walk) -> Sums:
        operation = partial(chunks.sum_here, function, replace(walk, start=0, stored=False))
        return self.place.sum_chunks(operation, aligned, state, walk)

    def take(self, indices: Indices) -> Array:
        return self.place.take(indices)

    def choose(self, numbers: np.ndarray) -> Rows:
        numbers = np.asarray(numbers)
        size = len(numbers) * self.row_bytes
        in_order = bool(np.all(numbers[1:] >= numbers[:-1]))
        if size <= min(GATHERED_BYTES, config.memory_budget() // 4) or not in_order:
            what = counted(len(numbers), "chosen row")
            config.check_fits(size, what, "Choose them in order")
            return ArrayRows(self.take(numbers))
        pieces, lengths = [], []
        for chunk, own, inside in self.place.within(numbers):
            pieces.append((chunks.take_chunk, self.place.reading, own, chunk, inside))
            lengths.append(len(inside))
        return self.place.of_pieces(pieces, lengths)

    def persist(self) -> Rows:
        if self.shape[0] * self.row_bytes > self.place.room() // 2:
            return self
        rows = self.place.keep(self._values())
        rows.names = self.names
        return rows

    def collect(self) -> Array:
        return self.take(range(self.shape[0]))

    def _values(self) -> Array:
        place = self.place
        if place.checked and place.device is None and self.data.dtype == self.dtype:
            return self.data
        return self.map(chunks.same, width=self.shape[1])


def spread_rows(rows: Rows, *, device: str | None = None) -> DaskRows:
    """Distribute rows of this process, or of files that workers can open at the same paths.

    The workers read files in every pass: Parquet and NPY files in pieces, a CSV file as a whole.
    """
    if isinstance(rows, ArrayRows):
        return DaskRows(da.from_array(rows.data, chunks=("auto", -1)), device=device)
    assert isinstance(rows, FileRows)
    width = rows.shape[1] * array_ops.itemsize(rows.dtype)
    spans = rows.spans_of_files(max(places.CHUNK_BYTES // 2 // width, 1))
    whole = delayed(rows, name=f"rows-{uuid.uuid4().hex}", traverse=False)
    tasks = [(chunks.rows_of_file, whole, start, stop) for start, stop in spans]
    lengths = [stop - start for start, stop in spans]
    spread = DaskRows(joined(tasks, lengths, rows.shape[1:], rows.dtype), device=device)
    spread.names, spread.place.checked = rows.names, True
    return spread


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Use the dask cluster at this address inside a ``with`` block."""
    with optional.needed("distributed", "Computing on a dask cluster"):
        from distributed import Client

    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise ConnectionError(f"No dask scheduler answers at {address}: {error}") from error
    with client:
        yield

"""Convert dask arrays and dataframes to dask arrays with known chunks of whole rows."""

from __future__ import annotations

import numpy as np

from gramian.backend import array_ops, optional
from gramian.backend.typing import ArrayLike
from gramian.backend.wording import counted
from gramian.rows.dask import chunks
from gramian.rows.dask.graphs import Task, clear_errors, computed, current_client, joined

with optional.needed("dask", "Working on dask collections"):
    import dask
    import dask.array as da


def names_of(data: ArrayLike) -> list[str] | None:
    columns = list(getattr(data, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def as_matrix(data: ArrayLike, name: str) -> da.Array:
    """Convert a collection to a dask array with known, non-empty chunks of whole rows."""
    is_frame = hasattr(type(data), "to_dask_array")
    if not isinstance(data, da.Array) and not is_frame:
        raise TypeError(
            f"Expected a dask array or dataframe for {name}; got {type(data).__name__}. Convert "
            "it, for example with dask.array.from_delayed."
        )
    if data.ndim != 2:
        raise ValueError(
            f"Expected a 2D array for {name}; got {counted(data.ndim, 'dimension')}. Reshape it to "
            "(n_rows, n_columns)."
        )
    if is_frame:
        return _frame(data, name)
    if data.dtype.kind not in "biuf":
        kind = "Complex data not supported" if data.dtype.kind == "c" else "Expected numbers"
        raise ValueError(f"{kind}: {name} has dtype {data.dtype}.")
    if len(data.chunks[1]) > 1:
        data = data.rechunk({1: -1})
    return _without_empty(with_known_chunks(_optimised(data)))


def _optimised(data: da.Array) -> da.Array:
    """Optimise the graph once, for all passes.

    An array with chunks on the workers is returned unchanged: dask would drop these from the graph,
    and release them as soon as the user does.
    """
    client = current_client()
    if client is not None and client.futures_of(data):
        return data
    return dask.optimize(data)[0]


def _frame(data: ArrayLike, name: str) -> da.Array:
    text = [str(column) for column, dtype in data.dtypes.items() if dtype.kind not in "biuf"]
    if text:
        raise ValueError(
            f"{name} must be numeric; these columns are not: {', '.join(map(repr, text))}. "
            "Encode them (dask-ml's or scikit-learn's OneHotEncoder) or drop them."
        )
    single = all(str(dtype).lower() in array_ops.IN_SINGLE for dtype in data.dtypes)
    dtype = np.dtype(np.float32 if single else np.float64)
    with clear_errors():
        lengths = data.map_partitions(len, meta=(None, "i8")).compute()
    pieces = [Task(chunks.numbers_of, part, dtype) for part in data.to_delayed()]
    filled = [(p, int(n)) for p, n in zip(pieces, lengths, strict=True) if n]
    if not filled:
        return da.empty((0, len(data.columns)), dtype=dtype)
    tasks, sizes = zip(*filled, strict=True)
    return joined(list(tasks), sizes, (len(data.columns),), dtype)


def with_known_chunks(data: da.Array) -> da.Array:
    """Return the array with known chunk sizes; unknown sizes take one computation."""
    if not np.isnan(data.shape[0]):
        return data
    pieces = data.to_delayed(optimize_graph=False).reshape(data.numblocks[0], -1)[:, 0]
    lengths = computed([Task(len, piece).made() for piece in pieces])
    return da.Array(data.dask, data.name, (tuple(lengths), *data.chunks[1:]), meta=data._meta)


def _without_empty(data: da.Array) -> da.Array:
    lengths = tuple(n for n in data.chunks[0] if n) or (0,)
    return data if len(lengths) == len(data.chunks[0]) else data.rechunk((lengths, data.chunks[1]))


def check_length(values: ArrayLike, n: int) -> None:
    """Raise an error unless values have one entry for each of n rows."""
    if values.ndim == 0 or values.shape[0] != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: there are {n} rows, but "
            f"other values have shape {tuple(values.shape)}."
        )

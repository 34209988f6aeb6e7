"""Send functions to other processes: pickled once, with large arrays sent separately."""

from __future__ import annotations

import io
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import array_api_compat
import cloudpickle
import numpy as np

from gramian.backend import array_ops, optional

LARGE_BYTES = 100_000  # arrays of at least this size are sent separately, and only once
CACHED = 8  # unpickled functions that a process caches


class Large(NamedTuple):
    """An array that is sent separately, and a digest of its content."""

    array: np.ndarray
    content: str


class Call:
    """A function for a task: itself in the same process, otherwise as bytes."""

    def __init__(self, function: Callable[..., object] | None, data: bytes = b"") -> None:
        self._function = function
        self._data = data

    def function(
        self, arrays: list[np.ndarray], device: str | None = None
    ) -> Callable[..., object]:
        """Return the function with the arrays that were sent separately; tensors on the device."""
        if self._function is not None:
            return self._function
        key = _digest(self._data), device
        with _lock:
            if key not in _made:
                _made[key] = _Unpickler(self._data, arrays, device).load()
                while len(_made) > CACHED:
                    _made.popitem(last=False)
            _made.move_to_end(key)
            return _made[key]


_lock = threading.Lock()
_made: OrderedDict[tuple[bytes, str | None], Callable[..., object]] = OrderedDict()


def packed(
    function: Callable[..., object], never: tuple[type, ...] = ()
) -> tuple[bytes, list[Large]]:
    """Return the function as bytes, and its large arrays; types in ``never`` raise an error.

    Different arrays give different bytes, even if they are sent separately.
    """
    file = io.BytesIO()
    pickler = _Pickler(file, never)
    pickler.dump(function)
    return file.getvalue(), list(pickler.large.values())


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, never: tuple[type, ...]) -> None:
        super().__init__(file)
        self.never = never
        self.large: dict[int, Large] = {}  # by identity
        self._alive: list[object] = []  # references, so that no id is reused

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, self.never):
            raise TypeError(
                "A function that is sent to workers refers to all rows, through a "
                f"{type(obj).__name__}; it may use only blocks."
            )
        is_tensor = array_api_compat.is_torch_array(obj)
        if not is_tensor and type(obj) is not np.ndarray:
            return None
        array = array_ops.to_numpy(obj) if is_tensor else obj
        if array.dtype == object or array.nbytes < LARGE_BYTES:
            return ("tensor", array) if is_tensor else None
        if id(obj) not in self.large:
            self._alive.append(obj)
            self.large[id(obj)] = Large(array, _content(array))
        place = list(self.large).index(id(obj))
        return "large tensor" if is_tensor else "large array", place, self.large[id(obj)].content


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, arrays: list[np.ndarray], device: str | None) -> None:
        super().__init__(io.BytesIO(data))
        self._arrays = arrays
        self._device = device

    def persistent_load(self, pid: Any) -> Any:
        kind, what, *_ = pid
        array = self._arrays[what] if kind.startswith("large") else what
        if not kind.endswith("tensor"):
            return array
        with optional.needed("torch", "Receiving tensors on a dask worker"):
            import torch

        return array_ops.like(array, torch.empty(0, device=self._device))


def _content(array: np.ndarray) -> str:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return f"{_digest(flat.data).hex()}-{array.dtype.str}-{array.shape}"


def _digest(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=16).digest()

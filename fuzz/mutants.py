"""Mutated model files: the structure of a good file with something wrong, and right checksums."""

from __future__ import annotations

import io
import json
import random
import warnings
import zipfile
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from fuzz import crafted
from gramian.persistence import models, states

ROWS = np.random.default_rng(0).standard_normal((40, 4))
TARGETS = np.arange(40) % 3

SMALL: list[Any] = [0, 1, -1, 2, 7, 0.5, -3.0, 1e300, "x", "", None, True, [], {"float": "nan"}]
LARGE: list[Any] = [2**31 - 1, 2**31, 2**63, -(2**63), 10**9, 10**18, 2**200]
NODES: list[Any] = [
    {"tuple": []}, {"dict": []}, {"dict": [["a", 1]]}, {"slice": [0, 10**9, 1]},
    {"slice": [None, None, -1]}, {"same": 0}, {"same": 3}, {"array": 0}, {"float": "inf"},
    {"dtype": "<f4", "type": True}, {"namespace": "numpy"}, {"objects": [], "shape": [0, 3]},
    crafted.RBF,
]  # fmt: skip
DTYPES = ["<f8", "<f4", "<f2", "<i8", "<i4", "|i1", "|u1", "|b1", "<c16", "<U1", "|S8", "<M8[s]"]


def good_models() -> list[Any]:
    """Return models of all kinds, small, fitted."""
    from gramian import (
        BKA,
        CRAFT,
        MEKA,
        RBF,
        KernelJL,
        KernelKMeans,
        KernelLogisticRegression,
        KernelOneClass,
        KernelPCA,
        KernelQuantileRegressor,
        KernelRidge,
        KernelRidgeClassifier,
        KernelSVC,
        Laplacian,
        Linear,
        Local,
        Nystroem,
        OnlineKernelKMeans,
        Polynomial,
        RandomFourier,
        RandomMaclaurin,
        TensorSketch,
    )  # fmt: skip

    sparse = scipy.sparse.csr_array(ROWS * (abs(ROWS) > 0.7))
    fresh = np.random.default_rng
    old = np.random.RandomState(1)
    twister = np.random.Generator(np.random.MT19937(1))
    philox = np.random.Generator(np.random.Philox(1))
    few: Any = {"max_iter": 8}  # a mutant is fitted again: seconds would be lost on the optimum
    unfitted = [
        KernelRidge(0.1, kernel=RBF(0.5)),
        KernelRidge("loo", kernel=Nystroem(0.5 * RBF(0.1) + Linear(), 8, random_state=fresh(1))),
        KernelRidgeClassifier(0.1, kernel=Laplacian(0.5)),
        KernelRidgeClassifier(0.1, kernel=BKA(RBF(0.1), 8, n_blocks=2, random_state=old)),
        KernelKMeans(3, kernel=MEKA(RBF(0.1), 8, n_blocks=2, random_state=1), random_state=twister),
        KernelKMeans(3, kernel=RBF(0.5), random_state=philox, max_iter=5),
        KernelPCA(2, kernel=RBF(0.5), fit_inverse_transform=True, random_state=1),
        KernelPCA(2, kernel=RandomFourier(RBF(0.5), 8, random_state=1)),
        KernelRidge(0.1, kernel=TensorSketch(Polynomial(degree=2), 8, random_state=1)),
        KernelRidge(0.1, kernel=RandomMaclaurin(Polynomial(degree=2), 8, random_state=1)),
        KernelRidge(0.1, kernel=CRAFT(Polynomial(degree=2), 8, random_state=1)),
        KernelPCA(2, kernel=KernelJL(RBF(0.5), 8, random_state=1)),
        OnlineKernelKMeans(0.5, kernel=RBF(0.5), random_state=1),
        Nystroem(RBF(0.5), 8, landmarks="rpcholesky", random_state=1),
        KernelRidge(0.1, kernel=Local(RBF(0.5), 3, random_state=1)),
        KernelLogisticRegression(0.1, kernel=Nystroem(RBF(0.5), 8, random_state=1), **few),
        KernelSVC(0.1, kernel=Local(Nystroem(RBF(0.5), 8), 2, random_state=1), **few),
        KernelQuantileRegressor(0.5, kernel=RBF(0.5), **few),
        KernelOneClass(kernel=Nystroem(RBF(0.5), 8, random_state=1), **few),
    ]
    with warnings.catch_warnings():  # about the optimum
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = [model.fit(ROWS, TARGETS) for model in unfitted]
    fitted.append(KernelRidge(0.1, kernel=RBF(0.5)).fit(sparse, TARGETS))
    fitted.append(KernelKMeans(3, kernel=RBF(0.5), random_state=1).fit(sparse))
    fitted.append(KernelRidge(0.1, kernel=Nystroem(RBF(0.5), 8)).partial_fit(ROWS, TARGETS))
    return fitted


@cache
def _good_files() -> list[tuple[bytes, Any, list[np.ndarray]]]:
    """Return the file of each model: its bytes, what its text says, and its arrays."""
    files = []
    for model in good_models():
        file = io.BytesIO()
        models.write(model, file)
        with zipfile.ZipFile(file) as archive:
            text = json.loads(archive.read("model.json"))
            parts = [np.load(archive.open(f"{i}.npy")) for i in range(text["arrays"])]
        files.append((file.getvalue(), text["model"], parts))
    return files


def mutant(seed: int, number: int) -> bytes:
    """Return the file with this number of the campaign with this seed."""
    pick = random.Random(f"{seed}/{number}")
    data, model, parts = pick.choice(_good_files())
    if pick.random() < 0.1:
        return _damaged(data, pick)
    model, arrays = json.loads(json.dumps(model)), [part.copy() for part in parts]
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        if arrays and pick.random() < 0.4:
            which = pick.randrange(len(arrays))
            arrays[which] = _other_array(arrays[which], pick)
        else:
            _change(model, pick)
    return crafted.build(model, arrays)


def _damaged(data: bytes, pick: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(pick.randint(1, 8)):
        out[pick.randrange(len(out))] = pick.randrange(256)
    return bytes(out[: pick.randrange(len(out))]) if pick.random() < 0.2 else bytes(out)


def _places(node: Any, public: bool = False) -> list[tuple[Any, Any, bool]]:
    """Return (container, key, whether it is a parameter) of every node below."""
    found = []
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        inside = public
        if isinstance(node, dict) and "object" not in node and isinstance(key, str):
            inside = not (key.startswith("_") or key.endswith("_"))
        found.append((node, key, inside))
        if isinstance(value, dict | list):
            found += _places(value, inside)
    return found


def _change(model: Any, pick: random.Random) -> None:
    places = _places(model)
    node, key, public = pick.choice(places)
    what = pick.random()
    if what < 0.1 and len(node) > 1:
        del node[key]
    elif what < 0.3:
        other, name, _ = pick.choice(places)
        if name in (other if isinstance(other, dict) else range(len(other))):
            node[key] = json.loads(json.dumps(other[name]))
    elif what < 0.4 and key == "object":
        node[key] = pick.choice(sorted(states.classes()))
    else:  # a parameter may ask for much work, as any user may: keep it small
        value = pick.choice(SMALL + NODES + ([] if public else LARGE))
        node[key] = json.loads(json.dumps(value))


def _other_array(array: np.ndarray, pick: random.Random) -> np.ndarray | Any:
    what = pick.randrange(6)
    if what == 0:
        with np.errstate(all="ignore"):
            try:
                return array.astype(pick.choice(DTYPES))
            except (TypeError, ValueError):
                return np.ones(array.shape)
    if what == 1:
        return pick.choice([array[:0], array[..., :0], array[None], array.ravel(), array.T])
    if what == 2 and array.ndim:
        return np.repeat(array, pick.choice((2, 3)), axis=0)
    if what == 3 and array.ndim:
        return array[: max(1, len(array) // 2)]
    if array.size and array.dtype.kind in "iuf":
        flat = array.reshape(-1)
        special = [0, 1, -1, 2**31 - 1, 2**62, np.nan, np.inf, 1e300, 1e-300]
        for _ in range(pick.randint(1, 3)):
            with np.errstate(all="ignore"):
                value = np.array([pick.choice(special)])
                flat[pick.randrange(len(flat))] = value.astype(array.dtype)[0]
        return flat.reshape(array.shape)
    return np.zeros((1,))

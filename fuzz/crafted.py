"""Model files that someone made to crash, hang or fill a process. ``load`` must refuse each."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sklearn

File = Callable[[], bytes]

RBF = {
    "object": "RBF",
    "state": {"gamma": 1.0, "bandwidth": None, "scales": None, "gamma_": 1.0},
}


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), version=(1, 0), allow_pickle=True)
    return out.getvalue()


def described(model: Any, arrays: int) -> str:
    return json.dumps(
        {"format": "gramian model", "version": 1, "gramian": "x", "arrays": arrays, "model": model}
    )


def build(
    model: Any = None,
    arrays: Sequence[Any] = (),
    *,
    text: str | None = None,
    more: Sequence[str] = (),
    method: int = zipfile.ZIP_STORED,
) -> bytes:
    """Return a model file with right checksums; arrays may be bytes of NPY entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for i, array in enumerate(arrays):
            data = array if isinstance(array, bytes) else npy(array)
            archive.writestr(zipfile.ZipInfo(f"{i}.npy"), data, compress_type=method)
        for name in more:
            archive.writestr(zipfile.ZipInfo(name), b"x")
        archive.writestr(
            zipfile.ZipInfo("model.json"), text or described(model, len(arrays)), method
        )
    return out.getvalue()


def pipeline(step: Any = None, **state: Any) -> dict[str, Any]:
    step = step or {"tuple": ["kernel", RBF]}
    usual = {"steps": [step], "memory": None, "_sklearn_version": sklearn.__version__}
    return thing("Pipeline", **(usual | state))


def thing(name: str, **state: Any) -> dict[str, Any]:
    return {"object": name, "state": state}


def array(number: int) -> dict[str, int]:
    return {"array": number}


def learner(**state: Any) -> dict[str, Any]:
    return thing("KernelKMeans", kernel=RBF, n_clusters=3, **state)


# Random generators.


def generator(name: str, state: dict[str, Any], seeds: Any = None, **more: Any) -> Any:
    """A model whose random generator has this state; values may be nodes."""
    pairs = {"bit_generator": name, "state": _dict(state), **more}
    if name != "MT19937":
        pairs = {**pairs, "has_uint32": 0, "uinteger": 0, **more}
    node = {"generator": name, "old": False, "state": _dict(pairs), "seeds": seeds}
    return learner(random_state=node)


def _dict(pairs: dict[str, Any]) -> dict[str, Any]:
    return {"dict": [[key, value] for key, value in pairs.items()]}


def seeds(pool: int, **more: Any) -> dict[str, Any]:
    base = {"entropy": 1, "spawn_key": {"tuple": []}, "pool_size": pool, "n_children_spawned": 0}
    return _dict({**base, **more})


def pooled(pool: int, **more: Any) -> File:
    return lambda: build(generator("PCG64", {"state": 1, "inc": 3}, seeds(pool, **more)))


def twister(pos: int, key: np.ndarray | None = None) -> File:
    words = np.arange(624, dtype=np.uint32) if key is None else key
    return lambda: build(generator("MT19937", {"key": array(0), "pos": pos}), [words])


def philox(position: Any, words: int = 4) -> File:
    model = generator(
        "Philox", {"counter": array(0), "key": array(1)}, buffer=array(2), buffer_pos=position
    )
    counter, key = np.zeros(4, np.uint64), np.zeros(2, np.uint64)
    return lambda: build(model, [counter, key, np.zeros(words, np.uint64)])


# Sparse matrices.


def sparse(data: Any, indices: Any, starts: Any, shape: Sequence[int], kind: str = "csr") -> File:
    node = {
        "sparse": f"{kind}_matrix", "parts": [array(0), array(1), array(2)], "shape": list(shape)
    }  # fmt: skip
    rows = {"rows": node, "names": None}
    return lambda: build(thing("KernelRidge", kernel=RBF, points_=rows), [data, indices, starts])


# Objects that share, or hold next to nothing.


def projected(points: Any, projection: Any) -> dict[str, Any]:
    return thing("ProjectedKernel", kernel=RBF, points=points, projection=projection, offset=None)


def sharing(count: int) -> bytes:
    """Many objects that share two arrays, of which each would prepare copies."""
    first = projected({"once": array(0)}, {"once": array(1)})
    others = [projected({"same": 0}, {"same": 1})] * (count - 1)
    model = thing("KernelRidge", kernel=RBF, alpha={"tuple": [first, *others]})
    return build(model, [np.ones((1000, 125)), np.ones((1000, 250))])


def doubling(depth: int) -> bytes:
    """A kernel that is the sum of itself and itself, and so on: a walk over it would not end."""
    node: Any = {"once": RBF}
    for number in range(depth):
        node = {"once": thing("Sum", left=node, right={"same": number})}
    return build(node)


def empty(rows: int) -> bytes:
    model = thing("KernelRidge", kernel=RBF, alpha=projected(array(0), array(1)))
    return build(model, [np.zeros((rows, 0)), np.zeros((rows, 0))])


def header(descr: str, shape: str) -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


# Archives.


def _local(name: bytes, crc: int, size: int) -> bytes:
    fields = (0x04034B50, 20, 0, 0, 0, 33, crc, size, size, len(name), 0)
    return struct.pack("<IHHHHHIIIHH", *fields) + name


def _central(name: bytes, crc: int, size: int, offset: int) -> bytes:
    fields = (0x02014B50, 20, 20, 0, 0, 0, 33, crc, size, size, len(name), 0, 0, 0, 0, 0, offset)
    return struct.pack("<IHHHHHHIIIHHHHHII", *fields) + name


def _end(count: int, size: int, offset: int) -> bytes:
    return struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, size, offset, 0)


def nested(count: int, tail: int) -> bytes:
    """Entries that contain all that follow: each is a valid array of nearly the whole file."""
    current, entries = bytes(tail), []
    for i in range(count - 1, -1, -1):
        data = header("|i1", f"({len(current)},)") + current
        name, crc = b"%d.npy" % i, zlib.crc32(data)
        current = _local(name, crc, len(data)) + data
        entries.append((name, crc, len(data), len(current)))
    text = described(learner(alpha=[array(i) for i in range(count)]), count).encode()
    last = b"model.json", zlib.crc32(text), len(text)
    directory = b"".join(
        _central(name, crc, size, len(current) - length) for name, crc, size, length in entries
    )
    directory += _central(*last, len(current))
    body = current + _local(*last) + text
    return body + directory + _end(count + 1, len(directory), len(body))


def crowded(count: int) -> bytes:
    """A directory of many entries without data."""
    directory = b"".join(_central(b"%d" % i, 0, 0, 0) for i in range(count))
    return b"PK" + directory + _end(0xFFFF, len(directory), 2)


def zip64_directory() -> bytes:
    """A directory whose size is small in one record and huge in the other."""
    good = build(RBF)
    body, end = good[:-22], good[-22:]
    fields = (b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, 10**9, 0)
    record = struct.pack("<4sQ2H2L4Q", *fields)
    return body + record + struct.pack("<4sLQL", b"PK\6\7", 0, len(body), 1) + end


def twice() -> bytes:
    """The directory names an entry two times."""
    good = build(RBF)
    start = good.index(b"PK\1\2")
    entry = good[start:-22]
    return good[:start] + 2 * entry + _end(2, 2 * len(entry), start)


ZEROS = np.zeros(3)
ONE, POINTERS = np.ones(4), np.array([0, 1, 2, 3, 4])
DEEP = '{"format":"gramian model","version":1,"gramian":"x","arrays":0,"model":%s}'
COLLIDING = [[(2**61 - 1) * i, 0] for i in range(1, 50_000)]

FILES: dict[str, File] = {
    # Random generators.
    "seed pool of 20,000 words": pooled(20_000),
    "seed pool of 10**9 words": pooled(10**9),
    "seed pool of 0 words": pooled(0),
    "seed entropy that is huge": pooled(4, entropy=[1] * 100_000),
    "seed entropy that is negative": pooled(4, entropy=-1),
    "spawn key that is huge": pooled(4, spawn_key={"tuple": [1] * 100_000}),
    "MT19937 far beyond its words": twister(10**9),
    "MT19937 just beyond its words": twister(625),
    "MT19937 before its words": twister(-1),
    "MT19937 of few words": twister(1, np.ones(3, np.uint32)),
    "MT19937 of other words": twister(1, np.ones(624, np.uint64)),
    "MT19937 of zeros": twister(624, np.zeros(624, np.uint32)),
    "Philox beyond its buffer": philox(5),
    "Philox before its buffer": philox(-1),
    "Philox of a short buffer": philox(4, words=2),
    "PCG64 that stands still": lambda: build(generator("PCG64", {"state": 0, "inc": 0})),
    "PCG64DXSM that is too large": lambda: build(
        generator("PCG64DXSM", {"state": 2**128, "inc": 1})
    ),
    "SFC64 of few words": lambda: build(
        generator("SFC64", {"state": array(0)}), [np.ones(2, np.uint64)]
    ),
    "PCG64 with more": lambda: build(generator("PCG64", {"state": 1, "inc": 1, "pos": 1})),
    # Sparse matrices.
    "CSR pointers that fall": sparse(ONE, np.arange(4), np.array([0, 2**31 - 1, 0, 0, 0]), (4, 4)),
    "CSR pointers that end below 0": sparse(
        ONE, np.arange(4), np.array([0, 10**9, 10**9, 10**9, -1]), (4, 4)
    ),
    "CSR pointers beyond the data": sparse(ONE, np.arange(4), POINTERS * 2, (4, 4)),
    "CSR pointers that start late": sparse(ONE, np.arange(4), POINTERS.clip(1), (4, 4)),
    "CSR of too few pointers": sparse(ONE, np.arange(4), POINTERS, (40, 4)),
    "CSR indices beyond the columns": sparse(ONE, np.arange(4) * 10**8, POINTERS, (4, 4)),
    "CSC indices beyond the rows": sparse(ONE, np.arange(4) + 1, POINTERS, (4, 4), "csc"),
    "CSR indices below 0": sparse(ONE, np.arange(4) - 1, POINTERS, (4, 4)),
    "CSR indices of floats": sparse(ONE, np.ones(4), POINTERS, (4, 4)),
    "CSR indices of bytes": sparse(ONE, np.zeros(4, np.int8), POINTERS, (4, 4)),
    "CSR of two dimensions": sparse(np.ones((4, 4)), np.arange(4), POINTERS, (4, 4)),
    "CSR of a negative shape": sparse(ONE, np.arange(4), POINTERS, (4, -4)),
    "CSR of strings": sparse(np.array(["a"] * 4), np.arange(4), POINTERS, (4, 4)),
    # Archives.
    "entries inside each other": lambda: nested(500, 10**6),
    "a directory of 100,000 entries": lambda: crowded(100_000),
    "a directory of two sizes": zip64_directory,
    "entries that are compressed": lambda: build(
        learner(alpha=array(0)), [np.zeros(10**6)], method=zipfile.ZIP_DEFLATED
    ),
    "entries with other names": lambda: build(RBF, more=["../../evil", "/etc/evil"]),
    "an entry twice": twice,
    "more after the end": lambda: build(RBF) + b"PK\5\6" + bytes(30),
    # Arrays.
    "arrays of 2**30 empty rows": lambda: empty(2**30),
    "arrays of 2**36 empty rows": lambda: empty(2**36),
    "an array of entries without bytes": lambda: build(
        learner(alpha=array(0)), [header("<U0", "(1000000000000,)")]
    ),
    "an array of huge strings": lambda: build(
        learner(alpha=array(0)), [header("<U400000000", "(0,)")]
    ),
    "an array whose shape is an expression": lambda: build(
        learner(alpha=array(0)), [header("<f8", "(9**9**9,)")]
    ),
    "an array whose header is deep": lambda: build(
        learner(alpha=array(0)), [header("<f8", "(" * 5000 + ")" * 5000)]
    ),
    "an array of objects": lambda: build(learner(alpha=array(0)), [np.array([print], object)]),
    "an array of structures": lambda: build(learner(alpha=array(0)), [np.zeros(3, "i4,f8")]),
    "truth values that are neither": lambda: build(
        learner(alpha=array(0)), [header("|b1", "(3,)") + b"\1\7\xff"]
    ),
    "strings that are none": lambda: build(
        learner(alpha=array(0)), [header("<U1", "(1,)") + b"\xff" * 4]
    ),
    "an array in two places": lambda: build(learner(alpha=array(0), tol=array(0)), [ZEROS]),
    "an array in no place": lambda: build(RBF, [ZEROS]),
    "an array of a negative number": lambda: build(learner(alpha=array(-1)), [ZEROS]),
    "an array of objects without a shape": lambda: build(
        learner(alpha={"objects": [], "shape": [0, 10**18, -1]})
    ),
    # Objects.
    "3,000 objects of the same arrays": lambda: sharing(3000),
    "a kernel that doubles 60 times": lambda: doubling(60),
    "a projection of other points": lambda: build(
        thing("KernelRidge", kernel=RBF, alpha=projected(array(0), array(1))),
        [np.ones((3, 2)), np.ones((2, 2))],
    ),
    "dictionary keys of one hash": lambda: build(learner(alpha={"dict": COLLIDING})),
    "300,000 objects": lambda: build(learner(alpha=[[]] * 300_000)),
    "3,000,000 numbers": lambda: build(learner(alpha=[0] * 3_000_000)),
    "a text of 20 MB": lambda: build(learner(alpha="x" * 20_000_000)),
    "a number of 5,000,000 digits": lambda: build(text=DEEP % ("9" * 5_000_000)),
    "lists 100,000 deep": lambda: build(text=DEEP % ("[" * 100_000 + "]" * 100_000)),
    "objects 900 deep": lambda: build(text=DEEP % ('{"once":' * 900 + "1" + "}" * 900)),
    "10**9 arrays": lambda: build(text=described(RBF, 10**9)),
    "a number that is none": lambda: build(text=DEEP % "NaN"),
    "a pipeline that reads pickles": lambda: build(pipeline(memory="/tmp")),
    "a pipeline with another attribute": lambda: build(pipeline(_metadata_request=RBF)),
    "a pipeline whose step is no estimator": lambda: build(pipeline({"tuple": ["a", "drop"]})),
    "a method among the attributes": lambda: build(learner(predict=1)),
    "a dtype of objects": lambda: build(learner(alpha={"dtype": "|O", "type": False})),
    "a dtype of a huge part": lambda: build(
        learner(alpha={"dtype": "(100000000,)f8", "type": False})
    ),
    # What is no model.
    "a string": lambda: build("hello"),
    "a number": lambda: build(1),
    "a list of models": lambda: build([RBF, RBF]),
    "a dictionary": lambda: build({"dict": []}),
    "rows": lambda: build({"rows": array(0), "names": None}, [np.ones((3, 2))]),
    "a part of a model": lambda: build(thing("BlockCore", x=1)),
    "factors without parts of Z": lambda: build(thing("Factors", parts=[1])),
    "a strategy": lambda: build(thing("Factored")),
}  # fmt: skip

"""Fits on files that are larger than the memory that the process may have.

Each runs in a fork of one process, whose address space has a hard limit, set when all is imported
and has run once. Beside the memory budget the limit leaves room for the stacks of threads, for what
the allocator keeps, and for little else: the file would not fit, nor would the features of its
rows.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

resource = pytest.importorskip("resource")  # there are no such limits on Windows
if not os.path.exists("/proc/self/statm"):
    pytest.skip("needs Linux, which says how large a process is", allow_module_level=True)

# One process is started for all fits: the tests share a worker, and what it said.
pytestmark = [pytest.mark.address_space, pytest.mark.xdist_group("address space")]

ROWS, COLUMNS = 170_000, 192  # in float32: 131 MB, more than the limit
BUDGET, LIMIT = 40_000_000, 125_000_000

# Few passes: more of them take time, but no more memory.
MODELS = {
    "k-means": "KernelKMeans(5, kernel=Nystroem(RBF(0.004), 64), random_state=0)",
    "k-means, default": "KernelKMeans(5, kernel=RBF(0.004), max_iter=2, random_state=0)",
    "k-means in mini-batches": (
        "KernelKMeans(5, kernel=Nystroem(RBF(0.004), 64), batch_size=2000, max_iter=1,"
        " random_state=0)"
    ),
    "DP-means": (
        "OnlineKernelKMeans(kernel=RandomFourier(RBF(0.004), 64), expected_clusters=5,"
        " max_clusters=20, max_iter=1, random_state=0)"
    ),
    "ridge": "KernelRidge(1.0, kernel=Nystroem(RBF(0.004), 64), random_state=0)",
    "ridge by iteration": (
        "KernelRidge(1.0, kernel=Nystroem(RBF(0.004), 64), solver='iterative', max_iter=2,"
        " random_state=0)"
    ),
    "classes": "KernelRidgeClassifier(1.0, kernel=Nystroem(RBF(0.004), 64), random_state=0)",
    "components": "KernelPCA(2, kernel=Nystroem(RBF(0.004), 64), random_state=0)",
}

CHILD = """
import json, os, resource, sys, traceback
import numpy as np
import gramian
from gramian import *

path, fits, limit = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
rows = open_rows(path)
n, d = rows.shape
y = (np.arange(n) % 5 < 2).astype(float)

def taken():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()

def fit(model, budget):
    gramian.set_config(n_threads=2)
    small = np.random.default_rng(0).standard_normal((2000, 8)).astype(np.float32)
    model.fit(small, y[:2000])
    resource.setrlimit(resource.RLIMIT_AS, (taken() + limit, taken() + limit))
    try:
        whole = np.load(path)
    except MemoryError:
        whole = None
    said = {"whole": whole is not None}
    gramian.set_config(memory_budget=budget)
    said["estimate"] = int(model.estimate_memory(n, d, dtype="float32", on_disk=True))
    try:
        model.fit(path, y)
        said["predicted"] = int(model.n_features_in_)
    except MemoryError as error:
        said["error"] = type(error).__name__
    return said

for name, (model, budget) in fits.items():
    if (child := os.fork()) == 0:
        try:
            said = fit(eval(model), budget)
        except BaseException:
            said = {"failed": traceback.format_exc()}
        print(json.dumps({name: said}), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Five clouds of rows, written piece by piece."""
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    rng = np.random.default_rng(0)
    centres = 3.0 * rng.standard_normal((5, COLUMNS), dtype=np.float32)
    header = {"descr": "<f4", "fortran_order": False, "shape": (ROWS, COLUMNS)}
    noise = rng.standard_normal((10_000, COLUMNS), dtype=np.float32)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, ROWS, len(noise)):
            # The same noise in another order of the columns: drawing takes longer than all else.
            piece = np.roll(noise, start // len(noise), axis=1)
            file.write((piece + centres[np.arange(start, start + len(noise)) % 5]).data)
    yield path
    path.unlink()


@pytest.fixture(scope="module")
def said(path):
    """What each fit said, by its name."""
    # One arena for all threads, and memory that is given back when it is freed.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "262144"}
    fits = {name: (model, BUDGET) for name, model in MODELS.items()}
    fits["beyond the limit"] = MODELS["k-means"], 10 * LIMIT
    parent = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), json.dumps(fits), str(LIMIT)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert parent.returncode == 0, parent.stderr[-3000:]
    return {k: v for line in parent.stdout.splitlines() for k, v in json.loads(line).items()}


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_keeps_the_budget(said, name):
    found = said[name]
    assert "failed" not in found, found["failed"]
    assert not found["whole"]  # the file alone exceeds the limit
    assert found["estimate"] <= BUDGET
    assert found.get("predicted") == COLUMNS, found


def test_it_is_the_budget_that_keeps_the_limit(said):
    """The same fit with a budget beyond the limit ends in an error of memory."""
    assert said["beyond the limit"]["error"] == "MemoryError"

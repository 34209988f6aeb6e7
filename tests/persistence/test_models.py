"""Models on disk: every estimator comes back as it was; damaged files are told from good ones."""

import inspect
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import example as this_example
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

import gramian
from gramian import (
    BKA,
    MEKA,
    RBF,
    Approximation,
    ArrayRows,
    BlockCore,
    Exact,
    Factors,
    FunctionKernel,
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Linear,
    Local,
    ModelFileError,
    Nystroem,
    OnlineKernelKMeans,
    RPCholesky,
    Sampler,
    TensorSketch,
)
from gramian.backend import array_ops
from gramian.kernels import Kernel
from gramian.learners.base import KernelLearner
from gramian.persistence import models, states
from gramian.testing import example
from gramian.testing.examples import example_rows

CLASSES = [
    thing for thing in (getattr(gramian, n) for n in gramian.__all__) if inspect.isclass(thing)
]


def of(base):
    return [cls for cls in CLASSES if issubclass(cls, base) and cls is not base]


X, NEW = example_rows(90), example_rows(seed=1)[:20]
Y = np.arange(90) % 3
OUTPUTS = ("predict", "transform", "decision_function", "inverse_transform")


def written(model):
    file = io.BytesIO()
    models.write(model, file)
    return file.getvalue()


def there_and_back(model, path):
    gramian.save(model, path)
    again = gramian.load(path)
    # Everything that was saved came back, to the last bit: it is saved as the same bytes.
    assert type(again) is type(model)
    assert written(again) == path.read_bytes()
    return again


def assert_same_outputs(model, again, rows):
    for name in OUTPUTS:
        if not hasattr(model, name):
            continue
        given_rows = model.transform(rows) if name == "inverse_transform" else rows
        both = getattr(again, name)(given_rows), getattr(model, name)(given_rows)
        assert type(both[0]) is type(both[1])
        ours, theirs = map(np.asarray, both)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gramian"


@pytest.mark.parametrize("cls", of(Kernel), ids=lambda c: c.__name__)
def test_kernels(cls, path):
    kernel = example(cls)
    if isinstance(kernel, FunctionKernel):
        return
    rows = Linear()(X) if kernel.is_matrix else abs(X)
    kernel = kernel.fit(rows)
    again = there_and_back(kernel, path)
    np.testing.assert_array_equal(again(rows), kernel(rows))


@pytest.mark.parametrize("cls", of(Sampler), ids=lambda c: c.__name__)
def test_samplers(cls, path):
    sampler = example(cls)
    assert repr(there_and_back(sampler, path)) == repr(sampler)
    approximation = Nystroem(RBF(0.1), 8, landmarks=sampler, random_state=0).fit(
        example_rows(200), Y_200
    )
    assert_same_outputs(approximation, there_and_back(approximation, path), NEW)


Y_200 = np.arange(200) % 3


def small(cls):
    """An approximation of few features, with the kernel that suits it."""
    if cls is Exact:
        return Exact(RBF(0.1))
    sizes = {"n_blocks": 3} if cls is Local else {"n_components": 20}
    approximation = cls(**sizes, random_state=0)
    return (
        approximation.set_params(n_blocks=3)
        if "n_blocks" in approximation.get_params()
        else (approximation)
    )


@pytest.mark.parametrize("cls", of(Approximation), ids=lambda c: c.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_approximations(cls, dtype, kind, path):
    approximation = small(cls).fit(kind(X.astype(dtype)))
    again = there_and_back(approximation, path)
    assert_same_outputs(approximation, again, kind(NEW.astype(dtype)))
    np.testing.assert_array_equal(again(NEW), approximation(NEW))
    assert float(gramian.relative_error(again, X)) == float(
        gramian.relative_error(approximation, X)
    )


WITH = [None, Nystroem]
OTHERS = [each for each in (*of(Approximation), Exact) if each not in WITH]
WITH += [pytest.param(each, marks=pytest.mark.slow) for each in OTHERS]


@pytest.mark.parametrize("cls", of(KernelLearner), ids=lambda c: c.__name__)
@pytest.mark.parametrize("approximation", WITH, ids=lambda a: a.__name__ if a else "bare")
def test_learners(cls, approximation, path):
    learner = example(cls)
    if approximation is not None:
        learner.set_params(kernel=small(approximation))
    if "random_state" in learner.get_params():
        learner.set_params(random_state=0)
    learner.fit(X, Y)
    again = there_and_back(learner, path)
    assert_same_outputs(learner, again, NEW)
    assert_same_outputs(learner, again, NEW.astype(np.float32))
    assert repr(again) == repr(learner)
    assert_same_outputs(learner, clone(again).fit(X, Y), NEW)


@pytest.mark.parametrize(
    "model",
    [
        KernelPCA(3, kernel=RBF("median"), fit_inverse_transform=True, random_state=0),
        KernelRidge("loo", kernel=Nystroem(0.5 * RBF(0.1) + Linear(), 20, random_state=0)),
        KernelRidge([0.1, 1.0, 2.0], kernel=Exact("laplacian")),
        KernelRidgeClassifier(("gcv", [0.1, 1.0]), class_weight={0: 1.0, 1: 2.0, 2: 0.5}),
        KernelKMeans(3, kernel=MEKA(RBF(0.1), 30, n_blocks=3, partition="random"), random_state=1),
        KernelKMeans(3, kernel=BKA(RBF(0.1), 30, n_blocks=3, partition=Y), init=[0, 1, 2]),
        KernelKMeans(3, batch_size=30, random_state=np.random.default_rng(5)),
        KernelKMeans(3, random_state=np.random.RandomState(5)),
        KernelRidge(kernel=Nystroem(RBF(0.1), 20, landmarks=RPCholesky(), tol=0.1, random_state=0)),
        KernelPCA(3, random_state=0).set_output(transform="pandas"),
    ],
)
def test_options(model, path):
    targets = (
        np.column_stack((Y, Y**2, -Y)) if isinstance(model.get_params().get("alpha"), list) else Y
    )
    model.fit(X, targets)
    again = there_and_back(model, path)
    assert_same_outputs(model, again, NEW)
    assert_same_outputs(clone(model).fit(X, targets), clone(again).fit(X, targets), NEW)


def test_streams_go_on_where_they_were(path):
    for model in (
        KernelRidge(0.1, kernel=Nystroem(RBF(0.1), 20, random_state=0)),
        KernelRidgeClassifier(0.1, kernel=TensorSketch(n_components=20, random_state=0)),
        KernelKMeans(3, random_state=0),
        OnlineKernelKMeans(0.5, kernel=RBF(0.1), random_state=0),
    ):
        first = {"classes": [0, 1, 2]} if hasattr(model, "decision_function") else {}
        model.partial_fit(X[:45], Y[:45], **first)
        again = there_and_back(model, path).partial_fit(X[45:], Y[45:])
        assert_same_outputs(model.partial_fit(X[45:], Y[45:]), again, NEW)


def test_labels_and_names(path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    for labels in (np.array(["x", "y", "ü"])[Y], pd.Series(["x", "y", "ü"])[Y].to_numpy(), Y > 1):
        model = KernelRidgeClassifier().fit(frame, labels)
        again = there_and_back(model, path)
        assert again.classes_.dtype == model.classes_.dtype
        assert list(again.feature_names_in_) == list("abcde")
        new = pd.DataFrame(NEW, columns=list("abcde"))
        assert_same_outputs(model, again, new)
        with pytest.raises(ValueError, match="feature names"):
            again.predict(new[list("bacde")])


def test_precomputed(path):
    model = KernelRidge(kernel="precomputed").fit(RBF(0.1)(X), Y)
    assert_same_outputs(model, there_and_back(model, path), RBF(0.1)(NEW, X))


def test_rows_of_a_file_come_into_the_model(tmp_path, path):
    np.save(tmp_path / "rows.npy", X)
    with gramian.config_context(memory_budget=2 * X.nbytes - 1):  # too little to be read at once
        rows = gramian.open_rows(tmp_path / "rows.npy")
    model = KernelRidge(kernel=Exact(RBF(0.1))).fit(rows, Y)
    assert model.points_ is rows
    expected = model.predict(NEW)
    gramian.save(model, path)
    (tmp_path / "rows.npy").unlink()
    again = gramian.load(path)
    assert type(again.points_) is ArrayRows
    np.testing.assert_array_equal(again.predict(NEW), expected)
    in_memory = KernelRidge(kernel=Exact(RBF(0.1))).fit(X, Y)  # its matrix has tiles of other sizes
    np.testing.assert_allclose(expected, in_memory.predict(NEW), rtol=1e-10)
    with (
        gramian.config_context(memory_budget=X.nbytes - 1),
        pytest.raises(MemoryError, match="approx"),
    ):
        np.save(tmp_path / "rows.npy", X)
        model.points_ = gramian.open_rows(tmp_path / "rows.npy")
        gramian.save(model, path)
    np.testing.assert_array_equal(gramian.load(path).predict(NEW), again.predict(NEW))


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_libraries_come_back_as_numpy(library, path):
    convert = pytest.importorskip(library).asarray
    for model in (
        KernelRidge(kernel=RBF(0.1)),
        KernelPCA(2, kernel=TensorSketch(n_components=20, random_state=0)),
        KernelKMeans(3, kernel=MEKA(RBF(0.1), 30, n_blocks=3), random_state=0),
        Nystroem(RBF(0.1), 20, random_state=0),
        gramian.KernelJL(RBF(0.1), 20, random_state=0),
        gramian.RandomFourier(RBF(0.1), 20, random_state=0),
    ):
        model.fit(convert(X), Y)
        gramian.save(model, path)
        again = gramian.load(path)
        for name in OUTPUTS:
            if hasattr(model, name):
                ours, theirs = getattr(again, name)(NEW), getattr(model, name)(convert(NEW))
                assert isinstance(ours, np.ndarray)
                np.testing.assert_allclose(ours, array_ops.to_numpy(theirs), atol=1e-9)


def test_other_parts(path):
    core = BlockCore(np.diag([2.0, 1.0, 3.0]), [1, 2], links=np.zeros((2, 2), bool))
    factors = Factors(ArrayRows(X[:, :3]), core)
    np.testing.assert_array_equal(there_and_back(factors, path).dense(), factors.dense())
    rng = np.random.default_rng(3)
    rng.spawn(2)
    again = there_and_back(KernelKMeans(random_state=rng), path).random_state
    assert again.integers(2**60) == rng.integers(2**60)
    assert again.spawn(1)[0].random() == rng.spawn(1)[0].random()
    odd = [float("nan"), -float("inf"), (1, [2]), {3: "c", "d": None}, np.float32(2.5), True, "é\n"]
    back = there_and_back(KernelRidge(alpha=odd), path).alpha
    assert repr(back) == repr(odd)
    assert type(back[4]) is np.float32 and back[3].keys() == {3, "d"}


def test_what_is_shared_is_stored_once(path):
    approximation = Nystroem(RBF(0.1), 20, random_state=0).fit(X)
    model = KernelRidge(kernel=approximation).fit(X, Y)
    again = there_and_back(model, path)
    assert again.kernel is again.approximation_ and again.kernel_ is again.approximation_.kernel_
    points = again.approximation_.landmarks_.points
    assert again.approximation_._projected.points is points


@pytest.mark.parametrize("shape", ["uniform", "normal", None])
def test_pipelines_as_tune_makes_them(shape, path):
    first = QuantileTransformer(n_quantiles=9, output_distribution=shape or "normal")
    model = make_pipeline(first if shape else StandardScaler(), KernelRidgeClassifier(0.1)).fit(
        X, Y
    )
    model.search_ = {"kernel": np.array(["rbf"]), "alpha": np.array([0.1])}
    gramian.save(model, path)
    again = gramian.load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.search_["kernel"].tolist() == ["rbf"]
    np.testing.assert_array_equal(again.fit(X, Y).predict(X), model.predict(X))


def function(x, y):
    return x @ y.T


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (FunctionKernel(function), r"Python function 'function' at function\b.*pickle"),
        (KernelPCA(kernel=function), "Python function 'function' at kernel"),
        (KernelPCA(kernel=RBF(1.0) + FunctionKernel(function)), r"at kernel\.right\.function"),
        (KernelPCA(kernel=lambda x, y: 0), "Python function '<lambda>' at kernel"),
        (KernelRidge(Ridge()), "an object of type Ridge at alpha"),
        (KernelRidge(np.array([(1, 2.0)], dtype="i4,f8")), "an object of type ndarray at alpha"),
        (make_pipeline(StandardScaler(), Ridge()), r"an object of type Ridge at steps\.1\.1"),
        (make_pipeline(KernelRidge(), memory="folder"), "must have no memory"),
        (make_pipeline("passthrough", KernelRidge()), "pairs of a name and an estimator"),
        (Ridge(), "Expected a learner.*got an object of type Ridge"),
        (function, "Expected a learner.*type function"),
        (KernelRidge, "Expected a learner"),
        (None, "Expected a learner.*NoneType"),
    ],
)
def test_what_cannot_be_saved(model, message, path):
    with pytest.raises(TypeError, match=message):
        gramian.save(model, path)
    assert not os.listdir(path.parent)
    path.write_bytes(b"before")
    with pytest.raises(TypeError, match=message):
        gramian.save(model, path)
    assert path.read_bytes() == b"before"


def test_classes_of_others(path):
    class RBF(gramian.RBF):  # of the same name as one of gramian's
        pass

    for model in (RBF(1.0), KernelRidge(kernel=RBF(1.0))):
        with pytest.raises(TypeError, match="type RBF"):
            gramian.save(model, path)


MODEL = KernelRidgeClassifier(0.1, kernel=Nystroem(RBF(0.1), 3, random_state=0)).fit(X, Y)
BYTES = written(MODEL)
INSIDE = sorted(info.header_offset for info in zipfile.ZipFile(io.BytesIO(BYTES)).infolist())


def reads_or_refuses(folder, data):
    """Whether the file is the model; anything but the model or a ModelFileError is a failure."""
    file = folder / "damaged"
    file.write_bytes(data)
    try:
        again = gramian.load(file)
    except ModelFileError as error:
        assert str(error).startswith("The file") and str(error).endswith(".")
        return False
    assert written(again) == BYTES
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged")


@given(st.lists(st.tuples(st.integers(0, len(BYTES) - 1), st.integers(1, 255)), min_size=1))
def test_flipped_bits(folder, flips):
    data = bytearray(BYTES)
    for place, bits in flips:
        data[place] ^= bits
    reads_or_refuses(folder, bytes(data))


@pytest.mark.slow
def test_flipped_bits_in_the_directory(folder):
    """Each byte of what is not data, which no checksum covers."""
    start = BYTES.index(b"PK\x01\x02")
    places = itertools.chain(range(start, len(BYTES)), *(range(i, i + 60) for i in INSIDE))
    seen = {
        reads_or_refuses(folder, _flipped(place, bits)) for place in places for bits in (1, 128)
    }
    assert seen == {True, False}  # dates, for one, mean nothing


def _flipped(place, bits):
    data = bytearray(BYTES)
    data[place] ^= bits
    return bytes(data)


@given(st.integers(0, len(BYTES) - 1))
@this_example(0)
def test_files_that_are_cut_off(folder, size):
    assert not reads_or_refuses(folder, BYTES[:size])


@given(st.binary())
def test_other_files(folder, data):
    assert not reads_or_refuses(folder, data)


def changed(**changes):
    """The model with other entries in its text, and right checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(BYTES)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == models.TEXT:
                data = json.dumps({**json.loads(data), **changes})
            new.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2, "gramian": "9.1"}, r"by gramian 9\.1, in version 2.*Update gramian\."),
        ({"format": "other"}, "is not a model"),
        ({"model": {"object": "Popen", "state": {}}}, "has no class 'Popen'"),
        ({"model": {"object": "os.system", "state": {}}}, "has no class"),
        ({"model": {"object": "FileRows", "state": {}}}, "has no class"),
        ({"model": {"__reduce__": ["os.system", "true"]}}, "KeyError"),
        ({"model": {"same": 0}}, "there is no object 0"),
        ({"model": {"array": 999}}, "there is no array 999"),
        ({"model": {"generator": "default_rng", "old": False, "state": 1, "seeds": None}}, "Value"),
        ({"model": {"sparse": "dok_array", "parts": [], "shape": [1, 1]}}, "ValueError"),
        ({"model": {"object": "Sums", "items": [1]}}, "TypeError"),
        ({"model": {"object": "RBF", "state": 3}}, "AttributeError"),
        ({"model": {"object": "ProjectedKernel", "state": {}}}, "not a model"),
        ({"model": {"dtype": "O8", "type": False, "more": 1}}, "TypeError"),
        ({"arrays": 10**6}, "must be model.json and 1000000 arrays"),
        ({"arrays": None}, "must be model.json and None arrays"),
        ({"version": "x"}, "TypeError"),
    ],
    ids=str,
)
def test_files_made_by_others(changes, message, folder):
    file = folder / "changed"
    file.write_bytes(changed(**changes))
    with pytest.raises(ModelFileError, match=message):
        gramian.load(file)


def test_archives_that_are_no_models(path):
    np.savez(path.with_suffix(".npz"), X=X)
    with pytest.raises(ModelFileError, match=r"archive without model\.json"):
        gramian.load(path.with_suffix(".npz"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr(models.TEXT, " " * 10**6)
    with pytest.raises(ModelFileError, match="must be stored without compression"):
        gramian.load(path)
    with zipfile.ZipFile(path, "w") as deep:
        deep.writestr(models.TEXT, "[" * 10**5)
    with pytest.raises(ModelFileError, match="RecursionError"):
        gramian.load(path)


def test_arrays_that_are_not_of_their_size(path):
    header = io.BytesIO()
    huge = {"descr": "<f8", "fortran_order": False, "shape": (2**40,)}
    np.lib.format.write_array_header_1_0(header, huge)
    pickled = io.BytesIO()
    np.lib.format.write_array(pickled, np.array([Ridge()]), allow_pickle=True)
    for data, message in (
        (header.getvalue(), "does not have the stated size"),
        (pickled.getvalue(), "does not start as NumPy writes it"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("0.npy", data)
            text = {"format": models.FORMAT, "version": 1, "gramian": "", "arrays": 1}
            archive.writestr(models.TEXT, json.dumps({**text, "model": {"array": 0}}))
        with pytest.raises(ModelFileError, match=message):
            gramian.load(path)


def test_there_is_no_file(path):
    with pytest.raises(FileNotFoundError):
        gramian.load(path)
    with pytest.raises(FileNotFoundError):
        gramian.save(RBF(), path / "nowhere" / "model")
    path.mkdir()
    with pytest.raises(OSError, match="not a regular file"):
        gramian.save(RBF(), path)
    assert os.listdir(path.parent) == [path.name]


def test_an_interrupt_leaves_what_was(path, monkeypatch):
    gramian.save(RBF(0.5), path)
    before = path.read_bytes()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gramian.save(MODEL, path)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_a_link_is_followed_and_the_mode_kept(path):
    gramian.save(RBF(0.5), path)
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path.name)
    gramian.save(RBF(0.7), link)
    assert link.is_symlink() and gramian.load(path).gamma == 0.7
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.slow
def test_a_full_disk_leaves_what_was(path, full_disk):
    gramian.save(RBF(0.5), path)
    before = path.read_bytes()
    model = KernelRidge().fit(np.eye(100), range(100))
    with full_disk(20_000), pytest.raises(OSError, match=re.escape(repr(str(path)))):
        gramian.save(model, path)
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_writer_leaves_what_was(path, number):
    try:
        os.close(os.open(path.parent, os.O_TMPFILE | os.O_RDWR))
    except (AttributeError, OSError):
        pytest.skip("this file system has no files without names")
    gramian.save(RBF(0.5), path)
    before = path.read_bytes()
    code = (
        "import sys, time, numpy, gramian\n"
        "write = numpy.lib.format.write_array\n"
        "def slow(*args, **kwargs):\n"
        "    write(*args, **kwargs)\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "numpy.lib.format.write_array = slow\n"
        "gramian.save(gramian.KernelRidge().fit(numpy.eye(100), range(100)), sys.argv[1])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "writing\n"
        writer.send_signal(number)
    assert writer.returncode == -number
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]


def test_class_names_are_unique():
    assert {"KernelRidge", "ProjectedKernel", "Landmarks", "BlockCore"} <= set(states.classes())
    assert not {"FileRows", "NpyFile", "CsvFile"} & set(states.classes())

"""One class in one file is served everywhere: what CONTRIBUTING promises, tried from outside."""

from pathlib import Path

import numpy as np
import pytest
from example_approximation import FewRows
from example_kernel import InverseMultiquadric
from example_learner import NoveltyDetector
from example_sampler import Farthest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian
from gramian import (
    RBF,
    Gram,
    KernelKMeans,
    KernelRidge,
    ModelFileError,
    Nystroem,
    RandomFourier,
    compare,
    relative_error,
)
from gramian.analysis.comparison import catalogue
from gramian.analysis.report.colours import looks
from gramian.backend.names import by_name
from gramian.testing import (
    check_approximation,
    check_kernel,
    check_learner,
    check_memory,
    check_sampler,
)
from gramian.testing.comparing import LIBRARIES
from gramian.testing.examples import example_rows

X, NEW = example_rows(120), example_rows(30, seed=1)
LANDMARKS = Nystroem(InverseMultiquadric(0.1), 20, landmarks=Farthest(), random_state=0)


@pytest.mark.parametrize("name", ["kernel", "sampler", "approximation", "learner"])
def test_contributing_shows_the_code(name):
    here = Path(__file__).parent
    source = (here / f"example_{name}.py").read_text()
    code = source.split('"""\n', 1)[1].strip()
    assert code in (here.parents[1] / "CONTRIBUTING.md").read_text()


class TestLaws:
    def test_kernel(self):
        check_kernel(InverseMultiquadric())
        check_kernel(InverseMultiquadric("median"))

    def test_sampler(self):
        check_sampler(Farthest())

    @pytest.mark.slow
    @pytest.mark.parametrize("kernel", [RBF(0.1), InverseMultiquadric(0.1)])
    def test_approximation(self, kernel):
        check_approximation(FewRows(kernel))
        check_memory(FewRows(kernel))

    @pytest.mark.slow
    @pytest.mark.parametrize("kernel", ["rbf", FewRows(InverseMultiquadric(0.1)), LANDMARKS])
    def test_learner(self, kernel):
        check_learner(NoveltyDetector(kernel))
        check_memory(NoveltyDetector(kernel))

    @pytest.mark.parametrize("library", LIBRARIES)
    def test_on_other_arrays(self, library):
        pytest.importorskip(library)
        check_kernel(InverseMultiquadric(), library=library)
        check_sampler(Farthest(), library=library)
        check_approximation(FewRows(RBF(0.1)), library=library)
        check_learner(NoveltyDetector(FewRows(RBF(0.1))), library=library)


@parametrize_with_checks([NoveltyDetector(), NoveltyDetector(FewRows(InverseMultiquadric()))])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_the_kernel_has_fourier_features():
    model = RandomFourier(InverseMultiquadric(0.1), 4000, random_state=0).fit(X)
    assert float(relative_error(model, X)) < 0.05


def test_the_approximation_is_compared(monkeypatch):
    models = [FewRows(), "Nyström uniform"]
    found = compare(X, approximations=models, kernel="rbf", sizes=[10], repeats=1)
    assert {result.name for result in found.approximations} == {"FewRows", "Nyström uniform"}
    # Exported, it is tried by itself, last, and looks like no other.
    monkeypatch.setattr(gramian.approximations, "FewRows", FewRows, raising=False)
    names = [method.name for method in catalogue._catalogue()]
    assert names == [*catalogue.NAMES, "Few rows"]
    assert len(set(looks(names).values())) == len(names)


def test_names_follow_from_the_classes():
    assert by_name({"a": InverseMultiquadric, "b": RBF}, gramian.Kernel) == {
        "inverse_multiquadric": InverseMultiquadric,
        "rbf": RBF,
    }
    names = {*gramian.sampler_names()} - {"auto"}
    assert by_name(vars(gramian.samplers), gramian.Sampler).keys() == names


@pytest.mark.interpreter
def test_the_kernel_has_a_program_for_a_gpu(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    from on_device import host, tensor

    from gramian.backend import triton_programs
    from gramian.backend.array_ops import libraries

    monkeypatch.setattr(libraries, "TRITON_ON_HOST", True)
    runs, run = [], triton_programs.FusedKernel._run
    monkeypatch.setattr(
        triton_programs.FusedKernel, "_run", lambda *a, **k: (runs.append(1), run(*a, **k))[1]
    )
    kernel, rows = InverseMultiquadric(0.1), X.astype(np.float32)
    V = np.random.default_rng(0).standard_normal((len(X), 3))
    product = Gram(kernel, tensor(rows)).matmul(tensor(V))
    assert runs, "computed by Triton"
    assert_allclose(host(product), kernel(rows.astype(float)) @ V, atol=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        NoveltyDetector(InverseMultiquadric(0.1)),
        NoveltyDetector(FewRows(InverseMultiquadric(0.1)), random_state=0),
        NoveltyDetector(LANDMARKS),
    ],
)
def test_on_dask(model):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    da = pytest.importorskip("dask.array")
    scores = clone(model).fit(X).score_samples(NEW)
    with dask.config.set(scheduler="threads"):
        model = clone(model).fit(da.from_array(X, chunks=(25, 5)))
        theirs = model.score_samples(da.from_array(NEW, chunks=(7, 5)))
        assert isinstance(theirs, da.Array)
        assert_allclose(theirs.compute(), scores, rtol=1e-9)


CLASSES = [InverseMultiquadric, Farthest, FewRows, NoveltyDetector]


class TestModelsOnDisk:
    @pytest.mark.parametrize(
        ("model", "used"),
        [
            (KernelRidge(kernel=InverseMultiquadric("median")), [InverseMultiquadric]),
            (KernelKMeans(3, kernel=LANDMARKS, random_state=0), [InverseMultiquadric, Farthest]),
            (KernelRidge(kernel=FewRows(RBF(0.1), random_state=0)), [FewRows]),
            (NoveltyDetector(FewRows(InverseMultiquadric())), CLASSES),
        ],
    )
    def test_there_and_back(self, model, used, tmp_path):
        path = tmp_path / "model.gramian"
        model = model.fit(X, X[:, 0])
        with pytest.raises(TypeError, match="classes=\\["):
            gramian.save(model, path)
        gramian.save(model, path, classes=used)
        again = gramian.load(path, classes=CLASSES)
        assert type(again) is type(model)
        assert_array_equal(again.predict(NEW), model.predict(NEW))
        # A file cannot make objects of classes that the caller does not list.
        with pytest.raises(ModelFileError, match=r"if it is yours, pass it: load\(path, classes="):
            gramian.load(path)

    def test_an_object_by_itself(self, tmp_path):
        gramian.save(Farthest(), tmp_path / "sampler", classes=[Farthest])
        assert repr(gramian.load(tmp_path / "sampler", classes=[Farthest])) == "Farthest()"

    def test_names_must_differ(self, tmp_path):
        other = type("RBF", (RBF,), {})
        with pytest.raises(ValueError, match="another RBF already"):
            gramian.save(other(), tmp_path / "kernel", classes=[other])
        with pytest.raises(TypeError, match=r"such as \[MyKernel\]; got 'RBF'"):
            gramian.load(tmp_path / "kernel", classes=["RBF"])

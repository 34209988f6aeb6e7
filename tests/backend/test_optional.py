"""Without the packages that gramian can do without: what still works, and what is said else."""

import csv
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import gramian
from gramian import KernelKMeans, Laplacian
from gramian.backend import numba_loops, optional
from gramian.command import COMMANDS, main
from gramian.command.results import writer
from gramian.rows.device import DeviceRows
from gramian.testing.examples import example_rows

X = example_rows(60, 3)
ROWS = gramian.as_rows(X)
ALL = [*optional.INSTALLED_BY, "numba", "triton"]
# Modules of gramian that import a package when they are imported themselves.
IMPORTED_BY = {"pyarrow": ("rows.files", "arrow"), "dask": ("rows.dask", "rows")}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", X)
    Path("rows.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    Path("rows.tsv").write_text("a\tb\n1\t2\n3\t4\n5\t6\n")
    Path("rows.parquet").write_bytes(b"PAR1")
    Path("rows.arrow").write_bytes(b"ARROW1")


@pytest.fixture
def hide(monkeypatch):
    """Makes imports of a package fail, as where it is not installed."""

    def hide(package):
        for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, name, None)
        if package in IMPORTED_BY:
            inside, module = IMPORTED_BY[package]
            monkeypatch.delitem(sys.modules, f"gramian.{inside}.{module}", raising=False)
            monkeypatch.delattr(f"gramian.{inside}.{module}", raising=False)

    return hide


@pytest.fixture(scope="module")
def comparison():
    return gramian.compare(X, sizes=[5], random_state=0)


def spread():
    return __import__("gramian.rows.dask.rows")


SENTENCES = {
    "Reading CSV files needs pyarrow": lambda _: gramian.open_rows("rows.csv"),
    "Reading TSV files needs pyarrow": lambda _: gramian.open_rows("rows.tsv"),
    "Reading Parquet files needs pyarrow": lambda _: KernelKMeans(2).fit(Path("rows.parquet")),
    "Reading Arrow files needs pyarrow": lambda _: gramian.open_rows("rows.arrow"),
    "progress=True needs rich": lambda _: gramian.set_config(progress=True),
    "device='cuda' needs torch": lambda _: gramian.set_config(device="cuda"),
    "device='cuda:1' needs torch": lambda _: DeviceRows(ROWS, "cuda:1"),
    "Working on dask collections needs dask": lambda _: spread(),
    "Building a DataFrame needs pandas": lambda comparison: comparison.to_frame(),
    "Drawing a plot needs matplotlib": lambda comparison: comparison.plot(),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_missing_package_is_named_with_the_command_that_installs_it(sentence, hide, comparison):
    package = sentence.rpartition(" ")[2]
    hide(package)
    with pytest.raises(ImportError) as caught:
        SENTENCES[sentence](comparison)
    extra = {"pyarrow": "cli", "rich": "cli", "torch": "gpu", "dask": "dask"}.get(package)
    what = f'"gramian[{extra}]"' if extra else package
    assert str(caught.value) == f"{sentence}; install it with: pip install {what}"
    assert caught.value.name == package


def test_what_dask_needs_for_more_is_named_too(hide):
    da = pytest.importorskip("dask.array")
    from gramian.rows.dask.rows import DaskRows, connected

    hide("distributed")
    with (
        pytest.raises(ImportError, match=r'cluster needs distributed.*"gramian\[dask\]"$'),
        connected("tcp://localhost:1"),
    ):
        pass
    hide("torch")
    with pytest.raises(ImportError, match=r'device=\'cuda\' needs torch.*"gramian\[gpu\]"$'):
        DaskRows(da.from_array(X, chunks=(20, 3)), device="cuda")


def test_every_command_is_one_that_pip_knows():
    """The extras are there, and have the packages that they are said to have."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    for package, target in optional.INSTALLED_BY.items():
        if target != package:
            name = target.removeprefix("gramian[").removesuffix("]")
            assert any(package in one.replace("-", "_") for one in extras[name]), package


def test_a_package_that_is_there_but_broken_is_not_called_missing(monkeypatch):
    Path("rich").mkdir()
    Path("rich/__init__.py").write_text("raise ImportError('rich wants an older Python')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(".")
    with pytest.raises(ImportError) as caught:
        gramian.set_config(progress=True)
    assert str(caught.value) == (
        "progress=True needs rich, which is installed but cannot be imported (rich wants an older "
        'Python); try: pip install "gramian[cli]" --upgrade'
    )
    assert not optional.is_importable("rich.progress")


def test_nothing_else_looks_after_missing_packages():
    """Imports that may fail are inside ``optional.needed``, whose sentence is the only one."""
    source = Path(gramian.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text()
        if path.name != "optional.py":
            for word in ("except ImportError", "except ModuleNotFoundError", ".find_spec("):
                assert word not in text, f"{word} in {path.relative_to(source)}"


class TestCommand:
    CASES = (
        ("cluster rows.csv", "pyarrow", 'Reading CSV files needs pyarrow.*"gramian[cli]"'),
        ("pca rows.parquet", "pyarrow", 'Reading Parquet files needs pyarrow.*"gramian[cli]"'),
        ("cluster rows.npy -o o.parquet", "pyarrow", 'Writing Parquet files.*"gramian[cli]"'),
        ("embed rows.npy -o o.arrow", "pyarrow", 'Writing Arrow files.*"gramian[cli]"'),
        ("cluster rows.npy --device cuda:1", "torch", "--device 'cuda:1'.*\"gramian[gpu]\""),
        ("cluster rows.npy --scheduler tcp://h:1", "dask", 'needs dask.*"gramian[dask]"'),
    )

    @pytest.mark.parametrize(("text", "package", "said"), CASES)
    def test_one_line_and_nothing_written(self, text, package, said, hide, capsys):
        hide(package)
        before = sorted(Path().iterdir())
        assert main(text.split()) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1
        assert err.startswith(f"gramian {text.split()[0]}: error: ")
        first, last = said.split(".*")
        assert first in err and err.endswith(f"; install it with: pip install {last}\n")
        assert sorted(Path().iterdir()) == before

    def test_on_a_terminal_without_rich_there_are_no_bars(self, hide, capsys, monkeypatch):
        hide("rich")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        assert main(["cluster", "rows.npy", "--n-clusters", "2"]) == 0
        assert capsys.readouterr().err == ""

    @pytest.mark.slow
    def test_with_nothing_beyond_what_is_required(self):
        """In a process of its own, in which none of the packages can be imported at any time."""
        lines = [
            *([name, "--help"] for name in COMMANDS),
            ["datasets"],
            ["reproduce", "list"],
            ["cluster", "rows.npy", "--n-clusters", "2", "--model", "m"],
            ["predict", "m", "rows.npy", "-o", "again.csv"],
            ["ridge", "iris"],
            ["pca", "iris", "-o", "c.tsv"],
            ["embed", "iris", "--approximation", "nystroem:n_components=9"],
            ["compare", "iris", "--sizes", "5"],
        ]
        code = (
            "import sys\n"
            "class Hidden:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name.partition('.')[0] in {ALL!r}:\n"
            "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
            "sys.meta_path.insert(0, Hidden())\n"
            "from gramian.command import main\n"
            f"for line in {lines!r}:\n"
            "    assert main(line) == 0, line\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert Path("rows.labels.csv").read_bytes() == Path("again.csv").read_bytes()
        assert "<style>" in Path("iris.report.html").read_text(encoding="utf-8")
        assert np.load("iris.features.npy").shape == (150, 9)


class TestTextFiles:
    COLUMNS = {  # noqa: RUF012
        "label": np.array(["a", 'b "c"', "d,\te\n", "é→"]),
        "number": np.array([0, -1, 2**62, 3]),
        "single": np.array([0.1, -2.5e-7, np.nan, 1e30], dtype=np.float32),
        "double": np.array([0.1, 1 / 3, np.inf, 1e-300]),
        'held "out"': np.array([True, False, True, True]),
    }

    @pytest.mark.parametrize("ending", [".csv", ".tsv"])
    def test_are_the_same_with_and_without_pyarrow(self, ending, hide, monkeypatch):
        pytest.importorskip("pyarrow")
        exact = {name: self.COLUMNS[name] for name in ("label", "number", 'held "out"')}
        numbers = {name: self.COLUMNS[name] for name in ("single", "double")}
        expected = written(ending, exact), parsed(ending, written(ending, numbers))
        hide("pyarrow")
        monkeypatch.setattr("gramian.command.results.TEXT_ROWS", 3)
        assert written(ending, exact) == expected[0]
        found = parsed(ending, written(ending, numbers))  # 1e30 or 1e+30: equal as numbers
        for name, values in numbers.items():
            for table in (found, expected[1]):
                np.testing.assert_array_equal(np.array(table[name], values.dtype), values)


def written(ending, columns):
    path = Path(f"out{ending}")
    with path.open("wb") as file:
        writer(columns)(file, ending)
    return path.read_bytes()


def parsed(ending, data):
    lines = csv.reader(data.decode().splitlines(), delimiter="," if ending == ".csv" else "\t")
    names, *rows = lines
    return dict(zip(names, zip(*rows, strict=True), strict=True))


class TestNumba:
    """What it makes faster is computed without it, where it is missing or does not work."""

    @pytest.fixture(autouse=True)
    def forget(self):
        numba_loops.is_available.cache_clear()
        yield
        numba_loops.is_available.cache_clear()

    @pytest.mark.parametrize("broken", [False, True])
    def test_is_not_needed(self, broken, hide, monkeypatch):
        monkeypatch.setattr(numba_loops, "LEAST_TERMS", 0)
        expected = np.exp(-np.abs(X[:, None] - X).sum(axis=2))
        if broken:
            Path("numba.py").write_text("raise ImportError('Numba needs NumPy 2.4 or less')")
            for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
                monkeypatch.delitem(sys.modules, name)
            monkeypatch.syspath_prepend(".")
        else:
            hide("numba")
        assert not numba_loops.is_available()
        np.testing.assert_allclose(Laplacian(1.0)(X), expected)

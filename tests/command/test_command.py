"""The command as a whole: a new user, help, options, names, devices, the documented examples."""

import os
import pty
import re
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_examples import FRAME, NAMES, PRICE, SPECIES, X, assert_says, real
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

import gramian
from gramian import (
    KernelKMeans,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
)
from gramian.backend import config
from gramian.command import COMMANDS, main, signatures
from gramian.command.estimators import APPROXIMATIONS, KERNELS
from gramian.command.screen import visible
from gramian.tables import open_table
from gramian.testing.examples import example_rows


@pytest.mark.slow
def test_a_new_user(here):
    """A file with a column of text and gaps: the error says what to do, and then it works."""
    rows = example_rows(1000, 4)
    frame = pd.DataFrame(rows, columns=NAMES)
    frame["species"] = np.array(["a", "b", "c"])[np.arange(1000) % 3]
    frame["mass"] = frame["mass"].where(np.arange(1000) != 7)
    frame.to_csv("flowers.csv", index=False)
    first = real("cluster", "flowers.csv")
    assert first.returncode == 2 and first.stdout == ""
    assert first.stderr == (
        "gramian cluster: error: 'flowers.csv' has missing values: 'mass' 1 (line 9). Fill them "
        "with --impute median (or mean, most-frequent), or leave those rows out with "
        "--drop-missing.\n"
    )
    asked = ("--n-clusters", "3", "--target", "species", "--model", "flowers.gramian")
    second = real("cluster", "flowers.csv", *asked, "--impute", "median")
    assert (second.returncode, second.stderr) == (0, "")
    labels = pd.read_csv("flowers.labels.csv")["cluster"]
    filled = frame[NAMES].fillna(frame[NAMES].median())
    scaled = StandardScaler().fit_transform(filled)
    assert list(labels) == list(KernelKMeans(3, random_state=0).fit(scaled).labels_)
    for said in (
        "1,000 rows, 4 columns from 'flowers.csv' (without species)\n",
        "gamma = ",
        "clusters  0: 33",
        "adjusted Rand index 1.000",
        "→ flowers.labels.csv\n",
        "→ flowers.gramian\n",
    ):
        assert said in second.stdout
    new = frame.sample(frac=0.1, random_state=0)[["species", *NAMES[::-1]]]
    third = real("predict", "flowers.gramian", "-", input=new.to_csv(index=False))
    assert (third.returncode, third.stderr) == (0, "")
    assert list(pd.read_csv("stdin.labels.csv")["cluster"]) == list(labels[new.index])


class TestNames:
    """Names that would do harm in a terminal are shown, not obeyed."""

    EVIL = "\x1b[31mred\x1b[0m [bold]x[/bold]\u202e\a\r:smile:"

    def test_visible(self):
        assert visible(self.EVIL) == r"\x1b[31mred\x1b[0m [bold]x[/bold]\u202e\x07\r:smile:"
        assert visible("a\n  b\nc ") == "a b c"
        assert visible("ü 語 \udcff") == r"ü 語 \udcff"

    def test_columns(self, run):
        pd.DataFrame(X, columns=[self.EVIL, "b", "c", "d\ne"]).to_parquet("rows.parquet")
        out = run("cluster rows.parquet --target", "b")
        out += run("cluster rows.parquet --force --exclude", self.EVIL)
        assert r"\x1b[31mred\x1b[0m [bold]x[/bold]\u202e" in out and ":smile:" in out
        err = run("ridge rows.parquet --force --target", self.EVIL + "?", status=2)
        assert r"\x1b[31m" in err and "[bold]" in err
        for text in (out, err):
            assert not set(text) & set("\x1b\a\r\u202e")

    def test_files(self, run):
        evil = self.EVIL.replace("/", "")
        name = f"{evil}.csv"
        FRAME.to_csv(name, index=False)
        out = run("cluster", name)
        assert os.path.exists(f"{evil}.labels.csv")
        err = run("cluster", f"{evil}.cs", status=2) + run("predict", name, name, status=2)
        for text in (out, err):
            assert r"\x1b[31mred" in text and "[bold]" in text
            assert not set(text) & set("\x1b\a\r\u202e")

    def test_labels(self, run):
        FRAME.assign(y=[self.EVIL, "b"] * 100).to_parquet("rows.parquet")
        out = run("ridge rows.parquet --target y")
        assert "\x1b" not in out
        assert set(pd.read_csv("rows.predictions.csv", lineterminator="\n")["prediction"]) <= {
            self.EVIL,
            "b",
        }


class TestDevices:
    def test_cuda(self, run):
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            run("cluster iris --device cuda --n-clusters 3 --model m")
            run("predict m iris -o again.csv")
            assert Path("again.csv").read_text() == Path("iris.labels.csv").read_text()
        else:
            said = run("cluster iris --device cuda", status=2)
            assert_says(said, "no CUDA device.*--device 'cpu'")

    def test_torch_rows(self, run, monkeypatch):
        """All but the device itself, on torch's CPU."""
        pytest.importorskip("torch")
        monkeypatch.setitem(config._CHECKS, "device", lambda device: None)
        monkeypatch.setattr(config, "device", lambda: "cpu")
        FRAME.assign(species=SPECIES, price=PRICE).to_csv("rows.csv", index=False)
        for i, text in enumerate([
            "cluster rows.csv --target species --exclude price --n-clusters 3",
            "ridge rows.csv --target species --exclude price",
            "ridge rows.csv --target price --exclude species --approximation nystroem",
            "pca rows.csv --exclude species --exclude price",
            "embed rows.csv --exclude species --exclude price",
        ]):  # fmt: skip
            run(f"{text} --device cuda -o out{i}.parquet --model m{i}")
            run(f"predict m{i} rows.csv -o again{i}.parquet")
            out = pd.read_parquet(f"out{i}.parquet").drop(columns="held_out", errors="ignore")
            pd.testing.assert_frame_equal(
                out, pd.read_parquet(f"again{i}.parquet"), check_exact=False
            )


@pytest.mark.slow
def test_a_bar_on_a_terminal_only(here):
    main_end, end = pty.openpty()
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    arguments = ("cluster", "digits", "--approximation", "nystroem", "--n-init", "2")
    process = subprocess.Popen(
        [sys.executable, "-m", "gramian", *arguments],
        stderr=end, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": source, "TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(end)
    shown = b""
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        if not select.select([main_end], [], [], 1)[0]:
            continue
        try:
            part = os.read(main_end, 4096)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        shown += part
    os.close(main_end)
    assert process.wait() == 0
    assert "━".encode() in shown


@pytest.mark.slow
def test_nobody_reads_on():
    """As in ``gramian datasets | head -1``: the command ends, and says nothing of it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gramian", "datasets"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == ("", 1)
    process.stderr.close()


def test_help(capsys):
    for arguments in ([], ["--help"], *([command, "--help"] for command in COMMANDS)):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert out.startswith("usage: gramian")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gramian {gramian.__version__}\n"


def test_options_are_those_of_the_signatures():
    """Every parameter can be read from text, and its default is one of what it takes."""
    estimators = (KernelKMeans, KernelRidge, KernelRidgeClassifier, KernelPCA)
    for cls in (*estimators, *APPROXIMATIONS.values(), *KERNELS.values()):
        found = signatures.parameters(cls, skip=signatures.ELSEWHERE)
        for parameter in found.values():
            text = str(parameter.default)
            assert parameter.value(text) == parameter.default or text == "None", parameter
            assert parameter.takes
            with pytest.raises(ValueError, match="expected"):
                if "str" not in parameter.types:
                    parameter.value("no such thing")
                else:
                    raise ValueError("expected")
    assert signatures.parameters(gramian.RBF)["gamma"].value("percentile:10") == ("percentile", 10)
    assert signatures.parameters(KernelRidge)["alpha"].value("1e-3") == 1e-3


@pytest.mark.slow
def test_examples_in_the_document(run, here):
    """Every line of docs/command.md, in its order."""
    text = (Path(__file__).parents[2] / "docs" / "command.md").read_text()
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    flowers = load_iris()
    frame = pd.DataFrame(flowers.data, columns=names)
    frame.assign(species=flowers.target_names[flowers.target]).to_csv("flowers.csv", index=False)
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, flags=re.S)
        for line in block.splitlines()
    ]
    assert {line.split()[1] for line in lines} == set(COMMANDS) - {"datasets"}
    for line in lines:
        writes = "--output" not in line and "--force" not in line and " tune " not in line
        force = ["--force"] if writes else []
        assert main([*shlex.split(line)[1:], *force, "--quiet"]) == 0, line
    (python,) = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    done = {}
    exec(python, done)
    assert done["labels"].shape == (150,) and done["distances"].shape == (150, 3)


def test_warnings_are_lines(capsys):
    assert main(["cluster", "iris", "--gamma", "1e9", "--n-clusters", "3"]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and err.startswith("gramian cluster: warning: RBF with gamma=1e+09")


def test_tables_know_their_columns():
    table = open_table("iris")
    assert table.find("2") == "2"
    with pytest.raises(ValueError, match="has no column '9'"):
        table.find("9")


class TestCompare:
    @pytest.mark.slow
    def test_a_line_for_each_and_a_report(self, here, capsys):
        name = "<script>alert(1)</script> [red]\n"
        frame = pd.DataFrame(load_iris().data, columns=[name, "b", "c", "d"])
        frame.assign(kind=load_iris().target).to_csv("x.csv", index=False)
        arguments = ["compare", "x.csv", "--target", "kind", "--sizes", "5", "10"]
        assert main([*arguments, "--approximation", "nystroem", "--approximation", "meka"]) == 0
        out = capsys.readouterr().out
        for shown in ("Nystr", "MEKA", "Exact", "advice", "KernelRidgeClassifier", "x.report.html"):
            assert shown in out
        page = (here / "x.report.html").read_text(encoding="utf-8")
        assert "<script>alert" not in page and page.rstrip().endswith("</html>")

    def test_wrong_uses(self, run, here):
        assert_says(run("compare", "iris", "--sizes", "0", status=2), "size")
        assert_says(run("compare", "iris", "-o", "report.csv", status=2), "html")
        assert_says(run("compare", "iris", "--approximation", "nystrom", status=2), "nystroem")
        assert list(here.iterdir()) == []

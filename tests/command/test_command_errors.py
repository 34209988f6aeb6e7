"""What the command says when it cannot do what it is asked to."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_examples import FRAME, X, assert_says

import gramian
from gramian import (
    KernelKMeans,
)
from gramian.command import main

WRONG = [
    ("clusterr rows.csv", "no command 'clusterr'. Did you mean 'cluster'"),
    ("--seed 3", "Unknown option --seed|A command is missing"),
    ("cluster", "required: DATA.*--help"),
    ("cluster rows.csv more.csv", "Unexpected argument 'more.csv'"),
    ("cluster rows.csv --n-cluster 3", "Unknown option --n-cluster. Did you mean --n-clusters"),
    ("cluster rows.csv --zzzzz", "Unknown option --zzzzz. gramian cluster --help"),
    ("cluster rows.csv --n-clusters three", "--n-clusters: expected a whole number; got 'three'"),
    ("cluster rows.csv --n-clusters 2.5", "expected a whole number; got '2.5'"),
    ("cluster rows.csv --n-clusters 0", "n_clusters .*positive integer"),
    ("cluster rows.csv --n-clusters 500", "500"),
    ("cluster rows.csv --init k-means+", r"k-means\+\+ or random.*did you mean 'k-means\+\+'"),
    ("cluster rows.csv --kernel rbg", "Unknown kernel 'rbg'. Did you mean 'rbf'"),
    ("cluster rows.csv --kernel rbf:gama=1", "no parameter 'gama'. Did you mean 'gamma'"),
    ("cluster rows.csv --kernel rbf:3", "Expected rbf:PARAMETER=VALUE.*gamma, bandwidth"),
    ("cluster rows.csv --kernel linear --gamma 1", "--gamma: the kernel linear has no gamma"),
    ("cluster rows.csv --kernel matern:nu=x", "nu of the kernel matern: expected loo or a number"),
    ("cluster rows.csv --gamma -1", "gamma of RBF must be a positive number"),
    ("cluster rows.csv --gamma mode", "gamma of RBF must be"),
    ("cluster rows.csv --gamma 1 --kernel rbf:bandwidth=2", "gamma or bandwidth, not both"),
    ("cluster rows.csv --approximation nystrom", "Unknown approx.*Did you mean 'nystroem'"),
    (
        "cluster rows.csv --approximation nystroem:n_components=9,landmarks=kmens",
        "Unknown landmarks 'kmens'",
    ),
    ("cluster rows.csv --approximation meka:psd=no", "clip, shift or none; got 'no'"),
    ("cluster rows.csv --approximation nystroem:kernel=rbf", "has no parameter 'kernel'"),
    ("embed rows.csv --approximation exact", "has no features"),
    ("cluster missing.csv", "no file, folder or data set 'missing.csv'"),
    ("cluster row.csv", "Did you mean 'rows.csv'"),
    ("cluster digit", "Did you mean 'digits'"),
    ("cluster iris:test", "'iris' has no test set"),
    ("cluster empty.csv", "'empty.csv' is empty"),
    ("cluster header.csv", "no rows|has no column"),
    ("cluster ragged.csv", "ragged.csv' could not be read: .*Expected 2 columns, got 3"),
    ("cluster gaps.csv", r"missing values: 'b' 1 \(line 3\). Fill .*--impute .*--drop-missing"),
    ("cluster late.csv", r"'late.csv' has .*'b' 1 cell of text .*'x' in line 400002"),
    ("cluster broken.parquet", "broken.parquet' could not be read"),
    ("cluster broken.npz", "broken.npz' could not be read"),
    ("cluster pickled.npz", "pickled.npz.*dtype object"),
    ("cluster two.npz", "X and y.*or a single array; got 'a', 'b'"),
    ("cluster flat.npy", "two dimensions"),
    ("cluster broken.svm", "broken.svm' could not be read as svmlight"),
    ("cluster unknown.dat", "format of 'unknown.dat' is not clear.*svmlight"),
    ("cluster rows.csv --format parqet", "invalid choice: 'parqet'"),
    ("cluster folder", "folder' has no files"),
    ("cluster folder --format csv", "'folder' is a folder"),
    ("cluster rows.csv --exclude nothing", "has no column 'nothing'. Its columns: 'a', 'b', 'y'"),
    ("cluster rows.csv --exclude a --exclude b --exclude y", "no column to use"),
    ("cluster rows.csv --scale standrd", "invalid choice: 'standrd'"),
    ("ridge rows.csv", "no target: name the column to predict with --target COLUMN"),
    ("ridge rows.csv --target z", "has no column 'z'"),
    ("ridge rows.csv --target 7", "has no column '7'"),
    ("ridge rows.csv --target y --alpha lo", "loo, gcv, a number.*did you mean 'loo'"),
    ("ridge rows.csv --target y --alpha -3", "alpha of KernelRidge.* must be"),
    ("ridge rows.csv --target y --holdout 2", "--holdout: expected a number from 0 to less"),
    ("ridge rows.csv --target a --class-weight balanced", "--class-weight does not apply"),
    ("ridge rows.csv --target y --separator ab", "--separator: expected one character"),
    ("ridge rows.csv --target y --encoding utf-9", "there is no encoding 'utf-9'"),
    ("pca rows.csv --n-components 0", "n_components of KernelPCA"),
    ("pca rows.csv --target y", "Unknown option --target"),
    ("cluster rows.csv --memory much", "Expected a size in bytes"),
    ("cluster rows.csv --memory 1kB", "memory budget of .*--memory"),
    ("cluster rows.csv --threads 0", "n_threads"),
    ("cluster rows.csv --seed x", "--seed: invalid int"),
    ("cluster rows.csv --seed -1", "seed|non-negative"),
    ("cluster rows.csv --device gpu", "--device must be 'cpu', 'cuda'"),
    ("cluster rows.csv --output labels.xlsx", r"must end in one of \.csv, \.tsv"),
    ("cluster rows.csv --output nowhere/labels.csv", "no folder 'nowhere'"),
    ("cluster rows.csv --output folder/inside.csv/", "inside.csv' is a folder"),
    ("cluster rows.csv -o x.csv --model x.csv", "different files"),
    ("predict rows.csv rows.csv", "rows.csv' is not a model"),
    ("predict nothing rows.csv", "nothing"),
    ("predict folder rows.csv", "folder"),
    (
        "predict model wide.csv",
        "lacks columns that the model was fitted on: 'b'. Did you rename 'b' to 'bb'",
    ),
    ("predict model narrow.npy", "has 1 column; the model was fitted on 2"),
    ("predict cut rows.csv", "cut' is not a model"),
]


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    before = os.getcwd()
    os.chdir(folder)
    good = pd.DataFrame({"a": [1.0, 2.0, 3.5] * 10, "b": [2.0, 1.0, 0.5] * 10, "y": [0, 1] * 15})
    good["a"] += np.arange(30) / 7
    good.to_csv("rows.csv", index=False)
    texts = {
        "empty.csv": "",
        "header.csv": "a,b\n",
        "ragged.csv": "a,b\n1,2\n3,4,5\n",
        "gaps.csv": "a,b,y\n1,2,1\n3,,2\n5,6,3\n",
        "late.csv": "a,b\n" + "1,2\n" * 400_000 + "3,x\n",
        "broken.svm": "1 1:a\n",
        "unknown.dat": "hello\nworld\n",
        "wide.csv": "a,bb,y\n1,2,3\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    for name in ("broken.parquet", "broken.npz"):
        Path(name).write_bytes(b"PK\x03\x04nothing")
    np.savez("pickled.npz", np.array([[object()]]))
    np.savez("two.npz", a=X, b=X)
    np.save("flat.npy", np.arange(3))
    np.save("narrow.npy", X[:, :1])
    os.makedirs("folder/inside.csv")
    text = "cluster rows.csv --exclude y --n-clusters 2 --model model --quiet"
    assert main(text.split()) == 0
    os.remove("rows.labels.csv")
    Path("cut").write_bytes(Path("model").read_bytes()[:-30])
    os.chdir(before)
    return folder


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_wrong_use_ends_with_one_line(run, bad_files, monkeypatch, text, message):
    monkeypatch.chdir(bad_files)
    before = sorted(os.listdir())
    assert_says(run(text, status=2), message)
    assert sorted(os.listdir()) == before


def test_wrong_use_in_debug(capsys, here):
    assert main(["cluster", "nothing.csv", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_no_permission(run, here):
    FRAME.to_csv("rows.csv", index=False)
    os.mkdir("closed", 0o500)
    if os.access("closed", os.W_OK):  # an administrator may write anywhere
        return
    assert_says(run("cluster rows.csv -o closed/labels.csv", status=2), "No permission")


def test_a_folder_that_refuses(run, here):
    """Where even an administrator cannot write."""
    FRAME.to_csv("rows.csv", index=False)
    assert_says(run("cluster rows.csv -o /proc/labels.csv", status=2), "/proc")


def test_errors_that_nobody_foresaw(run, monkeypatch, capsys):
    def broken(*args):
        raise KeyError("a bug")

    monkeypatch.setattr(KernelKMeans, "fit", broken)
    assert main(["cluster", "iris"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert_says(err, r"unexpected KeyError: 'a bug' \(please report it; --debug shows the trace")
    assert main(["cluster", "iris", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert not os.listdir()


def test_too_little_memory(run, monkeypatch):
    def too_much(*args):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(KernelKMeans, "fit", too_much)
    assert_says(run("cluster iris", status=2), "not enough memory. Unable to allocate 9 TiB")


def test_an_interrupt(run, monkeypatch, capsys):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelKMeans, "fit", interrupted)
    assert main(["cluster", "iris"]) == 130
    assert capsys.readouterr().err == "gramian cluster: interrupted\n"
    assert not os.listdir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_signals_while_results_are_written(here, number, status):
    """A real signal to a real process, while there is a half-written file."""
    code = (
        "import os, sys\n"
        "from gramian.command import main, results\n"
        "write = results._write_table\n"
        "def slowly(file, ending, columns):\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    print('writing', os.listdir(), flush=True)\n"
        "    __import__('time').sleep(60)\n"
        "results._write_table = slowly\n"
        "sys.exit(main(['cluster', 'iris', '--model', 'm', '--quiet']))\n"
    )
    source = os.path.dirname(os.path.dirname(gramian.__file__))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as process:  # fmt: skip
        line = process.stdout.readline()
        assert line.startswith("writing")
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert err == ("gramian cluster: interrupted\n" if status == 130 else "")
    assert os.listdir() == []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["cluster digits --model m", "embed digits"])
def test_a_full_disk(run, command, full_disk):
    with full_disk(3000):
        said = run(f"{command} --quiet", status=2)
    assert_says(said, "^gramian .*: error: .*File too large")
    assert os.listdir() == []

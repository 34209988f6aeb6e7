"""Run by .ci/wheel in a new environment, in an empty folder: what works without extras."""

import io
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.base import is_classifier

import gramian
from gramian import learners
from gramian.backend import optional
from gramian.command import COMMANDS, main

COMMAND = Path(sys.executable).with_name("gramian")
EXTRAS = [*optional.INSTALLED_BY, "numba", "triton"]


def says(what):
    print(f"wheel: {what}")


def check(condition, what):
    if not condition:
        sys.exit(f"wheel: FAILED: {what}")


def command(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, encoding="utf-8")


def named(error, package):
    """That a sentence names a package and the command that installs it."""
    target = optional.INSTALLED_BY[package]
    install = f'pip install "{target}"' if "[" in target else f"pip install {target}"
    check(f"needs {package}; install it with: {install}" in error, f"{package}: {error!r}")
    says(error.strip())


def missing(package, call):
    try:
        call()
    except ImportError as error:
        named(str(error), package)
    else:
        check(False, f"{package} is missing, but nothing was said")


check("site-packages" in gramian.__file__, f"gramian comes from {gramian.__file__}")
here = [package for package in EXTRAS if find_spec(package)]
check(not here, f"installed without extras, but there are: {', '.join(here)}")
says(f"import gramian {gramian.__version__}, with none of {', '.join(EXTRAS)}")

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 4)) + 4 * np.eye(3, 4)[np.arange(300) % 3]
y = X[:, 0] + np.sin(X[:, 1])
np.save("rows.npy", X)
for name in learners.__all__:
    if not hasattr(getattr(learners, name), "fit"):
        continue  # a warning
    model = getattr(gramian, name)()
    target = y > 0 if is_classifier(model) else np.abs(y)  # counts are not negative
    for rows in (X, Path("rows.npy")):
        model.fit(rows, target)
    gramian.save(model, "model.gramian")
    again = gramian.load("model.gramian")
    method = "predict" if hasattr(model, "predict") else "transform"
    same = np.array_equal(getattr(again, method)(X), getattr(model, method)(X))
    check(same, f"{name} is another after save and load")
    says(f"{name}: fit, {method}, save, load")

comparison = gramian.compare(X, sizes=[10], random_state=0)
page = comparison.report("report.html").read_text(encoding="utf-8")
check("<style>" in page and "<script>" in page, "the report lacks its style or its script")
says("compare, and its report")

Path("rows.csv").write_text("a,b\n1,2\n3,4\n")
Path("rows.parquet").write_bytes(b"PAR1")
missing("pyarrow", lambda: gramian.open_rows("rows.parquet"))
missing("pyarrow", lambda: gramian.open_rows("rows.csv"))
missing("rich", lambda: gramian.set_config(progress=True))
missing("torch", lambda: gramian.set_config(device="cuda"))
missing("dask", lambda: __import__("gramian.rows.dask.rows"))
missing("pandas", comparison.to_frame)
missing("matplotlib", comparison.plot)

for name in COMMANDS:
    with redirect_stdout(io.StringIO()) as shown:
        status = main([name, "--help"])
    check(status == 0 and f"usage: gramian {name}" in shown.getvalue(), f"gramian {name} --help")
says(f"--help of {', '.join(COMMANDS)}")
for arguments in (["datasets"], ["ridge", "iris"], ["compare", "iris", "--sizes", "5"]):
    done = command(*arguments)
    check((done.returncode, done.stderr) == (0, ""), f"gramian {arguments}: {done.stderr}")
    says(f"gramian {' '.join(arguments)}")
for package, arguments in (
    ("pyarrow", ["cluster", "rows.csv"]),
    ("pyarrow", ["cluster", "rows.npy", "--output", "labels.parquet"]),
    ("torch", ["cluster", "rows.npy", "--device", "cuda"]),
    ("dask", ["cluster", "rows.npy", "--scheduler", "tcp://localhost:1"]),
):
    done = command(*arguments)
    check(done.returncode == 2 and done.stderr.count("\n") == 1, f"{arguments}: {done.stderr}")
    named(done.stderr, package)

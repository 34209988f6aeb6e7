"""Store measured units in files: a rerun is cheap, and an interruption loses nothing."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
import sklearn

import gramian
from gramian.backend.typing import PathLike
from gramian.backend.writing import whole_file
from gramian.experiments.base import Experiment, Numbers, Unit

PACKAGE = Path(gramian.__file__).parent
# Code that changes how numbers are shown, not what they are.
BESIDE = {"report", "command", "comparison", "experiments", "tables", "testing", "__main__.py"}
MEASURING = (
    "audits.py",
    "data.py",
    "measuring.py",
    "fast_kpca.py",
    "reference.py",
)  # of the experiments


class Measured(NamedTuple):
    """The numbers of a unit, what they took, when and where, and warnings of approximations."""

    numbers: Numbers
    seconds: float
    cpu_seconds: float
    day: str
    machine: str
    notes: list[str]


class Store:
    """A folder of measured units.

    A unit's file is identified by the experiment, the unit, the code that measured it and the
    versions of its dependencies. Files of other versions stay.
    """

    def __init__(self, folder: PathLike | None = None) -> None:
        self.folder = Path(folder).expanduser() if folder is not None else default_folder()

    def get(self, experiment: Experiment, unit: Unit) -> Measured | None:
        """Return what was measured, or None; a file that cannot be read counts as None."""
        try:
            stored = json.loads(self._path(experiment, unit).read_text(encoding="utf-8"))
            return Measured(
                dict(stored["numbers"]),
                float(stored["seconds"]),
                float(stored["cpu_seconds"]),
                str(stored["day"]),
                str(stored["machine"]),
                list(stored["notes"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, experiment: Experiment, unit: Unit, measured: Measured) -> None:
        path = self._path(experiment, unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"unit": unit, **measured._asdict()})
        with whole_file(path) as file:
            file.write(text.encode("utf-8"))

    def _path(self, experiment: Experiment, unit: Unit) -> Path:
        said = json.dumps([experiment.name, unit, code(experiment)], sort_keys=True)
        digest = hashlib.sha256(said.encode("utf-8")).hexdigest()[:32]
        return self.folder / experiment.name.replace("/", "-") / f"{digest}.json"


def default_folder() -> Path:
    """Return ``gramian/experiments`` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "gramian" / "experiments"


def code(experiment: Experiment) -> str:
    """Return a digest of all code behind a unit's numbers."""
    return hashlib.sha256(f"{_library()}{_measuring(type(experiment))}".encode()).hexdigest()


@cache
def _measuring(kind: type[Experiment]) -> str:
    """Return the modules of an experiment and its bases, without code that only shows numbers."""
    modules = {
        sys.modules[base.__module__] for base in kind.__mro__ if issubclass(base, Experiment)
    }
    trees = [_Measuring().visit(ast.parse(inspect.getsource(module))) for module in modules]
    return "".join(sorted(map(ast.dump, trees)))


class _Measuring(ast.NodeTransformer):
    """Drop checks, figures, texts and lists of units (each unit is identified on its own)."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        return None if node.name in ("checks", "figures", "units") else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        names = {each.id for each in node.targets if isinstance(each, ast.Name)}
        return None if names & {"name", "title", "claim", "note"} else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else node  # docstrings


@cache
def _library() -> str:
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        measuring = parts[0] == "experiments" and parts[-1] in MEASURING
        if measuring or BESIDE.isdisjoint(parts[:2]):
            digest.update("/".join(parts).encode() + path.read_bytes())
    versions = np.__version__, scipy.__version__, sklearn.__version__, gramian.__version__
    digest.update(" ".join(versions).encode())
    return digest.hexdigest()

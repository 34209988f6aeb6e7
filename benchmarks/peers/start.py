"""The job of starting up: what ``import gramian`` takes beyond scikit-learn's own import."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from benchmarks.peers.data import Scale
from benchmarks.peers.job import OURS, Call, Contender, Data, Goal, Inputs, Job

IMPORTS = {
    OURS: ("import gramian", "gramian"),
    "scikit-learn": ("import sklearn", "sklearn"),
    "scikit-learn Nystroem": ("import sklearn.kernel_approximation", "sklearn"),
}


def jobs(scale: Scale) -> list[Job]:
    contenders = tuple(
        Contender(name, partial(_import, code), package)
        for name, (code, package) in IMPORTS.items()
    )
    goals = (Goal("scikit-learn", 0.3, of="added seconds"),)
    nothing = Data("nothing", dict)
    return [Job("start-up", nothing, contenders, goals=goals, has_memory=False, brief=True)]


def _import(code: str, inputs: Inputs) -> Call:
    return lambda _: subprocess.run([sys.executable, "-c", code], check=True)

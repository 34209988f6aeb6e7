"""Measure every figure, table and theorem of the papers behind gramian, and compare.

``reproduce`` runs the experiments, as the command ``gramian reproduce`` does. An experiment is a
small class: what to measure, what the paper claims, how to compare the two, and what to draw. See
:class:`Experiment` to add one.

Each unit is stored in a file as soon as it is measured, under a digest of the unit and of the code
behind its number. An interruption loses one unit; a new sentence invalidates none. Bounds are
generous, so a check that a bound holds never stands alone. Times are compared as CPU time in one
thread and at equal error, so the verdict does not depend on the machine's load or its cores. A
difference from a paper stays in the report, and the experiment's ``note`` explains it.

The papers: "000" is a report on kernel approximation (Atul, Bera and Zaidi, 2019), "001"
Kernelizing Algorithms (Wan), "002" the appendix of Memory efficient kernel approximation (Si, Hsieh
and Dhillon, 2014), "003" Statistical and computational trade-offs in kernel k-means (Calandriello
and Rosasco, 2018), "004" Gaussian sketching yields a J-L lemma in RKHS (Kpotufe and Sriperumbudur,
2020).
"""

from gramian.experiments.base import Check, Experiment, Settings, Verdict
from gramian.experiments.catalogue import EXPERIMENTS
from gramian.experiments.outcomes import Outcome, Reproduction
from gramian.experiments.run import find, reproduce

__all__ = [
    "EXPERIMENTS",
    "Check",
    "Experiment",
    "Outcome",
    "Reproduction",
    "Settings",
    "Verdict",
    "find",
    "reproduce",
]

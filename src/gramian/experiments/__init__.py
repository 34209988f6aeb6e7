"""Every figure, table and theorem of the papers behind gramian, measured and compared.

``reproduce`` runs them, as the command ``gramian reproduce`` does. An experiment is a small class
that says what is measured, what the paper says is to be seen, and how the numbers are compared
with that; see :class:`Experiment` to add one. "000" is a report on kernel approximation (Atul, Bera
and Zaidi, 2019), "001" Kernelizing Algorithms (Wan), "002" the appendix of Memory efficient kernel
approximation (Si, Hsieh and Dhillon, 2014), "003" Statistical and computational trade-offs in
kernel k-means (Calandriello and Rosasco, 2018), "004" Gaussian sketching yields a J-L lemma in RKHS
(Kpotufe and Sriperumbudur, 2020).
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

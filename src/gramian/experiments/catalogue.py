"""All experiments, in the order of the papers."""

from __future__ import annotations

from gramian.experiments.base import Experiment
from gramian.experiments.blocks import BLOCKWISE
from gramian.experiments.dc_svm import DC_SVM
from gramian.experiments.exact import EXACT
from gramian.experiments.iris import IRIS
from gramian.experiments.jl_bounds import JL_BOUNDS
from gramian.experiments.kernel_jl import KERNEL_JL
from gramian.experiments.kernel_kmeans import KERNEL_KMEANS
from gramian.experiments.kmeans_bounds import KMEANS_BOUNDS
from gramian.experiments.kmeans_landmarks import KMEANS_LANDMARKS
from gramian.experiments.kmeans_risk import KMEANS_RISK
from gramian.experiments.lemmas import LEMMAS
from gramian.experiments.meka import MEKAS
from gramian.experiments.meka_theorems import MEKA_THEOREMS
from gramian.experiments.proposals import PROPOSALS
from gramian.experiments.rates import JL_RATES, KMEANS_RATES
from gramian.experiments.theorems import THEOREMS

PAPERS = {
    "000": "Kernel approximation, a report (Atul, Bera and Zaidi, 2019)",
    "001": "Kernelizing algorithms (Wan)",
    "002": "Memory efficient kernel approximation, appendix (Si, Hsieh and Dhillon, 2014)",
    "003": "Statistical and computational trade-offs in kernel k-means "
    "(Calandriello and Rosasco, 2018)",
    "004": "Gaussian sketching yields a J-L lemma in RKHS (Kpotufe and Sriperumbudur, 2020)",
    "005": "A divide-and-conquer solver for kernel support vector machines "
    "(Hsieh, Si and Dhillon, 2014)",
}
# What the papers show and no experiment measures.
FULL_SIZE, FULL_ROWS = "003/figure-2 at full size", 8_000_000  # measured with as many rows
MISSING = {
    FULL_SIZE: "The paper's eight million images, for which a GPU takes minutes.",
    "004/table-2 on IoT": "The data set could not be had.",
    "004/figure-2 on IoT": "The data set could not be had; Avila takes its place.",
}
BY_PAPER = (
    (*IRIS, *PROPOSALS, *LEMMAS, *THEOREMS),
    EXACT,
    (*BLOCKWISE, *MEKAS, *MEKA_THEOREMS),
    (*KERNEL_KMEANS, *KMEANS_LANDMARKS, *KMEANS_BOUNDS, *KMEANS_RATES, *KMEANS_RISK),
    (*KERNEL_JL, *JL_BOUNDS, *JL_RATES),
    DC_SVM,
)
EXPERIMENTS: list[Experiment] = [kind() for paper in BY_PAPER for kind in paper]

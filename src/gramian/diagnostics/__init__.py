"""Find out whether BKA and MEKA suit your data: ranks of blocks, shared bases, partitions, links.

These functions produce the tables and figures with which Si, Hsieh and Dhillon (2014, "002") argue
for MEKA, for your own data. Where the paper uses a whole matrix, rows of each block are sampled.
The corresponding bounds are in :mod:`gramian.theory`.
"""

from gramian.diagnostics.fits import link_thresholds, partitions, step_times
from gramian.diagnostics.structure import (
    BlockRanks,
    PrincipalCosines,
    block_ranks,
    principal_cosines,
)
from gramian.diagnostics.table import Table

__all__ = [
    "BlockRanks",
    "PrincipalCosines",
    "Table",
    "block_ranks",
    "link_thresholds",
    "partitions",
    "principal_cosines",
    "step_times",
]

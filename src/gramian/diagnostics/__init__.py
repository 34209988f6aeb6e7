"""What makes BKA and MEKA suit the data or not: ranks of blocks, shared bases, partitions, links.

These are the tables and figures by which Si, Hsieh and Dhillon (2014, "002") argue for MEKA, for
rows of one's own. Where the paper looks at a whole matrix, rows of each block are sampled. The
bounds that go with them are in :mod:`gramian.theory`.
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

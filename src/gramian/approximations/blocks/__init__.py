"""BKA and MEKA: approximations in blocks of rows that are close to each other.

``partition.py`` assigns rows to blocks, ``ranks.py`` divides the total rank between them,
``basis.py`` finds the features of each block, and ``links.py`` fits what is between blocks.
"""

from gramian.approximations.blocks.bka import BKA
from gramian.approximations.blocks.meka import MEKA

__all__ = ["BKA", "MEKA"]

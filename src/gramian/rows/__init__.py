"""Rows: where the data is, and how it is walked block by block inside the memory budget."""

from gramian.rows.arrays import ArrayRows, BlockRows, HalfRows, even_spans
from gramian.rows.base import Place, Rows, Walk
from gramian.rows.features import FeatureRows, for_half, held
from gramian.rows.joined import JoinedRows
from gramian.rows.parts import Map, Parts
from gramian.rows.reading import as_rows

__all__ = [
    "ArrayRows",
    "BlockRows",
    "FeatureRows",
    "HalfRows",
    "JoinedRows",
    "Map",
    "Parts",
    "Place",
    "Rows",
    "Walk",
    "as_rows",
    "even_spans",
    "for_half",
    "held",
]

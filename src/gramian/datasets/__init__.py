"""Public data sets by name, for examples, benchmarks and tests.

A set is read from ``<name>.npz`` in the folder that the environment variable ``GRAMIAN_DATA``
names. Where that is not set, or has no such file, scikit-learn's copy is taken: some sets ship with
it, others it downloads.
"""

from gramian.datasets.named import (
    FOLDER,
    Dataset,
    Listed,
    deformed,
    listing,
    load,
    names,
    scaled,
    write_deformed,
)

__all__ = [
    "FOLDER",
    "Dataset",
    "Listed",
    "deformed",
    "listing",
    "load",
    "names",
    "scaled",
    "write_deformed",
]

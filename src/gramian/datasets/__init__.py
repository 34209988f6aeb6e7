"""Public data sets by name, for examples, benchmarks and tests.

A data set is read from ``<name>.npz`` in the folder named by the environment variable
``GRAMIAN_DATA``. If that is not set or has no such file, scikit-learn's copy is used: some data
sets ship with it, others are downloaded.
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

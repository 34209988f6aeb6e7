"""The peak memory of fits to files against the memory budget: the table of ``python -m fuzz``."""

from __future__ import annotations

import sys

from fuzz import memory


def main() -> int:
    """Print the table; fail if a line is over its budget."""
    print("Peak memory above that of the process before the fit. BLAS has one thread.")
    print("Files of rows in")
    for name, (n, d) in memory.SHAPES.items():
        print(f"float32: {name}, {n:,} rows of {d} columns, as NPY, as Parquet with row groups of")
        print(f"{memory.GROUPS[name]:,} rows, and (-one) as Parquet with one row group.")
    print("Allowed: the budget, 10 % of it and 30 MB.\n")
    return 1 if memory.run(1.0, 0) else 0


if __name__ == "__main__":
    sys.exit(main())

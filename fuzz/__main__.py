"""``python -m fuzz [NAME ...]``: run the campaign, or parts of it, and say what failed."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

PARTS = (
    "model_files", "laws", "numerics", "faulty_files", "interruptions", "rights", "memory",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another campaign")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many attempts")
    options = parser.parse_args()
    failures = []
    for part in options.parts or PARTS:
        start = time.perf_counter()
        found = import_module(f"fuzz.{part}").run(options.scale, options.seed)
        print(f"{part}: {len(found)} failures in {time.perf_counter() - start:.0f} s", flush=True)
        failures += found
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Local: covtype, many sets, borders of blocks, MEKA's links, a million rows.

``python -m benchmarks local`` runs every part; ``--write`` keeps a section for each in RESULTS.md.
What covtype and sets measure is stored in out/benchmarks/local, and tables have all that is there,
so they can be measured in pieces: ``python -m benchmarks.local covtype --full --splits 0``,
``python -m benchmarks.local sets avila --full --minutes 4``.
"""

from __future__ import annotations

import argparse
import io
import time
from contextlib import redirect_stdout
from importlib import import_module

from benchmarks.__main__ import RESULTS, write_section
from benchmarks.harness import circumstances
from benchmarks.local.data import Options

PARTS = ("covtype", "sets", "border", "links", "million")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="by default all")
    parser.add_argument("only", nargs="*", help="of sets and border: names of data sets")
    parser.add_argument("--full", action="store_true", help="five splits, and up to 50,000 rows")
    parser.add_argument(
        "--cpu", action="store_true", help="of sets: CPU seconds, for a machine with other load"
    )
    parser.add_argument(
        "--write", action="store_true", help="keep the results in RESULTS.md, a section for a part"
    )
    parser.add_argument(
        "--splits", type=int, nargs="*", default=[], metavar="N", help="of covtype: from 0 to 4"
    )
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin nothing after so many minutes"
    )
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    options = Options(given.full, given.only, given.cpu, given.splits, until)
    for part in [given.part] if given.part else PARTS:
        print(f"### {part}\n", flush=True)
        said = io.StringIO()
        with redirect_stdout(said):  # what it prints meanwhile goes to stderr
            import_module(f"benchmarks.local.{part}").main(options)
        print(said.getvalue(), flush=True)
        if given.write:
            write_section(RESULTS, f"local {part}", f"{circumstances()}.\n\n{said.getvalue()}")


if __name__ == "__main__":
    main()

"""Local: covtype, many sets, borders of blocks, MEKA's links, a million rows.

``python -m benchmarks local`` runs every part; ``python -m benchmarks.local sets cadata`` one part,
of one set; ``python -m benchmarks.local covtype --write`` keeps a part's tables in RESULTS.md.
"""

from __future__ import annotations

import argparse
import io
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
    given = parser.parse_args()
    options = Options(given.full, given.only, given.cpu)
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

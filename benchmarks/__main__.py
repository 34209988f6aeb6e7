"""Run the benchmarks: ``python -m benchmarks [name ...] [--write] [--full]``.

A single benchmark also takes options of its own, such as ``python -m benchmarks peers --only PCA``
or ``python -m benchmarks losses --part quantiles``: see ``python -m benchmarks.NAME --help``.
"""

from __future__ import annotations

import argparse
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import circumstances, write_whole

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
IN_PARTS = ("local",)  # these write a section for each of their parts


def main() -> int:
    modules = (module.name for module in pkgutil.iter_modules([str(HERE)]))
    known = sorted(name for name in modules if name != "harness" and not name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks.")
    parser.add_argument("name", nargs="*", help=f"by default all: {', '.join(known)}")
    parser.add_argument("--write", action="store_true", help="keep the results in RESULTS.md")
    parser.add_argument("--full", action="store_true", help="also what takes long")
    options, own = parser.parse_known_args()
    unknown = [name for name in options.name if name not in known]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are: {', '.join(known)}")
    if own and len(options.name) != 1:
        parser.error(f"{' '.join(own)} is for one benchmark: python -m benchmarks NAME {own[0]}")
    if own and options.write:
        parser.error(f"--write keeps whole runs: leave out {' '.join(own)}")

    stamp = circumstances()
    print(stamp)
    failed = []
    for name in options.name or known:
        print(f"\n{name}\n", flush=True)
        passed = list(own)
        if options.full and name != "peers":  # which is full by itself
            passed.append("--full")
        if options.write and name in IN_PARTS:
            passed.append("--write")
        code, output = run(name, passed)
        if code:
            failed.append(name)
        elif options.write and name not in IN_PARTS:
            write_section(RESULTS, name, f"{stamp}.\n\n{output}")
    if failed:
        print(f"\nFailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(name: str, options: list[str]) -> tuple[int, str]:
    """One benchmark in a process of its own, so that none inherits the memory of another."""
    command = [sys.executable, "-u", "-m", f"benchmarks.{name}", *options]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def write_section(path: Path, name: str, text: str) -> None:
    """Replace the section of this benchmark, or add it at the end."""
    before = path.read_text(encoding="utf-8") if path.exists() else "# Benchmark results\n"
    head, *sections = re.split(r"^(?=## )", before, flags=re.MULTILINE)
    by_name = {section.partition("\n")[0].removeprefix("## "): section for section in sections}
    by_name[name] = f"## {name}\n\n{text}"
    order = sorted(by_name, key=lambda each: each != "peers")  # that one first
    parts = [part.strip() for part in (head, *(by_name[each] for each in order))]
    write_whole(path, "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    sys.exit(main())

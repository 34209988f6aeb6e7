"""Every subcommand of ``gramian`` that takes ``--device``, on the device and on the CPU."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import table
from gramian.command import COMMANDS, main
from gramian.command.arguments import Parser

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# The arguments of each subcommand, after DATA; each writes what {out} names.
ARGUMENTS = {
    "cluster": "--exclude number --exclude kind --n-clusters 4 --approximation nystroem -o {out}",
    "ridge": "--target number --exclude kind -o {out}",
    "classify": "--target kind --exclude number -o {out}",
    "regress": "--target number --exclude kind -o {out}",
    "tune": "--target number --exclude kind --model {out}",
    "pca": "--exclude number --exclude kind -o {out}",
    "embed": "--exclude number --exclude kind -o {out}",
    "compare": "--target number --exclude kind --sizes 20 50 -o {out}",
}
ENDINGS = {"tune": ".gramian", "compare": ".html"}


def written(folder: Path, n: int) -> Path:
    """A file of rows with a number and a class to predict."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4)) + 3.0 * rng.integers(4, size=(n, 1))
    number = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    lines = ["a,b,c,d,number,kind"]
    for row, y in zip(X, number, strict=True):
        cells = (f"{value:.6f}" for value in (*row, y))
        lines.append(",".join([*cells, "high" if y > np.median(number) else "low"]))
    path = folder / "rows.csv"
    path.write_text("\n".join(lines))
    return path


def with_device() -> list[str]:
    """The subcommands that take --device, as their parsers say."""
    found = []
    for command in COMMANDS:
        parser = Parser(prog=command)
        import_module(f"gramian.command.{command}").add_options(parser)
        if "--device" in parser.format_help():
            found.append(command)
    return found


def ran(command: str, data: Path, device: str, folder: Path) -> tuple[int, float, str]:
    """The exit status, the seconds, and all that was written."""
    out = folder / f"{command}-{device}{ENDINGS.get(command, '.csv')}"
    given = ARGUMENTS[command].format(out=out).split()
    said = io.StringIO()
    start = time.perf_counter()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = main([command, str(data), *given, "--device", device, "--force"])
    taken = time.perf_counter() - start
    if status:
        return status, taken, said.getvalue()
    if command == "tune":  # what its model predicts
        again = folder / f"{command}-{device}.csv"
        with contextlib.redirect_stdout(said):
            main(["predict", str(out), str(data), "-o", str(again), "--force"])
        return status, taken, again.read_text()
    if command == "compare":  # its table without seconds
        lines = [line.split() for line in said.getvalue().splitlines() if "]" in line]
        return status, taken, "\n".join(" ".join([*line[:-5], *line[-4:]]) for line in lines)
    if command == "embed":  # inner products: features may be rotated
        Z = np.loadtxt(out, delimiter=",", skiprows=1)[:, 1:]  # without row numbers
        return status, taken, " ".join(f"{value:.12g}" for value in (Z[:200] @ Z.T).ravel())
    return status, taken, out.read_text()


def apart(one: str, other: str) -> str:
    """How far two texts differ: in words, or in numbers, relative to those above 1."""
    words = (NUMBER.sub("#", text) for text in (one, other))
    if len(set(words)) > 1:
        same = sum(a == b for a, b in zip(one.split(), other.split(), strict=False))
        return f"{100 - 100 * same / max(len(one.split()), 1):.2f} % of the words"
    found = [np.array([float(x) for x in NUMBER.findall(text)] or [0.0]) for text in (one, other)]
    return f"{np.max(np.abs(found[0] - found[1]) / np.maximum(np.abs(found[1]), 1.0)):.1e}"


def run(device: str, n: int = 2000) -> list[list[Any]]:
    """A line for each subcommand."""
    commands = with_device()
    missing = set(commands) - set(ARGUMENTS)
    if missing:
        raise ValueError(f"Say in benchmarks/gpu/commands.py how to call {', '.join(missing)}.")
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = written(folder, n)
        for command in commands:
            status, taken, found = ran(command, data, device, folder)
            on_cpu, seconds, expected = ran(command, data, "cpu", folder)
            good = status == on_cpu == 0
            said = apart(found, expected) if good else (found if status else expected)[-200:]
            lines.append([command, status, f"{taken:.2f}", f"{seconds:.2f}", said.strip()])
            print(" | ".join(map(str, lines[-1])), flush=True)
    return lines


def show(device: str) -> None:
    os.environ.setdefault("COLUMNS", "200")
    print(f"\ngramian COMMAND rows.csv --device {device}, and on the CPU, 2,000 rows of a file.")
    lines = run(device)
    left_out = ", ".join(command for command in COMMANDS if command not in with_device())
    print(f"\nWithout --device: {left_out}. The difference is of the numbers written, relative to")
    print("those above 1; for tune of what its model predicts, for compare of its table, and for")
    print("embed of inner products.\n")
    print(table(["command", "status", f"{device} s", "CPU s", "difference"], lines), "\n")

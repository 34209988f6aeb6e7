"""What does a user get who may not write, or not read? One sentence, and no file that is half."""

from __future__ import annotations

import contextlib
import io
import os
import random
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import gramian
from fuzz import limited
from fuzz.forks import forked, without_rights

ATTEMPTS = 120  # at scale 1

X = np.random.default_rng(0).standard_normal((60, 3))
Y = np.arange(60) % 2

COMMANDS = {
    "cluster": ["--n-clusters", "2", "--output", "out/labels.csv"],
    "ridge": ["--target", "y", "--model", "out/model.gramian", "--output", "out/rows.csv"],
    "pca": ["--model", "out/model.gramian", "--output", "out/scores.csv"],
    "embed": ["--approximation", "nystroem", "--output", "out/features.npy"],
    "compare": ["--output", "out/report.html"],
}
OUTPUTS = ("labels.csv", "model.gramian", "rows.csv", "scores.csv", "features.npy", "report.html")
NAMES = ("'out'", "rows.csv", "kernel.gramian", *(f"out/{name}" for name in OUTPUTS))
HARMS = (
    "unwritable folder",
    "unreadable rows",
    "unreadable folder",
    "unwritable file",
    "full disk",
    "no home",
)


def run(scale: float, seed: int) -> list[limited.Failure]:
    """Run commands and save models with something forbidden."""
    outcomes, failures = limited.campaign(__name__, seed, range(int(ATTEMPTS * scale)))
    print(f"a user without rights: {dict(outcomes)}")
    return failures


def attempt(seed: int, number: int) -> str:
    pick = random.Random(f"rights {seed}/{number}")
    harm, command = pick.choice(HARMS), pick.choice((*COMMANDS, "save", "load"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = _prepared(folder, harm)
        end = forked(lambda: _tried(folder, harm, command))
        _unlock(folder)
        wrong = _wrong(end.status, end.said, folder, before)
    if wrong:
        return f"FAILED: {harm}, {command}: {wrong}".replace("\n", " ")
    return "refused in a sentence" if end.said.startswith("2 ") else "done"


def _prepared(folder: Path, harm: str) -> dict[str, bytes]:
    """Write files and take rights away; return what is in the folder of the output."""
    out = folder / "out"
    out.mkdir()
    lines = [",".join((*(f"{v:.4f}" for v in row), str(y))) for row, y in zip(X, Y, strict=True)]
    (folder / "rows.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    gramian.save(gramian.RBF(0.5), folder / "kernel.gramian")
    if harm == "unwritable file":
        for path in (out / name for name in OUTPUTS):
            path.write_text("from before")
            path.chmod(0o400)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    if harm == "unwritable folder":
        out.chmod(0o500)
    elif harm == "unreadable rows":
        (folder / "rows.csv").chmod(0)
        (folder / "kernel.gramian").chmod(0)
    elif harm == "unreadable folder":
        out.chmod(0)
    return before


def _unlock(folder: Path) -> None:
    folder.chmod(0o700)
    for path in folder.iterdir():
        path.chmod(0o700)


def _tried(folder: Path, harm: str, command: str) -> str:
    """Do it in a process of its own; return the status and what standard error says."""
    os.chdir(folder)
    if harm == "full disk":
        _small_disk(300)
    elif harm == "no home":
        for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR", "USER"):
            os.environ.pop(name, None)
    without_rights()
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = _status(command, said)
    return f"{status} {said.getvalue()}"


def _small_disk(most: int) -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python does: an OSError follows
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _status(command: str, said: io.StringIO) -> int:
    from gramian.command import main

    if command in COMMANDS:
        return main([command, "rows.csv", *COMMANDS[command], "--force"])
    try:
        if command == "save":
            gramian.save(gramian.KernelRidge().fit(X, Y), "out/model.gramian")
        else:
            gramian.load("kernel.gramian")
    except (OSError, gramian.ModelFileError) as error:
        print(error, file=said)
        return 2
    return 0


def _wrong(status: int | None, said: str, folder: Path, before: dict[str, bytes]) -> str:
    """Say what should not be, or nothing."""
    if status is None:
        return "it hangs"
    code, _, message = said.partition(" ")
    if status or code not in ("0", "2"):
        return f"status {status}, {said[-300:]}"
    if code == "2" and ("Traceback" in message or not any(each in message for each in NAMES)):
        return f"no sentence that names the file: {message[-200:]}"
    after = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    if code == "2" and any(after.get(name) != data for name, data in before.items()):
        return "a file from before has changed"
    new = [name for name in after if name not in before]
    if any(name.startswith(".") for name in new):
        return f"{new} is left behind"
    return f"{new} was written by a command that failed" if code == "2" and new else ""


def main(arguments: list[str]) -> None:
    seed, first, last = map(int, arguments)
    warnings.simplefilter("ignore")
    limited.serve(lambda number: attempt(seed, number), first, last, seconds=60)


if __name__ == "__main__":
    main(sys.argv[1:])

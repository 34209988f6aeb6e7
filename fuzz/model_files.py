"""Is there a model file that crashes, hangs or fills the process that loads and uses it?"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from pathlib import Path

from fuzz import crafted, limited

FILES = 20_000  # at scale 1
CRAFTED = 10**9  # numbers from here on are crafted files


def run(scale: float, seed: int) -> list[limited.Failure]:
    """Load and use mutated files, and those that were crafted."""
    mutated, failures = limited.campaign(__name__, seed, range(int(FILES * scale)))
    print(f"mutated model files: {dict(mutated)}")
    numbers = range(CRAFTED, CRAFTED + len(crafted.FILES))
    refused, more = limited.campaign(__name__, seed, numbers)
    print(f"crafted model files: {dict(refused)}")
    if set(refused) != {"refused"}:
        more.append(limited.Failure(CRAFTED, "FAILED: a crafted file was not refused"))
    return failures + more


def attempt(seed: int, number: int, folder: Path) -> str:
    """Load a file and use the model; any exception of Python's is an answer."""
    from fuzz import mutants

    path = folder / "model.gramian"
    if number >= CRAFTED:
        path.write_bytes(list(crafted.FILES.values())[number - CRAFTED]())
    else:
        path.write_bytes(mutants.mutant(seed, number))
    import gramian

    try:
        model = gramian.load(path)
    except gramian.ModelFileError:
        return "refused"
    except Exception as error:
        return f"FAILED: load raised {type(error).__name__}: {error}".replace("\n", " ")
    raised = []
    for use in ("predict", "transform", "decision_function", "fit"):
        try:
            if hasattr(model, use):
                arguments = (mutants.TARGETS,) if use == "fit" else ()
                getattr(model, use)(mutants.ROWS, *arguments)
        except Exception:
            raised.append(use)
    return "loaded, and raised in use" if raised else "loaded and used"


def main(arguments: list[str]) -> None:
    seed, first, last = map(int, arguments)
    warnings.simplefilter("ignore")
    import gramian
    from fuzz import mutants

    gramian.set_config(n_threads=1)  # threads for 40 rows would take most of the time
    mutants.mutant(seed, 0)  # imports and fits, outside the limits
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory) as folder:
        limited.serve(lambda number: attempt(seed, number, Path(folder)), first, last)


if __name__ == "__main__":
    main(sys.argv[1:])

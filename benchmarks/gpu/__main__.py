"""``python -m benchmarks.gpu [--full] [--part NAME] [--only PATTERN]``."""

from __future__ import annotations

import argparse

from benchmarks import gpu
from benchmarks.gpu import commands, dask_worker, fits, products, records

PARTS = ("products", "records", "fits", "commands", "dask")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=gpu.__doc__)
    parser.add_argument("--full", action="store_true", help="at the sizes of the documentation")
    parser.add_argument("--part", choices=PARTS, help="one part alone")
    parser.add_argument("--only", metavar="PATTERN", default="", help="of fits: those that match")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("torch is not installed.")
        return
    if not torch.cuda.is_available():
        print("There is no GPU.")
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    chosen = (options.part,) if options.part else PARTS
    if "products" in chosen:
        products.main(torch)
    if "records" in chosen:
        records.main(torch, options.full)
    if "fits" in chosen:
        fits.main(torch, options.full, options.only)
    if "commands" in chosen:
        commands.show("cuda")
    if "dask" in chosen:
        dask_worker.main(torch, options.full, "cuda")


if __name__ == "__main__":
    main()

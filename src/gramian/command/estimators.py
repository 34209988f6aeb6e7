"""The estimator that the options describe, and what there is to say of it once it is fitted."""

from __future__ import annotations

import inspect
import re
from argparse import Namespace
from typing import Any

import gramian
from gramian.approximations import Approximation, Exact
from gramian.backend import config
from gramian.backend.wording import counted
from gramian.command.errors import UsageError
from gramian.command.screen import Screen
from gramian.command.signatures import from_text, given
from gramian.kernels import Kernel, as_kernel, kernel_names
from gramian.matrices.gram import Gram
from gramian.rows import Rows

APPROXIMATIONS: dict[str, type] = {
    re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower(): cls
    for cls in vars(gramian.approximations).values()
    if isinstance(cls, type) and issubclass(cls, Approximation | Exact) and cls is not Approximation
}
KERNELS: dict[str, type] = {
    name.replace("_", "-"): type(as_kernel(name)) for name in kernel_names()
}


def estimator(args: Namespace, cls: Any) -> Any:
    """A learner of this class with the options that were given, its kernel among them."""
    return cls(**given(args, cls), kernel=_kernel(args, cls), random_state=args.seed)


def approximation(args: Namespace, name: str) -> Approximation:
    """An approximation by itself."""
    made = _approximated(args, args.approximation or name)
    if not isinstance(made, Approximation):
        raise UsageError("The exact kernel has no features: --approximation must be another.")
    return made.set_params(random_state=args.seed)


def _kernel(args: Namespace, cls: Any) -> Any:
    if args.approximation is None:
        return bare_kernel(args, cls)
    return _approximated(args, args.approximation)


def approximation_by_name(text: str) -> Any:
    return from_text(text, APPROXIMATIONS, "approximation")


def _approximated(args: Namespace, text: str) -> Any:
    made = approximation_by_name(text)
    return made.set_params(kernel=bare_kernel(args, type(made)))


def bare_kernel(args: Namespace, cls: Any) -> Kernel:
    """The kernel itself: by default that of the class it is for."""
    text = args.kernel or inspect.signature(cls).parameters["kernel"].default
    kernel = from_text(text, KERNELS, "kernel")
    if args.gamma is not None:
        if "gamma" not in kernel.get_params():
            raise UsageError(f"--gamma: the kernel {text} has none.")
        kernel = from_text(f"{text.partition(':')[0]}:gamma={args.gamma}", KERNELS, "kernel", **{
            name: value for name, value in kernel.get_params().items() if name != "gamma"
        })  # fmt: skip
    return kernel


def show(screen: Screen, fitted: Any, rows: Rows) -> None:
    """Kernel, approximation with its error, and memory."""
    if screen.quiet:
        return
    kernel = fitted.kernel_
    gamma = getattr(kernel, "gamma_", None)
    screen.line("kernel", f"{kernel!r}" + ("" if gamma is None else f", gamma = {gamma:.4g}"))
    used = fitted if isinstance(fitted, Approximation) else fitted.approximation_
    matrix = config.format_bytes(Gram(kernel, rows).nbytes)
    if used is None:
        screen.line("matrix", f"exact: {matrix} in all")
        return
    screen.line("matrix", f"{type(used).__name__}, {counted(used.n_components_, 'feature', ',')}")
    try:
        error = gramian.relative_error(used, rows)
        screen.line("error", f"{error}, relative to the kernel matrix (Frobenius)")
    except gramian.MemoryBudgetError:
        screen.line("error", "not measured: that takes more memory than --memory allows")
    size = config.format_bytes(used.nbytes_)
    screen.line("memory", f"{size} for all features, {matrix} for the whole matrix")

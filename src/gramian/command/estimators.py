"""Build an estimator from the options, and describe it once it is fitted."""

from __future__ import annotations

import inspect
import re
from argparse import Namespace

from sklearn.base import BaseEstimator

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

APPROXIMATIONS: dict[str, type[Approximation | Exact]] = {
    re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower(): cls
    for cls in vars(gramian.approximations).values()
    if isinstance(cls, type) and issubclass(cls, Approximation | Exact) and cls is not Approximation
}
KERNELS: dict[str, type[Kernel]] = {
    name.replace("_", "-"): type(as_kernel(name)) for name in kernel_names()
}


def estimator(args: Namespace, cls: type[BaseEstimator], **more: object) -> BaseEstimator:
    """Return a learner of this class with the given options, including its kernel."""
    return cls(**given(args, cls), **more, kernel=_kernel(args, cls), random_state=args.seed)


def approximation(args: Namespace, name: str) -> Approximation:
    """Return an approximation, for use without a learner."""
    made = _approximated(args, args.approximation or name)
    if not isinstance(made, Approximation):
        raise UsageError("The exact kernel has no features: choose another --approximation.")
    return made.set_params(random_state=args.seed)


def _kernel(args: Namespace, cls: type[BaseEstimator]) -> Kernel | Approximation | Exact:
    if args.approximation is None:
        return bare_kernel(args, cls)
    return _approximated(args, args.approximation)


def approximation_by_name(text: str) -> Approximation | Exact:
    return from_text(text, APPROXIMATIONS, "approximation")


def _approximated(args: Namespace, text: str) -> Approximation | Exact:
    made = approximation_by_name(text)
    return made.set_params(kernel=bare_kernel(args, type(made)))


def bare_kernel(args: Namespace, cls: type[BaseEstimator]) -> Kernel:
    """Return the kernel; by default the default kernel of ``cls``."""
    text = args.kernel or inspect.signature(cls).parameters["kernel"].default
    kernel: Kernel = from_text(text, KERNELS, "kernel")
    if args.gamma is not None:
        if "gamma" not in kernel.get_params():
            raise UsageError(f"--gamma: the kernel {text} has no gamma.")
        kernel = from_text(f"{text.partition(':')[0]}:gamma={args.gamma}", KERNELS, "kernel", **{
            name: value for name, value in kernel.get_params().items() if name != "gamma"
        })  # fmt: skip
    return kernel


def show(screen: Screen, fitted: BaseEstimator, rows: Rows) -> None:
    """Print the kernel, the approximation with its error, and the memory."""
    if screen.quiet:
        return
    kernel = fitted.kernel_
    gamma = getattr(kernel, "gamma_", None)
    screen.line("kernel", f"{kernel!r}" + ("" if gamma is None else f", gamma = {gamma:.4g}"))
    used = fitted if isinstance(fitted, Approximation) else fitted.approximation_
    matrix = config.format_bytes(Gram(kernel, rows).nbytes)
    if used is None:
        screen.line("matrix", f"exact, {matrix}")
        return
    screen.line("matrix", f"{type(used).__name__}, {counted(used.n_components_, 'feature', ',')}")
    try:
        error = gramian.relative_error(used, rows)
        screen.line("error", f"{error}, relative to the kernel matrix (Frobenius)")
    except gramian.MemoryBudgetError:
        screen.line("error", "not measured: it needs more memory than --memory allows")
    size = config.format_bytes(used.nbytes_)
    screen.line("memory", f"{size} for the features; the exact matrix would take {matrix}")

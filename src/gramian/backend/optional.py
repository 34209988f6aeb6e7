"""Optional packages: if one is missing, the error names it and the command to install it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

# What to install for each package: an extra of gramian, if there is one.
INSTALLED_BY = {
    "dask": "gramian[dask]",
    "distributed": "gramian[dask]",
    "matplotlib": "matplotlib",
    "pandas": "pandas",
    "pyarrow": "gramian[cli]",
    "python_calamine": "gramian[excel]",
    "rich": "gramian[cli]",
    "torch": "gramian[gpu]",
}


@contextmanager
def needed(package: str, purpose: str) -> Iterator[None]:
    """Wrap imports of an optional package; an ImportError names the command to install it.

    Examples
    --------
    >>> from gramian.backend import optional
    >>> with optional.needed("pandas", "A data frame of results"):
    ...     raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
    Traceback (most recent call last):
    ImportError: A data frame of results needs pandas; install it with: pip install pandas
    """
    try:
        yield
    except ImportError as error:
        target = INSTALLED_BY[package]
        command = f'pip install "{target}"' if "[" in target else f"pip install {target}"
        said = f"{purpose} needs {package}; install it with: {command}"
        if not (isinstance(error, ModuleNotFoundError) and _top(error.name) == package):
            said = (
                f"{purpose} needs {package}, which is installed but cannot be imported ({error}); "
                f"try: {command} --upgrade"
            )
        raise ImportError(said, name=package) from error


def is_importable(module: str) -> bool:
    """Whether an optional module can be imported; this imports it."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def _top(module: str | None) -> str:
    return (module or "").partition(".")[0]

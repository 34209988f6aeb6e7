"""The package as a whole: its exports, its layers, its documents."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gramian

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gramian"

# From the bottom to the top: a module imports only from lines above its own.
LAYERS = [
    ["backend"],
    ["rows"],
    ["kernels"],
    ["matrices"],
    ["samplers", "estimators"],
    ["approximations"],
    ["learners", "theory"],
    ["analysis", "diagnostics", "tuning"],
    ["datasets"],
    ["experiments"],
    ["tables"],
    ["persistence"],
    ["testing"],
    ["command", "__main__"],
]


def layer(module):
    for level, names in enumerate(LAYERS):
        if any(module == name or module.startswith(name + ".") for name in names):
            return level
    raise AssertionError(f"{module} is in no layer: add it to LAYERS and to docs/design.md")


def imports(path):
    """Modules of gramian that a file imports when it is run, not for its types alone."""
    tree = ast.parse(path.read_text())
    only_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in only_types or not isinstance(node, ast.ImportFrom):
            continue
        if node.module == "gramian":
            yield from (alias.name for alias in node.names)
        elif node.module and node.module.startswith("gramian."):
            yield node.module.removeprefix("gramian.")


@pytest.mark.slow
def test_imports_point_down_only():
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if module == "__init__":
            continue
        for imported in imports(path):
            assert layer(imported) <= layer(module), f"{module} imports {imported}, above it"


def test_all_is_what_is_exported():
    public = {
        name
        for name in dir(gramian)
        if not name.startswith("_") and not inspect.ismodule(getattr(gramian, name))
    }
    assert set(gramian.__all__) == public
    assert sorted(gramian.__all__) == sorted(set(gramian.__all__))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gramian.nothing


def test_every_export_has_a_runnable_example():
    plain = {"Kernel", "Rows", "Sampler", "Approximation"}  # abstract
    plain |= {"KernelWarning", "ApproximationWarning", "MemoryBudgetError"}
    plain |= {"ErrorEstimate", "FeatureRows"}  # shown by what makes them
    for name in set(gramian.__all__) - plain:
        assert ">>>" in (getattr(gramian, name).__doc__ or ""), name


def test_importing_loads_no_optional_part():
    parts = "torch", "numba", "dask", "polars", "matplotlib", "array_api_strict"
    parts += ("gramian.analysis.report.page",)
    parts += ("gramian.rows.files.arrow",)  # the only one that imports pyarrow; pandas does so too
    code = f"import sys, gramian; print([m for m in {parts} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_examples_in_the_readme_run():
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_the_table_in_the_readme_names_every_class():
    text = (ROOT / "README.md").read_text()
    for name in gramian.__all__:
        if inspect.isclass(getattr(gramian, name)) and not name.endswith(("Warning", "Rows")):
            assert f"`{name}" in text, f"README does not mention {name}"


@pytest.mark.xdist_group("one worker")
def test_tests_of_a_group_share_a_worker(request):
    """Some versions of pytest and its plugin ignore groups; each worker then starts a cluster."""
    in_workers = hasattr(request.config, "workerinput")
    for item in request.session.items:
        for mark in item.iter_markers("xdist_group"):
            assert item.nodeid.endswith(f"@{mark.args[0]}") == in_workers, item.nodeid

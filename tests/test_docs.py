"""The documentation: every name has a page, examples run, numbers are measured ones."""

import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest

import gramian
from gramian import approximations, learners

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = (DOCS / "reference" / "index.rst").read_text()
PAGES = [DOCS / "index.md", *sorted(DOCS.glob("guide/*.md")), *sorted(DOCS.glob("coming/*.md"))]


def module(path):
    """A module of the site's own code, which is no installed package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = found
    spec.loader.exec_module(found)
    return found


def listed():
    """The names in the reference, by module."""
    found = {}
    for part in re.split(r"^\.\. currentmodule:: ", REFERENCE, flags=re.M)[1:]:
        name, _, text = part.partition("\n")
        for block in re.findall(r":toctree: generated\n\n((?:   \w+\n)+)", text):
            found.setdefault(name, []).extend(block.split())
    return found


def test_the_reference_has_every_public_name_once():
    assert sorted(listed()["gramian"]) == sorted(gramian.__all__)


MODULES = ("theory", "diagnostics", "datasets", "testing")


def functions_of(module):
    return [name for name in importlib.import_module(f"gramian.{module}").__all__ if name.islower()]


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_the_functions_of_other_modules(module):
    assert sorted(listed()[f"gramian.{module}"]) == sorted(functions_of(module))


# Docstrings of public names.

PUBLIC = [f"gramian.{name}" for name in sorted(gramian.__all__)]
PUBLIC += [f"gramian.{module}.{name}" for module in MODULES for name in functions_of(module)]


def found(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def section(text, title):
    """The lines of a docstring's section; none if there is no such section."""
    inside = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", text, flags=re.M | re.S)
    return inside[1].splitlines() if inside else []


def described(text):
    """The parameters and attributes that a docstring describes, with their types."""
    entries = [*section(text, "Parameters"), *section(text, "Attributes")]
    split = [line.partition(" : ") for line in entries if line[:1].strip()]
    return {name.strip(" *"): kind for names, _, kind in split for name in names.split(",")}


def parameters(thing):
    """The names of its parameters; of an exception and of settings by name, none."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return []
    given = inspect.signature(thing).parameters.values()
    return [each.name for each in given if each.kind is not each.VAR_KEYWORD]


def lacking(path):
    """What the docstring of a public name lacks."""
    thing = found(path)
    text = inspect.getdoc(thing)  # Python 3.13 removes the indentation itself
    lacks = []
    if not section(text, "Examples")[:1] or not section(text, "Examples")[0].startswith(">>> "):
        lacks.append("an example")
    if not section(text, "See Also"):
        lacks.append("See Also")
    for line in filter(str.strip, section(text, "See Also")):
        other = line.partition(" : ")[0].strip()
        near = f"{path.rpartition('.')[0]}.{other}"
        if near not in PUBLIC and other not in PUBLIC:
            lacks.append(f"a public name in place of {other}")
    known = described(text)
    return lacks + [f"the parameter {name}" for name in parameters(thing) if name not in known]


@pytest.mark.parametrize("path", PUBLIC)
def test_a_docstring_has_parameters_neighbours_and_an_example(path):
    assert lacking(path) == []


def test_what_a_docstring_lacks_is_found(monkeypatch):
    def sparse(left, right):
        """Compare.

        Parameters
        ----------
        left : int

        See Also
        --------
        nobody : is not public.
        """

    monkeypatch.setattr(gramian, "load", sparse)
    assert lacking("gramian.load") == [
        "an example",
        "a public name in place of nobody",
        "the parameter right",
    ]


NO_PAPER = {
    "Approximation",
    "ApproximationWarning",
    "Exact",
    "KernelPoissonRegressor",
    "KernelRidgeClassifier",
    "PathWarning",
}
FROM_PAPERS = [
    path for path in PUBLIC if path.startswith(("gramian.theory", "gramian.diagnostics"))
]
FROM_PAPERS += [
    f"gramian.{name}"
    for name in (*approximations.__all__, *learners.__all__)
    if name not in NO_PAPER
]


@pytest.mark.parametrize("path", FROM_PAPERS)
def test_what_comes_from_a_paper_names_it(path):
    assert re.search(r"\b(19|20)\d\d\b", inspect.getdoc(found(path)))


# Python code, and that of gramian where it stands beside another library's.
CODE = re.compile(
    r"^```(?:python|\{code-block\} python\n:caption: gramian)\n(.*?)^```", flags=re.M | re.S
)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_python_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in CODE.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), names)


# The site's own code.

results = module(DOCS / "_ext" / "results.py")
check = module(DOCS / "check.py")

TEXT = """# Results

## first

| job | who | seconds (s) |
| --- | --- | ----------: |
| a   | we  | 1,250 (1-2) |
|     | you | 12.50 [8.30, 13.79] |

## second

no table
"""


def test_a_measured_cell_is_found_by_its_keys():
    (table,) = results.sections(TEXT)["first"]
    assert table.cell(["a", "you"], "seconds (s)") == "12.50 [8.30, 13.79]"
    assert results.sections(TEXT)["second"] == []
    with pytest.raises(LookupError, match="2 rows have"):
        table.cell(["a"], "seconds (s)")
    with pytest.raises(LookupError, match="no column"):
        table.cell(["a", "we"], "minutes")


def test_numbers_of_cells():
    assert results.number("1,250 (1-2)") == 1250
    assert results.number("3.5e-07") == 3.5e-07
    assert results.interval("12.50 [8.30, 13.79]") == (8.30, 13.79)


def test_every_number_that_a_page_looks_up_was_measured():
    places = [
        place
        for path in DOCS.rglob("*.md")
        for place in re.findall(r"\{measured\}`([^`]*)`", path.read_text())
    ]
    assert places
    for place in places:
        assert results.look_up(place)


# Pages that are also read without the site, and the section that their figures are from.
COPIED = {"gpu.md": ("## Speed", "gpu"), "dask.md": ("## Cost", "dask_rows")}


def figures(text):
    return re.findall(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text)


@pytest.mark.parametrize("page", COPIED)
def test_figures_of_a_page_are_copied_from_the_measured_ones(page):
    heading, name = COPIED[page]
    text = (DOCS / page).read_text().partition(heading)[2].partition("\n## ")[0]
    whole = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    measured = whole.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    known = {results.number(each) for each in figures(measured)}
    known |= {value / 1000 for value in known} | {value / 1e6 for value in known}  # of other units
    stated = [each for each in figures(text) if "." in each or "e-" in each]
    assert len(stated) > 10
    for each in stated:
        step = 10.0 ** -len(each.partition(".")[2]) if "." in each else float(each)
        assert min(abs(results.number(each) - value) for value in known) <= 0.5001 * step, each


def test_the_readme_has_the_measured_advantages(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    advantages = module(DOCS / "_ext" / "advantages.py")
    assert advantages.table() in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_included_tables_are_where_a_page_looks_for_them(page):
    found = re.findall(
        r"```\{include\} (\S+)\n:start-after: \"(.+)\"\n:end-before: \"(.+)\"", page.read_text()
    )
    for path, start, end in found:
        text = (page.parent / path).read_text()
        assert text.count(start) == text.count(end) == 1
        assert results.sections("## it\n" + text.partition(start)[2].partition(end)[0])["it"]


def site(folder, body, style="body {}"):
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>")
    (folder / "site.css").write_text(style)
    (folder / "other.html").write_text('<h1 id="top">Other</h1>')
    return check.faults_of(folder.resolve())


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html#top">other</a>',
        '<a href="https://example.org/paper">a link loads nothing</a>',
        '<img src="data:image/png;base64,AA=="><link rel="stylesheet" href="site.css?v=1">',
    ],
)
def test_a_sound_site_has_no_faults(body, tmp_path):
    assert site(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<script src="https://example.org/a.js"></script>', "from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "from elsewhere"),
        ('<img src="site.css" srcset="https://example.org/a.png 2x">', "from elsewhere"),
        ('<img src="nothing.png">', "does not exist"),
        ('<a href="nothing.html">x</a>', "does not exist"),
        ('<a href="other.html#bottom">x</a>', "no such anchor"),
        ('<a href="#here">x</a>', "no such anchor"),
    ],
)
def test_a_fault_is_found(body, fault, tmp_path):
    (found,) = site(tmp_path, body)
    assert fault in found


def test_a_style_sheet_loads_nothing_from_elsewhere(tmp_path):
    assert site(tmp_path, "", "@font-face { src: url('https://example.org/font') }")
    assert not site(tmp_path, "", "@import '../basic.css'; a { background: url(data:image/x) }")


# The gallery.

EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))


def test_the_gallery_has_many_examples_with_a_title_and_a_picture():
    assert len(EXAMPLES) >= 24
    for path in EXAMPLES:
        text = path.read_text()
        title = re.match(r'"""\n(.+)\n(=+)\n\n\S', text)
        assert title and len(title[1]) == len(title[2]), path
        assert "plt." in text and "gramian" in text, path


def test_recorded_figures_of_examples_are_measured_ones():
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    recorded = [path for path in EXAMPLES if "recorded figures" in path.read_text()]
    assert len(recorded) == 2
    for path in recorded:
        block = re.search(r"code-block:: none\n#\n((?:#.+\n)+)", path.read_text())[1]
        numbers = re.findall(r"\d+\.\d+|\d+%", block)
        assert len(numbers) > 8
        for each in numbers:
            assert each in text, f"{path}: {each}"
        drawn = re.findall(r"\[([\d., ]+)\]", path.read_text().split("code-block:: none")[1])
        for each in re.findall(r"\d+\.\d+", " ".join(drawn)):
            assert each in numbers, f"{path}: {each}"


# Project files.


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper.md").read_text()))
    known = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), flags=re.M)
    assert cited == set(known) and len(known) == len(set(known))


def test_the_citation_has_the_version_of_the_package():
    assert f"version: {gramian.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_figures_of_the_paper_are_measured_ones():
    (peers, *_) = results.measured()["peers"]
    jobs = ("kernel k-means, covtype, m = 300", "kernel ridge, covtype", "kernel PCA, MNIST")
    ratios = [
        results.number(row[peers.columns.index("ratio")])
        for row in peers.rows
        if row[0].startswith(jobs) and "float32" in row[0] and row[1].startswith("scikit-learn")
    ]
    assert len(ratios) == 3
    stated = f"between {min(ratios):.2g} and {max(ratios):.2g} times as fast"
    assert stated in (ROOT / "paper.md").read_text()

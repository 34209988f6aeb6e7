"""Settings of the documentation site: ``make docs`` builds it into out/docs."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import gramian

project = "gramian"
author = "The gramian developers"
copyright = author
release = gramian.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "mathml",
    "measured",
]
exclude_patterns = ["_ext", "generated/*.md", "gallery/**/*.ipynb", "gallery/**/*.py"]
# Times of the gallery: their tables load a script from elsewhere.
exclude_patterns += ["sg_execution_times.rst", "**/sg_execution_times.rst"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(sklearn|numpy|dask|torch|scipy|pandas)\..*"),
    # Classes that only those meet who extend gramian.
    ("py:class", r"gramian\.(kernels\.spectrum|rows\.base|tables)\..*"),
    ("py:class", r"ProfileKernel|Measurement"),
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "gramian"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "text": "gramian",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "performance": []}

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [
        f"../examples/{name}"
        for name in ("clustering", "regression", "components", "approximations", "scale")
    ],
    "reset_modules": ("matplotlib", "gallery_style.reset"),
    "image_srcset": ["2x"],
    "doc_module": ("gramian",),
    "reference_url": {"gramian": None},
    "backreferences_dir": "generated/backreferences",
    "inspect_global_variables": False,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 5,
    "parallel": 2,
}


HERE = Path(__file__).parent
# Pages of docs/ that have a place outside the guide; every other one belongs to it.
ELSEWHERE = {"index", "performance", "design", "reproduction", "breaks", "results"}
# Files of the repository that are pages too.
FILES = {
    "project/contributing": "CONTRIBUTING.md",
    "project/changelog": "CHANGELOG.md",
    "project/security": "SECURITY.md",
    "project/support": "SUPPORT.md",
    "project/conduct": "CODE_OF_CONDUCT.md",
}
# Charts that stand below the first paragraph of a page, which is also read without this site.
CHARTS = {
    "performance": "![How many times as fast gramian is, job by job](generated/peers.svg)",
    "reproduction": "![Claims reproduced, by paper](generated/reproduction.svg)",
}
MISSED = "## Missed goals\n\n```{include} generated/missed.md\n```\n"


def of_repository(name):
    """A file of the repository, with its links to other files as links to their pages."""
    pages = {file: f"{Path(page).name}.md" for page, file in FILES.items()}

    def on_the_site(link):
        text, target = link.groups()
        if target.startswith("docs/"):
            return f"[{text}](../{target.removeprefix('docs/')})"
        if target in pages:
            return f"[{text}]({pages[target]})"
        return text if (HERE.parent / target).exists() else link[0]

    return re.sub(r"\[([^\]]*)\]\(([^)#]*)\)", on_the_site, (HERE.parent / name).read_text())


def complete(app, docname, source):
    """Give a page what only the site has: its links, its charts, its list of pages."""
    text = source[0].replace("](../benchmarks/RESULTS.md)", "](results.md)")
    if docname in FILES:
        text = of_repository(FILES[docname])
        app.env.note_dependency(str(HERE.parent / FILES[docname]))
    if docname in CHARTS:
        heading, first, rest = text.split("\n\n", 2)
        text = "\n\n".join([heading, first, CHARTS[docname], rest])
        text = text.replace("## Missed goals\n", MISSED)
    if docname == "guide/index":
        pages = sorted({path.stem for path in HERE.glob("*.md")} - ELSEWHERE)
        listed = [page for page in pages if f"../{page}\n" not in text]
        text = text.replace("OTHER PAGES\n", "".join(f"../{page}\n" for page in listed))
    source[0] = text


def setup(app):
    app.connect("source-read", complete)

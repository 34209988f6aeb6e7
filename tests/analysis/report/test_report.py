"""The report: what it holds, what it looks like in a browser, and that it is safe to open."""

import base64
import hashlib
import io
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from gramian import RBF, compare, experiments
from gramian.analysis.comparison.catalogue import NAMES
from gramian.analysis.report import pictures
from gramian.analysis.report.colours import LOOKS, looks
from gramian.analysis.report.labels import Box, Ground, _crossings, place, stack
from gramian.analysis.report.page import page
from gramian.analysis.report.scales import log_scale
from gramian.analysis.report.text import count, escape, percent, seconds, significant

EVIL = "<script>alert(1)</script>\"'&\n\x00\u202eünï👩‍🔬</title>"
PARTS = ["nystroem uniform", "nystroem k-means", "MEKA", "random fourier"]


@pytest.fixture(scope="module")
def comparison():
    X, y = load_iris(return_X_y=True)
    return compare(X, y, sizes=[10, 20, 40], approximations=PARTS, repeats=2, random_state=0)


@pytest.fixture(scope="module")
def unscored():
    X = load_iris().data
    return compare(X, kernel="linear", sizes=[5], approximations=PARTS[:1], repeats=1)


class Tags(HTMLParser):
    """Every element of a page, whether they are closed in their order, and the text in each."""

    VOID = ("meta", "img", "source", "path", "circle", "link", "br")

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.text = [], [], {}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)


@pytest.mark.slow
def test_the_page_holds_what_it_should(comparison):
    text = page(comparison)
    tags = Tags(text)
    said = " ".join(part for own in tags.text.values() for part in own)
    assert comparison.recommendation in said
    assert comparison.code in said and comparison.code_of(comparison.best) in said
    assert said.count("What to look for: ") == 7  # for each chart, the matrix and the gammas
    assert not re.search(r"trace|ridge of|eigen|effective dimension|‖", said)
    for result in comparison.results:
        assert result.name in said
    titles = ["Error against memory and time", "Score of the learner", "gamma, in use"]
    titles += ["Why: the kernel matrix", "All measurements", "Settings and versions"]
    for title in titles:
        assert title in said
    rows = [attributes for tag, attributes in tags.tags if tag == "tr"]
    assert len(rows) == 1 + len(comparison.results) + len(comparison.baselines)
    charts = [a for tag, a in tags.tags if tag == "svg" and "chart" in a.get("class", "")]
    assert len(charts) == 2 * 5  # each for wide and for narrow pages
    assert all(len(chart["aria-label"]) > 40 for chart in charts)
    assert sum(tag == "img" for tag, _ in tags.tags) == 1 + 5


def test_a_page_without_scores_gammas_or_failures(unscored):
    text = page(unscored)
    assert "Score of the learner" not in text
    assert "Effect of gamma" not in text
    assert "Not measured" not in text
    assert "linear" in text.lower()


def test_what_failed_is_on_the_page():
    found = compare(load_iris().data, sizes=[5, 20], approximations=["meka"], repeats=1)
    text = page(found)
    assert "Not measured" in text and "total rank of 10 blocks" in text


@pytest.mark.slow
def test_the_page_loads_nothing_and_runs_its_own_script_only(comparison):
    text = page(comparison, EVIL)
    without_pictures = re.sub(r"data:image/png;base64,[\w+/=]+", "", text)
    assert not re.search(r"//[\w.]|url\(|@import", without_pictures)
    tags = Tags(text).tags
    for _, attributes in tags:
        for name in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(name, "data:").startswith("data:image/png;base64,") or (
                name not in attributes
            )
        assert not any(name.startswith("on") for name in attributes)
    policy = next(a["content"] for tag, a in tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy


def with_evil_text(comparison):
    data = replace(comparison.data, source=EVIL, names=(EVIL, "</dl>", "a" * 200))
    results = [replace(r, name=EVIL, note=EVIL) if r.name == "MEKA" else r
               for r in comparison.results]  # fmt: skip
    return replace(comparison, data=data, results=results, score_name="<b>score</b>")


@pytest.mark.slow
def test_text_of_the_user_stays_text(comparison):
    before = Tags(page(comparison))
    evil = with_evil_text(comparison)
    after = Tags(page(evil, EVIL))
    names = {tag for tag, _ in before.tags}
    assert {tag for tag, _ in after.tags} - names <= {"bdi", "ul", "li"}
    assert sum(tag == "script" for tag, _ in after.tags) == 1
    assert "".join(after.text["title"]).startswith("<script>alert(1)</script>\"'&\n")
    assert "\x00" not in page(evil, EVIL)
    assert "alert(1)" in evil._repr_html_() and "<script" not in evil._repr_html_()


@pytest.mark.slow
@given(st.text())
def test_escaped_text_comes_back(text):
    """But for control characters and halves of characters, which no page can hold."""
    parser = HTMLParser(convert_charrefs=True)
    seen = []
    parser.handle_data = seen.append
    parser.feed(f'<p title="{escape(text)}">{escape(text)}</p>')
    parser.close()
    clean = "".join(c if ord(c) > 31 or c in "\n\t" else "\ufffd" for c in text)
    clean = re.sub("[\x7f-\x9f]", "\ufffd", clean)
    clean = clean.encode("utf-8", "replace").decode()
    assert "".join(seen) == clean
    assert not set(escape(text)) & set("<>\"'")


@pytest.mark.slow
def test_the_file_is_written_whole_or_not_at_all(comparison, tmp_path):
    path = comparison.report(tmp_path / "new" / "report.html", title="Mine")
    assert path.read_text(encoding="utf-8") == page(comparison, "Mine")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(OSError, match=r"folder\.html"):
        comparison.report(tmp_path / "folder.html")
    broken = replace(comparison, settings={})
    with pytest.raises(KeyError):
        broken.report(path)
    assert "Mine" in path.read_text(encoding="utf-8")
    left = {file.name for file in tmp_path.rglob("*")}
    assert left == {"new", "report.html", "folder.html"}


@pytest.mark.slow
def test_notebooks_get_a_short_form(comparison):
    short = comparison._repr_html_()
    assert comparison.recommendation in Tags(f"<main>{short}</main>").text["p"]
    assert "<script" not in short and "<table" in short
    assert len(short) < len(page(comparison)) / 2


# Drawing.


@pytest.mark.parametrize("signed", [False, True])
def test_pictures_show_the_matrix(signed):
    image = pytest.importorskip("matplotlib.image")
    low = -1.0 if signed else 0.0
    matrix = np.random.default_rng(0).uniform(low, 1.0, (30, 30))
    uri = pictures.data_uri(matrix, dark=True, signed=signed)
    shown = image.imread(io.BytesIO(base64.b64decode(uri.split(",")[1])))[..., :3] * 255
    level = np.rint((matrix - low) / (1 - low) * (pictures.LEVELS - 1)).astype(int)
    np.testing.assert_allclose(shown, pictures.palette(dark=True, signed=signed)[level], atol=0.5)


@given(
    st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=20),
    st.floats(150, 500),
    st.floats(20, 60),
)
def test_scales_have_ticks_that_can_be_read(values, length, room):
    scale = log_scale(values, 0.0, length, lambda value: f"{value:g}", room)
    places = [scale(value) for value in sorted(values)]
    assert all(0 <= a <= b <= length for a, b in pairwise(places)) or len(places) == 1
    labelled = [scale(tick.value) for tick in scale.ticks if tick.label]
    assert len(labelled) >= 2
    assert all(b - a > 0.5 * room for a, b in pairwise(labelled))
    assert all(scale.low <= tick.value <= scale.high for tick in scale.ticks)
    assert scale(0.0) == 0.0


def test_names_lie_beside_their_lines_and_not_on_each_other():
    frame = Box(40, 20, 500, 380)
    rng = np.random.default_rng(0)
    lines = [
        (name, [(60 + 90.0 * i, y + 60.0 * i + rng.uniform(0, 9)) for i in range(5)])
        for name, y in (("Nyström uniform", 30.0), ("Nyström k-means", 70.0), ("MEKA", 78.0))
    ]
    ground = Ground(frame)
    ground.draw(lines)
    spots = place(lines, ground, 12)
    for (_, points), spot in zip(lines, spots, strict=True):
        assert spot.box.outside(frame) == 0
        gaps = [max(spot.box.left - x, x - spot.box.right, spot.box.top - y, y - spot.box.bottom)
                for x, y in points]  # fmt: skip
        assert min(gaps) < 25
    for one, other in combinations(spots, 2):
        assert one.box.overlap(other.box) == 0


@pytest.mark.slow
def test_names_go_where_nothing_crosses_them():
    """Also where lines, bars and other names leave room only far away."""
    frame = Box(40, 20, 340, 320)
    lines = [
        (f"Nyström {i}", [(60.0 + 10 * j, 40 + 12.0 * i + 16 * j) for j in range(9)])
        for i in range(6)
    ]
    ground = Ground(frame)
    ground.draw(lines)
    ground.segments += [((100.0, y), (100.0, y + 30)) for y in range(20, 300, 40)]
    segments = list(ground.segments)
    marks = [mark for mark, _ in ground.marks]
    spots = place(lines, ground, 12)
    assert any(spot.lead is not None for spot in spots)
    for spot in spots:
        assert spot.box.outside(frame) == 0
        assert not _crossings(np.array([spot.box]), segments).any()
        assert not any(spot.box.overlap(mark) for mark in marks)


@given(st.lists(st.floats(0, 300), min_size=1, max_size=9))
def test_names_behind_lines_keep_their_order_and_distance(heights):
    found = stack(heights, 0.0, 300.0)
    order = np.argsort(heights, kind="stable")
    gaps = np.diff(np.array(found)[order])
    assert (gaps >= 15.9).all()
    assert max(found) <= 300.001 and min(found) >= -0.001


# Colours: contrast as WCAG 2.1 defines it, and colour blindness after Machado et al. (2009).

BLINDNESS = {
    "none": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
STYLE = (Path(__file__).parents[3] / "src/gramian/analysis/report/style.css").read_text()


def linear(colour):
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    dark, light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def variables(dark):
    """The colours of the style sheet, by name."""
    blocks = re.findall(r"\.gramian \{(.*?)\}", STYLE, flags=re.S)
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", blocks[dark]))


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_marks_stand_out(dark):
    own = variables(dark)
    for text in ("ink", "muted", "accent", "good"):
        assert contrast(own[text], own["page"]) > 4.5
    for text in ("ink", "muted"):
        assert contrast(own[text], own["panel"]) > 4.5
    for look in LOOKS.values():
        assert contrast(look.dark if dark else look.light, own["page"]) > 3


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_of_approximations_are_told_apart(kind, dark):
    together = NAMES[:7], NAMES[:3] + NAMES[7:]  # as kernels of the distance, of the product
    for names in together:
        seen = [
            lab(np.array(BLINDNESS[kind]) @ linear(LOOKS[n].dark if dark else LOOKS[n].light))
            for n in names
        ]
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 10


def test_looks_are_each_ones_own():
    assert list(LOOKS) == list(NAMES)
    assert len(set(looks([*NAMES, "mine", "yours"]).values())) == len(NAMES) + 2
    found = looks(["MEKA", "mine", "yours"])
    assert found["MEKA"] == LOOKS["MEKA"]
    assert len(set(found.values())) == 3
    assert len(looks([str(i) for i in range(20)])) == 20


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (percent(0.0198), "2.0%"),
        (percent(0.00012345), "0.012%"),
        (percent(1e-9), "<0.0001%"),
        (percent(0.0), "0%"),
        (percent(2.5), "250%"),
        (seconds(0.0123), "12 ms"),
        (seconds(150), "2.5 min"),
        (count(99_999), "99,999"),
        (count(1_234_567), "1.2 million"),
        (significant(1234.5), "1,234"),
    ],
)
def test_numbers_as_people_read_them(shown, expected):
    assert shown == expected


# In a browser.


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--hide-scrollbars"):  # fmt: skip
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def report(comparison, tmp_path_factory):
    evil = with_evil_text(comparison)
    return evil.report(tmp_path_factory.mktemp("report") / "report.html", EVIL)


def show(browser, path, *, width=1200, dark=False, media="screen"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
    browser.get(path.as_uri())


def cells(browser, column):
    return browser.execute_script(
        "return [...document.querySelectorAll('table.sorts tbody tr')]"
        f".map(row => row.cells[{column}].dataset.value)"
    )


def test_nothing_is_fetched_and_nothing_complains(browser, report):
    for log in ("browser", "performance"):
        browser.get_log(log)
    show(browser, report)
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages
             if m["method"] == "Network.requestWillBeSent"]  # fmt: skip
    others = [url for url in asked if url != report.as_uri() and not url.startswith("data:image/")]
    assert report.as_uri() in asked and others == []


def test_a_script_that_is_not_the_pages_own_does_not_run(browser, report, tmp_path):
    text = report.read_text(encoding="utf-8")
    path = tmp_path / "report.html"
    path.write_text(text.replace("</body>", "<script>document.title = 'taken'</script></body>"))
    show(browser, path)
    assert browser.title != "taken"
    assert any(
        "Content Security Policy" in entry["message"] for entry in browser.get_log("browser")
    )


def test_pictures_and_charts_are_there(browser, report):
    show(browser, report)
    loaded = browser.execute_script(
        "return [...document.images].map(i => i.complete && i.naturalWidth > 50)"
    )
    assert len(loaded) == 6 and all(loaded)
    shown = browser.execute_script(
        "return [...document.querySelectorAll('svg.chart')].map("
        "s => [s.classList[1], s.getBoundingClientRect().height > 100])"
    )
    assert [kind for kind, visible in shown if visible] == ["wide"] * 5


def test_the_table_sorts_by_every_column(browser, report):
    show(browser, report)
    heads = browser.find_elements("css selector", "table.sorts thead th")
    for i, head in enumerate(heads):
        buttons = head.find_elements("css selector", "button")
        if not buttons:
            continue
        numeric = "number" in (head.get_attribute("class") or "")
        for direction in ("ascending", "descending"):
            buttons[0].click()
            assert head.get_attribute("aria-sort") == direction
            values = [float(v) for v in cells(browser, i) if v] if numeric else cells(browser, i)
            order = values if direction == "ascending" else values[::-1]
            if numeric:
                assert order == sorted(values)
            else:
                assert [v.lower() for v in order] == sorted(v.lower() for v in values)
        sorted_by = browser.find_elements("css selector", "th[aria-sort]")
        assert sorted_by == [head]


def test_marks_say_their_numbers_and_stand_out(browser, report):
    show(browser, report)
    mark = browser.find_element("css selector", "svg.wide .mark")
    browser.execute_script("arguments[0].dispatchEvent(new Event('pointerenter'))", mark)
    tip = browser.find_element("css selector", ".tip")
    assert "Nyström uniform, 10 features" in tip.text and "error" in tip.text
    faded = browser.find_elements("css selector", "svg.wide .faded")
    assert faded
    browser.execute_script("arguments[0].dispatchEvent(new Event('pointerleave'))", mark)
    assert not tip.is_displayed()
    assert not browser.find_elements("css selector", ".faded")


def test_the_code_is_copied(browser, report, comparison):
    show(browser, report)
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite"]})
    button = browser.find_element("css selector", "button.copy")
    button.click()
    script = "const done = arguments[0]; setTimeout(() => done(arguments[0]), 100)"
    browser.execute_async_script(script)
    assert button.text in ("Copied", "Press Ctrl+C")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "media"), [(375, "screen"), (1200, "screen"), (720, "print")])
def test_it_fits_the_page_in_light_in_the_dark_and_on_paper(browser, report, width, media, dark):
    show(browser, report, width=width, dark=dark, media=media)
    overflow, background = browser.execute_script(
        "return [document.documentElement.scrollWidth - window.innerWidth,"
        " getComputedStyle(document.body).backgroundColor]"
    )
    assert overflow <= 0
    night = dark and media == "screen"
    assert background == ("rgb(21, 24, 29)" if night else "rgb(255, 255, 255)")
    # No text of a chart is cut off by the page.
    clipped = browser.execute_script(
        "return [...document.querySelectorAll('svg.chart text')].filter(t => {"
        " const box = t.getBoundingClientRect();"
        " return box.width && (box.left < -1 || box.right > window.innerWidth + 1);"
        "}).map(t => t.textContent)"
    )
    assert clipped == []


@pytest.mark.parametrize("width", [375, 1200])
def test_no_text_of_a_chart_is_crossed(browser, comparison, tmp_path, width):
    """By a line, a bar, a mark, the frontier or another text; grid lines lie below a halo."""
    show(browser, comparison.report(tmp_path / "report.html"), width=width)
    crossed = browser.execute_script(CROSSED)
    assert crossed == []


CROSSED = """
const hit = (box, x, y) => x > box.left && x < box.right && y > box.top && y < box.bottom;
const found = [];
for (const svg of document.querySelectorAll('svg.chart')) {
  if (!svg.getBoundingClientRect().width) continue;
  const texts = [...svg.querySelectorAll('.name, .note')].map(t => {
    const b = t.getBoundingClientRect();  // the letters are less high than their box
    return [t, {left: b.left + 1, right: b.right - 1, top: b.top + 3, bottom: b.bottom - 3}];
  });
  texts.forEach(([t, b], i) => texts.slice(i + 1).forEach(([u, c]) => {
    if (b.left < c.right && c.left < b.right && b.top < c.bottom && c.top < b.bottom)
      found.push(t.textContent + ' on ' + u.textContent);
  }));
  const kinds = '.join, .whisker, .stairs, .reference, .curve, .lead, .mark > path';
  for (const path of svg.querySelectorAll(kinds)) {
    const at = path.getScreenCTM(), length = path.getTotalLength();
    for (let done = 0; done <= length; done += 1) {
      const p = path.getPointAtLength(done).matrixTransform(at);
      for (const [t, b] of texts) {
        if (hit(b, p.x, p.y)) found.push(t.textContent + ' by ' + path.getAttribute('class'));
      }
    }
  }
}
return [...new Set(found)];
"""


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    """The report of some experiments with curves, points and tables."""
    folder = tmp_path_factory.mktemp("papers")
    names = ["000/theorem-1", "001", "002/tables-5-6", "002/theorem-2"]
    found = experiments.reproduce(names, quick=True, cache=folder / "cache")
    return found.report(folder / "papers.html")


@pytest.mark.parametrize(("width", "dark"), [(375, False), (1200, True)])
def test_the_papers_fit_the_page(browser, papers, width, dark):
    browser.get_log("browser")
    show(browser, papers, width=width, dark=dark)
    assert browser.get_log("browser") == []
    overflow, drawn = browser.execute_script(
        "return [document.documentElement.scrollWidth - window.innerWidth,"
        " [...document.querySelectorAll('svg.chart, svg.scatter')]"
        ".filter(svg => svg.getBoundingClientRect().width).length]"
    )
    assert overflow <= 0 and drawn == 7
    # Texts of a picture neither leave it nor lie on each other.
    texts = browser.execute_script(
        "return [...document.querySelectorAll('svg.chart, svg.scatter')].map(svg => {"
        " const frame = svg.getBoundingClientRect();"
        " const own = [...svg.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);"
        " const out = own.filter(([t, b]) => b.width &&"
        "   (b.left < frame.left - 2 || b.right > frame.right + 2));"
        " const on = own.filter(([t, b], i) => b.width && own.slice(i + 1).some(([u, c]) =>"
        "   Math.min(b.right, c.right) - Math.max(b.left, c.left) > 1 &&"
        "   Math.min(b.bottom, c.bottom) - Math.max(b.top, c.top) > 4));"
        " return [...out, ...on].map(([t]) => t.textContent);}).flat()"
    )
    assert texts == []


@pytest.mark.slow
def test_the_kernel_in_use_is_named(comparison):
    assert re.search(r"RBF\(0\.\d{3,8}\)", page(comparison))
    other = replace(comparison, kernel=RBF(0.5))
    assert "RBF(0.5)" in page(other)

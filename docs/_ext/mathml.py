"""Formulas as MathML, written when the site is built: no script and no font to load."""

import re
from html import unescape
from xml.etree import ElementTree

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

MATHML = "{http://www.w3.org/1998/Math/MathML}"
HTML_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)\w+;")  # XML has only these five
ElementTree.register_namespace("", MATHML.strip("{}"))


def mathml(tex: str, **options) -> str:
    """The formula, with the index of an accented letter beside it: docutils writes it below."""
    text = HTML_ENTITY.sub(lambda entity: unescape(entity[0]), tex2mathml(tex, **options))
    found = ElementTree.fromstring(text)
    for both in found.iter(f"{MATHML}munderover"):
        base, index, accent = both
        if accent.text == "~":
            letter = ElementTree.Element(f"{MATHML}mover", accent="true")
            letter.extend([base, accent])
            both.tag = f"{MATHML}msub"
            both[:] = [letter, index]
    return ElementTree.tostring(found, encoding="unicode")


def inline(translator, node):
    translator.body.append(mathml(node.astext()))
    raise SkipNode


def displayed(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(mathml(node.astext(), as_block=True) + "</div>\n")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

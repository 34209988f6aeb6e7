"""Formulas as MathML, written when the site is built: no script and no font to load."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def inline(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def displayed(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    translator.body.append(tex2mathml(node.astext(), as_block=True) + "</div>\n")
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

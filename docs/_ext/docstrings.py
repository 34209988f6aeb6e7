"""Docstrings as people write them: |C| and labels_ are words, not reStructuredText's markup."""

import re
from types import BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType

OF_SCIKIT_LEARN = re.compile(r"set_\w+_request|set_output|get_metadata_routing")
REFERENCE = re.compile(r":ref:`([^`<]*?)\s*<[^`]*>`")  # to pages of scikit-learn's site
LITERAL = re.compile(r"(``.*?``|:\w+:`.*?`|`.*?`_?)")
VERBATIM = {"Examples", "See Also", "References"}


def escaped(text: str) -> str:
    """The text with its bars and trailing underscores escaped, except in literals and roles."""
    parts = LITERAL.split(text)
    parts[::2] = [re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def escape(app, what, name, obj, options, lines):
    section = None
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]):
            section = line.strip()
        line = REFERENCE.sub(r"\1", line)
        if section in VERBATIM:
            continue
        entry, colon, kind = line.partition(" : ")
        of_list = section in ("Parameters", "Attributes") and not line.startswith(" ") and colon
        lines[i] = f"{entry}{colon}{escaped(kind)}" if of_list else escaped(line)


def skip(app, what, name, obj, skip, options):
    """Leave out what classes inherit from scikit-learn's machinery and from Python's numbers."""
    of_python = isinstance(obj, (BuiltinFunctionType, MethodDescriptorType, GetSetDescriptorType))
    return True if of_python or OF_SCIKIT_LEARN.fullmatch(name) else None


def setup(app):
    app.connect("autodoc-process-docstring", escape, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

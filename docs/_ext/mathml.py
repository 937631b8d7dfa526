"""Formulas as MathML, which every browser draws by itself: no script, no font and no network."""

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
_SIDES = {"(": "l", "[": "l", ")": "r", "]": "r"}


def mathml(tex: str, block: bool = False) -> str:
    """A formula in MathML.

    Parameters
    ----------
    tex : str
        What stands in ``:math:`` or ``.. math::``.
    block : bool
        Whether it has lines of its own, limits below and above its sums.

    Raises
    ------
    MathError
        A command that the converter of docutils does not know.
    """
    # which it knows only with their side, or as the text that they are
    tex = re.sub(r"\\(big|Big)\s*([(\[)\]])", lambda result: f"\\{result[1]}{_SIDES[result[2]]}{result[2]}", tex)
    tex = re.sub(r"\\mathrel\{([^{}]*)\}(=?)", r"\\text{ \1\2 }", tex)
    best: str = tex2mathml(tex, as_block=block)
    return best


def _draw(writer: Any, node: nodes.Element, block: bool) -> str:
    tex = node.astext()
    try:
        return mathml(tex, block)
    except MathError as error:
        _LOG.warning("a formula that cannot be drawn, %s: %s", tex, error, location=node)
        return f"<code>{escape(tex)}</code>"


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<span class="formula">{_draw(writer, node, False)}</span>')
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    writer.body.append(f'<div class="formula">{number}{_draw(writer, node, True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks an extension for."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

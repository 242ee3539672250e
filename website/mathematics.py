"""Formulas of a page as MathML."""

import html
import re

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def draw(page: str) -> str:
    """The page with MathML in place of the LaTeX that the extension arithmatex has marked."""
    page = _BLOCK.sub(lambda match: _mathml(match[1], "block"), page)
    return _INLINE.sub(lambda match: _mathml(match[1], "inline"), page)


def _mathml(latex: str, display: str) -> str:
    return convert(html.unescape(latex).strip(), display=display)

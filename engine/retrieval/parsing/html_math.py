"""`math_text`: a formula in MathML on one line: its TeX source if it has one, or `(a+b)/c`, `x^2`, `√(x)`."""

from engine.retrieval.parsing.html_tree import Element, elements, text_of
from engine.retrieval.parsing.math_line import math_element

_MAX_DEPTH = 60
_LONGEST = 2_000
_TEX = ("application/x-tex", "text/x-tex", "application/x-latex")


def math_text(math: Element) -> str:
    """The text of a `math` element."""
    for one in elements(math):
        if one.name == "annotation" and one.attributes.get("encoding", "").lower() in _TEX:
            return " ".join(text_of(one, _LONGEST).split())
    return " ".join(_linear(math, 0).split())


def _linear(element: Element, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return text_of(element, _LONGEST)
    if element.name in ("annotation", "annotation-xml"):
        return ""
    children = [one for one in element.children if isinstance(one, Element)]
    if not children:
        return math_element(element.name, [text_of(element, _LONGEST).strip()])
    return math_element(element.name, [_linear(one, depth + 1) for one in children])

"""`math_text`: a formula in MathML on one line: its TeX source if it has one, or `(a+b)/c`, `x^2`, `√(x)`."""

from engine.retrieval.parsing.html_tree import Element, elements, text_of

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
    parts = [_linear(one, depth + 1) for one in element.children if isinstance(one, Element)]
    match element.name, parts:
        case "mfrac", [over, under]:
            return f"{_group(over)}/{_group(under)}"
        case "msup" | "mover", [base, above]:
            return f"{_group(base)}^{_group(above)}"
        case "msub" | "munder", [base, below]:
            return f"{_group(base)}_{_group(below)}"
        case "msubsup" | "munderover", [base, below, above]:
            return f"{_group(base)}_{_group(below)}^{_group(above)}"
        case "msqrt", _:
            return f"√{_group(''.join(parts))}"
        case "mroot", [base, index]:
            return f"{_group(base)}^(1/{index})"
        case "mtable", _:
            return "; ".join(parts)
        case "mtr" | "mlabeledtr", _:
            return ", ".join(parts)
        case "mo", _:
            return text_of(element, _LONGEST).strip().strip("\u2061\u2062\u2063\u2064")
        case _:
            return "".join(parts) if parts else text_of(element, _LONGEST).strip()


def _group(part: str) -> str:
    """A part of a formula, in parentheses if it consists of several signs."""
    simple = (
        part.isalnum()
        or len(part) <= 1
        or (part[0] == "(" and part[-1] == ")" and part.count("(") == 1)
    )
    return part if simple else f"({part})"

"""`math_element`: an element of MathML on one line, of its parts: `(a+b)/c`, `x^2`, `√(x)`."""

from collections.abc import Sequence

_UNSEEN = "\u2061\u2062\u2063\u2064"
"""Signs for programs: invisible multiplication and the like."""


def math_element(name: str, parts: Sequence[str]) -> str:
    """The text of an element; of a token its characters are the only part."""
    match name, parts:
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
            return "".join(parts).strip().strip(_UNSEEN)
    return "".join(parts)


def _group(part: str) -> str:
    """A part of a formula, in parentheses if it consists of several signs."""
    simple = (
        part.replace(".", "").isalnum()
        or len(part) <= 1
        or (part[0] == "(" and part[-1] == ")" and part.count("(") == 1)
    )
    return part if simple else f"({part})"

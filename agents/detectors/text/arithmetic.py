"""`arithmetic_in_steps`: equations in prose whose sides differ, in value or in dimension.

An equation is `expression = expression` of numbers, units and operators, with at least one operator. What
contains a variable is left out. A result may be rounded to the decimals that it shows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.given import prose_files
from agents.text.expressions import OPERATORS, Token, evaluate_tokens
from agents.text.quantity import InvalidExpression, Quantity, show_dimension
from agents.text.units import unit_named
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

WRONG = Rule("wrong-arithmetic", Severity.MEDIUM, "equation whose sides differ", cwe=682)
UNITS = Rule(
    "unit-mismatch", Severity.MEDIUM, "equation between different kinds of quantities", cwe=682
)

_PIECE = re.compile(
    r"\d+(?:[.,']\d+)*|°[CF]\b|[€$£₹¥Ωµ]?(?:[^\W\d_]|[²³])+|[€$£₹¥]|\*\*|[-+*/^%()×·÷−=≈]|\S"
)
_LIST_MARKER = re.compile(r"\s*(?:\d{1,3}[.)]|[-*+•])\s+")
_CODE = re.compile(r"`[^`]*`")
_EQUALS = frozenset({"=", "≈", "is", "are", "equals"})
_OPERATORS = frozenset("+-*/^×÷−·")
_MAX_LINE = 2_000


@dataclass(frozen=True, slots=True)
class _Side:
    text: str
    value: Quantity
    computed: bool
    decimals: int
    scale: Fraction


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in prose_files(workspace, context):
        context.check_cancelled()
        yield from check_equations(file)


def check_equations(file: SourceFile) -> Iterator[Finding]:
    """The wrong equations of a text, at most one a line; fenced code is left out."""
    fenced = False
    for number, line in enumerate(file.lines, start=1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if fenced or len(line) > _MAX_LINE or not any(char.isdigit() for char in line):
            continue
        finding = _check_line(file, number, line)
        if finding is not None:
            yield finding


def _check_line(file: SourceFile, number: int, line: str) -> Finding | None:
    marker = _LIST_MARKER.match(line)
    text = _CODE.sub(lambda match: "`" * len(match.group()), line)
    for run in _runs(text, marker.end() if marker else 0):
        sides = [_side(text, part) for part in _split(run)]
        approximate = any(token.text == "≈" for token in run)
        for left, right in pairwise(sides):
            if left is None or right is None or not (left.computed or right.computed):
                continue
            one, other = left.value, right.value
            if one.dimension and other.dimension and one.dimension != other.dimension:
                kinds = f"{show_dimension(one.dimension)} and {show_dimension(other.dimension)}"
                return UNITS.at(file, number, f"{left.text} = {right.text}: the sides are {kinds}.")
            if not _equal(left, right, approximate=approximate):
                exact = (left if left.computed else right).value.show()
                return WRONG.at(
                    file, number, f"{left.text} = {right.text} is wrong: it is {exact}."
                )
    return None


def _equal(left: _Side, right: _Side, *, approximate: bool) -> bool:
    shown, exact = (left, right) if right.computed and not left.computed else (right, left)
    value, other = shown.value.value, exact.value.value
    if shown.value.dimension != exact.value.dimension:  # one side leaves its unit out
        bare = exact if not exact.value.dimension else shown
        named = shown if bare is exact else exact
        value, other = bare.value.value, named.value.value / named.scale
        scale = Fraction(1)
    else:
        scale = shown.scale
    if shown.computed:
        return abs(value - other) <= abs(other) * Fraction(1, 10**9)
    step = scale * Fraction(1, 10**shown.decimals)
    # Results are rounded, or cut off where they have two decimals or more.
    allowed = step if shown.decimals >= 2 else step / 2
    if approximate:
        allowed = max(allowed, abs(other) / 50)
    return abs(value - other) <= allowed


def _runs(text: str, start: int) -> Iterator[list[Token]]:
    """Longest runs of tokens that may be parts of equations."""
    run: list[Token] = []
    tainted = False
    pieces = list(_PIECE.finditer(text, start))
    for i, match in enumerate(pieces):
        piece = match.group()
        following = pieces[i + 1].group() if i + 1 < len(pieces) else ""
        kind = _kind(piece)
        if kind == "name" and piece.lower() not in _EQUALS and unit_named(piece) is None:
            # A noun after a number is what is counted: `2 apples + 3 apples`.
            counted = run and run[-1].kind == "number" and len(piece) > 2
            if counted and (following in _OPERATORS or following in _EQUALS):
                continue
            if piece not in ("of", "sqrt"):
                if not tainted:
                    yield run
                # `5x` and `x * 5` have a variable, so the next run is no whole expression.
                run, tainted = [], following in _OPERATORS and following != ""
                continue
        if kind == "" or _is_hyphen(text, match):
            if not tainted:
                yield run
            run, tainted = [], piece in "-[]{}<>_\\`"
            continue
        written = OPERATORS.get(piece, piece)
        run.append(Token(kind, written, match.start(), match.end()))
    if not tainted:
        yield run


def _is_hyphen(text: str, match: "re.Match[str]") -> bool:
    """Whether a minus joins digits, as in a date, a range or an identifier."""
    around = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
    return match.group() == "-" and around.isdigit() and len(around) == 2


def _kind(piece: str) -> str:
    if piece[0].isdigit():
        return "number"
    if piece[0].isalpha() or piece[0] in "°€$£₹¥²³":
        return "name"
    return "op" if piece in _OPERATORS or piece in "=≈%()**" else ""


def _split(run: list[Token]) -> list[list[Token]]:
    """The sides; `is` separates them only after an operator, as in `21.50 / 12 is 1.79`."""
    sides: list[list[Token]] = [[]]
    for token in run:
        word = token.text.lower()
        if word in ("=", "≈") or (
            word in _EQUALS and any(one.text in _OPERATORS for one in sides[-1])
        ):
            sides.append([])
        elif word in _EQUALS and not sides[-1]:
            continue  # `A tile is 0.3 m × 0.3 m = …`
        else:
            sides[-1].append(token)
    return sides


def _side(text: str, tokens: list[Token]) -> _Side | None:
    if not tokens or tokens[0].text in _OPERATORS - {"-", "−"}:
        return None
    start, end = tokens[0].start, tokens[-1].end
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalnum() or after.isalnum() or (before and before in _OPERATORS):
        return None
    if tokens[0].text in "-−" and text[:start].rstrip()[-1:].isalnum():
        return None
    shown = text[start:end].strip()
    try:
        value = evaluate_tokens(tokens)
    except InvalidExpression:
        return None
    numbers = [token for token in tokens if token.kind == "number"]
    operators = [token for token in tokens if token.text in _OPERATORS and token.text != "^"]
    last = numbers[-1].text if numbers else ""
    decimals = len(last.rpartition(".")[2]) if "." in last else 0
    percent = Fraction(1, 100) if tokens[-1].text == "%" else Fraction(1)
    scale = value.unit.factor if value.unit is not None else Fraction(1)
    return _Side(shown, value, len(numbers) > 1 and bool(operators), decimals, scale * percent)


ARITHMETIC_IN_STEPS = Detector(
    "arithmetic_in_steps",
    "Equations in prose whose sides differ in value or in dimension.",
    _detect,
    (WRONG, UNITS),
)

"""`NumberFormat`: a cell's number as the sheet shows it, by the format code of its style.

Format codes are those of ECMA-376 (part 1, 18.8.31), which XLSX and XLS share. What is shown differs from
Excel in these points, all of them wanted:

- dates and times are ISO 8601, whatever their order in the code; durations (`[h]:mm`) are shown as they are;
- separators are those of the code (`1,234.5`), since a file does not say what its reader's system has;
- `General` shows every digit of whole numbers below 10**15, as LibreOffice does: Excel shortens an account
  number of 12 digits to `1.23457E+11`;
- white space that only aligns is left out, and so is a point with no digit behind it.

Nothing is raised, whatever the code, and the result is at most `LONGEST` characters long.
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

from engine.retrieval.parsing.date_format import DATE_PARTS, DateFormat, Token, show_date

_MAX_CODE = 255
"""Characters of a format code, as in Excel."""
_TOKEN = re.compile(
    r"""
    "(?P<quoted>[^"]*)"?
    | \\(?P<escaped>.)
    | _(?P<width>.)
    | \*(?P<fill>.)
    | \[(?P<bracket>[^\]]*)\]
    | (?P<general>General)
    | (?P<half>AM/PM|A/P|上午/下午|午前/午後|오전/오후)
    | (?P<exponent>E[+-])
    | (?P<date>y+|m+|d+|h+|s+|b+|g+|e+|a{3,4})
    | (?P<digit>[0#?])
    | (?P<mark>[.,%/@;])
    | (?P<other>.)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?\d+(?:\.\d*)?(?:E[+-]?\d{1,2})?)\s*", re.IGNORECASE)
_ELAPSED = re.compile(r"h+|m+|s+", re.IGNORECASE)
_CONTEXT = Context(prec=1200, rounding=ROUND_HALF_UP)
"""Digits enough for the largest number with as many percent signs and decimals as a code may have."""
LONGEST = 2_000
"""Characters of what a number is shown as, at most."""
_PLACE = Token("mark", "@")
"""Where a text is shown."""
_MAX_DENOMINATOR_DIGITS = 6
_LONGEST_GENERAL = 11
_WHOLE_BELOW = Decimal(10) ** 15

Kind = Literal["general", "number", "scientific", "fraction", "date", "text", "literal"]


class _Section(NamedTuple):
    """The format of some numbers.

    Attributes:
        kind: how numbers are shown.
        tokens: its parts.
        condition: comparison and number of a condition; None without one.
        date: of kind `date`.
    """

    kind: Kind
    tokens: tuple[Token, ...]
    condition: tuple[str, Decimal] | None
    date: DateFormat | None


class NumberFormat:
    """A format code, ready to be used."""

    def __init__(self, code: str) -> None:
        """Parse a code; one that makes no sense is shown as far as it does."""
        sections = _sections(code) if len(code) <= _MAX_CODE else []
        self._text: _Section | None = None
        if len(sections) > 3 or (len(sections) > 1 and sections[-1].kind == "text"):
            self._text = sections[3] if len(sections) > 3 else sections[-1]
            sections = sections[:3] if len(sections) > 3 else sections[:-1]
        elif sections and sections[0].kind == "text":
            self._text, sections = sections[0], []
        self._sections = sections or [_Section("general", (Token("general", ""),), None, None)]

    @property
    def is_date(self) -> bool:
        """Whether positive numbers are shown as dates, times or durations."""
        return self._sections[0].kind == "date"

    def number(self, value: Decimal, *, from_1904: bool = False) -> str:
        """A number as it is shown.

        Args:
            value: finite.
            from_1904: whether the workbook uses the 1904 date system.
        """
        with localcontext(_CONTEXT):
            index = self._index(value)
            section = self._sections[index]
            if section.kind == "date" and section.date is not None:
                shown = show_date(section.date, value, from_1904=from_1904)
                return _compact(general(value) if shown is None else shown)
            shown = _SHOWN[section.kind](section.tokens, abs(value))
            return _compact(f"-{shown}" if value < 0 and self._is_signed(index) else shown)

    def text(self, value: str) -> str:
        """A text as it is shown."""
        if self._text is None:
            return value
        return "".join(value if one == _PLACE else _literal(one) for one in self._text.tokens)

    def _index(self, value: Decimal) -> int:
        """The section for a number."""
        count = len(self._sections)
        first, second = (self._sections[at].condition if at < count else None for at in (0, 1))
        if first is None and second is None:
            index = 1 if value < 0 else 2 if value == 0 and count > 2 else 0
        elif first is not None and _holds(first, value):
            index = 0
        elif second is not None and _holds(second, value):
            index = 1
        elif first is None:
            index = 0 if value > 0 or count < 3 else 2
        else:
            index = 2 if second is not None else 1
        return index if index < count else (0 if first is None else count - 1)

    def _is_signed(self, index: int) -> bool:
        """Whether a negative number gets a minus sign, rather than what its section shows in place of one."""
        section = self._sections[index]
        if not section.tokens:
            return False
        if index == 1 and section.condition is None and self._sections[0].condition is None:
            return False
        if section.condition is None:
            return not (index and _has_sign(section))
        comparison, limit = section.condition
        only_negative = comparison in ("<", "<=", "=") and limit <= 0
        return not only_negative and not _has_sign(section)


@lru_cache(maxsize=4096)
def number_format(code: str) -> NumberFormat:
    """The format of a code."""
    return NumberFormat(code)


def number_of(text: str) -> Decimal | None:
    """A stored number with the 15 digits that spreadsheets keep; None if it is none, or not finite."""
    try:
        value = float(text)
    except ValueError:
        return None
    found = Decimal(format(value, ".15g"))
    return found if found.is_finite() else None


def general(value: Decimal) -> str:
    """A number in the format `General`: at most 11 characters, but whole numbers with all digits."""
    if abs(value) < _WHOLE_BELOW and value == value.to_integral_value():
        return str(int(value))
    sign = "-" if value < 0 else ""
    value = abs(value)
    exponent = value.adjusted()
    if -5 < exponent < 15:
        decimals = max(0, _LONGEST_GENERAL - 1 - max(exponent + 1, 1))
        return sign + _trimmed(f"{value:.{decimals}f}")
    exact = _trimmed(f"{value:f}") if exponent < 0 else ""
    if exact and len(exact) <= _LONGEST_GENERAL:
        return sign + exact
    mantissa, _, power = f"{value:.5E}".partition("E")
    return f"{sign}{_trimmed(mantissa)}E{power[0]}{power[1:]:0>2}"


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def _sections(code: str) -> list[_Section]:
    sections: list[_Section] = []
    tokens: list[Token] = []
    condition: tuple[str, Decimal] | None = None
    for match in _TOKEN.finditer(code):
        kind, text = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "mark" and text == ";":
            sections.append(_section(tokens, condition))
            tokens, condition = [], None
        elif kind == "bracket":
            found = _CONDITION.fullmatch(text)
            if found:
                condition = found[1], Decimal(found[2])
            else:
                tokens += _bracketed(text)
        elif kind == "width":
            tokens.append(Token("literal", " "))
        elif kind in ("quoted", "escaped", "other"):
            tokens.append(Token("quoted" if kind == "quoted" else "literal", text))
        elif kind != "fill":
            tokens.append(Token(kind, text))
    if tokens or condition or sections:
        sections.append(_section(tokens, condition))
    return sections


def _bracketed(text: str) -> list[Token]:
    """What is shown of brackets: a currency's sign, a part of a duration; no colours and languages."""
    if text.startswith("$"):
        sign = text[1:].rpartition("-")[0] if "-" in text else text[1:]
        return [Token("literal", sign)] if sign else []
    return [Token("elapsed", text)] if _ELAPSED.fullmatch(text) else []


def _section(tokens: list[Token], condition: tuple[str, Decimal] | None) -> _Section:
    kinds = {one.kind for one in tokens}
    marks = {one.text for one in tokens if one.kind == "mark"}
    kind: Kind
    if _is_date(tokens):
        return _Section("date", tuple(tokens), condition, DateFormat.of(tokens))
    if "@" in marks:
        kind = "text"
    elif "general" in kinds:
        kind = "general"
    elif "exponent" in kinds:
        kind = "scientific"
    elif "/" in marks and _fraction_parts(tokens) is not None:
        kind = "fraction"
    else:
        kind = "number" if "digit" in kinds else "literal"
    return _Section(kind, tuple(tokens), condition, None)


def _is_date(tokens: list[Token]) -> bool:
    """Whether a date is shown: it has a part of one, and no digit before it (as `0 kg`, without quotes)."""
    first = next((one.kind for one in tokens if one.kind in (*DATE_PARTS, "digit")), "digit")
    return first != "digit"


def _holds(condition: tuple[str, Decimal], value: Decimal) -> bool:
    comparison, limit = condition
    return {
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
        "=": value == limit,
        "<>": value != limit,
    }[comparison]


def _has_sign(section: _Section) -> bool:
    return any(
        one.kind in ("literal", "quoted") and one.text[:1] in ("-", "(", "−")
        for one in section.tokens
    )


def _literal(token: Token) -> str:
    """What a token shows that stands for no digit."""
    return token.text if token.kind in ("literal", "quoted", "mark", "date") else ""


def _show_general(tokens: tuple[Token, ...], value: Decimal) -> str:
    scale = sum(one == Token("mark", "%") for one in tokens)
    shown = general(value * Decimal(100) ** scale)
    return "".join(shown if one.kind == "general" else _literal(one) for one in tokens)


def _show_text(tokens: tuple[Token, ...], value: Decimal) -> str:
    return "".join(general(value) if one == _PLACE else _literal(one) for one in tokens)


def _show_literal(tokens: tuple[Token, ...], _: Decimal) -> str:
    return "".join(map(_literal, tokens))


def _show_number(tokens: tuple[Token, ...], value: Decimal) -> str:
    """Digits in their places, with literals between them."""
    percents = sum(one == Token("mark", "%") for one in tokens)
    point = next((at for at, one in enumerate(tokens) if one == Token("mark", ".")), len(tokens))
    digits = [at for at, one in enumerate(tokens) if one.kind == "digit"]
    before = [at for at in digits if at < point]
    behind = [at for at in digits if at > point]
    commas = [at for at, one in enumerate(tokens) if one == Token("mark", ",")]
    grouped = bool(before) and any(before[0] < at < before[-1] for at in commas)
    last = behind[-1] if behind else -1
    scaling = {
        at for at in commas if (before and before[-1] < at < point) or (behind and at > last)
    }
    value = value * Decimal(100) ** percents / Decimal(1000) ** len(scaling)
    rounded = value.quantize(Decimal(1).scaleb(-len(behind)), ROUND_HALF_UP)
    whole, _, decimals = f"{rounded:f}".partition(".")
    shown = _whole_digits(whole, [tokens[at].text for at in before], grouped=grouped)
    placed = dict(zip(before, shown, strict=True))
    placed |= dict(
        zip(behind, _decimal_digits(decimals, [tokens[at].text for at in behind]), strict=True)
    )
    has_decimals = any(placed[at].strip() for at in behind)
    inside = range(before[0], before[-1]) if before else range(0)
    pieces: list[str] = []
    for at, one in enumerate(tokens):
        if one.kind == "digit":
            pieces.append(placed[at])
        elif at == point:
            if not before:
                pieces.append(whole.lstrip("0"))
            pieces.append("." if has_decimals else "")
        elif at not in scaling and not (at in commas and at in inside):
            pieces.append(_literal(one))
    return "".join(pieces)


def _whole_digits(whole: str, places: list[str], *, grouped: bool) -> list[str]:
    """The digits before the point for each place; the first takes all that are left over."""
    if not places:
        return []
    whole = whole.lstrip("0")
    shown: list[str] = []
    for position, place in enumerate(reversed(places)):
        if position == len(places) - 1 and len(whole) > 1:
            shown.append(_grouped(whole, position) if grouped else whole)
        else:
            digit = whole[-1:] or {"0": "0", "?": " "}.get(place, "")
            shown.append(_grouped(digit, position) if grouped and digit.strip() else digit)
        whole = whole[:-1]
    return shown[::-1]


def _grouped(digits: str, position: int) -> str:
    """Digits whose last is at a position from the right, with a comma behind each thousand."""
    size = len(digits)
    return "".join(
        digit + ("," if (place := position + size - 1 - at) and place % 3 == 0 else "")
        for at, digit in enumerate(digits)
    )


def _decimal_digits(decimals: str, places: list[str]) -> list[str]:
    needed = len(decimals.rstrip("0"))
    return [
        digit if at < needed or place == "0" else " " if place == "?" else ""
        for at, (digit, place) in enumerate(zip(decimals, places, strict=True))
    ]


def _show_scientific(tokens: tuple[Token, ...], value: Decimal) -> str:
    split = next(at for at, one in enumerate(tokens) if one.kind == "exponent")
    mantissa, power = tokens[:split], tokens[split + 1 :]
    point = next((at for at, one in enumerate(mantissa) if one == Token("mark", ".")), split)
    places = max(1, sum(one.kind == "digit" for one in mantissa[:point]))
    decimals = sum(one.kind == "digit" for one in mantissa[point:])
    exponent = value.adjusted() if value else 0
    exponent -= exponent % places
    scaled = value.scaleb(-exponent).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    if scaled >= Decimal(10) ** places:
        exponent += places
        scaled = value.scaleb(-exponent)
    sign = "-" if exponent < 0 else "+" if tokens[split].text.endswith("+") else ""
    return f"{_show_number(mantissa, scaled)}E{sign}{_show_number(power, Decimal(abs(exponent)))}"


class _FractionParts(NamedTuple):
    """A fraction's places: half-open ranges of tokens; `whole` ends where the numerator's blanks begin."""

    whole: int
    numerator: int
    end: int
    denominator: str


def _fraction_parts(tokens: "list[Token] | tuple[Token, ...]") -> _FractionParts | None:
    slash = next(at for at, one in enumerate(tokens) if one == Token("mark", "/"))
    numerator = slash
    while numerator and tokens[numerator - 1].kind == "digit":
        numerator -= 1
    end = slash + 1
    denominator = ""
    while end < len(tokens) and (tokens[end].kind == "digit" or tokens[end].text.isdecimal()):
        denominator += tokens[end].text
        end += 1
    if numerator == slash or not denominator:
        return None
    whole = numerator
    while whole and tokens[whole - 1].kind != "digit":
        whole -= 1
    return _FractionParts(whole, numerator, end, denominator)


def _show_fraction(tokens: tuple[Token, ...], value: Decimal) -> str:
    parts = _fraction_parts(tokens)
    if parts is None:  # never: its kind says that there are parts
        return general(value)
    whole = int(value) if parts.whole else 0
    rest = Fraction(value) - whole
    fixed = parts.denominator.isdecimal() and parts.denominator.strip("0")
    if fixed:
        denominator = int(parts.denominator[:_MAX_DENOMINATOR_DIGITS]) or 1
        numerator = int(rest * denominator + Fraction(1, 2))
    else:
        digits = min(len(parts.denominator), _MAX_DENOMINATOR_DIGITS)
        nearest = rest.limit_denominator(10**digits - 1)
        numerator, denominator = nearest.numerator, nearest.denominator
    if parts.whole and numerator == denominator:
        whole, numerator = whole + 1, 0
    tail = "".join(map(_literal, tokens[parts.end :]))
    if not parts.whole:
        head = "".join(map(_literal, tokens[: parts.numerator]))
        return f"{head}{numerator}/{denominator}{tail}"
    head = _show_number(tokens[: parts.whole], Decimal(whole))
    if not numerator:
        return f"{head if whole else head.rstrip() + ('' if head.strip() else '0')}{tail}"
    return f"{head} {numerator}/{denominator}{tail}"


_SHOWN = {
    "general": _show_general,
    "number": _show_number,
    "scientific": _show_scientific,
    "fraction": _show_fraction,
    "text": _show_text,
    "literal": _show_literal,
}


def _compact(shown: str) -> str:
    return " ".join(shown.split())

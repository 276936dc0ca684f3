"""Arithmetic expressions with units, evaluated exactly by a recursive-descent parser; `eval` is not used.

Grammar: sum := product (('+' | '-') product)*; product := factor (('*' | '/' | 'of') factor)*;
factor := ['-'] atom ['^' factor]; atom := NUMBER ['%'] [unit] | 'sqrt' atom | '(' sum ')' [unit];
unit := NAME ['^' INT] (('/' | '·') NAME ['^' INT])*. `sum in unit` converts. `10 %` after a sum's sign is
ten hundredths, not ten per cent of the sum before.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from agents.text.numbers import read_number
from agents.text.quantity import InvalidExpression, Quantity
from agents.text.units import Unit, combine, power, unit_named

MAX_CHARS = 1_000
_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:[.,']\d+)*(?:[eE][-+]?\d{1,3})?)"
    r"|(?P<name>°[CF]\b|[€$£₹¥Ωµ]?(?:[^\W\d_]|[²³])+|[€$£₹¥])"
    r"|(?P<op>\*\*|[-+*/^%()×·÷−:=≈]))"
)
OPERATORS = {"×": "*", "÷": "/", "−": "-", "**": "^", "·": "*"}
_CONVERSIONS = frozenset({"in", "to", "as", "into"})
_FACTORIZED = frozenset({"*", "/", "of"})


@dataclass(frozen=True, slots=True)
class Token:
    """A token: kind `number`, `name` or `op`; `start` and `end` are its half-open range."""

    kind: str
    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """The tokens of an expression.

    Raises:
        InvalidExpression: a character has no meaning in an expression.
    """
    tokens = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise InvalidExpression(
                f"{text[position:].strip()[:20]!r} is no part of an expression."
            )
        kind = match.lastgroup
        written = OPERATORS.get(match[kind], match[kind]) if kind == "op" else match[kind]
        tokens.append(Token(kind, written, match.start(kind), match.end()))
        position = match.end()
    return tokens


def evaluate(text: str) -> Quantity:
    """The value of an expression such as `2 * (3 + 4)`, `15% of 80`, `60 km/h * 90 min` or `5 km in mi`.

    Raises:
        InvalidExpression: it is no expression, divides by zero, adds different dimensions or is too large.
    """
    if len(text) > MAX_CHARS:
        raise InvalidExpression(f"The expression is longer than {MAX_CHARS} characters.")
    return evaluate_tokens(tokenize(text))


def evaluate_tokens(tokens: Sequence[Token]) -> Quantity:
    """The value of tokens; raises as `evaluate`."""
    return _parsed(tokens).result


def evaluate_in_steps(text: str) -> tuple[Quantity, list[tuple[str, str]]]:
    """The value, and each operation with its result in the order of computation; raises as `evaluate`."""
    if len(text) > MAX_CHARS:
        raise InvalidExpression(f"The expression is longer than {MAX_CHARS} characters.")
    parser = _parsed(tokenize(text))
    return parser.result, parser.steps


def _parsed(tokens: Sequence[Token]) -> "_Parser":
    parser = _Parser(tokens)
    parser.result = parser.converted()
    if parser.peek() is not None:
        raise InvalidExpression(f"{parser.tokens[parser.at].text!r} is not expected here.")
    return parser


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.steps: list[tuple[str, str]] = []
        self.result = Quantity(Fraction(0))
        self._depth = 0

    def _step(self, left: Quantity, operator: str, right: Quantity, value: Quantity) -> Quantity:
        self.steps.append((f"{left.show()} {operator} {right.show()}", value.show()))
        return value

    def peek(self, ahead: int = 0) -> str | None:
        at = self.at + ahead
        return self.tokens[at].text if at < len(self.tokens) else None

    def accept(self, *texts: str) -> str | None:
        text = self.peek()
        if text is not None and text in texts and self.tokens[self.at].kind != "number":
            self.at += 1
            return text
        return None

    def converted(self) -> Quantity:
        value = self.sum()
        if self.accept(*_CONVERSIONS):
            unit = self.unit()
            if unit is None:
                raise InvalidExpression("A conversion needs the name of a unit.")
            value.in_unit(unit)
            shown = Quantity(value.value, value.dimension, unit)
            self.steps.append((f"{value.show()} in {unit.symbol}", shown.show()))
            return shown
        return value

    def sum(self) -> Quantity:
        value = self.product()
        while sign := self.accept("+", "-"):
            other = self.product()
            value = self._step(value, sign, other, value.plus(other, 1 if sign == "+" else -1))
        return value

    def product(self) -> Quantity:
        value = self.factor()
        while operator := self.accept(*_FACTORIZED):
            other = self.factor()
            result = value.over(other) if operator == "/" else value.times(other)
            value = self._step(value, operator, other, result)
        return value

    def factor(self) -> Quantity:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InvalidExpression("The expression is nested too deeply.")
        sign = -1 if self.accept("-") else 1
        value = self.atom()
        if self.accept("^"):
            exponent = self.factor()
            value = self._step(value, "^", exponent, value.to_power(exponent))
        self._depth -= 1
        return Quantity(sign * value.value, value.dimension, value.unit)

    def atom(self) -> Quantity:
        if self.accept("("):
            value = self.sum()
            if not self.accept(")"):
                raise InvalidExpression("A parenthesis is not closed.")
            return self._with_unit(value)
        if self.accept("sqrt", "√"):
            return self.atom().root()
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is not None and token.kind == "name":  # a currency sign stands before its number
            unit = unit_named(token.text)
            if unit is not None and token.text in "€$£₹¥":
                self.at += 1
                number = self.number()
                return Quantity(number * unit.factor, unit.dimension, unit)
        return self._with_unit(Quantity(self.number()))

    def number(self) -> Fraction:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or token.kind != "number":
            raise InvalidExpression("A number is missing.")
        self.at += 1
        mantissa, _, exponent = token.text.lower().partition("e")
        number = read_number(mantissa)
        if number is None or number.value is None:
            raise InvalidExpression(f"{token.text!r} is no number.")
        value = number.value * Fraction(10) ** int(exponent or 0)
        return value / 100 if self.accept("%") else value

    def _with_unit(self, value: Quantity) -> Quantity:
        unit = None if value.dimension else self.unit()
        if unit is None:
            return value
        return Quantity(value.value * unit.factor + unit.offset, unit.dimension, unit)

    def unit(self) -> Unit | None:
        """The unit at the current token, such as `km/h`; nothing is consumed if there is none."""
        unit = self._simple_unit()
        if unit is None or unit.offset:
            return unit
        while (sign := self.peek()) in ("/", "*") and self._names_unit(1):
            self.at += 1
            other = self._simple_unit()
            if other is None:  # `_names_unit` has looked
                break
            over = sign == "/"
            factor = unit.factor / other.factor if over else unit.factor * other.factor
            dimension = combine(unit.dimension, other.dimension, -1 if over else 1)
            unit = Unit(f"{unit.symbol}{'/' if over else '·'}{other.symbol}", factor, dimension)
        return unit

    def _names_unit(self, ahead: int) -> bool:
        at = self.at + ahead
        if at >= len(self.tokens) or self.tokens[at].kind != "name":
            return False
        return unit_named(self.tokens[at].text) is not None

    def _simple_unit(self) -> Unit | None:
        if not self._names_unit(0) or self._is_conversion():
            return self._two_word_unit()
        unit = unit_named(self.tokens[self.at].text)
        self.at += 1
        exponent = self.peek(1)
        if unit is not None and self.peek() == "^" and exponent is not None and exponent.isdigit():
            self.at += 2
            count = min(int(exponent), 12) if len(exponent) < 3 else 12
            unit = Unit(f"{unit.symbol}^{count}", unit.factor**count, power(unit.dimension, count))
        return unit

    def _two_word_unit(self) -> Unit | None:
        """A unit such as `square metres`."""
        if self.at + 1 >= len(self.tokens) or self.tokens[self.at].kind != "name":
            return None
        unit = unit_named(f"{self.tokens[self.at].text} {self.tokens[self.at + 1].text}")
        if unit is not None:
            self.at += 2
        return unit

    def _is_conversion(self) -> bool:
        """Whether `in` converts, instead of being the symbol of the inch."""
        if self.peek() not in _CONVERSIONS or not self._names_unit(1):
            return False
        return not (self.peek(1) in _CONVERSIONS and self._names_unit(2))  # `60 in in cm`

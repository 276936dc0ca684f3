"""`Quantity`: an exact number with a dimension, and its arithmetic."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from agents.text.units import NO_DIMENSION, Dimension, Unit, combine, power

MAX_BITS = 4_096
"""Larger numerators and denominators are refused: `9**9**9` must not fill the memory."""

_ROOT_DIGITS = 30


class InvalidExpression(ValueError):
    """An expression cannot be evaluated; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value in base units.

    Attributes:
        value: exact.
        dimension: of the base units.
        unit: the unit in which the result is written, if a single one was named.
    """

    value: Fraction
    dimension: Dimension = NO_DIMENSION
    unit: Unit | None = None

    def plus(self, other: "Quantity", sign: int = 1) -> "Quantity":
        """The sum, or the difference for `sign` -1.

        Raises:
            InvalidExpression: the dimensions differ.
        """
        if self.dimension != other.dimension:
            raise InvalidExpression(
                f"{show_dimension(self.dimension)} and {show_dimension(other.dimension)} cannot be added."
            )
        return _bounded(self.value + sign * other.value, self.dimension, self.unit or other.unit)

    def times(self, other: "Quantity") -> "Quantity":
        """The product; its unit is kept where only one side has one."""
        unit = self.unit if other.unit is None else other.unit if self.unit is None else None
        dimension = combine(self.dimension, other.dimension)
        return _bounded(self.value * other.value, dimension, unit)

    def over(self, other: "Quantity") -> "Quantity":
        """The quotient.

        Raises:
            InvalidExpression: `other` is zero.
        """
        if not other.value:
            raise InvalidExpression("The divisor is zero.")
        unit = self.unit if other.dimension == NO_DIMENSION else None
        return _bounded(
            self.value / other.value, combine(self.dimension, other.dimension, -1), unit
        )

    def to_power(self, exponent: "Quantity") -> "Quantity":
        """The power; exponents are integers, or one half of a number without a unit.

        Raises:
            InvalidExpression: the exponent has a unit, is no integer or is too large.
        """
        if exponent.dimension:
            raise InvalidExpression("An exponent has no unit.")
        if exponent.value == Fraction(1, 2) and not self.dimension:
            return self.root()
        if exponent.value.denominator != 1 or abs(exponent.value) > 1_000:
            raise InvalidExpression("The exponent must be an integer of at most 1,000.")
        count = int(exponent.value)
        if not self.value and count < 0:
            raise InvalidExpression("The divisor is zero.")
        if _bits(self.value) * max(1, abs(count)) > 2 * MAX_BITS:
            raise InvalidExpression("The result is too large.")
        return _bounded(self.value**count, power(self.dimension, count), None)

    def root(self) -> "Quantity":
        """The square root: exact for squares, otherwise to 30 digits.

        Raises:
            InvalidExpression: the value is negative, or its unit is no square.
        """
        if self.value < 0:
            raise InvalidExpression("The square root of a negative number is not real.")
        if any(exponent % 2 for _, exponent in self.dimension):
            raise InvalidExpression(f"{show_dimension(self.dimension)} is no square.")
        dimension = tuple((base, exponent // 2) for base, exponent in self.dimension)
        above, below = isqrt(self.value.numerator), isqrt(self.value.denominator)
        if above**2 == self.value.numerator and below**2 == self.value.denominator:
            return Quantity(Fraction(above, below), dimension)
        scale = 10**_ROOT_DIGITS
        whole = isqrt(self.value.numerator * scale**2 // self.value.denominator)
        return Quantity(Fraction(whole, scale), dimension)

    def in_unit(self, unit: Unit) -> Fraction:
        """The value in a unit.

        Raises:
            InvalidExpression: the unit is of another dimension.
        """
        if unit.dimension != self.dimension:
            raise InvalidExpression(
                f"{show_dimension(self.dimension)} cannot be converted to {unit.symbol}."
            )
        return (self.value - unit.offset) / unit.factor

    def show(self) -> str:
        """The value with its unit, to ten significant digits."""
        if self.unit is not None and self.unit.dimension == self.dimension:
            return f"{show_number(self.in_unit(self.unit))} {self.unit.symbol}"
        number = show_number(self.value)
        return f"{number} {show_dimension(self.dimension)}" if self.dimension else number


def show_number(value: Fraction) -> str:
    """A number as people write it: an integer, a decimal, or `1.5e+20` beyond 15 digits."""
    if value.denominator == 1:
        return str(value.numerator) if abs(value) < 10**15 else f"{_as_float(value):.10g}"
    return f"{_as_float(value):.10g}"


def show_dimension(dimension: Dimension) -> str:
    """A dimension in base units, such as `m/s^2`."""
    if not dimension:
        return "a number without a unit"
    above = [base + (f"^{e}" if e > 1 else "") for base, e in dimension if e > 0]
    below = [base + (f"^{-e}" if e < -1 else "") for base, e in dimension if e < 0]
    return "·".join(above or ["1"]) + ("/" + "·".join(below) if below else "")


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Fraction, dimension: Dimension, unit: Unit | None) -> Quantity:
    if _bits(value) > MAX_BITS:
        raise InvalidExpression("The result is too large.")
    return Quantity(value, dimension, unit)

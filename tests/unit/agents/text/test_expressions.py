"""Arithmetic with units: values, refusals, and agreement with Python on random expressions."""

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.text.expressions import evaluate, evaluate_in_steps
from agents.text.quantity import InvalidExpression


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2 * (3 + 4)", "14"),
        ("15% of 80", "12"),
        ("1/3 + 1/6", "0.5"),
        ("-3^2", "-9"),
        ("2^-3", "0.125"),
        ("0.3 m × 0.3 m", "0.09 m^2"),
        ("16 * 9 kg", "144 kg"),
        ("5 km in mi", "3.106855961 mi"),
        ("100 °C in °F", "212 °F"),
        ("60 in in cm", "152.4 cm"),
        ("60 km/h * 90 min in km", "90 km"),
        ("12 square metres / 4 m", "3 m"),
        ("$5 * 3", "15 USD"),
        ("sqrt(2)", "1.414213562"),
        ("1,234.5 + 1", "1235.5"),
    ],
)
def test_expressions_are_computed(text, shown):
    assert evaluate(text).show() == shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1/0", "divisor is zero"),
        ("2 m + 3 s", "cannot be added"),
        ("5 kg in m", "cannot be converted"),
        ("9^9^9", "exponent"),
        ("2^1000^2", "exponent"),
        ("(" * 60 + "1", "nested"),
        ("(1", "not closed"),
        ("__import__('os')", "no part|missing|not expected"),
        ("", "missing"),
        ("1" * 1001, "longer"),
    ],
)
def test_what_is_no_expression_is_refused(text, reason):
    with pytest.raises(InvalidExpression, match=reason):
        evaluate(text)


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_refused(text):
    with contextlib.suppress(InvalidExpression):
        evaluate(text).show()


_numbers = st.integers(0, 99).map(lambda n: (str(n), Fraction(n)))


def _combine(children):
    def join(parts):
        (left, a), sign, (right, b) = parts
        value = {"+": a + b, "-": a - b, "*": a * b}[sign]
        return f"({left} {sign} {right})", value

    return st.tuples(children, st.sampled_from("+-*"), children).map(join)


@given(st.recursive(_numbers, _combine, max_leaves=12))
def test_values_are_exact(expression):
    text, value = expression
    assert evaluate(text).value == value


def test_steps_are_in_the_order_of_computation():
    value, steps = evaluate_in_steps("(2 + 3) * 4")
    assert value.show() == "20"
    assert steps == [("2 + 3", "5"), ("5 * 4", "20")]

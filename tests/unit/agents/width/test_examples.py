"""Examples of docstrings and tasks: what is read, and what is left out because it is no value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.width.examples import examples_in


def read(text, name="f", parameters=("x",)):
    return [
        (one.call.expression, one.call.expected or one.printed or one.raises)
        for one in examples_in(text, name, parameters)
    ]


@pytest.mark.parametrize(
    "separator",
    ["==", " == ", " => ", " ➞ ", " -> ", " → ", "==>", " = ", " returns ", " # returns ", " should return ",
     ", returns ", " gives ", " # => ", " --> ", " is ", " evaluates to "],
)  # fmt: skip
def test_a_call_and_its_value(separator):
    assert read(f"f(2){separator}3") == [("f(2)", "3")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("True", "True"),
        ("true", "True"),
        ("null", "None"),
        ("-1.5", "-1.5"),
        ("1e3", "1000.0"),
        ("'a b'", "'a b'"),
        ('"it\'s"', '"it\'s"'),
        ("[1, [2], 'a']", "[1, [2], 'a']"),
        ("{'a': (1, 2)}", "{'a': (1, 2)}"),
        ("3.", "3"),
        ("3 # because", "3"),
        ("3, and so on", "3"),
        ("True\nExplanation: it is", "True"),
        ("[1,\n      2]", "[1, 2]"),
    ],
)
def test_values(value, expected):
    assert read(f"    f(2) == {value}") == [("f(2)", expected)]


@pytest.mark.parametrize(
    "text",
    [
        "f(x) == 3",  # x is a name
        "f(2) == y",
        "f(2) == 2 * 3",
        "f(2) == 3 * n",
        "f(2) is called first",
        "f(2",
        "f(2) and 3",
        "g(2) == 3",
        "self.f(2) == 3",
        "def f(x) -> 3",
        "f(2) == [1, 2",
        "f(2) ==",
    ],
)
def test_what_is_no_example(text):
    assert read(text) == []


def test_several_on_a_line_and_brackets_in_strings():
    text = """f("(") == 1, f(")") == 2; f('"') ➞ 3"""
    assert read(text) == [("f('(')", "1"), ("f(')')", "2"), ("f('\"')", "3")]


def test_doctests():
    text = """
    >>> f(2)
    3
    >>> f([1,
    ...    2])
    [1, 2]
    >>>f(0)  # no space
    0.5
    """
    assert read(text) == [("f(2)", "3"), ("f([1, 2])", "[1, 2]"), ("f(0)", "0.5")]


def test_a_doctest_that_prints_raises_or_prepares():
    text = """
    >>> box = Box()
    >>> box.f(2)
    <Box of 2>
    >>> f(-1)
    Traceback (most recent call last):
        ...
    ValueError: too small
    """
    first, second = examples_in(text, "f")
    assert first.call.setup == "box = Box()"
    assert first.printed == "<Box of 2>"
    assert second.raises == "ValueError"


@pytest.mark.parametrize(
    "text",
    [
        ">>> f(2) == 3\nTrue",
        ">>> f(2) == 3",
        ">>> f(2)\n3",
        ">>> f(2) ➞ 3",
        ">>> f(2) returns 3",
    ],
)
def test_doctests_as_people_write_them(text):
    ((expression, expected),) = read(text)
    assert (expression, expected) in [("f(2)", "3"), ("f(2) == 3", "True")]


@pytest.mark.parametrize(
    "text",
    [
        "Input: 2\nOutput: 3",
        "Input: 2, Output: 3",
        "input: x = 2\noutput: 3",
        "Example 1:\n    Input: 2\n    Output: 3\n    Explanation: one more",
        "For x = 2 the output should be 3",
        "for x = 2, the result is 3.",
    ],
)
def test_inputs_and_outputs(text):
    ((expression, expected),) = read(text)
    assert expression in ("f(2)", "f(x=2)")
    assert expected == "3"


def test_inputs_of_several_parameters():
    text = "Input: a = [1, 2], b = 3\nOutput: 4\n\nInput: [1], 2\nOutput: 5"
    assert read(text, parameters=("a", "b")) == [("f(a=[1, 2], b=3)", "4"), ("f([1], 2)", "5")]


def test_an_input_that_does_not_fit_the_parameters_is_left_out():
    assert read("Input: 1, 2\nOutput: 3") == []
    assert read("For y = 2 the output should be 3") == []


def test_an_example_is_read_once():
    assert read("f(2) == 3\n>>> f(2)\n3\n") == [("f(2)", "3")]


@given(st.text(alphabet="f(x)='\"[]{}, 12\n>.:#=-➞InputOutputForreturns"))
def test_any_text_is_read(text):
    for one in examples_in(text, "f", ("x",)):
        assert one.call.expression

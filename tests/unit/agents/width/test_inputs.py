"""Generated arguments: of the annotated types, near the examples, the same each time."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.width.inputs import MAX_CALLS, generated_calls
from agents.width.probe_run import Call


def arguments(head, *examples):
    function = ast.parse(f"{head}: ...").body[0]
    calls = generated_calls(function, "f", [Call(one) for one in examples])
    return [
        ast.literal_eval(one.setup.removeprefix("_arguments = ").replace("set()", "()"))
        for one in calls
    ]


@pytest.mark.parametrize(
    ("annotation", "kinds"),
    [
        ("int", int),
        ("float", float),
        ("bool", bool),
        ("str", str),
        ("bytes", bytes),
        ("list[int]", list),
        ("List[str]", list),
        ("typing.List[str]", list),
        ("dict[str, int]", dict),
        ("tuple[int, str]", tuple),
        ("Optional[int]", (int, type(None))),
        ("int | None", (int, type(None))),
        ("Union[int, str]", (int, str)),
        ("Literal['a', 'b']", str),
        ("'int'", int),
        ("Sequence[float]", list),
    ],
)
def test_values_of_annotations(annotation, kinds):
    made = arguments(f"def f(x: {annotation})")
    assert all(isinstance(one[0], kinds) for one in made)
    assert len({repr(one) for one in made}) == len(made) >= 2


def test_the_examples_come_first_and_their_types_are_kept():
    made = arguments("def f(a, b)", "f([1, 2], 'xy')", "f([], '')")
    assert made[:2] == [([1, 2], "xy"), ([], "")]
    assert len(made) == MAX_CALLS
    assert all(isinstance(a, list) and isinstance(b, str) for a, b in made)
    assert all(isinstance(one, int) for a, _ in made for one in a)


def test_numbers_of_positive_examples_stay_positive():
    made = arguments("def f(n)", "f(5)", "f(10)")
    assert all(one[0] >= 0 for one in made)
    made = arguments("def f(n)", "f(5)", "f(-10)")
    assert any(one[0] < 0 for one in made)


def test_examples_with_keywords_and_calls_around_them_are_read():
    assert arguments("def f(a, b)", "round(f(b=1.5, a=2), 2)")[0] == (2, 1.5)


def test_unknown_parameters_are_guessed_and_names_help():
    assert len({type(one[0]) for one in arguments("def f(thing)")}) > 3
    assert {type(one[0]) for one in arguments("def f(text)")} == {str}


def test_a_function_without_parameters_is_called_once():
    assert arguments("def f()") == [()]


def test_defaults_are_left_out():
    assert all(len(one) == 1 for one in arguments("def f(a: int, b=2, *rest, c=3)"))


def test_the_same_calls_each_time():
    assert arguments("def f(a: list[int], s: str)") == arguments("def f(a: list[int], s: str)")


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_VALUES)
def test_any_example_can_be_changed(value):
    for one in arguments("def f(x)", f"f({value!r})"):
        assert isinstance(one, tuple)

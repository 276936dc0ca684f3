import pytest

from engine.retrieval.parsing.attribute_values import integer, is_true


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("12", 12),
        ("0", 0),
        ("", 7),
        ("-1", 7),
        ("1.5", 7),
        ("x", 7),
        ("9" * 6, 999_999),
        ("9" * 7, 7),
    ],
)
def test_a_number_or_the_default(value: str, number: int) -> None:
    assert integer({"n": value}, "n", 7) == number
    assert integer({}, "n", 7) == 7


@pytest.mark.parametrize("default", [False, True])
def test_what_is_off_and_on(default: bool) -> None:
    assert is_true({}, "n", default=default) is default
    assert not any(
        is_true({"n": one}, "n", default=default) for one in ("0", "false", "off", "none")
    )
    assert all(is_true({"n": one}, "n", default=default) for one in ("1", "true", "on"))

import pytest

from engine.retrieval.parsing.list_numbers import list_number


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (3, "decimal", "3"),
        (3, "decimalZero", "03"),
        (4, "lowerRoman", "iv"),
        (1994, "I", "MCMXCIV"),
        (1, "a", "a"),
        (26, "upperLetter", "Z"),
        (27, "lowerLetter", "aa"),
        (54, "lowerLetter", "bbb"),
        (3, "russianLower", "в"),
        (11, "chineseCounting", "十一"),
        (20, "japaneseCounting", "二十"),
        (24, "chineseCountingThousand", "二十四"),
        (5, "decimalEnclosedCircle", "⑤"),
        (21, "decimalEnclosedCircle", "21"),
        (7, "something new", "7"),
        (0, "lowerRoman", "0"),
        (99_999, "lowerLetter", "99999"),
    ],
)
def test_a_number_as_it_is_seen(value: int, form: str, shown: str) -> None:
    assert list_number(value, form) == shown

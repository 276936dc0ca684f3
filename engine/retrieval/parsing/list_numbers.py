"""`list_number`: the number of a list item or note as a person sees it: `3`, `iv`, `b`, `一`."""

from collections.abc import Callable

_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l")),
    *((40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщэюя"
_CHINESE = "〇一二三四五六七八九"
_MAX = 9_999


def list_number(value: int, form: str) -> str:
    """A number in the form that a document names.

    Args:
        value: the number.
        form: the name of a number format of Word, or `1`, `i`, `I`, `a`, `A` of OpenDocument. An unknown
            one is shown in digits.
    """
    if not 0 < value <= _MAX:
        return str(value)
    return _FORMS.get(form, str)(value)


def _roman(value: int) -> str:
    digits = []
    for size, letters in _ROMAN:
        digits.append(letters * (value // size))
        value %= size
    return "".join(digits)


def _letters(value: int, alphabet: str) -> str:
    """Word's letters: z is followed by aa, bb, cc."""
    times, index = divmod(value - 1, len(alphabet))
    return alphabet[index] * (times + 1)


def _latin(value: int) -> str:
    return _letters(value, "abcdefghijklmnopqrstuvwxyz")


def _chinese(value: int) -> str:
    if value >= 100:
        return "".join(_CHINESE[int(digit)] for digit in str(value))
    tens, ones = divmod(value, 10)
    begin = ("" if tens == 1 else _CHINESE[tens]) + "十" if tens else ""
    return begin + (_CHINESE[ones] if ones or not tens else "")


def _circled(value: int) -> str:
    return chr(0x2460 + value - 1) if value <= 20 else str(value)


_FORMS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda value: f"{value:02}",
    "lowerRoman": _roman,
    "upperRoman": lambda value: _roman(value).upper(),
    "lowerLetter": _latin,
    "upperLetter": lambda value: _latin(value).upper(),
    "russianLower": lambda value: _letters(value, _RUSSIAN),
    "russianUpper": lambda value: _letters(value, _RUSSIAN).upper(),
    **dict.fromkeys(
        (
            *("chineseCounting", "chineseCountingThousand", "taiwaneseCounting"),
            *("japaneseCounting", "taiwaneseCountingThousand", "ideographDigital"),
        ),
        _chinese,
    ),
    "decimalEnclosedCircle": _circled,
    "decimalEnclosedCircleChinese": _circled,
    "i": _roman,
    "I": lambda value: _roman(value).upper(),
    "a": _latin,
    "A": lambda value: _latin(value).upper(),
}

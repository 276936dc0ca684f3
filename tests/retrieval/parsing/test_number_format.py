from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.retrieval.parsing.number_format import LONGEST, number_format, number_of
from engine.retrieval.parsing.standard_formats import STANDARD_FORMATS

ACCOUNTING = '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)'
SHORT = '[>=1000000]0.0,,"M";[>=1000]0.0,"K";0'


def shown(code: str, value: float | str, *, from_1904: bool = False) -> str:
    number = number_of(str(value))
    assert number is not None
    return number_format(code).number(number, from_1904=from_1904)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.1000000000000001", "1.1"),
        ("0.30000000000000004", "0.3"),
        ("0.3333333333333333", "0.333333333"),
        ("12345.6789012", "12345.6789"),
        ("99999999999.7", "100000000000"),
        ("46387", "46387"),
        ("4006381333931", "4006381333931"),
        ("1e20", "1E+20"),
        ("-1.5e16", "-1.5E+16"),
        ("0.00001", "0.00001"),
        ("0.000000123456789", "1.23457E-07"),
        ("-5.50", "-5.5"),
        ("0", "0"),
    ],
)
def test_general(value: str, text: str) -> None:
    assert shown("General", value) == text


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0%", 0.15, "15%"),
        ("0.0%", 0.1234, "12.3%"),
        ("0%", -0.15, "-15%"),
        ("0.00", 2.5, "2.50"),
        ("0.00", 1.005, "1.01"),
        ("0", 0.5, "1"),
        ("#,##0", 46387, "46,387"),
        ("#,##0.00", 1234567.891, "1,234,567.89"),
        ("0,000", 5, "0,005"),
        ("#.##", 5, "5"),
        ("0.0#", 5.25, "5.25"),
        (".00", 0.5, ".50"),
        (".00", 12.5, "12.50"),
        ("#", 0, ""),
        ("00000", 123, "00123"),
        ("000-00-0000", 123456789, "123-45-6789"),
        ("(000) 000-0000", 5551234567, "(555) 123-4567"),
        ("0.0,", 12345, "12.3"),
        ('0,,"M"', 12345678, "12M"),
        ('0" kg"', 5, "5 kg"),
        ("0 kg", 5, "5 kg"),
        ('"Q"0', 3, "Q3"),
        ('General" pcs"', 3, "3 pcs"),
        ("\\#0", 7, "#7"),
        ("@", 1.5, "1.5"),
        ("", 1.5, "1.5"),
    ],
)
def test_digits(code: str, value: float, text: str) -> None:
    assert shown(code, value) == text


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ('"$"#,##0.00', 1234.5, "$1,234.50"),
        ('"$"0.00', -5, "-$5.00"),
        ('"$"#,##0.00_);("$"#,##0.00)', -1234.5, "($1,234.50)"),
        (ACCOUNTING, 1234.5, "$1,234.50"),
        (ACCOUNTING, -1234.5, "$(1,234.50)"),
        (ACCOUNTING, 0, "$-"),
        ('#,##0.00\\ "€"', 1234.5, "1,234.50 €"),
        ("#,##0.00 [$€-407]", 1234.5, "1,234.50 €"),
        ("[$USD] #,##0", 1234, "USD 1,234"),
        ("[$£-809]#,##0;[Red]-[$£-809]#,##0", -5, "-£5"),
        ("[$-409]0.0", 2, "2.0"),
    ],
)
def test_currencies(code: str, value: float, text: str) -> None:
    assert shown(code, value) == text


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0.00;[Red]-0.00", -2, "-2.00"),
        ("0;(0)", -2, "(2)"),
        ('0;-0;"none"', 0, "none"),
        ("0;;", -2, ""),
        (";;;", 5, ""),
        ("+0;-0;0", 5, "+5"),
        (SHORT, 1234567, "1.2M"),
        (SHORT, 12345, "12.3K"),
        (SHORT, 12, "12"),
        (SHORT, -12, "-12"),
        ('[<1]"low";"high"', 0.5, "low"),
        ('[<1]"low";"high"', 1, "high"),
        ('[=1]0" day";0" days"', 1, "1 day"),
        ('[=1]0" day";0" days"', 3, "3 days"),
    ],
)
def test_sections(code: str, value: float, text: str) -> None:
    assert shown(code, value) == text


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0.00E+00", 12345, "1.23E+04"),
        ("0.00E+00", 0.00012345, "1.23E-04"),
        ("0.0E-0", 99.96, "1.0E2"),
        ("##0.0E+0", 12345, "12.3E+3"),
        ("0.00E+00", 0, "0.00E+00"),
        ("# ?/?", 1.5, "1 1/2"),
        ("# ?/?", 0.25, "1/4"),
        ("# ?/?", 2, "2"),
        ("# ?/?", 0.99, "1"),
        ("?/?", 1.5, "3/2"),
        ("# ?/8", 2.375, "2 3/8"),
        ("# ??/??", 3.14159, "3 14/99"),
        ("# ??/??", 0, "0"),
        ("# ?/?", -1.5, "-1 1/2"),
    ],
)
def test_scientific_numbers_and_fractions(code: str, value: float, text: str) -> None:
    assert shown(code, value) == text


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("yyyy-mm-dd", 46176, "2026-06-03"),
        ("m/d/yy", 46176, "2026-06-03"),
        ("dd.mm.yyyy", 46176.9, "2026-06-03"),
        ("[$-409]d-mmm;@", 46176, "2026-06-03"),
        ('yyyy"年"m"月"d"日"', 46176, "2026-06-03"),
        ("mmm-yy", 46176, "2026-06"),
        ("yyyy", 46176, "2026"),
        ("mmmm", 46176, "June"),
        ("dddd", 46176, "Wednesday"),
        ("ddd d mmm yyyy", 46176, "Wednesday 2026-06-03"),
        ('"Due "yyyy-mm-dd', 46176, "Due 2026-06-03"),
        ("m/d/yy h:mm", 46176.3229166667, "2026-06-03 07:45"),
        ("yyyy-mm-dd hh:mm:ss", 46176.99999999, "2026-06-04 00:00:00"),
        ("h:mm", 0.3229166666666667, "07:45"),
        ("h:mm AM/PM", 0.75, "18:00"),
        ("h AM/PM", 0.75, "18:00"),
        ('hh:mm" Uhr"', 0.5, "12:00 Uhr"),
        ("h:mm:ss.00", 0.5000001, "12:00:00.01"),
        ("mm:ss", 0.0316, "00:45:30"),
        ("[h]:mm:ss", 1.1041666667, "26:30:00"),
        ("[h]:mm", -0.5, "-12:00"),
        ("[mm]:ss", 0.0626736, "90:15"),
        ("[ss].00", 0.00001, "00.86"),
        ('[h]"h "mm"min"', 1.1041666667, "26h 30min"),
    ],
)
def test_dates_times_and_durations(code: str, value: float, text: str) -> None:
    assert shown(code, value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "1900-01-00"),
        (1, "1900-01-01"),
        (59, "1900-02-28"),
        (60, "1900-02-29"),
        (61, "1900-03-01"),
        (2958465, "9999-12-31"),
        (2958466, "2958466"),
        (-5, "-5"),
    ],
)
def test_the_1900_system_has_a_29_february_1900(value: int, text: str) -> None:
    assert shown("yyyy-mm-dd", value) == text


def test_the_1904_system() -> None:
    assert shown("yyyy-mm-dd", 44714, from_1904=True) == "2026-06-03"
    assert shown("yyyy-mm-dd", 0, from_1904=True) == "1904-01-01"


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "x", ""])
def test_what_is_no_finite_number(value: str) -> None:
    assert number_of(value) is None


def test_texts() -> None:
    assert number_format('0;-0;0;"No. "@').text("7b") == "No. 7b"
    assert number_format("0.00").text("n/a") == "n/a"
    assert number_format(";;;").text("secret") == ""


@pytest.mark.parametrize("code", STANDARD_FORMATS.values())
def test_standard_formats_show_something(code: str) -> None:
    assert shown(code, 46176.5)


_PIECES = st.sampled_from(
    [
        "0",
        "#",
        "?",
        ".",
        ",",
        "%",
        "E+",
        "E-",
        "/",
        "@",
        ";",
        '"a"',
        "\\x",
        "_)",
        "* ",
        "8",
        " ",
        "-",
        '"',
    ]
)
_WORDS = st.sampled_from(
    [
        "[",
        "[h]",
        "[mm]",
        "[$€-1]",
        "[>=10]",
        "[Red]",
        "General",
        "AM/PM",
        "yyyy",
        "m",
        "d",
        "dddd",
        "h",
        "ss",
        "e",
    ]
)


@settings(max_examples=400, deadline=None)
@given(
    code=st.one_of(
        st.text(max_size=300),
        st.lists(_PIECES | _WORDS, max_size=40).map("".join),
        st.integers(0, 255).map(lambda times: "%" * times + "0"),
    ),
    value=st.floats(allow_nan=False, allow_infinity=False),
    from_1904=st.booleans(),
)
def test_any_code_shows_any_number_on_one_short_line(
    code: str, value: float, from_1904: bool
) -> None:
    number = Decimal(format(value, ".15g"))
    text = number_format(code).number(number, from_1904=from_1904)
    assert len(text) <= LONGEST
    assert text == " ".join(text.split())
    assert isinstance(number_format(code).text("a"), str)


@settings(max_examples=200, deadline=None)
@given(value=st.decimals(-(10**12), 10**12, places=2))
def test_two_decimals_are_exact(value: Decimal) -> None:
    assert Decimal(number_format("#,##0.00").number(value).replace(",", "")) == value


@pytest.mark.parametrize("code", ["# ?/²", "0/³", "# ??/1²"])
def test_a_superscript_in_a_code_is_no_digit_of_a_fraction(code: str) -> None:
    assert "2" in shown(code, 2)

from engine.retrieval.parsing.symbol_fonts import symbol, symbol_text


def test_codes_with_and_without_the_offset_of_the_private_area() -> None:
    assert symbol(0xF061, "Symbol") == symbol(0x61, "symbol") == "α"
    assert [symbol(code, "Wingdings") for code in (0xE0, 0xFC, 0xFE, 0xA7)] == [*"→✔☑▪"]
    assert [symbol(code, "Symbol") for code in (0xA3, 0xB0, 0xD7, 0xE5, 0xFE)] == [*"≤°⋅∑⎭"]
    assert symbol(0xF052, "Wingdings 2") == "☑"


def test_a_character_of_another_font_is_itself() -> None:
    assert symbol(0x3B1, "Calibri") == "α"
    assert symbol_text("naïve", "Wingdings") == "naïve"


def test_a_code_that_no_font_explains_is_nothing() -> None:
    assert symbol_text("a\uf0ffb", "Calibri") == "ab"
    assert symbol(0x20, "Webdings") == ""
    assert symbol(0x110000, "Calibri") == ""

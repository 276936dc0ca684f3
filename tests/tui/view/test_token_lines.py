"""The tokens of an answer as rows: units of whole graphemes, wrapped to a width."""

import pytest
from rich.cells import cell_len

from app.tui.glyphs import ASCII, UNICODE
from app.tui.view.graphemes import graphemes
from app.tui.view.token_lines import build_units, layout_units, next_word

FAMILY = "👨‍👩‍👧"


def shown(texts, glyphs=UNICODE):
    return [(unit.start, unit.end, unit.text) for unit in build_units(texts, glyphs)]


def rows(texts, width):
    layout = layout_units(build_units(texts, UNICODE), width)
    return ["".join(piece.text for piece in row) for row in layout.rows]


@pytest.mark.parametrize(
    ("text", "parts", "cells"),
    [
        ("प्रवाह", ["प्र", "वा", "ह"], 4),
        ("नमस्ते", ["न", "म", "स्ते"], 4),
        ("日本語", ["日", "本", "語"], 6),
        (FAMILY, [FAMILY], 2),
        ("🇮🇳🇯🇵", ["🇮🇳", "🇯🇵"], 4),
        ("👍🏽a", ["👍🏽", "a"], 3),
        ("e\u0301x", ["e\u0301", "x"], 2),
        ("", [], 0),
    ],
)
def test_graphemes_are_whole(text, parts, cells):
    found = graphemes(text)
    assert [one.text for one in found] == parts
    assert sum(one.cells for one in found) == cells


def test_each_token_is_a_unit():
    assert shown(["The", " river", "."]) == [(0, 1, "The"), (1, 2, " river"), (2, 3, ".")]


def test_tokens_of_one_grapheme_are_one_unit():
    # The vowel sign comes with a token of its own.
    assert shown(["क", "\u093f", "त"]) == [(0, 2, "क\u093f"), (2, 3, "त")]
    assert shown(["🇮", "🇳", "🇯🇵"]) == [(0, 2, "🇮🇳"), (2, 3, "🇯🇵")]


def test_tokens_without_text_belong_to_the_character_that_follows():
    assert shown(["a", "", "", FAMILY, "b"]) == [(0, 1, "a"), (1, 4, FAMILY), (4, 5, "b")]


def test_control_tokens_at_the_end_are_units_of_their_own():
    assert shown(["a", "", ""]) == [(0, 1, "a"), (1, 2, "∎"), (2, 3, "∎")]
    assert shown([""]) == [(0, 1, "∎")]
    assert shown([]) == []


def test_what_cannot_be_seen_is_marked():
    assert shown(["a\tb", "  ", "\x1b[31m", "\x9b", "\u200b"]) == [
        (0, 1, "a⇥b"), (1, 2, "  "), (2, 3, "␛[31m"), (3, 4, "⟨U+009B⟩"), (4, 5, "⟨U+200B⟩"),
    ]  # fmt: skip
    assert shown(["\n", "  "], ASCII) == [(0, 1, "$"), (1, 2, "  ")]


def test_no_control_character_remains():
    hostile = [chr(code) for code in range(0xA0)] + ["\u2028", "\u202e", "\ud800", "\ufeff"]
    text = "".join(unit.text for unit in build_units(hostile, UNICODE))
    assert text.isprintable()


def test_rows_end_after_line_breaks():
    assert rows(["a", ".\n\n", "b", "\n"], 20) == ["a.⏎", "⏎", "b⏎"]


def test_words_are_wrapped_whole():
    assert rows(["The", " under", "standing", " of", " it"], 16) == [
        "The",
        " understanding",
        " of it",
    ]


def test_long_words_are_cut_between_graphemes():
    assert rows(["日本語日本語"], 5) == ["日本", "語日", "本語"]
    assert rows([FAMILY * 3], 5) == [FAMILY * 2, FAMILY]
    assert rows(["日本"], 1) == ["日", "本"]


def test_no_row_is_wider_than_the_width():
    texts = ["प्रवाह", " नमस्ते", "日本語" * 9, " x" * 30, FAMILY * 9, "🇮🇳" * 9, "\n", "end"]
    for width in range(2, 40):
        assert all(cell_len(row) <= width for row in rows(texts, width))
        assert "".join(rows(texts, width)) == "".join(u.text for u in build_units(texts, UNICODE))


def test_units_are_found_by_their_place():
    layout = layout_units(build_units(["ab", " cd", " 日本"], UNICODE), 6)
    assert layout.first_row == (0, 0, 1)
    assert (layout.column(1), layout.column(2)) == (2, 0)
    assert [layout.unit_at(x, 0) for x in (0, 1, 2, 4, 5, 9)] == [0, 0, 1, 1, None, None]
    assert layout.unit_at(0, 1) == 2
    assert layout.unit_at(0, 2) is None


def test_steps_by_words():
    units = build_units(["The", " under", "stand", "ing", ".\n", "It"], UNICODE)
    assert [next_word(units, at, 1) for at in range(6)] == [1, 5, 5, 5, 5, 5]
    assert [next_word(units, at, -1) for at in range(6)] == [0, 0, 1, 1, 1, 1]

import locale
from dataclasses import asdict

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

from app.tui.ascii_filter import ASCII_TABLE, AsciiFilter
from app.tui.glyphs import ASCII, UNICODE, CharsetError, choose_glyphs, gauge


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_glyph_is_one_cell(glyphs):
    for name, value in asdict(glyphs).items():
        if isinstance(value, str) and name not in {"name", "ellipsis"}:
            assert cell_len(value) == len(value), name


def test_the_ascii_table_is_ascii_and_as_complete():
    texts = [value for value in asdict(ASCII).values() if isinstance(value, str)]
    assert all(text.isascii() for text in texts)
    assert len(ASCII.kv) == len(UNICODE.kv)
    assert len(ASCII.spark) == len(UNICODE.spark)


@pytest.mark.parametrize(
    ("environ", "encoding", "table"),
    [
        ({"PRAVAHA_CHARSET": "ascii"}, "UTF-8", ASCII),
        ({"PRAVAHA_CHARSET": " Unicode "}, "ASCII", UNICODE),
        ({}, "UTF-8", UNICODE),
        ({"PRAVAHA_CHARSET": "auto"}, "ANSI_X3.4-1968", ASCII),
        ({"TERM": "linux"}, "UTF-8", ASCII),
    ],
)
def test_the_table_for_this_terminal(environ, encoding, table, monkeypatch):
    monkeypatch.setattr(locale, "getpreferredencoding", lambda do_setlocale=True: encoding)
    assert choose_glyphs(environ) is table


def test_an_unknown_charset_is_refused():
    with pytest.raises(CharsetError, match="'latin'; use auto, unicode or ascii"):
        choose_glyphs({"PRAVAHA_CHARSET": "latin"})


@pytest.mark.parametrize(
    ("share", "full"), [(0, 0), (0.001, 1), (0.5, 5), (1, 10), (7, 10), (-1, 0)]
)
def test_gauges(share, full):
    filled, empty = gauge(ASCII, share, 10)
    assert (len(filled), len(empty)) == (full, 10 - full)


def test_the_filter_keeps_widths_and_letters_of_messages():
    assert all(cell_len(chr(glyph)) == len(plain) == 1 for glyph, plain in ASCII_TABLE.items())
    (segment,) = AsciiFilter().apply([Segment("╭─ é 日本 ▀")], Color.parse("black"))
    assert segment.text == "+- é 日本 #"

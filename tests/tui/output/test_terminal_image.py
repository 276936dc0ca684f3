"""Only changed cells are written, and a terminal then shows the same as if all had been."""

import random

import pyte
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from app.tui.output.terminal_image import TerminalImage

RED, BLUE = Style.parse("#ff0000 on #000010"), Style.parse("bold #0000ff on #000010")
TRUE = ColorSystem.TRUECOLOR


def strip(*parts):
    return Strip([Segment(text, style) for text, style in parts])


def written(image, *runs):
    return image.update(runs, TRUE)


def test_the_same_row_is_written_once():
    image = TerminalImage()
    row = (3, 5, strip(("river", RED)))
    assert written(image, row) == "\x1b[4;6H\x1b[38;2;255;0;0;48;2;0;0;16mriver\x1b[0m"
    assert written(image, row) == ""


def test_only_the_changed_end_is_written():
    image = TerminalImage()
    written(image, (0, 0, strip(("a long answer that grows", RED))))
    out = written(image, (0, 0, strip(("a long answer that grew!", RED))))
    assert out == "\x1b[1;22H\x1b[38;2;255;0;0;48;2;0;0;16mew!\x1b[0m"


def test_blanks_do_not_change_the_colour():
    out = written(
        TerminalImage(), (0, 0, strip(("a ", RED), (" ", Style.parse("on #000010")), ("b", RED)))
    )
    assert out.count("\x1b[") == 3  # move, colour, reset
    assert "a  b" in out


def test_blanks_with_an_underline_are_kept():
    line = Style.parse("underline on #000010")
    out = written(TerminalImage(), (0, 0, strip(("a ", line), (" b", RED))))
    assert "a \x1b[0;48;2;0;0;16m \x1b[38;2;255;0;0mb" in out


def test_text_of_uncertain_width_is_written_as_a_whole():
    image = TerminalImage()
    written(image, (0, 0, strip(("x प्रवाह 日本 a", RED))))
    out = written(image, (0, 0, strip(("x प्रवाह 日本 b", RED))))
    assert "x प्रवाह 日本 b" in out
    assert written(image, (0, 0, strip(("x प्रवाह 日本 b", RED)))) == ""


def test_what_is_written_over_a_part_of_such_text_is_noticed():
    image = TerminalImage()
    row = (0, 0, strip(("日本", RED)))
    written(image, row)
    written(image, (0, 2, strip(("ab", RED))))
    assert "日本" in written(image, row)


def test_after_clear_everything_is_written_again():
    image = TerminalImage()
    row = (0, 0, strip(("river", RED)))
    written(image, row)
    image.clear()
    assert "river" in written(image, row)


def test_a_terminal_shows_the_same_as_with_complete_writes():
    """Against Textual's own rendering, over random updates."""
    generator = random.Random(3)
    styles = [RED, BLUE, Style.parse("underline green"), Style.parse("reverse"), Style(), None]
    words = ["river ", "   ", "▀▄", "a", "—", "  x  ", "│"]
    ours, theirs = (pyte.Screen(40, 6) for _ in range(2))
    streams = pyte.Stream(ours), pyte.Stream(theirs)
    image = TerminalImage()
    for _ in range(400):
        y, x = generator.randrange(6), generator.choice((0, 7, 20))
        parts = [
            (generator.choice(words), generator.choice(styles))
            for _ in range(generator.randrange(1, 6))
        ]
        row = strip(*parts).crop(0, 20)
        streams[0].feed(image.update([(y, x, row)], TRUE))
        codes = "".join(
            Strip.render_style(style, text, TRUE) if style else text for text, style, _ in row
        )
        streams[1].feed(f"\x1b[{y + 1};{x + 1}H\x1b[0m{codes}")
        assert ours.display == theirs.display
        for line in range(6):
            for column in range(40):
                left, right = ours.buffer[line][column], theirs.buffer[line][column]
                if left.data == " " and not (right.underscore or right.reverse):
                    left = left._replace(fg=right.fg, bold=right.bold)
                assert left == right

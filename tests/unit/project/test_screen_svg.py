"""Rows of cells as SVG, and several screens as one animation."""

import re
import xml.etree.ElementTree as ET

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from docs.screenshots.animation import Frame, build_animation, joined
from docs.screenshots.screen_svg import Colors, Palette, build_row, build_screenshot

SVG = "{http://www.w3.org/2000/svg}"
COLORS = Colors("#eeeeee", "#000000")


def row(*segments):
    return build_row(
        Strip([Segment(text, Style.parse(style)) for text, style in segments]), Palette(), COLORS
    )


def drawn(markup):
    return ET.fromstring(f"<g>{markup}</g>")


def test_texts_keep_to_their_columns_in_any_font():
    texts = drawn(row(("ab c   d", ""), ("日本", "bold"))).findall("text")
    placed = [(text.text, int(text.get("x")), int(text.get("textLength"))) for text in texts]
    assert placed == [("ab c", 0, 32), ("d", 56, 8), ("日本", 64, 32)]


def test_markup_in_a_text_is_text():
    assert drawn(row(("<b>&", ""))).find("text").text == "<b>&"


def test_half_blocks_are_shapes_and_equal_neighbours_are_one():
    markup = drawn(row(("▀▀▀", "#ff0000 on #00ff00")))
    assert markup.findall("text") == []
    assert [path.get("d") for path in markup.findall("path")] == [
        "M0 0h24v17h-24z",
        "M0 0h24v8.5h-24z",
    ]


def test_reversed_text_has_the_colours_exchanged():
    palette = Palette()
    style = Style.parse("#ff0000 on #00ff00 reverse")
    markup = drawn(build_row(Strip([Segment("x", style)]), palette, COLORS))
    colors = dict(re.findall(r"\.(c\d+)\{fill:(#\w+)", palette.css))
    assert colors[markup.find("path").get("class")] == "#ff0000"
    assert colors[markup.find("text").get("class")] == "#00ff00"


def test_a_frame_of_box_characters_has_no_gaps_between_cells():
    lines = drawn(row(("┌─", ""))).find("path").get("d")
    assert lines == "M8 8.5L4 8.5M4 17L4 8.5M8 8.5L12 8.5M16 8.5L12 8.5"


def test_a_screenshot_has_a_title_and_a_size():
    root = ET.fromstring(build_screenshot([row(("a", ""))], Palette(), 10, COLORS, title="A & B"))
    assert root.findtext(f"{SVG}title") == "A & B"
    assert root.get("viewBox") == "0 0 104 41"


def animation():
    a, b = row(("a", "")), row(("b", ""))
    frames = joined(
        [
            Frame(1.0, ((a, b), (b,)), "one"),
            Frame(1.0, ((a, b), (b,)), "one"),
            Frame(2.0, ((b,), (b,)), "two"),
        ]
    )
    svg = build_animation(frames, Palette(), 10, COLORS, still=1, title="t")
    return ET.fromstring(svg)


def test_an_animation_has_every_part_of_a_row_once():
    root = animation()
    assert [part.get("id") for part in root.find(f".//{SVG}defs")] == ["p0", "p1"]
    used = [(use.get("href"), use.get("y")) for use in root.iter(f"{SVG}use")]
    assert used == [("#p0", "0"), ("#p1", "0"), ("#p1", "17"), ("#p1", "0"), ("#p1", "17")]


def test_an_animation_shows_each_frame_for_its_time():
    style = animation().findtext(f"{SVG}style")
    assert "film 4.00s step-end infinite" in style
    assert re.findall(r"([\d.]+)%\{transform:translateX\((-?\d+)px\)", style) == [
        ("0.000", "0"),
        ("50.000", "-160"),
    ]


def test_where_nothing_moves_the_chosen_frame_is_shown():
    film = next(one for one in animation().iter(f"{SVG}g") if one.get("class") == "film")
    assert film.get("transform") == "translate(-160)"

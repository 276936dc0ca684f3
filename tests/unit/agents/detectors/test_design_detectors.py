"""The detectors of the design agents on anything; colours, contrast and style sheets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.detectors.design import DETECTORS
from agents.detectors.design.colors import Color, contrast, difference, over, parse_color, readable
from agents.detectors.design.style_sheet import resolve, style_rules
from agents.detectors.detector import DetectorContext
from agents.workspace.workspace import Workspace

COLORS = st.builds(Color, *[st.integers(0, 255)] * 3, st.just(1.0))


PIECES = st.sampled_from(
    [
        "<a href=x>",
        "</a>",
        "<div onclick=",
        "{",
        "}",
        "/*",
        "*/",
        ":root{",
        "--a:",
        "var(--a)",
        ";",
        "#fff",
        "'",
        '"',
        "<style>",
        "</style>",
        "<!--",
        "-->",
        "<![",
        "\n    $x: red;",
        "color:",
        "(",
        ")",
        "\x00",
        "ü",
        "\n",
        "<input",
        "tabindex=9999999",
        "<svg role=img>",
        "calc(1px",
        "{{",
        "url(",
        "&",
        "boxes",
        "%",
        '\n    {"boxes":[{"x":1e999}]}',
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=120))
@settings(max_examples=150, deadline=None)
def test_no_detector_raises_on_any_text(text):
    names = ("a.html", "a.css", "a.tcss", "a.tsx", "tokens.json", "layout.json")
    workspace = Workspace.of_texts(dict.fromkeys(names, text))
    for detector in DETECTORS:
        for finding in detector.detect(workspace, DetectorContext()):
            lines = len(workspace.get(finding.file).lines)
            assert 0 <= finding.line <= lines
            assert finding.rule in {rule.id for rule in detector.rules}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#fff", Color(255, 255, 255)),
        ("#12345678", Color(0x12, 0x34, 0x56, 0x78 / 255)),
        ("rgb(10, 20, 30)", Color(10, 20, 30)),
        ("rgba(10 20 30 / 50%)", Color(10, 20, 30, 0.5)),
        ("hsl(120, 100%, 25%)", Color(0, 128, 0)),
        ("Teal", Color(0, 128, 128)),
        ("var(--x)", None),
        ("#12", None),
        ("rgb(1)", None),
    ],
)
def test_colors_are_parsed(text, expected):
    assert parse_color(text) == expected


def test_contrast_is_that_of_the_specification():
    assert contrast(Color(0, 0, 0), Color(255, 255, 255)) == 21.0
    assert round(contrast(Color(0x77, 0x77, 0x77), Color(255, 255, 255)), 2) == 4.48


@given(COLORS, COLORS)
def test_contrast_and_difference_are_symmetric(one, other):
    assert contrast(one, other) == contrast(other, one)
    assert 1.0 <= contrast(one, other) <= 21.0
    assert difference(one, other) == pytest.approx(difference(other, one))
    assert difference(one, one) == 0.0
    assert over(one, other) == one
    assert contrast(readable(one, other, 4.5), other) >= 4.5


def test_nested_rules_and_variables():
    rules = style_rules(
        "$a: red;\nApp {\n  color: $a;\n  Button { width: 3; &:hover { color: var(--b, blue) } }\n}"
    )
    assert [(rule.selector, rule.line) for rule in rules] == [
        ("", 1), ("App", 2), ("App Button:hover", 4), ("App Button", 4),
    ]  # fmt: skip
    assert resolve("var(--b, blue)", {}) == "blue"
    assert resolve("var(--b)", {"--b": "var(--c)", "--c": "1px"}) == "1px"
    assert resolve("var(--b)", {"--b": "var(--b)"}) == "var(--b)"

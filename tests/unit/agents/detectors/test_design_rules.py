"""Screens, scales and links."""

import pytest

from agents.detectors.design.layout import LAYOUT, SPACING
from agents.detectors.design.scale import SCALE
from agents.detectors.design.screens import SCREENS
from agents.detectors.design.usability import USABILITY
from tests.unit.agents.detectors.seeded import rules_at


def test_a_specification_of_screens_is_compared_with_itself():
    text = (
        "components: [List, Card]\nscreens:\n  - name: home\n    components: [List, Stars]\n    next: [item, cart]\n"
        "  - name: item\n    next: []\n  - name: attic\n    next: [home]\n"
    )
    assert rules_at(SCREENS, "screens.yaml", text) == [
        ("missing-component", 4),
        ("missing-screen", 5),
        ("dead-end-screen", 6),
        ("unreachable-screen", 8),
    ]


@pytest.mark.parametrize(
    "text", ["screens: 5\n", "screens: [a, {b: 1}]\n", "screens:\n  - name: a\n"]
)
def test_other_screens_are_left_alone(text):
    assert rules_at(SCREENS, "a.yaml", text) == []


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.css", "p { font-size: 7px; }\nq { font-size: 15.3px; }\nr { font-size: 16px; }\n", [("tiny-text", 1), ("off-scale-type", 2)]),
        ("tokens.json", '{"space": {"s": 4,\n"m": 8,\n"l": 16,\n"x": 18}}\n', [("off-scale-spacing", 4)]),
        ("tokens.json", '{"space": {"s": 4, "m": 8, "l": 16, "x": 20}}\n', []),
    ],
)  # fmt: skip
def test_scales(path, text, expected):
    assert rules_at(SCALE, path, text) == expected


def test_spacing_variables_count_for_the_grid():
    text = ":root { --gap-s: 8px; --gap-l: 16px; }\np { padding: 8px; margin: 16px; }\nq { padding: 13px; }\n"
    assert rules_at(SPACING, "a.css", text) == [("off-grid", 3)]


def test_a_box_needs_an_area():
    text = '{"boxes": [\n{"name": "a", "x": 0, "y": 0, "width": 5, "height": 0}]}\n'
    assert rules_at(LAYOUT, "a.json", text) == [("zero-size", 2)]


@pytest.mark.parametrize(
    ("link", "dead"),
    [
        ('<a href="#">Terms</a>', True),
        ('<a href="#" onclick="open()">Terms</a>', False),
        ('<a href="#" role="button">Terms</a>', False),
        ('<a href="#terms">Terms</a>', False),
    ],
)
def test_links_lead_somewhere(link, dead):
    found = [rule for rule, _ in rules_at(USABILITY, "a.html", f"<body>{link}</body>")]
    assert ("dead-link" in found) is dead

"""Styles at the start: parsed once per theme, applied once to each widget."""

import pytest
from textual.app import App
from textual.css import stylesheet
from textual.css.errors import StylesheetError
from textual.css.stylesheet import Stylesheet

from app.tui.textual_workarounds import parsed_once
from app.tui.textual_workarounds.parsed_once import ParsedOnce
from tests.tui.test_branch_tree import forked

RULE = "Static { color: $ink; width: 3; }"


@pytest.fixture
def parsed(monkeypatch):
    """The sources that are parsed from now on."""
    parsed_once._rules_of.cache_clear()
    sources = []
    parse = stylesheet.parse

    def counted(scope, css, *args, **options):
        sources.append(css)
        return parse(scope, css, *args, **options)

    monkeypatch.setattr(stylesheet, "parse", counted)
    return sources


def sheet(ink):
    made = ParsedOnce(variables={"ink": ink})
    made.add_source(RULE)
    made.parse()
    return made


def test_a_source_is_parsed_once_for_each_set_of_variables(parsed):
    one = sheet("red")
    assert parsed == [RULE]
    one.set_variables({"ink": "blue"})
    one.reparse()
    one.add_source("Label { height: 1; }")
    assert "color: #0000FF" in one.css
    assert parsed == [RULE, RULE, "Label { height: 1; }"]
    one.set_variables({"ink": "red"})
    one.reparse()
    assert "color: #FF0000" in one.css
    assert parsed.count(RULE) == 2
    assert sheet("red").rules[0] is one.rules[0]


def test_its_rules_are_those_of_textual():
    theirs = Stylesheet(variables={"ink": "red"})
    theirs.add_source(RULE)
    assert sheet("red").css == theirs.css


def test_a_sheet_with_an_error_stays_as_it_was():
    one = sheet("red")
    before = one.css
    one.add_source("Static { colour: red; }")
    with pytest.raises(StylesheetError):
        one.reparse()
    one.source.popitem()
    one._require_parse = False
    assert one.css == before


def styles(screen):
    """The rules of every widget, as text: Textual compares layouts by identity."""
    return [
        {name: repr(value) for name, value in node.styles.base.get_rules().items()}
        for node in screen.walk_children(with_self=True)
    ]


@pytest.mark.parametrize("size", [(60, 20), (120, 36), (160, 45)])
async def test_at_the_start_the_style_sheet_is_not_applied_to_the_whole_screen_again(
    screen, monkeypatch, size
):
    updated = []
    update = App.update_styles
    monkeypatch.setattr(
        App, "update_styles", lambda app, node, **k: updated.append(node) or update(app, node, **k)
    )
    async with screen(prepare=forked, size=size) as ui:
        main = ui.app.screen
        assert updated
        assert main not in updated
        before = styles(main)
        ui.app.stylesheet.update(main)
        assert styles(main) == before

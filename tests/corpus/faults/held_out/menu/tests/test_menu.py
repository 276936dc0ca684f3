import pytest

from menu.build import help_text, mark_commands, press, zoom_commands
from menu.commands import Document


@pytest.fixture
def document():
    return Document()


def test_last_zoom(document):
    assert press(zoom_commands(document), "3") == "zoom 200 %"


def test_first_zoom(document):
    assert press(zoom_commands(document), "1") == "zoom 50 %"
    assert document.zoom == 50


def test_marks(document):
    commands = mark_commands(document, [4, 9])
    assert press(commands, "m4") == "mark 4 set"
    assert press(commands, "m4") == "mark 4 removed"


def test_unknown_key(document):
    assert press(zoom_commands(document), "x") == "no command has the key x"


def test_help(document):
    assert help_text(mark_commands(document, [1, 10])) == "m1   Mark page 1\nm10  Mark page 10"

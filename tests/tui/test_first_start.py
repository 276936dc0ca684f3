"""The hint of the very first start, and help that begins with the focused pane."""

import pytest

from app.tui.keys import ALL_KEYS, Group
from app.tui.view.spans import plain, width
from app.tui.widgets.help import HOW_TO, build_help
from app.tui.widgets.loading import FirstKeys, build_first_hint

KEYS = FirstKeys("enter", "shift+tab", "f", "x", "f1")


@pytest.mark.parametrize("cells", [30, 60, 110])
def test_the_hint_names_the_keys_that_matter_and_fits(cells):
    lines = build_first_hint(KEYS, cells)
    assert all(width(line) <= cells for line in lines)
    words = plain(lines).replace("\n", " ")
    for key in ("enter sends", "shift+tab", "f forks", "x tries", "f1 shows"):
        assert key in " ".join(words.split())


async def test_it_is_shown_on_the_first_start_only(screen):
    async with screen(first_start=True, keymap={"help": "f12"}) as ui:
        await ui.shown("enter sends;", "f12 shows")
    async with screen() as ui:
        await ui.shown("P r a v ā h a")
        assert "enter sends;" not in ui.text


@pytest.mark.parametrize("cells", [70, 130])
def test_help_begins_with_the_group_of_the_focused_pane(cells):
    assert plain(build_help({}, {}, cells, Group.KV)).startswith("KV map")
    assert plain(build_help({}, {}, cells)).startswith("How to")
    assert plain(build_help({}, {}, cells, Group.PROMPT)).startswith("How to")


def test_help_says_how_to_do_common_things_with_the_keys_that_are_set():
    words = plain(build_help({"fork": "ctrl+y", "undo": "f12,u"}, {}, 70))
    assert "L ctrl+y           Continue from a word of an answer" in words
    assert "D f12              Remove a branch, and bring it back" in words
    ids = {key.id for key in ALL_KEYS}
    steps = {step for _, steps in HOW_TO for step in steps}
    assert {step for step in steps if "." in step} <= ids


async def test_f1_shows_the_keys_of_the_focused_pane_first(screen):
    async with screen(size=(90, 24)) as ui:
        for key, title in (("f3", "KV map ─"), ("f10", "Scheduler ─"), ("f7", "Log ─")):
            await ui.press(key, "f1")
            await ui.shown(title)
            await ui.press("escape")

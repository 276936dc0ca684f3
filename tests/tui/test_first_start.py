"""The hint of the very first start, and help that begins with the focused pane."""

import pytest

from app.tui.keys import Group
from app.tui.view.spans import plain, width
from app.tui.widgets.help import build_help
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
    assert plain(build_help({}, {}, cells)).startswith("Everywhere")


async def test_f1_shows_the_keys_of_the_focused_pane_first(screen):
    async with screen(size=(90, 24)) as ui:
        for key, title in (("f3", "KV map ─"), ("f10", "Scheduler ─"), ("f7", "Log ─")):
            await ui.press(key, "f1")
            await ui.shown(title)
            await ui.press("escape")

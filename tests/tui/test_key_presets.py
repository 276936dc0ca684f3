"""Presets are key maps without mistakes."""

import pytest

from app.tui.key_presets import PRESETS, with_preset
from app.tui.keys import (
    ALL_KEYS,
    APP_KEYS,
    KV_KEYS,
    LIST_KEYS,
    PROMPT_KEYS,
    TRANSCRIPT_KEYS,
    read_keymap,
)

RESERVED = {
    "ctrl+s",
    "ctrl+b",
    "ctrl+a",
    "ctrl+h",
    "ctrl+m",
    "ctrl+i",
    "ctrl+left_square_bracket",
    "f11",
}
PANES = {
    "app": APP_KEYS,
    "prompt": PROMPT_KEYS,
    "transcript": TRANSCRIPT_KEYS,
    "list": LIST_KEYS,
    "kv": KV_KEYS,
}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_entry_is_valid(preset):
    keymap, problems = with_preset({"preset": preset})
    assert problems == []
    good, wrong = read_keymap(keymap)
    assert wrong == []
    assert good == keymap


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("pane", PANES)
def test_no_pane_has_missing_ids_clashes_or_reserved_keys(preset, pane):
    keymap, _ = with_preset({"preset": preset})
    taken = {}
    for key in PANES[pane]:
        assert key.id
        assert key.label
        assert key.help
        for one in keymap.get(key.id, key.keys).split(","):
            assert one not in taken, (one, key.id, taken.get(one))
            taken[one] = key.id
            assert one not in RESERVED
            assert not (one.startswith("alt+") and len(one) == 5)


def test_ids_are_unique():
    assert len({key.id for key in ALL_KEYS}) == len(ALL_KEYS)


def test_own_entries_take_precedence():
    keymap, _ = with_preset({"preset": "vim", "prompt": "ctrl+y"})
    assert keymap["prompt"] == "ctrl+y"
    assert keymap["chat.delete"] == "d,delete"


def test_an_unknown_preset_is_named_with_a_near_one():
    assert with_preset({"preset": "vi"}) == ({}, ["There is no key preset 'vi': perhaps vim."])


async def test_the_vim_preset_works_on_the_screen(screen):
    async with screen(keymap={"preset": "vim"}) as ui:
        await ui.press("shift+tab", "a")
        assert ui.app.focused is ui.prompt
        assert ui.toasts == []

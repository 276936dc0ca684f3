"""Settings: found in the palette by their words, opened at their place."""

import pytest
from textual.widgets import Input, OptionList

from app.settings.listing import list_settings
from app.settings.settings import ROWS, Settings
from app.tui.palette import PravahaCommands
from app.tui.widgets.sampling_editor import SamplingEditor
from app.tui.widgets.settings_page import SettingsScreen, build_note
from tests.tui.harness import converse

KNOWN = list_settings(Settings())


def found(query):
    return [one.name for one in KNOWN if one.matches(query)]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("temperature", "temperature"),
        ("creativity", "temperature"),
        ("seed", "seed"),
        ("top p", "top_p"),
        ("top-p", "top_p"),
        ("nucleus", "top_p"),
        ("max tokens", "max_tokens"),
        ("length limit", "max_tokens"),
        ("context length", "ctx"),
        ("gpu", "device"),
        ("cpu", "threads"),
        ("system prompt", "system"),
        ("kv pool", "kv_cache"),
        ("sandbox", "sandbox"),
        ("upload", "max_upload_bytes"),
        ("repeat", "repetition_penalty"),
        ("colors", "theme"),
        ("draft model", "draft_model"),
    ],
)
def test_settings_are_found_by_their_words(query, name):
    assert name in found(query)


def test_every_setting_is_found_by_its_own_name():
    assert {one.name for one in KNOWN} == set(ROWS)
    for one in KNOWN:
        assert one.is_named(one.name.replace("_", " ")), one.name


def test_nothing_is_found_by_the_middle_of_a_word_or_by_nothing():
    assert "temperature" not in found("perature")
    assert found("") == found(" ") == []


def test_values_are_shown_and_secrets_are_not():
    values = {one.name: one.value for one in list_settings(Settings(api_key="hunter2", port=9000))}
    assert (values["port"], values["api_key"], values["prefix_caching"]) == ("9000", "set", "on")
    assert values["max_body_bytes"] == "4.00 MiB"
    assert not any("hunter2" in value for value in values.values())


async def search(ui, query):
    await ui.press("ctrl+p")
    ui.app.screen.query_one(Input).value = query


async def test_the_palette_opens_the_sampling_editor_at_the_parameter(screen):
    async with screen(settings=KNOWN) as ui:
        await search(ui, "top p")
        await ui.shown("Setting: top_p")
        await ui.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, SamplingEditor), "the editor")
        await ui.until(lambda: ui.app.focused is not None, "the focus")
        assert ui.app.focused.id == "sampling-top_p"


async def test_the_palette_opens_other_settings_in_the_list(screen):
    async with screen(settings=KNOWN) as ui:
        await search(ui, "swap")
        await ui.shown("Setting: swap_bytes")
        await ui.press("enter")
        await ui.until(lambda: isinstance(ui.app.screen, SettingsScreen), "the list")
        await ui.shown("swap_bytes", "Disk space for swapped KV blocks", "--swap-bytes VALUE")
        assert ui.app.screen.query_one(OptionList).highlighted_option.id == "swap_bytes"
        await ui.press("j")
        await ui.shown("--weight-cache-bytes VALUE")


async def test_a_setting_is_before_what_only_resembles_its_name(screen):
    async with screen(
        settings=KNOWN, prepare=lambda s, c: converse(s, c, ("temperature of seas", "a"))
    ) as ui:
        hits = [hit async for hit in PravahaCommands(ui.app.screen).search("temperature")]
        best = max(hits, key=lambda hit: hit.score)
        assert best.text == "Setting: temperature"


async def test_the_command_opens_a_setting_by_the_beginning_of_its_name(screen):
    async with screen(settings=KNOWN) as ui:
        await ui.ask("/settings seed")
        await ui.until(lambda: isinstance(ui.app.screen, SamplingEditor), "the editor")
        assert ui.app.focused.id == "sampling-seed"
        await ui.press("escape")
        await ui.ask("/settings")
        await ui.shown("Settings", "kv_cache")
        await ui.press("escape")
        await ui.ask("/settings tmeperature")
        assert "Did you mean temperature" in ui.toasts[-1]
        assert ui.prompt.text == "/settings tmeperature"
        await ui.ask("/settings theme")
        await ui.shown("Theme")


@pytest.mark.parametrize(
    ("name", "is_switch"),
    [("speculation", True), ("prefix_caching", True), ("notify", False), ("sandbox", False)],
)
def test_only_a_switch_has_an_option_that_turns_it_off(name, is_switch):
    """`off` is also a value of settings that are none, and a switch may be unset."""
    (setting,) = [
        one for one in list_settings(Settings(notify="off", sandbox="off")) if one.name == name
    ]
    note = "".join(span.text for line in build_note(setting) for span in line)
    assert (f"--no-{setting.written.removeprefix('--')}" in note) is is_switch
    assert ("VALUE" in note) is not is_switch

"""NO_COLOR and ASCII terminals: every state keeps its glyph and its word."""

import pytest

from app.tui.glyphs import CharsetError
from tests.tui.harness import converse


def chat(session, client):
    converse(session, client, ("question", "- **an** answer\n\n> quoted"))


async def test_in_ascii_every_cell_is_ascii(screen, monkeypatch):
    monkeypatch.setenv("PRAVAHA_CHARSET", "ascii")
    async with screen("one two", prepare=chat, size=(160, 45)) as ui:
        await ui.ask("more")
        ui.client.step()
        await ui.ask("queued")
        await ui.shown("+ queued", "~ answering", "an answer", "(o_o)")
        for keys in (["f5"], ["f3"], ["f2", "f9"], ["escape", "f1"], ["escape", "ctrl+p"]):
            await ui.press(*keys)
            drawn = _drawn(ui)
            assert drawn.isascii(), sorted({c for c in drawn if not c.isascii()})


def _drawn(ui):
    """What the terminal gets: filters run on whole lines of the compositor."""
    strips = ui.app.screen._compositor.render_strips()
    background = ui.app.screen.styles.background
    for line_filter in ui.app.get_line_filters():
        strips = [strip.apply_filter(line_filter, background) for strip in strips]
    return "".join(strip.text for strip in strips)


async def test_message_text_is_not_replaced_by_ascii(screen, monkeypatch):
    monkeypatch.setenv("PRAVAHA_CHARSET", "ascii")
    async with screen("日本語 é") as ui:
        await ui.ask("नमस्ते")
        await ui.answered()
        await ui.shown("日本語 é", "नमस्ते")


async def test_without_colour_no_cell_has_one_and_states_have_glyphs(screen, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with screen("one two", prepare=chat, size=(160, 45)) as ui:
        await ui.ask("more")
        ui.client.step()
        await ui.shown("█ this chat", "■ active", "▒ cached", "· free", "(o_o)")
        strips = ui.app.screen._compositor.render_strips()
        background = ui.app.screen.styles.background
        for line_filter in ui.app.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        colors = {
            color
            for strip in strips
            for segment in strip
            if segment.style
            for color in (segment.style.color, segment.style.bgcolor)
            if color is not None and not color.is_default
        }
        assert all(len(set(color.get_truecolor())) == 1 for color in colors)


async def test_an_unknown_charset_is_an_error(screen, monkeypatch):
    monkeypatch.setenv("PRAVAHA_CHARSET", "latin")
    with pytest.raises(CharsetError, match="use auto, unicode or ascii"):
        async with screen():
            pass

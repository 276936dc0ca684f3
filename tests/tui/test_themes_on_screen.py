"""Choosing a theme: live preview, restoring, remembering; broken ones stay listed."""

from app.settings.preferences import Preferences
from app.tui.themes import DEFAULT


async def test_titles_are_in_a_column_moving_previews_and_esc_restores(screen):
    chosen = []
    async with screen(on_theme=chosen.append) as ui:
        await ui.press("f9")
        await ui.shown("contrast-light  high contrast, light", "ansi            the terminal's own")
        await ui.press("down")
        assert ui.app.theme != DEFAULT
        await ui.press("escape")
        assert ui.app.theme == DEFAULT
        assert chosen == []


async def test_enter_keeps_and_remembers(screen, tmp_path):
    path = tmp_path / "preferences.json"
    async with screen(on_theme=lambda name: Preferences(path).set("theme", name)) as ui:
        await ui.press("f9", "home", "enter")
        kept = ui.app.theme
        assert kept != DEFAULT
    assert Preferences(path).get("theme") == kept


async def test_a_broken_theme_is_reported_and_listed_with_its_reason(screen, tmp_path):
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "torn.yaml").write_text("base: {primary: nocolour}\n")
    async with screen(themes_dir=folder, theme="torn") as ui:
        assert any("Theme torn is disabled" in toast for toast in ui.toasts)
        assert ui.app.theme == DEFAULT
        await ui.press("f9")
        await ui.shown("torn is disabled")


async def test_a_theme_of_the_user_is_taken_by_name(screen, tmp_path):
    folder = tmp_path / "themes"
    folder.mkdir()
    base = '{primary: "#ff0000", background: "#000000", foreground: "#ffffff"}'
    (folder / "mine.yaml").write_text(f"base: {base}\n")
    async with screen(themes_dir=folder, theme="mine") as ui:
        assert ui.app.theme == "mine"
        assert ui.app.current_theme.primary == "#ff0000"


def test_preferences_survive_damage_and_a_missing_folder(tmp_path):
    path = tmp_path / "deep" / "preferences.json"
    Preferences(path).set("theme", "neel")
    assert Preferences(path).get("theme") == "neel"
    path.write_text("{torn")
    assert Preferences(path).get("theme") is None
    path.write_text('{"theme": 7}')
    assert Preferences(path).get("theme") is None

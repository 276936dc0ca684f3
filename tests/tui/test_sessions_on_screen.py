"""The stats pane shows what the prompts of conversations have cost."""

from app.server.process.sessions import Session


async def test_the_stats_list_the_sessions(screen):
    found = [
        Session("Hello", requests=2, prompt_tokens=100, computed_tokens=25, reread_tokens=7),
    ]
    async with screen(sessions=lambda: found, size=(160, 48)) as ui:
        await ui.press("f5")
        await ui.shown("Sessions", "re-read", "Hello", "75%")


async def test_without_sessions_the_stats_have_no_such_part(screen):
    async with screen(size=(160, 48)) as ui:
        await ui.press("f5")
        await ui.shown("Since start")
        assert "Sessions" not in ui.text

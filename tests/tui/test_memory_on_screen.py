"""`/memory` on the screen."""

from agents.memory.entry import USER
from agents.memory.store import MemoryStore


async def test_memories_are_listed_searched_and_forgotten(screen, tmp_path):
    path = tmp_path / "memory.db"
    async with screen(memory_file=path) as ui:
        await ui.ask("/memory")
        await ui.until(lambda: ui.toasts, "the answer")
        assert ui.toasts == ["Nothing is remembered."]
        with MemoryStore(path) as store:
            key = store.store_fact("build", "make [bold]amber", scope=USER, origin="user").entry.id
        await ui.ask("/memory search amber")
        await ui.shown("What the agents remember", "make [bold]amber", key)
        await ui.press("escape")
        await ui.ask(f"/memory forget {key}")
        await ui.until(lambda: "Forgot 1." in ui.toasts, "the answer")
        await ui.ask("/memory nonsense")
        await ui.until(lambda: any("/memory takes" in one for one in ui.toasts), "the refusal")

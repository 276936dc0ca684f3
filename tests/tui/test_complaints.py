"""What users of other terminal chats complain about, as acceptance tests; docs/ui.md has the whole list."""

from engine.conversations.store import Store
from engine.conversations.tree import Node, NodeKind, NodeStatus

CODE = "Here:\n\n```python\nfor river in rivers:\n    print(river)\n```\n\nThat is all."


async def test_a_code_block_survives_focus_theme_and_size(screen):
    async with screen(CODE) as ui:
        await ui.ask("code, please")
        await ui.answered()
        block = ("for river in rivers:", "    print(river)", "That is all.")
        await ui.shown(*block)
        await ui.press("shift+tab", "k", "i")
        await ui.shown(*block)
        for theme in sorted(ui.app.theme_files):
            ui.app.use_theme(theme)
            await ui.shown(*block)
        for size in ((60, 24), (150, 40), (100, 30)):
            await ui.pilot.resize_terminal(*size)
            await ui.shown(*block)


async def test_speed_and_context_are_on_every_screen(screen):
    async with screen("one two three four five") as ui:
        await ui.ask("hello")
        ui.client.step(2)
        for size in ((150, 40), (110, 32), (90, 26)):
            await ui.pilot.resize_terminal(*size)
            await ui.shown("tok/s", "ctx")


def test_all_of_ten_thousand_conversations_are_found(tmp_path):
    store = Store.open(tmp_path / "c.db")
    for number in range(10_000):
        tree = f"{number:026d}"
        store.create_tree(tree, f"Conversation {number}")
        node = Node(
            id=f"n{number:025d}", tree_id=tree, parent_id=None, kind=NodeKind.USER,
            text=f"about the river number {number} of ten thousand", status=NodeStatus.DONE,
            created_at=float(number),
        )  # fmt: skip
        store.add_nodes([node], name="send")
    store.flush()
    try:
        assert len(store.trees()) == 10_000
        for number in (0, 1, 4711, 9999):
            found = store.trees(f"river number {number} of")
            assert [tree.title for tree in found] == [f"Conversation {number}"]
            assert [hit.tree_id for hit in store.search(f"number {number} of")] == [
                f"{number:026d}"
            ]
    finally:
        store.close()

"""What users of other terminal chats complain about, as acceptance tests; docs/ui.md has the whole list."""

import pytest

from app.tui.widgets.branches import BranchPane
from app.tui.widgets.lines import Lines
from engine.conversations.storage.store import Store
from engine.conversations.tree import Node, NodeKind, NodeStatus
from tests.tui.harness import converse

CODE = "Here:\n\n```python\nfor river in rivers:\n    print(river)\n```\n\nThat is all."


async def test_a_code_block_survives_focus_theme_and_size(screen):
    async with screen(CODE) as ui:
        await ui.ask("code, please")
        await ui.answered()
        block = ("for river in rivers:", "    print(river)", "That is all.")
        await ui.shown(*block)
        await ui.press("shift+tab", "k", "i")
        await ui.shown(*block)
        for theme in sorted(ui.app.actions.themes.files):
            ui.app.actions.themes.use(theme)
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
        store.trees.create(tree, f"Conversation {number}")
        node = Node(
            id=f"n{number:025d}", tree_id=tree, parent_id=None, kind=NodeKind.USER,
            text=f"about the river number {number} of ten thousand", status=NodeStatus.DONE,
            created_at=float(number),
        )  # fmt: skip
        store.nodes.add([node], name="send")
    store.writes.flush()
    try:
        assert len(store.searches.trees()) == 10_000
        for number in (0, 1, 4711, 9999):
            found = store.searches.trees(f"river number {number} of")
            assert [tree.title for tree in found] == [f"Conversation {number}"]
            assert [hit.tree_id for hit in store.searches.messages(f"number {number} of")] == [
                f"{number:026d}"
            ]
    finally:
        store.close()


def many_forks(session, client):
    converse(session, client, ("one", "two"), ("three", "four"))
    for at in (3, 1):
        end = session.path()[at].id
        for number in range(3):
            session.branches.edit(end, f"{at}-{number}")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 45)])
async def test_any_fork_is_reached_with_four_keys(screen, size):
    """Where the tree is beside the messages a label and enter open a branch; else `ctrl+t` shows it first."""
    async with screen(prepare=many_forks, size=size) as ui:
        tree, view = ui.session.tree, ui.app.query_one(BranchPane).tree_view
        await ui.settled()
        for node_id in tree.leaves():
            pressed = [] if size[0] > 100 else ["ctrl+t"]
            await ui.press(*pressed, "ctrl+o")
            await ui.shown("type a label")
            place = view.scrollable_content_region
            row = place.y + view._index[node_id] - view.scroll_offset.y
            (label,) = [
                one.id.removeprefix("jump-")
                for one in ui.app.screen.query(Lines)
                if one.has_class("jump-label") and (one.region.x, one.region.y) == (place.x, row)
            ]
            pressed += ["ctrl+o", *label, "enter"]
            await ui.press(*label, "enter")
            await ui.until(lambda node_id=node_id: tree.head == node_id, "the branch")
            assert len(pressed) <= 4, pressed

"""Keys of navigate mode on the branch tree: they act on the node under its cursor."""

from app.tui.widgets.cards import CardStrip
from app.tui.widgets.compare import ComparePane
from tests.tui.test_branch_tree import forked, node, pane, texts


async def test_mark_compare_copy_and_merge_act_on_the_node_of_the_tree(screen):
    async with screen(prepare=forked, size=(160, 45)) as ui:
        four, six = node(ui.session, "four"), node(ui.session, "six")
        await ui.press("ctrl+t", "G", "y")
        assert ui.app.clipboard == "four"
        await ui.press("M")
        await ui.shown("Merge into this branch", "four")
        await ui.press("escape", "space")
        assert ui.app.marks.ids == (four,)
        await ui.until(lambda: any("◆" in row and "four" in row for row in ui.text.splitlines()))
        await ui.press("g", "j", "j", "j", "space", "c")
        await ui.shown("part at")
        assert [one.node_id for one in ui.app.query_one(ComparePane).columns] == [four, six]


async def test_x_generates_answers_beside_the_node_of_the_tree(screen):
    async with screen("first", "second", prepare=forked, size=(160, 45)) as ui:
        await ui.press("ctrl+t", "G", "x")
        await ui.shown("x…")
        await ui.press("2")
        await ui.answered()
        three = node(ui.session, "three")
        assert {ui.session.view(one).text for one in ui.session.tree.children(three)} == {
            "four", "first", "second",
        }  # fmt: skip
        assert ui.app.query_one(CardStrip).has_focus
        await ui.shown("enter adopt", "space mark", "c compare", "y copy")
        await ui.press("y")
        assert ui.app.clipboard == "first"


async def test_x_on_a_tree_over_the_messages_closes_it(screen):
    async with screen(prepare=forked, size=(80, 24)) as ui:
        await ui.press("ctrl+t", "G", "x", "escape")
        assert ui.app.focused.id == "messages"
        assert not ui.app.query_one("#left").display


async def test_the_token_cursor_goes_to_the_node_of_the_tree_on_the_open_branch_only(screen):
    async with screen(prepare=forked, size=(160, 45)) as ui:
        await ui.press("ctrl+t", "G", "L")
        assert ui.toasts[-1] == "The message is on another branch: enter opens it."
        assert pane(ui).tree_view.has_focus
        await ui.press("g", "j", "L")
        assert ui.app.actions.tokens.cursor.answer.node_id == node(ui.session, "two")
        assert ui.app.focused.id == "messages"
        assert texts(ui)[-1] == "six"


async def test_the_hints_of_the_tree_name_what_its_keys_do(screen):
    async with screen(prepare=forked, size=(200, 45)) as ui:
        await ui.press("ctrl+t")
        await ui.shown("enter open", "x expand", "space mark", "c compare", "D prune")

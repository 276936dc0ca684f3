"""Jumping to a label: on messages, rows of the branch tree and conversations."""

from app.tui.view.jump_labels import LETTERS, make_labels
from app.tui.widgets.branches import BranchPane
from app.tui.widgets.conversations import Conversations
from app.tui.widgets.jump import JumpScreen
from app.tui.widgets.lines import Lines
from tests.tui.harness import converse


def test_labels_have_two_letters_where_one_is_not_enough():
    assert make_labels(3) == ["a", "s", "d"]
    many = make_labels(len(LETTERS) + 1)
    assert many[:2] == ["aa", "as"]
    assert len(set(many)) == len(LETTERS) + 1


def two_chats(session, client):
    converse(session, client, ("rivers", "A heron."))
    session.conversations.open_new()
    converse(session, client, ("clouds", "All about clouds."), ("rain", "Wet."))
    client.answers.append("Dry.")
    session.branches.regenerate()
    client.finish()
    session.pump()


async def test_a_typed_label_selects_a_message_a_node_and_a_conversation(screen):
    async with screen(prepare=two_chats, size=(120, 40)) as ui:
        await ui.settled()
        await ui.type("draft")

        async def jump(wanted):
            """Type the label that is directly before a text on the screen."""
            await ui.press("ctrl+o")
            assert isinstance(ui.app.screen, JumpScreen)
            await ui.shown("type a label, esc leaves")
            labels = [one for one in ui.app.screen.query(Lines) if one.has_class("jump-label")]
            rows = ui.text.split("\n")
            label = next(one for one in labels if wanted in rows[one.region.y][one.region.x :][:30])
            await ui.press(*label.id.removeprefix("jump-"))
            await ui.until(lambda: not isinstance(ui.app.screen, JumpScreen))

        await jump("you")
        assert ui.transcript.selected.text == "clouds"
        assert ui.transcript.scroll.has_focus
        await jump("Wet.")
        tree = ui.app.query_one(BranchPane).tree_view
        assert tree.has_focus
        assert ui.session.view(tree.cursor).text == "Wet."
        await jump("ivers")
        chats = ui.app.query_one(Conversations)
        assert chats.options.has_focus
        assert chats.highlighted != ui.session.tree_id
        await ui.press("ctrl+o", "1", "escape")
        assert chats.options.has_focus
        assert ui.prompt.text == "draft"


async def test_without_anything_in_sight_this_is_said(screen):
    async with screen() as ui:
        await ui.press("ctrl+o")
        assert ui.toasts == ["There is nothing here to jump to."]

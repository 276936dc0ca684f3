"""Long conversations: few messages mounted, and a view that does not move under its reader."""

from rich.cells import cell_len

from app.tui.view.window import LIMIT
from app.tui.widgets.message import Message
from engine.conversations.branch_tree import BranchTree
from engine.conversations.tree import NodeKind, NodeStatus, NodeView
from tests.tui.harness import converse


def node(number):
    return NodeView(
        id=f"{number:026d}",
        kind=NodeKind.ASSISTANT if number % 2 else NodeKind.USER,
        text=f"message {number}",
        status=NodeStatus.DONE,
        finish="stop" if number % 2 else None,
        error=None,
        created_at=0.0,
        n_prompt=None,
        n_gen=None,
        ttft_us=None,
        decode_us=None,
        model="fake",
        parent_id=f"{number - 1:026d}" if number else None,
    )


def show_messages(monkeypatch, session, count):
    """Let the session's open path have so many messages."""
    nodes = [node(number) for number in range(count)]
    monkeypatch.setattr(session, "path", lambda: nodes)
    session._loaded.current.tree = BranchTree(nodes)


async def test_of_five_thousand_messages_at_most_sixty_are_mounted(screen, monkeypatch):
    def earlier(session, client):
        show_messages(monkeypatch, session, 5000)

    async with screen(prepare=earlier) as ui:
        await ui.shown("message 4999", "▲ 4980 earlier messages")
        assert len(ui.transcript.messages) <= LIMIT
        await ui.press("shift+tab", "g")
        await ui.shown("message 0", "later messages (End)")
        assert len(ui.transcript.messages) <= LIMIT
        await ui.press("end")
        await ui.shown("message 4999")
        assert len(ui.transcript.messages) <= LIMIT
        assert ui.transcript.selected is None


async def test_scrolling_to_the_top_mounts_ten_more_and_keeps_what_was_read(screen, monkeypatch):
    def earlier(session, client):
        show_messages(monkeypatch, session, 200)

    async with screen(prepare=earlier) as ui:
        await ui.shown("▲ 180 earlier messages")
        first = ui.transcript.messages[0]
        ui.transcript.scroll.scroll_to(y=0, animate=False)
        await ui.shown("▲ 170 earlier messages")
        await ui.until(lambda: ui.transcript.scroll.scroll_y > 0, "the old place")
        await ui.shown("message 180")
        assert first.is_attached
        assert len(ui.transcript.messages) <= LIMIT


def long_chat(session, client):
    for number in range(8):
        converse(session, client, (f"question {number}", "words of an answer\n\n" * 6))


async def test_a_view_that_was_scrolled_up_stays_and_counts_what_arrives(screen):
    async with screen(["new line\n\n"] * 40, prepare=long_chat) as ui:
        await ui.ask("more")
        ui.client.step(3)
        await ui.shown("new line")
        await ui.press("pageup", "pageup")
        await ui.shown("more below (End)", "18 messages")  # the list counts them a little later
        place = ui.transcript.scroll.scroll_y
        top = ui.text.splitlines()[1:10]
        ui.client.step(10)
        await ui.shown("new lines (End)")
        ui.client.step(10)
        await ui.pilot.pause()
        assert ui.transcript.scroll.scroll_y == place
        assert ui.text.splitlines()[1:10] == top
        await ui.press("shift+tab", "end")
        await ui.gone("(End)")
        await ui.answered()
        assert ui.transcript.scroll.scroll_y == ui.transcript.scroll.max_scroll_y


async def test_sending_follows_the_end_again(screen):
    async with screen("the answer", prepare=long_chat) as ui:
        await ui.press("pageup", "pageup")
        await ui.shown("more below (End)")
        await ui.ask("and now?")
        await ui.answered()
        await ui.shown("and now?", "the answer")


async def test_j_and_k_select_messages(screen):
    async with screen(prepare=long_chat) as ui:
        await ui.press("shift+tab", "k", "k")
        assert ui.transcript.selected.text == "question 7"
        await ui.press("j")
        assert ui.transcript.selected.kind is NodeKind.ASSISTANT
        await ui.press("j", "j")
        assert ui.transcript.selected == ui.session.path()[-1]
        assert len(ui.app.query("Message.-selected")) == 1


async def test_scripts_of_every_width_survive_typing_streaming_and_reloading(screen):
    async with screen() as ui:
        for text in ("प्रवाह नमस्ते", "日本語の文", "שלום عربى", "👨‍👩‍👧 🇮🇳 é"):
            ui.client.answers.append(list(text))
            await ui.ask(text)
            await ui.answered()
            assert [node.text for node in ui.session.path()] == [text, text]
            assert {message.source for message in ui.app.query(Message)} == {text}
            assert all(cell_len(row) <= 120 for row in ui.text.splitlines())
            await ui.press("ctrl+n")

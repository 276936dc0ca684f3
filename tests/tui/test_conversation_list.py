"""New, switch, filter, rename, archive; the list beside and over the transcript."""

from concurrent.futures import Future
from dataclasses import replace

from app.tui.widgets.conversations import MAX_ROWS, Conversations
from engine.conversations.storage.store import Store
from tests.tui.harness import converse


def three_chats(session, client):
    for topic in ("rivers", "mountains", "clouds"):
        session.conversations.open_new()
        converse(session, client, (f"Tell me of {topic}", f"All about {topic}."))


async def test_the_newest_is_on_top_and_the_open_one_is_marked(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.shown("▸ Tell me of clouds", "2 messages")
        rows = ui.text.splitlines()
        at = [
            next(i for i, row in enumerate(rows) if f"Tell me of {topic}" in row[:29])
            for topic in ("clouds", "mountains", "rivers")
        ]
        assert at == sorted(at)


async def test_switching_shows_the_other_conversation_and_focuses_the_prompt(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.press("ctrl+t")
        await ui.press("j", "j", "enter")
        await ui.shown("All about rivers.", "▸ Tell me of rivers")
        assert "All about clouds." not in ui.text
        assert ui.prompt.has_focus


async def test_an_answer_goes_on_while_another_conversation_is_open(screen):
    def earlier(session, client):
        three_chats(session, client)
        client.answers.append("a b c d")
        session.messages.send("spell")

    async with screen(prepare=earlier) as ui:
        spelling = ui.session.tree_id
        await ui.press("ctrl+n")
        await ui.shown("send what you typed")
        assert not ui.session.answers.generating
        ui.client.finish()
        await ui.settled()
        await ui.app.actions.conversations.open(spelling)
        await ui.shown("a b c d")


async def test_words_of_titles_and_messages_filter_the_list(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.press("ctrl+t", "slash")
        await ui.type("mountains")
        await ui.until(lambda: ui.app.query_one(Conversations).options.option_count == 1)
        await ui.press("enter", "enter")
        await ui.shown("All about mountains.")


async def test_a_slow_filter_keeps_the_rows_and_only_the_newest_result_is_shown(
    screen, monkeypatch
):
    async with screen(prepare=three_chats) as ui:
        chats = ui.app.query_one(Conversations)
        searches, start = {}, ui.session.conversations.start_find

        def slow(query, *, archived=False):
            if not query:
                return start(query)
            # A list that changes meanwhile is searched again, and the former search cancelled.
            if query not in searches or searches[query].cancelled():
                searches[query] = Future()
            return searches[query]

        monkeypatch.setattr(ui.session.conversations, "start_find", slow)
        trees = {tree.title: tree for tree in ui.session.conversations.find()}
        await ui.press("ctrl+t", "slash", "r", "i")
        await ui.until(lambda: "ri" in searches, "the search")
        assert chats.options.option_count == 3
        assert searches["r"].cancelled()
        # Enter twice before the result: what is opened matches the filter, and is not an old row.
        await ui.press("enter", "enter")
        assert ui.session.title == "Tell me of clouds"
        searches["ri"].set_result([trees["Tell me of rivers"]])
        await ui.until(lambda: ui.session.title == "Tell me of rivers", "the match")
        await ui.until(lambda: chats.options.option_count == 3, "the whole list")


async def test_a_filter_that_was_cleared_shows_no_late_result(screen, monkeypatch):
    async with screen(prepare=three_chats) as ui:
        chats, late = ui.app.query_one(Conversations), Future()
        start = ui.session.conversations.start_find
        monkeypatch.setattr(
            ui.session.conversations, "start_find", lambda query, **_: late if query else start("")
        )
        await ui.press("ctrl+t", "slash", "r", "backspace")
        await ui.until(lambda: late.cancelled(), "the end of the search")
        assert chats.options.option_count == 3


async def test_of_many_conversations_the_newest_are_listed_and_the_rest_counted(screen):
    async with screen(prepare=three_chats) as ui:
        chats = ui.app.query_one(Conversations)
        (tree, *_) = ui.session.conversations.find()
        chats.show([replace(tree, id=str(n)) for n in range(MAX_ROWS + 7)], None)
        assert chats.options.option_count == MAX_ROWS + 1
        assert "7 older: / filters" in str(chats.options.get_option_at_index(MAX_ROWS).prompt)


async def test_a_filter_that_matches_nothing_says_so(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.ask("/resume nothing like it")
        await ui.shown("nothing matches")


async def test_renaming(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.ask("/rename Weather [/] report")
        await ui.shown("▸ Weather [/] report")


async def test_archiving_asks_and_no_is_the_default(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.press("ctrl+t", "delete")
        await ui.shown("Archive this conversation?")
        await ui.press("space", "enter")
        assert len(ui.session.conversations.find()) == 3
        await ui.press("delete", "y")
        await ui.until(lambda: len(ui.session.conversations.find()) == 2, "the archiving")
        await ui.gone("Tell me of clouds")


async def test_on_a_narrow_screen_the_list_lies_over_the_transcript(screen):
    async with screen(prepare=three_chats, size=(80, 24)) as ui:
        chats = ui.app.query_one("#left")
        assert not chats.display
        width = ui.transcript.size.width
        await ui.press("ctrl+t")
        await ui.shown("Tell me of rivers")
        assert ui.transcript.size.width == width
        await ui.press("escape")
        assert not chats.display
        assert ui.prompt.has_focus


async def test_what_fits_is_shown(screen):
    async with screen(prepare=three_chats, size=(80, 24)) as ui:
        for size, chats, side in (
            ((80, 24), False, False),
            ((100, 30), True, False),
            ((160, 45), True, True),
        ):
            await ui.pilot.resize_terminal(*size)
            assert ui.app.query_one("#left").display is chats
            assert ui.app.query_one("#side").display is side
            await ui.shown("All about clouds.", "PROMPT", "ready", "tok/s")


async def test_with_no_room_at_all_one_line_says_so(screen):
    async with screen(size=(38, 9)) as ui:
        await ui.shown("Pravāha needs 40×10 or more")
        await ui.pilot.resize_terminal(80, 24)
        await ui.shown("send what you typed")


async def test_a_filtered_row_shows_the_matching_line_and_escape_clears_the_filter(screen):
    async with screen(prepare=three_chats) as ui:
        chats = ui.app.query_one(Conversations)
        await ui.press("ctrl+t", "slash")
        await ui.type("about MOUNT")
        await ui.until(lambda: chats.options.option_count == 1)
        await ui.shown("All about mountains.")
        await ui.press("escape")
        await ui.until(lambda: chats.options.option_count == 3)
        assert chats.has_focus_within


async def test_the_archive_is_shown_undone_and_deleted_for_good(screen):
    async with screen(prepare=three_chats) as ui:
        chats = ui.app.query_one(Conversations)
        await ui.press("ctrl+t", "delete", "y")
        await ui.until(lambda: chats.options.option_count == 2)
        await ui.press("A")
        await ui.shown("archive: u brings back", "Tell me of clouds")
        await ui.press("u")
        await ui.shown("the archive is empty")
        await ui.press("escape")
        await ui.until(lambda: chats.options.option_count == 3)
        await ui.press("delete", "y")
        await ui.until(lambda: chats.options.option_count == 2)
        await ui.press("A", "delete")
        await ui.shown("Delete this conversation for good?", "This cannot be undone.")
        await ui.press("enter")
        assert len(ui.session.conversations.find(archived=True)) == 1
        await ui.press("delete", "y")
        await ui.shown("the archive is empty")
        assert ui.session.conversations.find(archived=True) == []


async def test_the_number_of_messages_follows_prune_and_undo(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.press("shift+tab", "D")
        await ui.shown("· 1 message")
        await ui.press("u")
        await ui.until(lambda: ui.text.count("· 2 messages") == 3, "the restored count")


async def test_a_conversation_that_another_process_begins_is_listed(screen, tmp_path):
    async with screen(prepare=three_chats) as ui:
        store = Store.open(tmp_path / "conversations.db")
        store.trees.create("9" * 26, "From beside")
        store.close()
        await ui.shown("From beside")


async def test_gc_empties_the_archive(screen):
    async with screen(prepare=three_chats) as ui:
        await ui.ask("/gc")
        await ui.until(lambda: "The archive is empty." in ui.toasts)
        ui.session.conversations.archive(ui.session.conversations.find()[0].id)
        await ui.ask("/gc")
        await ui.shown("Delete all archived conversations (1) for good?")
        await ui.press("y")
        await ui.until(lambda: ui.session.conversations.find(archived=True) == [])


async def test_the_list_over_the_chat_closes_when_something_else_gets_the_focus(screen):
    async with screen(size=(120, 36), prepare=three_chats) as ui:
        await ui.press("ctrl+t", "f2")
        await ui.pilot.resize_terminal(60, 20)
        await ui.until(lambda: ui.app.size.width == 60, "the resize")
        await ui.shown("All about clouds.")
        chats = ui.app.query_one(Conversations)
        await ui.until(lambda: not chats.display or "filter" not in ui.text, "the closed list")

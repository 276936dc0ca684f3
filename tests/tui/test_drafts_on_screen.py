"""The text in the prompt: saved while it is typed, one for each conversation."""

from engine.conversations.storage.store import Store
from tests.tui.harness import converse, open_screen


def saved_text(folder, tree_id):
    store = Store.open(folder / "conversations.db")
    try:
        row = store.drafts.read(tree_id)
        return None if row is None else row[0]
    finally:
        store.close()


async def test_what_is_typed_is_saved_without_another_key(screen, tmp_path):
    async with screen() as ui:
        writes = []
        keep = ui.session.messages.keep_draft
        ui.session.messages.keep_draft = lambda text=None, **more: (
            writes.append(text) or keep(text, **more)
        )
        await ui.type("half")
        await ui.type(" a thought")
        await ui.until(
            lambda: saved_text(tmp_path, ui.session.tree_id) == "half a thought", "the save"
        )
        assert len(writes) < len("half a thought")


async def test_the_next_start_shows_it(screen):
    async with screen() as ui:
        await ui.type("half a thought")
    async with screen() as ui:
        assert ui.prompt.text == "half a thought"
        await ui.press("x")
        assert ui.prompt.text == "half a thoughtx"


async def test_a_sent_message_is_no_draft(screen, tmp_path):
    async with screen("answer") as ui:
        await ui.type("question")
        await ui.press("enter")
        await ui.answered()
        tree_id = ui.session.tree_id
        await ui.until(lambda: saved_text(tmp_path, tree_id) is None, "the end of the draft")
    async with screen() as ui:
        assert ui.prompt.text == ""


async def test_each_conversation_shows_its_own_text(tmp_path):
    def earlier(session, client):
        converse(session, client, ("one", "first answer"))
        session.conversations.open_new()
        converse(session, client, ("two", "second answer"))

    async with open_screen(tmp_path, prepare=earlier) as ui:
        second, first = [tree.id for tree in ui.session.conversations.find()]
        await ui.type("for two")
        await ui.app.actions.conversations.open(first)
        assert ui.prompt.text == ""
        await ui.type("for one")
        await ui.press("ctrl+n")
        assert ui.prompt.text == ""
        await ui.app.actions.conversations.open(second)
        assert ui.prompt.text == "for two"
        await ui.app.actions.conversations.open(first)
        assert ui.prompt.text == "for one"


async def test_queued_messages_are_shown_again_and_esc_takes_one_back(screen):
    async with screen("an answer") as ui:
        await ui.ask("first")
        await ui.ask("second")
        await ui.shown("⋯ second")
    async with screen("later") as ui:
        await ui.shown("⋯ second")
        await ui.press("escape")
        assert ui.prompt.text == "second"
        await ui.gone("⋯ second")


async def typed_and_saved(ui, tmp_path, text, tree_id):
    """Type a text as slowly as it takes to be saved."""
    ui.prompt.focus()
    await ui.type(text)
    await ui.until(lambda: saved_text(tmp_path, tree_id) == text, "the save")


async def test_a_command_that_opens_a_conversation_leaves_no_part_of_it_behind(screen, tmp_path):
    async with screen("answer", "another") as ui:
        await ui.ask("question")
        await ui.answered()
        first = ui.session.tree_id
        await ui.ask(f"/export {tmp_path / 'one.json'}")
        await ui.until(lambda: (tmp_path / "one.json").exists(), "the export")
        for command, end in (
            ("/im", f"port {tmp_path / 'one.json'}"),
            ("/ne", "w"),
            ("/new wh", "at is it?"),
            ("/resu", "me 1"),
            ("/dele", "te"),
        ):
            await ui.app.actions.conversations.open(first)
            await typed_and_saved(ui, tmp_path, command, first)
            ui.prompt.insert(end)
            await ui.press("enter")
            if command == "/dele":
                await ui.press("y")
            ui.client.finish()
            await ui.until(
                lambda: saved_text(tmp_path, first) is None, f"the end of the draft of {command}"
            )
            assert ui.prompt.text == ""


async def test_an_unsent_conversation_keeps_nothing_of_the_command_that_left_it(screen, tmp_path):
    async with screen("answer") as ui:
        await ui.ask("question")
        await ui.answered()
        await ui.ask(f"/export {tmp_path / 'one.json'}")
        await ui.until(lambda: (tmp_path / "one.json").exists(), "the export")
        await ui.press("ctrl+n")
        empty = ui.session.tree_id
        await typed_and_saved(ui, tmp_path, "/import", empty)
        ui.prompt.insert(f" {tmp_path / 'one.json'}")
        await ui.press("enter")
        await ui.until(lambda: ui.session.tree_id != empty, "the import")
        await ui.press("ctrl+n")
        assert ui.prompt.text == ""
    async with screen() as ui:
        assert ui.prompt.text == ""


async def test_the_text_of_a_conversation_that_was_erased_is_not_shown_in_another(screen, tmp_path):
    async with screen("answer") as ui:
        await ui.ask("question")
        await ui.answered()
        erased = ui.session.tree_id
        ui.session.conversations.archive(erased)
        await ui.app.actions.conversations.open(erased)
        await ui.type("half a thought")
        ui.app.actions.archive.ask_erase_all()
        await ui.press("y")
        await ui.until(lambda: ui.session.tree_id != erased, "the end of the conversation")
        await ui.until(lambda: ui.prompt.text == "", "an empty prompt")

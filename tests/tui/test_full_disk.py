"""What the screen says while the conversation database takes no writes."""

from app.tui.widgets.confirm import ConfirmScreen
from app.tui.widgets.conversations import Conversations
from tests.fakes.full_disk import full_disk
from tests.fakes.slow_disk import slow_disk
from tests.tui.harness import converse


async def test_a_full_disk_is_told_once_and_quitting_asks_first(screen, tmp_path):
    async with screen("first", "second", "third") as ui:
        await ui.ask("one")
        await ui.answered()
        assert not ui.session.writes.saving
        with full_disk(tmp_path / "conversations.db"):
            for question in ("two", "three"):
                await ui.ask(question)
                await ui.until(lambda: ui.session.answers.generating, "an answer")
                ui.client.finish()
                await ui.shown("not saved")
                await ui.until(lambda: not ui.session.answers.generating, "the end of the answer")
            assert len([toast for toast in ui.toasts if "cannot be saved" in toast]) == 1
            await ui.press("ctrl+q")
            await ui.until(lambda: isinstance(ui.app.screen, ConfirmScreen), "the question")
            await ui.shown("Not saved: ", "Quit and lose the last messages?")
            await ui.press("ctrl+q")
            assert len(ui.app.screen_stack) == 2
            await ui.press("n")
            assert ui.app.is_running
        await ui.gone("not saved")
        await ui.settled()
        assert any("again" in toast for toast in ui.toasts)
        ui.app._notifications.clear()
        await ui.press("ctrl+q")
        await ui.until(lambda: not ui.app.is_running, "the end")


async def test_on_a_full_disk_it_starts_and_says_so(screen, tmp_path):
    async with screen("first") as ui:
        await ui.ask("one")
        await ui.answered()
    with full_disk(tmp_path / "conversations.db"):
        opened = screen()
        ui = await opened.__aenter__()
        await ui.shown("not saved", "one", "first")
        await ui.press("ctrl+q")
        await ui.shown("Quit and lose the last messages?")
        await ui.press("n")
    await ui.gone("not saved")
    await opened.__aexit__(None, None, None)


async def test_a_conversation_that_another_process_continued_is_shown(
    screen, tmp_path, monkeypatch
):
    from tests.fakes.chat_toys import ToyClient
    from tests.tui.harness import Clock, make_session

    async with screen("first", "last") as ui:
        await ui.ask("one")
        await ui.answered()
        # The screen follows other processes by itself; this is a message sent before it has.
        monkeypatch.setattr(ui.session.following._news, "of_path", lambda: False)
        client = ToyClient()
        beside, store = make_session(client, tmp_path, Clock())
        beside.messages._new_nodes._new_id = iter(("x1", "x2")).__next__
        beside.messages.send("from beside")
        client.write("its answer", eos=True)
        beside.pump()
        store.close()
        await ui.ask("two")
        await ui.shown("from beside", "its answer")
        assert ui.prompt.text == "two"
        await ui.press("enter")
        await ui.answered()
        await ui.shown("from beside", "two", "last")


def long_ago(session, client):
    converse(session, client, ("Who was here?", "Somebody, long ago."))
    session.conversations.open_new()


async def test_a_slow_disk_delays_the_list_and_no_key(screen):
    async with screen("first", "second", prepare=long_ago) as ui:
        (earlier,) = ui.session.conversations.find()
        with slow_disk(ui.session._store) as waited_too_long:
            for question, answer in (("one", "first"), ("two", "second")):
                await ui.ask(question)
                ui.client.finish()
                await ui.until(lambda: not ui.session.answers.generating, "the end of the answer")
                await ui.shown(answer)
            await ui.app.actions.conversations.open(earlier.id)
            await ui.shown("Somebody, long ago.", "▸ Who was here?")
            await ui.press("ctrl+n")
            await ui.gone("long ago")
            await ui.type("typed")
            await ui.press("ctrl+t", "slash")
            await ui.type("second")
            assert ui.app.actions.listing.busy
            assert not waited_too_long.is_set()
        await ui.until(lambda: not ui.app.actions.listing.busy, "the list")
        assert ui.app.query_one(Conversations).options.option_count == 1


async def test_an_empty_conversation_is_no_longer_claimed_once_its_text_was_sent(screen):
    async with screen("first") as ui:
        await ui.type("one")
        ui.app._drafts.leave()
        with slow_disk(ui.session._store):
            await ui.press("enter")
            sent = ui.session.tree_id
            await ui.press("ctrl+n")
            assert ui.session.tree_id != sent

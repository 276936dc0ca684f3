"""Unsent text and queued messages: kept on disk by conversation, shown and sent again later."""

import itertools

import pytest

from engine.api.errors import EngineUnavailable
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.fakes.chat_toys import ToyClient


@pytest.fixture
def opened(tmp_path):
    """Opens sessions over one file; an earlier one is left as after `kill -9`."""
    stores, numbers = [], itertools.count()

    def open_one(client=None, **options):
        if stores:
            stores[-1].writes.wait()
            stores[-1].leases.release_all()  # the kernel does that for a dead process
            stores[-1]._lease.release()
        stores.append(Store.open(tmp_path / "conversations.db"))
        return TreeSession(
            stores[-1],
            client or ToyClient(),
            new_id=lambda: f"{next(numbers):026d}",
            stop_repetition=False,
            **options,
        )

    yield open_one
    for store in stores:
        store.close()


def converse(session, client, question="question"):
    session.messages.send(question)
    client.write("answer", eos=True)
    session.pump()


def test_the_text_of_a_saved_conversation_is_there_after_a_kill(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    session.messages.keep_draft("half a thou")
    session.messages.keep_draft("half a thought")
    again = opened()
    assert again.tree_id == session.tree_id
    assert again.messages.restore_draft() == "half a thought"


def test_the_text_of_a_conversation_without_messages_is_there_after_a_kill(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    session.conversations.open_new()
    session.messages.keep_draft("a new subject")
    again = opened()
    assert (again.tree_id, again.path()) == (session.tree_id, [])
    assert again.messages.restore_draft() == "a new subject"


def test_an_older_text_without_messages_waits_for_the_next_new_conversation(opened):
    client = ToyClient()
    session = opened(client)
    session.messages.keep_draft("first thought")
    unsaved = session.tree_id
    session._loaded.open_empty()
    converse(session, client)
    again = opened()
    assert again.tree_id == session.tree_id
    assert again.messages.restore_draft() == ""
    assert again.conversations.open_new() == unsaved
    assert again.messages.restore_draft() == "first thought"


def test_each_conversation_has_its_own_text(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    first = session.tree_id
    session.messages.keep_draft("to the first")
    session.conversations.open_new()
    assert session.messages.restore_draft() == ""
    session.messages.keep_draft("to the second")
    session.conversations.open(first)
    assert session.messages.restore_draft() == "to the first"


def test_queued_messages_are_queued_again_and_sent_first(opened):
    client = ToyClient()
    session = opened(client)
    session.messages.send("one")
    session.messages.send("two")
    session.messages.send("three")
    client_again = ToyClient()
    again = opened(client_again)
    assert again.messages.restore_draft() == ""
    assert again.messages.queued == ("two", "three")
    again.messages.send("four")
    assert again.path()[-2].text == "two"
    assert again.messages.queued == ("three", "four")
    assert opened().messages.restore_draft() == ""


def test_a_refused_message_leaves_the_queue_as_it_was(opened):
    session = opened()
    session.messages.send("one")
    session.messages.send("two")
    client = ToyClient()
    again = opened(client)
    again.messages.restore_draft()

    def refuse(request):
        raise EngineUnavailable("not now")

    client.submit = refuse
    with pytest.raises(EngineUnavailable):
        again.messages.send("three")
    assert again.messages.queued == ("two",)


def test_a_message_that_was_sent_or_withdrawn_is_not_queued_again(opened):
    client = ToyClient()
    session = opened(client)
    session.messages.send("one")
    session.messages.send("two")
    session.messages.send("three")
    assert session.messages.withdraw() == "three"
    client.write("answer", eos=True)
    session.pump()
    again = opened()
    again.messages.restore_draft()
    assert again.messages.queued == ()


def test_closing_twice_keeps_the_queue(opened):
    session = opened()
    session.messages.send("one")
    session.messages.send("two")
    session.close()
    session.close()
    again = opened()
    again.messages.restore_draft()
    assert again.messages.queued == ("two",)


def test_a_session_that_shows_no_drafts_leaves_them_alone(opened):
    client = ToyClient()
    session = opened(client)
    session.messages.send("one")
    session.messages.send("two")
    session.messages.keep_draft("text")
    plain_client = ToyClient()
    plain = opened(plain_client)
    plain.pump()
    plain.close()
    again = opened()
    assert (again.messages.restore_draft(), again.messages.queued) == ("text", ("two",))


def test_an_empty_draft_leaves_no_row_and_an_archived_conversation_no_draft(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    session.messages.keep_draft("text")
    session.messages.keep_draft("")
    tree_id = session.tree_id
    session._store.writes.wait()
    assert session._store.drafts.read(tree_id) is None
    session.messages.keep_draft("text")
    session.conversations.archive(tree_id)
    session._store.writes.wait()
    assert session._store.drafts.read(tree_id) is None


def test_the_text_in_another_running_process_is_not_opened_here(opened, tmp_path):
    session = opened()
    session.messages.keep_draft("being typed")
    session._store.writes.wait()
    store = Store.open(tmp_path / "conversations.db")
    try:
        beside = TreeSession(store, ToyClient())
        assert beside.tree_id != session.tree_id
        assert beside.messages.restore_draft() == ""
    finally:
        store.close()

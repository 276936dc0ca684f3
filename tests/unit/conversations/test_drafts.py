"""Unsent text and queued messages: kept on disk by conversation, shown and sent again later."""

import itertools

import pytest

from engine.api.errors import EngineUnavailable
from engine.conversations.session import TreeSession
from engine.conversations.store import Store
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
    session.send(question)
    client.write("answer", eos=True)
    session.pump()


def test_the_text_of_a_saved_conversation_is_there_after_a_kill(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    session.keep_draft("half a thou")
    session.keep_draft("half a thought")
    again = opened()
    assert again.tree_id == session.tree_id
    assert again.restore_draft() == "half a thought"


def test_the_text_of_a_conversation_without_messages_is_there_after_a_kill(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    session.new_tree()
    session.keep_draft("a new subject")
    again = opened()
    assert (again.tree_id, again.path()) == (session.tree_id, [])
    assert again.restore_draft() == "a new subject"


def test_an_older_text_without_messages_waits_for_the_next_new_conversation(opened):
    client = ToyClient()
    session = opened(client)
    session.keep_draft("first thought")
    unsaved = session.tree_id
    session._current = session._empty()
    converse(session, client)
    again = opened()
    assert again.tree_id == session.tree_id
    assert again.restore_draft() == ""
    assert again.new_tree() == unsaved
    assert again.restore_draft() == "first thought"


def test_each_conversation_has_its_own_text(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    first = session.tree_id
    session.keep_draft("to the first")
    session.new_tree()
    assert session.restore_draft() == ""
    session.keep_draft("to the second")
    session.open_tree(first)
    assert session.restore_draft() == "to the first"


def test_queued_messages_are_queued_again_and_sent_first(opened):
    client = ToyClient()
    session = opened(client)
    session.send("one")
    session.send("two")
    session.send("three")
    client_again = ToyClient()
    again = opened(client_again)
    assert again.restore_draft() == ""
    assert again.queued == ("two", "three")
    again.send("four")
    assert again.path()[-2].text == "two"
    assert again.queued == ("three", "four")
    assert opened().restore_draft() == ""


def test_a_refused_message_leaves_the_queue_as_it_was(opened):
    session = opened()
    session.send("one")
    session.send("two")
    client = ToyClient()
    again = opened(client)
    again.restore_draft()

    def refuse(request):
        raise EngineUnavailable("not now")

    client.submit = refuse
    with pytest.raises(EngineUnavailable):
        again.send("three")
    assert again.queued == ("two",)


def test_a_message_that_was_sent_or_withdrawn_is_not_queued_again(opened):
    client = ToyClient()
    session = opened(client)
    session.send("one")
    session.send("two")
    session.send("three")
    assert session.withdraw() == "three"
    client.write("answer", eos=True)
    session.pump()
    again = opened()
    again.restore_draft()
    assert again.queued == ()


def test_closing_twice_keeps_the_queue(opened):
    session = opened()
    session.send("one")
    session.send("two")
    session.close()
    session.close()
    again = opened()
    again.restore_draft()
    assert again.queued == ("two",)


def test_a_session_that_shows_no_drafts_leaves_them_alone(opened):
    client = ToyClient()
    session = opened(client)
    session.send("one")
    session.send("two")
    session.keep_draft("text")
    plain_client = ToyClient()
    plain = opened(plain_client)
    plain.pump()
    plain.close()
    again = opened()
    assert (again.restore_draft(), again.queued) == ("text", ("two",))


def test_an_empty_draft_leaves_no_row_and_an_archived_conversation_no_draft(opened):
    client = ToyClient()
    session = opened(client)
    converse(session, client)
    session.keep_draft("text")
    session.keep_draft("")
    tree_id = session.tree_id
    session._store.writes.wait()
    assert session._store.drafts.read(tree_id) is None
    session.keep_draft("text")
    session.delete_tree(tree_id)
    session._store.writes.wait()
    assert session._store.drafts.read(tree_id) is None


def test_the_text_in_another_running_process_is_not_opened_here(opened, tmp_path):
    session = opened()
    session.keep_draft("being typed")
    session._store.writes.wait()
    store = Store.open(tmp_path / "conversations.db")
    try:
        beside = TreeSession(store, ToyClient())
        assert beside.tree_id != session.tree_id
        assert beside.restore_draft() == ""
    finally:
        store.close()

"""Conversations that several processes have open, and those of processes that died."""

import pytest

from engine.api.errors import InvalidRequest
from engine.conversations.errors import ConversationChanged
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeStatus
from tests.fakes.chat_toys import ToyClient
from tests.unit.conversations.talking import chat


def test_an_answer_of_another_live_process_is_not_changed(tmp_path, client):
    one = Store.open(tmp_path / "c.db")
    writing = TreeSession(one, client)
    writing.messages.send("hello")
    one.writes.flush()
    two = Store.open(tmp_path / "c.db")
    reading = TreeSession(two, ToyClient())
    assert reading.path()[-1].status is NodeStatus.STREAMING
    with pytest.raises(InvalidRequest, match="Another Pravāha"):
        reading.messages.send("me too")
    client.write("hi", eos=True)
    writing.pump()
    one.writes.flush()
    reading.conversations.open(writing.tree_id)
    assert reading.path()[-1].text == "hi"
    two.close()
    one.close()


def test_two_processes_in_one_conversation_lose_and_hide_nothing(tmp_path, client):
    one, two = (Store.open(tmp_path / "c.db") for _ in range(2))
    first = TreeSession(one, client)
    chat(first, client, "hello", "hi")
    one.writes.flush()
    other = ToyClient()
    second = TreeSession(two, other)
    chat(second, other, "from the second", "yes")
    two.writes.flush()
    with pytest.raises(ConversationChanged, match="another Pravāha"):
        first.messages.send("from the first")
    shown = [view.text for view in first.path()]
    assert shown == ["hello", "hi", "from the second", "yes"]
    chat(first, client, "from the first", "yes")
    # The first one's answer is queued behind its message: nobody comes between.
    first.messages.send("and")
    first.messages.send("then")
    one.writes.flush()
    with pytest.raises(InvalidRequest, match="is generating"):
        second.branches.regenerate()
    for text in ("a", "b"):
        client.write(text, eos=True)
        first.pump()
    one.writes.flush()
    with pytest.raises(ConversationChanged):
        second.operations.undo()
    for session in (first, second):
        assert [view.text for view in session.path()][4:] == [
            "from the first", "yes", "and", "a", "then", "b",
        ]  # fmt: skip
    two.close()
    one.close()


def test_a_message_to_a_conversation_that_another_process_archived_is_listed(tmp_path, client):
    one, two = (Store.open(tmp_path / "c.db") for _ in range(2))
    first = TreeSession(one, client)
    chat(first, client, "hello", "hi")
    one.writes.flush()
    second = TreeSession(two, ToyClient())
    second.conversations.archive(first.tree_id)
    two.writes.flush()
    assert first.conversations.find() == []
    chat(first, client, "still here", "yes")
    one.writes.flush()
    assert [tree.id for tree in second.conversations.find()] == [first.tree_id]
    two.close()
    one.close()


def test_an_answer_of_a_process_that_died_can_be_continued(tmp_path, client):
    one, two = (Store.open(tmp_path / "c.db") for _ in range(2))
    first = TreeSession(one, client)
    first.messages.send("hello")
    client.write("half")
    one.writes.flush()
    second = TreeSession(two, ToyClient())
    one.leases.release_all()
    one._lease.release()  # as the kernel does when the process dies
    with pytest.raises(ConversationChanged):
        second.messages.send("go on")
    assert second.path()[-1].status is NodeStatus.STOPPED
    second.messages.send("go on")
    two.close()
    one.close()

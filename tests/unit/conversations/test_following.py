"""Two processes with one conversation: each shows what the other adds to it."""

import pytest

from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.conversations.tree import NodeStatus
from tests.fakes.chat_toys import ToyClient


@pytest.fixture
def two(tmp_path):
    """The session of each process, and the client of the first one."""
    opened = []
    now = [0.0]

    def open_one():
        store = Store.open(tmp_path / "conversations.db")
        client = ToyClient()
        session = TreeSession(store, client, clock=lambda: now[0])
        opened.append((session, store))
        return session, client

    first, client = open_one()
    first.messages.send("Where?")
    client.write("By the")
    saved(first, now)
    second, _ = open_one()
    yield first, client, second, now
    for session, store in reversed(opened):
        session.close()
        store.close()


def saved(session, now):
    """Let the session save its running answer."""
    now[0] += 1.0
    session.pump()
    session.conversations.find()  # waits for the writes


def texts(session):
    return [node.text for node in session.path()]


def test_a_running_answer_of_another_process_is_followed_to_its_end(two):
    first, client, second, now = two
    assert texts(second) == ["Where?", "By the"]
    assert second.path()[-1].status is NodeStatus.STREAMING
    second.following.follow_path()
    second.pump()
    assert not second.following.follow_path()
    client.write(" river")
    saved(first, now)
    assert second.following.follow_path()
    (delta,) = second.pump()
    assert (delta.text, delta.status) == (" river", NodeStatus.STREAMING)
    assert second.pump() == []
    client.write(".", eos=True)
    saved(first, now)
    assert second.following.follow_path()
    (delta,) = second.pump()
    assert (delta.text, delta.status) == (".", NodeStatus.DONE)
    assert texts(second) == ["Where?", "By the river."]
    second.messages.send("And then?")  # nothing is to be loaded first
    assert texts(second)[2:] == ["And then?", ""]


def test_new_messages_of_another_process_are_shown(two):
    first, client, second, now = two
    client.write(" river.", eos=True)
    saved(first, now)
    second.following.follow_path()
    second.pump()
    first.messages.send("And then?")
    client.write("The sea.", eos=True)
    saved(first, now)
    assert second.following.follow_path()
    assert [delta.node_id for delta in second.pump()][1:] == [n.id for n in second.path()[2:]]
    assert texts(second)[2:] == ["And then?", "The sea."]


def test_another_branch_of_another_process_is_not_followed(two):
    first, client, second, now = two
    client.write(" river.", eos=True)
    saved(first, now)
    second.following.follow_path()
    first.branches.regenerate()
    client.write("Elsewhere.", eos=True)
    saved(first, now)
    assert not second.following.follow_path()
    assert texts(second) == ["Where?", "By the river."]


def test_another_branch_of_another_process_appears_in_the_tree(two):
    first, client, second, now = two
    client.write(" river.", eos=True)
    saved(first, now)
    second.following.follow_path()
    assert not second.following.follow_branches()
    first.branches.regenerate()
    client.write("Elsewhere.", eos=True)
    saved(first, now)
    before, here = second.version, second.head
    assert not second.following.follow_path()
    assert second.following.follow_branches()
    assert second.version != before
    assert second.head == here == second.tree.head
    assert second.tree.leaf(None) == here
    assert [second.view(one).text for one in second.tree.siblings(here)] == [
        "By the river.",
        "Elsewhere.",
    ]
    assert not second.following.follow_branches()


def test_a_path_that_another_process_pruned_stays_open(two):
    first, client, second, now = two
    client.write(" river.", eos=True)
    saved(first, now)
    second.following.follow_path()
    first.branches.regenerate()
    client.write("Elsewhere.", eos=True)
    saved(first, now)
    first.branches.prune(second.head)
    first.conversations.find()
    second.following.follow_path()
    assert not second.following.follow_branches()
    assert texts(second) == ["Where?", "By the river."]


def test_a_conversation_that_another_process_begins_is_news_for_the_list(two):
    first, client, second, now = two
    client.write(" river.", eos=True)
    saved(first, now)
    second.following.list_changed()
    assert not second.following.list_changed()
    first.conversations.open_new()
    first.messages.send("Something else")
    client.write("Yes.", eos=True)
    saved(first, now)
    assert second.following.list_changed()
    assert not second.following.list_changed()
    first.conversations.archive(first.tree_id)
    first.conversations.find()
    assert second.following.list_changed()


def test_what_this_process_writes_is_no_news(two):
    first, client, _, now = two
    client.write(" river.", eos=True)
    saved(first, now)
    first.messages.keep_draft("unsent")
    first.conversations.find()
    assert not first.following.follow_path()

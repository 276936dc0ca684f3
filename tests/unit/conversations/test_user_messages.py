"""Messages: sent, refused, queued after an answer and taken back; their history."""

from types import SimpleNamespace

import pytest

from engine.api.errors import InvalidRequest, QueueFull
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeStatus, Verdict
from tests.unit.conversations.talking import chat, texts


def test_a_refused_message_adds_nothing(session, client):
    client.refuse = QueueFull("The queue is full.")
    with pytest.raises(QueueFull):
        session.messages.send("hello")
    assert session.path() == []
    assert session.conversations.find() == []
    with pytest.raises(InvalidRequest, match="empty"):
        session.messages.send("  \n")


def test_messages_sent_during_an_answer_are_queued_in_order(session, client):
    session.messages.send("one")
    session.messages.send("two")
    session.messages.send("three")
    assert session.messages.queued == ("two", "three")
    client.write("1", eos=True)
    deltas = session.pump()
    assert session.messages.queued == ("three",)
    assert [view.text for view in session.path()] == ["one", "1", "two", ""]
    announced = {delta.node_id for delta in deltas}
    assert {view.id for view in session.path()[1:]} <= announced


def test_withdraw_takes_the_newest_queued_message_back(session, client):
    session.messages.send("one")
    session.messages.send("two")
    session.messages.send("three")
    assert session.messages.withdraw() == "three"
    assert session.messages.queued == ("two",)
    assert session.messages.withdraw() == "two"
    assert session.messages.withdraw() is None


def test_prompt_history_is_oldest_first_over_all_conversations(session, client, store):
    for text in ("a", "a", "b"):
        session.conversations.open_new()
        session.messages.send(text)
    assert session.messages.history() == ["a", "b"]
    session.close()
    assert TreeSession(store, client).messages.history() == ["a", "b"]


def test_an_agents_answer_stands_where_its_run_began(session, client):
    node_id = session.messages.begin_exchange("@agent", by="agent")
    assert not session.answers.generating
    chat(session, client, "meanwhile", "answer")
    session.messages.finish_exchange(node_id, "the result")
    assert texts(session) == ["@agent", "the result", "meanwhile", "answer"]
    place = session.path()[1]
    assert (place.status, place.model) == (NodeStatus.DONE, "agent")
    with pytest.raises(KeyError):
        session.messages.finish_exchange(node_id, "again")


def test_an_agents_answer_comes_into_a_conversation_that_is_not_open(session, client):
    tree_id = session.tree_id
    node_id = session.messages.begin_exchange("@agent", by="agent")
    session.conversations.open_new()
    session._store.writes.wait()
    session._loaded.forget_saved()
    session.messages.finish_exchange(node_id, "the result")
    session.conversations.open(tree_id)
    assert texts(session) == ["@agent", "the result"]


def test_messages_may_follow_a_place_that_was_read_from_disk(session, client):
    tree_id = session.tree_id
    session.messages.begin_exchange("@agent", by="agent")
    session.conversations.open_new()
    session._store.writes.wait()
    session._loaded.forget_saved()
    session.conversations.open(tree_id)
    chat(session, client, "meanwhile", "answer")
    assert texts(session) == ["@agent", "", "meanwhile", "answer"]


def test_the_place_of_an_answer_that_never_came_is_stopped(session):
    session.messages.begin_exchange("@agent", by="agent")
    session.close()
    assert session.path()[-1].status is NodeStatus.STOPPED


def test_the_history_has_commands_and_changed_messages(session, client):
    session.messages.send("one")
    session.messages.remember_command("/system Be brief.")
    session.messages.remember_command("/system Be brief.")
    session.messages.remember("one, changed")
    assert session.messages.history() == ["one", "/system Be brief.", "one, changed"]


def test_other_answers_of_an_agent_are_siblings_of_its_answer(session, client, store):
    node_id = session.messages.begin_exchange("@coder", by="coder")
    session.messages.finish_exchange(
        node_id,
        "the chosen one",
        verdict=Verdict.PASSED,
        others=[("the first", Verdict.FAILED), ("the second", None)],
    )
    tree = session.tree
    siblings = tree.siblings(node_id)
    assert session.head == siblings[0] == node_id
    assert [(tree[one].text, tree[one].finish, tree[one].model) for one in siblings] == [
        ("the chosen one", "passed", "coder"),
        ("the first", "failed", "coder"),
        ("the second", "stop", "coder"),
    ]
    session.branches.adopt(siblings[1])
    chat(session, client, "why?", "because")
    assert texts(session) == ["@coder", "the first", "why?", "because"]
    # Undoing goes back over what was done by the user; the candidates stay.
    assert len(session.tree.siblings(node_id)) == 3
    session.close()
    again = TreeSession(store, client)
    again.conversations.open(session.tree_id)
    assert [again.tree[one].finish for one in again.tree.siblings(node_id)] == [
        "passed", "failed", "stop",
    ]  # fmt: skip


def test_an_answer_is_saved_although_one_beside_it_is_refused(session, monkeypatch):
    def check_input(tree_id, text):
        if "secret" in text:
            raise InvalidRequest("The message has a secret.")
        return text

    node_id = session.messages.begin_exchange("@coder", by="coder")
    guard = SimpleNamespace(check_input=check_input)
    monkeypatch.setattr(session.messages, "_guard", guard)
    session.messages.finish_exchange(
        node_id, "the chosen one", others=[("a secret", None), ("the second", None)]
    )
    tree = session.tree
    assert [tree[one].text for one in tree.siblings(node_id)] == ["the chosen one", "the second"]

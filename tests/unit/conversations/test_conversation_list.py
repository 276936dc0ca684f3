"""The list of conversations: resumed, opened, renamed, archived, searched."""

import pytest

from engine.api.errors import InvalidRequest
from engine.conversations.session import TreeSession
from tests.unit.conversations.talking import chat


def test_a_new_session_resumes_the_last_conversation(session, client, store):
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    before = session.path()
    session.close()
    again = TreeSession(store, client)
    assert again.tree_id == session.tree_id
    assert again.path() == before
    assert again.context.used() == session.context.used() > 0


def test_an_empty_conversation_is_not_listed(session, client):
    assert session.conversations.find() == []
    first = session.tree_id
    session.messages.send("hello  world\nsecond line")
    assert [(t.id, t.title, t.messages) for t in session.conversations.find()] == [
        (first, "hello world second line", 2)
    ]
    session.conversations.open_new()
    assert len(session.conversations.find()) == 1


def test_an_answer_continues_while_another_conversation_is_open(session, client):
    first = session.tree_id
    session.messages.send("hello")
    session.messages.send("and then")
    session.conversations.open_new()
    assert not session.answers.generating
    client.write("hidden", eos=True)
    session.pump()
    session.conversations.open(first)
    assert [view.text for view in session.path()] == ["hello", "hidden", "and then", ""]
    assert session.answers.generating


def test_rename_delete_and_search(session, client):
    session.messages.send("tell me about rivers")
    client.write("they flow", eos=True)
    session.pump()
    tree = session.tree_id
    session.conversations.rename(tree, "Water")
    assert [t.title for t in session.conversations.find()] == ["Water"]
    assert [t.id for t in session.conversations.find("FLOW")] == [tree]
    assert [t.id for t in session.conversations.find("wa")] == [tree]
    assert session.conversations.find("100%") == []
    session.conversations.archive(tree)
    assert session.conversations.find() == []
    assert session.path() == []
    assert session.tree_id != tree


def test_deleting_a_conversation_stops_its_answer(session, client):
    session.messages.send("hello")
    session.conversations.archive(session.tree_id)
    assert client.cancelled == [client.requests[0].request_id]


def test_opening_a_missing_conversation_names_it(session):
    with pytest.raises(InvalidRequest, match="no conversation X"):
        session.conversations.open("X")


def test_search_finds_messages_of_every_branch_but_pruned_ones(session, client):
    question, answer = chat(session, client, "the white whale", "Moby Dick")
    edited = session.branches.edit(question, "a blue whale")
    client.write("no book", eos=True)
    session.pump()
    found = session.conversations.find_messages("whale")
    assert {hit.node_id for hit in found} == {question, edited}
    assert [hit.text for hit in session.conversations.find_messages("moby")] == ["Moby Dick"]
    assert [hit.node_id for hit in session.conversations.find_messages("k")] == [
        session.head,
        answer,
    ]
    session.branches.prune(question)
    assert [hit.node_id for hit in session.conversations.find_messages("whale")] == [edited]

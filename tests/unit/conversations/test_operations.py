"""Undo and redo."""

from tests.unit.conversations.talking import chat


def test_undoing_all_operations_leaves_an_empty_usable_conversation(session, client):
    session.messages.send("hello")
    client.write("a", eos=True)
    session.pump()
    assert session.operations.undo() == "send"
    assert session.path() == []
    assert session.operations.undo() is None
    session.messages.send("other")
    client.write("b", eos=True)
    session.pump()
    assert [view.text for view in session.path()] == ["other", "b"]


def test_consecutive_moves_are_undone_together(session, client):
    question, first = chat(session, client, "one", "1")
    for _ in range(3):
        session.branches.regenerate(question)
        client.write("x", eos=True)
        session.pump()
    last = session.head
    for one in session.tree.siblings(first):
        session.branches.adopt(one)
    session.branches.adopt(first)
    assert session.operations.undo() == "go to"
    assert session.head == last
    assert session.operations.redo() == "go to"
    assert session.head == first

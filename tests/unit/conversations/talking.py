"""Talking to a session in a test: messages with their answers, and what is shown and saved of them."""

import sqlite3
import time

from engine.conversations.session import TreeSession


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def chat(session, client, text, answer):
    """Send a message and give its answer; the two nodes' ids."""
    session.messages.send(text)
    client.write(answer, eos=True)
    session.pump()
    return tuple(view.id for view in session.path()[-2:])


def shape(session):
    return [(view.kind.value, view.text, view.status.value) for view in session.path()]


def texts(session):
    return [view.text for view in session.path()]


def saved_texts(file, tree_id):
    """What another program reads from the file."""
    connection = sqlite3.connect(file)
    try:
        query = "SELECT text FROM node WHERE tree_id = ? ORDER BY n"
        return [text for (text,) in connection.execute(query, (tree_id,))]
    finally:
        connection.close()


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def reopened(session, store, client):
    """The conversation as another process would see it."""
    store.writes.flush()
    other = TreeSession(store, client)
    other.conversations.open(session.tree_id)
    return other


def assert_saved(session, store, client):
    other = reopened(session, store, client)
    assert texts(other) == texts(session)
    assert other.tree.branches() == session.tree.branches()
    ids = [node.id for node in store.nodes.of_tree(session.tree_id)]
    for one in ids:
        assert other.tree[one].pruned_at == session.tree[one].pruned_at
        assert other.tree.children(one) == session.tree.children(one)
        assert other.tree.current_child(one) == session.tree.current_child(one)

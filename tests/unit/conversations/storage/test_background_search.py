"""Searches on their own thread: results, cancellation, and the lines they are shown by."""

import threading
from concurrent.futures import CancelledError

import pytest

from engine.conversations.matching_line import matching_line
from engine.conversations.session import TreeSession
from engine.conversations.storage.background_search import BackgroundSearch
from engine.conversations.storage.store import Store
from tests.fakes.chat_toys import ToyClient


class Connection:
    def __init__(self):
        self.interrupted = threading.Event()
        self.closed = False

    def interrupt(self):
        self.interrupted.set()

    def close(self):
        self.closed = True


def test_a_new_search_interrupts_and_cancels_the_one_before_it():
    connection, began = Connection(), threading.Event()

    def search(_, query):
        if query == "slow":
            began.set()
            connection.interrupted.wait()
            raise RuntimeError("interrupted")
        return [query]

    background = BackgroundSearch(lambda: connection, search)
    slow = background.start("slow")
    began.wait()
    fast = background.start("fast")
    assert fast.result() == ["fast"]
    with pytest.raises(CancelledError):
        slow.result()
    background.close()
    background.close()
    assert connection.closed


def test_the_error_of_a_search_is_the_callers():
    def search(_, query):
        raise OSError("disk")

    background = BackgroundSearch(Connection, search)
    with pytest.raises(OSError, match="disk"):
        background.start("x").result()
    background.close()


def test_it_finds_what_the_blocking_search_finds(tmp_path):
    store = Store.open(tmp_path / "c.db")
    client = ToyClient()
    session = TreeSession(store, client)
    for text in ("about Herons", "hills"):
        session.conversations.open_new()
        session.messages.send(text)
        client.write("yes", eos=True)
        session.pump()
    hits = session.conversations.find_messages("heron")
    assert [hit.text for hit in hits] == ["about Herons"]
    assert session.conversations.start_find_messages("heron").result() == hits
    session.close()
    store.close()


def test_trees_in_the_background_are_those_of_the_blocking_call(tmp_path):
    """Queued writes and conversations that cannot be written are listed, too."""
    store = Store.open(tmp_path / "c.db")
    client = ToyClient()
    session = TreeSession(store, client)
    for text in ("about Herons", "hills", "two herons"):
        session.conversations.open_new()
        session.messages.send(text)
    found = session.conversations.start_find("heron").result()
    assert [tree.title for tree in found] == ["two herons", "about Herons"]
    session.conversations.archive(found[0].id)
    assert session.conversations.start_find("heron").result() == session.conversations.find("heron")
    archived = session.conversations.start_find("heron", archived=True).result()
    assert [tree.title for tree in archived] == ["two herons"]
    session.close()
    store.close()


@pytest.mark.parametrize(
    ("text", "query", "line", "match"),
    [
        ("one\na Heron flies\nend", "hERON", "a Heron flies", "Heron"),
        ("first\nsecond", "absent", "first", ""),
        ("x" * 100 + " needle " + "y" * 400, "needle", "…" + "x" * 29 + " needle", "needle"),
        ("word " * 20 + "needle", "needle", "…" + "word " * 5 + "needle", "needle"),
        ("a\nb", "a\nb", "a\nb", "a\nb"),
    ],
)
def test_the_matching_line(text, query, line, match):
    found = matching_line(text, query)
    assert found.text.startswith(line)
    assert len(found.text) <= 200
    assert found.text[found.start : found.end] == match

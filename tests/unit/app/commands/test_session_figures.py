"""The figures of sessions: of this screen's conversations, of served clients, and of an attached server."""

from app.commands.session_figures import remote_session_figures, session_figures
from app.server.process.sessions import Session, Sessions
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from tests.fakes.chat_toys import ToyClient
from tests.unit.conversations.talking import chat

LISTED = {
    "id": "codex-1",
    "requests": 2,
    "prompt_tokens": 100,
    "new_tokens": 60,
    "computed_tokens": 70,
    "reread_tokens": 10,
}


class Server:
    def __init__(self, *listed):
        self.listed = list(listed)

    def sessions(self):
        return self.listed


def test_answers_of_the_screen_are_counted_by_conversation(tmp_path):
    own, client = Sessions(), ToyClient()
    store = Store.open(tmp_path / "conversations.db")
    try:
        session = TreeSession(store, client, on_answered=own.add)
        chat(session, client, "one", "first")
        chat(session, client, "two", "second")
    finally:
        store.close()
    (found,) = session_figures(own, None)()
    first, second = (len(one.prompt_ids) for one in client.requests)
    assert found.name.startswith("one (")
    assert (found.requests, found.prompt_tokens) == (2, first + second)
    assert found.computed_tokens == first + second  # the toy caches nothing
    assert found.reread_tokens == first + len("first") + 1  # the second prompt begins with them


def test_clients_that_are_served_come_after_the_own_ones():
    own = Sessions()
    own.add("here", (1, 2), (3,), 0)
    figures = session_figures(own, lambda: [Session("client")])
    assert [one.name for one in figures()] == ["here", "client"]


def test_the_sessions_of_a_server():
    (found,) = remote_session_figures(Server(LISTED))()
    assert (found.name, found.reread_tokens) == ("codex-1", 10)
    assert round(found.hit_rate, 6) == 0.3


def test_what_is_no_session_is_left_out():
    assert [one.name for one in remote_session_figures(Server({"id": "x"}, LISTED))()] == [
        "codex-1"
    ]
    assert remote_session_figures(object())() == []

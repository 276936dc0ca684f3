"""A full context: earlier messages are left out or summarised, then the message is sent."""

import pytest

from engine.api.errors import InvalidRequest
from engine.conversations.errors import ContextFull, MessageTooLong
from engine.conversations.session import TreeSession
from engine.conversations.shortening import send_shortened
from engine.conversations.storage.store import Store
from engine.conversations.summaries import SUMMARY_TOKENS
from engine.conversations.tree import NodeKind
from tests.fakes.chat_toys import ToyClient

LENGTH = 1500


@pytest.fixture
def client():
    return ToyClient(context_length=LENGTH)


@pytest.fixture
def session(tmp_path, client):
    store = Store.open(tmp_path / "c.db")
    session = TreeSession(store, client, stop_repetition=False)
    yield session
    session.close()
    store.close()


def fill(session, client, *sizes):
    for number, size in enumerate(sizes):
        session.messages.send(f"question {number}")
        client.write(f"answer {number} " + "xy" * (size // 2), eos=True)
        session.pump()


def prompt(client):
    return client.tokenizer.decode(client.requests[-1].prompt_ids)


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [((600, 300, 300), [1, 2]), ((300, 700, 300), [2]), ((100, 100, 1100), []), ((1400,), [])],
)
def test_no_more_is_left_out_than_necessary(session, client, sizes, kept):
    fill(session, client, *sizes)
    message = "next " + "ab" * 200
    with pytest.raises(ContextFull):
        session.messages.send(message)
    send_shortened(session, message, summarised=False, length=LENGTH)
    assert message in prompt(client)
    assert [n for n in range(len(sizes)) if f"answer {n}" in prompt(client)] == kept
    notes = [
        node
        for node in session.tree.subtree(session.path()[0].id)
        if session.tree[node].kind is NodeKind.NOTE
    ]
    assert len(notes) == 1


def test_a_message_that_never_fits_changes_nothing(session, client):
    fill(session, client, 300, 300, 300)
    before = session.path(), len(session.tree)
    with pytest.raises(InvalidRequest, match="alone is too long"):
        send_shortened(session, "ab" * 900, summarised=False, length=LENGTH)
    assert (session.path(), len(session.tree)) == before


@pytest.mark.parametrize("sizes", [(), (300, 300)])
def test_shortening_is_not_offered_for_a_message_that_never_fits(session, client, sizes):
    fill(session, client, *sizes)
    with pytest.raises(MessageTooLong, match="The message alone has"):
        session.messages.send("ab" * 900)


def test_a_summary_takes_the_place_of_earlier_messages(session, client):
    fill(session, client, 900, 200, 200)
    message = "next " + "ab" * 100
    send_shortened(session, message, summarised=True, length=LENGTH)
    assert session.messages.queued == (message,)
    assert client.requests[-1].sampling.max_tokens == SUMMARY_TOKENS
    client.write("the gist", eos=True)
    session.pump()
    assert "the gist" in prompt(client)
    assert message in prompt(client)
    assert "answer 0" not in prompt(client)
    # The limit of the summary is not that of the answer after it.
    assert client.requests[-1].sampling.max_tokens != SUMMARY_TOKENS


@pytest.mark.parametrize("sizes", [(900, 400, 700), (1400,)])
def test_a_summary_that_does_not_help_is_refused(session, client, sizes):
    fill(session, client, *sizes[:2])
    before = session.path()
    with pytest.raises(InvalidRequest, match="leave"):
        send_shortened(session, "ab" * 400, summarised=True, length=LENGTH)
    assert session.path() == before

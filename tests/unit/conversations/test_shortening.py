"""A full context: earlier messages are left out or summarised, then the message is sent."""

import jinja2
import pytest

from engine.api.errors import InvalidRequest
from engine.api.request import FinishReason
from engine.conversations.errors import ContextFull, MessageTooLong
from engine.conversations.session import TreeSession
from engine.conversations.shortening import send_shortened
from engine.conversations.storage.store import Store
from engine.conversations.summaries import summary_tokens
from engine.conversations.tree import NodeKind
from engine.text.reasoning_markers import ReasoningMarkers
from tests.fakes.chat_toys import ToyClient
from tests.unit.conversations.test_reasoning import SWITCHED

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
    assert client.requests[-1].sampling.max_tokens == summary_tokens(LENGTH)
    client.write("the gist", eos=True)
    session.pump()
    assert "the gist" in prompt(client)
    assert message in prompt(client)
    assert "answer 0" not in prompt(client)
    # The limit of the summary is not that of the answer after it.
    assert client.requests[-1].sampling.max_tokens != summary_tokens(LENGTH)


@pytest.mark.parametrize("sizes", [(900, 400, 700), (1400,)])
def test_a_summary_that_does_not_help_is_refused(session, client, sizes):
    fill(session, client, *sizes[:2])
    before = session.path()
    with pytest.raises(InvalidRequest, match="leave"):
        send_shortened(session, "ab" * 400, summarised=True, length=LENGTH)
    assert session.path() == before


def test_room_is_reserved_for_the_summary(session, client):
    """A tenth of the context, though the messages to sum up alone would leave less."""
    fill(session, client, 480, 720, 20, 20)
    outlook = session.context.outlook(summarised=True)
    assert (outlook.stays, outlook.leaves, outlook.unread) == (("question 2", "question 3"), 2, 1)
    session.context.shorten(summarised=True)
    request = client.requests[-1]
    assert request.sampling.max_tokens == summary_tokens(LENGTH) == LENGTH // 10
    assert len(request.prompt_ids) + request.sampling.max_tokens <= LENGTH
    assert "answer 1" in prompt(client)
    assert "answer 0" not in prompt(client)


def test_all_is_read_if_there_is_room(session, client):
    fill(session, client, 300, 300, 60, 60)
    assert session.context.outlook(summarised=True).unread == 0
    session.context.shorten(summarised=True)
    assert "answer 0" in prompt(client)
    assert "answer 1" in prompt(client)


def test_messages_that_leave_a_summary_no_room_are_not_summed_up(session, client):
    fill(session, client, 1200, 20, 20)
    before = session.path()
    with pytest.raises(ContextFull, match="no room for their summary"):
        session.context.shorten(summarised=True)
    assert session.path() == before


def test_a_summary_without_a_text_takes_nothing_out(session, client):
    fill(session, client, 100, 100, 100)
    session.context.shorten(summarised=True)
    client.write("", eos=True)
    session.pump()
    session.messages.send("next")
    assert "answer 0" in prompt(client)


def test_what_is_left_is_not_left_out_again(session, client):
    fill(session, client, 100, 100, 100)
    session.context.shorten(summarised=False)
    with pytest.raises(InvalidRequest, match="no earlier messages"):
        session.context.shorten(summarised=False)


@pytest.mark.parametrize(("length", "tokens"), [(512, 64), (1500, 150), (4096, 409), (131072, 512)])
def test_a_summary_gets_a_tenth_of_the_context_within_bounds(length, tokens):
    assert summary_tokens(length) == tokens


def test_a_summary_is_read_without_the_thinking_before_it(session, client):
    client.markers = ReasoningMarkers("<think>", "</think>")
    fill(session, client, 100, 100)
    session.context.shorten(summarised=True, keep=1)
    request = client.requests[-1]
    assert request.sampling.reasoning.max_tokens == summary_tokens(LENGTH) // 2
    client.write("<think>they want a summary</think>They asked twice.", eos=True)
    session.pump()
    session.messages.send("next")
    assert "(Summary of an earlier conversation: They asked twice.)" in prompt(client)
    assert "they want" not in prompt(client)


def test_the_model_is_asked_not_to_think_about_a_summary(session, client):
    client.markers = ReasoningMarkers("<think>", "</think>")
    client._template = jinja2.Environment().from_string(SWITCHED)
    fill(session, client, 100, 100)
    assert not prompt(client).endswith("<think></think>")
    session.context.shorten(summarised=True, keep=1)
    assert prompt(client).endswith("<think></think>")
    assert client.requests[-1].sampling.reasoning is None


def test_a_summary_that_is_thinking_alone_takes_nothing_out(session, client):
    client.markers = ReasoningMarkers("<think>", "</think>")
    fill(session, client, 100, 100)
    session.context.shorten(summarised=True, keep=1)
    client.write("<think>they want a summary", finish=FinishReason.LENGTH)
    session.pump()
    session.messages.send("next")
    assert "question 0" in prompt(client)
    assert "they want" not in prompt(client)

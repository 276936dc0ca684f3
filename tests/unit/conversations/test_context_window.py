"""The context of the model: full, and shortened."""

import pytest

from engine.api.errors import InvalidRequest
from engine.conversations.context_window import CONTEXT_NOTE, KEPT_MESSAGES
from engine.conversations.errors import ContextFull, MessageTooLong
from engine.conversations.session import TreeSession
from tests.fakes.chat_toys import ToyClient
from tests.unit.conversations.talking import chat, texts


@pytest.fixture
def session(store, client):
    return TreeSession(store, client, stop_repetition=False)


@pytest.mark.parametrize("summarised", [False, True])
def test_a_shortened_context_keeps_the_last_messages(session, client, summarised):
    with pytest.raises(InvalidRequest, match="no earlier messages"):
        session.context.shorten(summarised=summarised)
    session.system_prompt = "the rule"
    for number in range(KEPT_MESSAGES + 2):
        chat(session, client, f"question{number}", f"answer{number}")
    session.context.shorten(summarised=summarised)
    if summarised:
        client.write("the gist", eos=True)
        session.pump()
    else:
        assert texts(session)[-1] == CONTEXT_NOTE
    session.messages.send("next")
    prompt = client.tokenizer.decode(client.requests[-1].prompt_ids)
    assert "the rule" in prompt
    assert ("the gist" in prompt) is summarised
    assert [f"question{n}" in prompt for n in range(4)] == [False, False, True, True]
    assert CONTEXT_NOTE not in prompt


def test_a_full_context_has_an_error_of_its_own(store):
    client = ToyClient(context_length=140)
    session = TreeSession(store, client)
    chat(session, client, "one", "abc")
    with pytest.raises(ContextFull, match="--ctx"):
        session.messages.send("many words, " * 9)
    with pytest.raises(MessageTooLong, match="--ctx"):
        session.messages.send("many words, " * 15)

"""The system prompt of a conversation."""

import pytest

from engine.api.errors import InvalidRequest
from engine.conversations.session import TreeSession
from engine.conversations.tree import NodeKind
from tests.fakes.chat_toys import ALTERNATING, ToyClient


def test_the_system_prompt_becomes_a_node_and_changes_from_there_on(store, client):
    session = TreeSession(store, client, system_prompt="be brief")
    session.messages.send("hello")
    client.write("hi", eos=True)
    session.pump()
    assert session.path()[0].kind is NodeKind.SYSTEM
    session.system_prompt = "be long"
    session.messages.send("more")
    kinds = [view.kind.value for view in session.path()]
    assert kinds == ["system", "user", "assistant", "system", "user", "assistant"]
    text = client.detokenize(client.requests[-1].prompt_ids, skip_special=False)
    assert text.startswith("<|im_start|>system\nbe long<|im_end|>\n<|im_start|>user\nhello")
    assert "be brief" not in text
    client.write("ok", eos=True)
    session.pump()
    session.close()
    assert TreeSession(store, client).system_prompt == "be long"


def test_a_default_system_prompt_is_omitted_for_templates_without_one(store):
    client = ToyClient(ALTERNATING)
    session = TreeSession(store, client, system_prompt="be brief", system_required=False)
    session.messages.send("hello")
    assert [view.kind.value for view in session.path()] == ["user", "assistant"]
    asked = TreeSession(store, client, system_prompt="be brief", resume=False)
    with pytest.raises(InvalidRequest, match="alternate"):
        asked.messages.send("hello")

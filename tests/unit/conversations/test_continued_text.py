"""Prompts of a model without a chat template: the text so far, which it continues."""

from dataclasses import replace

import pytest

from engine.conversations.prompt_builder import PromptBuilder
from engine.conversations.tree import Node, NodeKind, NodeStatus
from engine.text.gguf_vocabulary import read_tokenizer
from tests.fakes.chat_toys import ToyClient
from tests.fakes.tiny_vocabulary import base_fields


def node(name, kind, text):
    return Node(name, "t", None, kind, text, NodeStatus.DONE, 0.0)


@pytest.fixture
def client():
    fields = base_fields()
    size = len(fields["tokenizer.ggml.tokens"])
    tokenizer = read_tokenizer(fields, source="base.gguf", vocab_size=size)
    client = ToyClient(tokenizer=tokenizer)
    client.render_chat = tokenizer.render_chat
    client.control_tokens = lambda: tokenizer.control_tokens
    return client


@pytest.mark.parametrize("ends", [True, False])
def test_what_is_sent_continues_the_answer_before_it(client, ends):
    """Without an end token that the model may have written: no text goes on behind one."""
    builder, tokenizer = PromptBuilder(client), client.tokenizer
    question = node("1", NodeKind.USER, "in the")
    first = builder.build([question])
    assert list(first.token_ids) == tokenizer.encode("in the")
    written = tuple(tokenizer.encode(" hell"))
    answer = replace(
        node("2", NodeKind.ASSISTANT, " hell"),
        token_ids=(*written, *(tokenizer.eos_ids if ends else ())),
        tokenizer=client.tokenizer_fingerprint(),
    )
    second = builder.build([question, answer, node("3", NodeKind.USER, "in")])
    assert second.token_ids == (*first.token_ids, *written, *tokenizer.encode("\n\nin"))


def test_no_system_prompt_is_put_before_the_text(client):
    assert not PromptBuilder(client).takes_system_prompt()

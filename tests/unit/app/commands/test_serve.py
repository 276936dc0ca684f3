"""What `pravaha --serve` prints about its model."""

from types import SimpleNamespace

from app.commands.serve import describe_model
from engine.text.gguf_vocabulary import read_tokenizer
from tests.fakes.fake_client import FakeClient
from tests.fakes.tiny_vocabulary import base_fields, byte_level_fields


def described(**changes):
    fields = byte_level_fields() | changes
    tokenizer = read_tokenizer(fields, source="tiny.gguf", vocab_size=265)
    return describe_model(SimpleNamespace(snapshot=FakeClient().snapshot, tokenizer=tokenizer))


def test_a_model_is_one_line():
    assert described().startswith("Model ")
    assert "\n" not in described()


def test_what_its_owner_should_know_follows():
    lines = described(**{"tokenizer.chat_template": "{{ nope.x }}"}).splitlines()
    assert lines[1:] == [
        "Note: Chats are refused. The model's chat template fails on a plain question: 'nope' is undefined."
    ]


def test_a_model_without_a_chat_template_continues_text():
    lines = described(**base_fields()).splitlines()
    assert lines[1:] == ["Note: The model has no chat template: it continues text."]

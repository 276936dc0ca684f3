"""A tokenizer described as JSON values is the same one on another machine."""

import json

import pytest

from engine.api.errors import ModelError
from engine.executors.open_model import open_model
from engine.text.chat_template import CHATML, ChatTemplate
from engine.text.infill import InfillTokens
from engine.text.tokenizer import Tokenizer
from tests.fakes.tool_template import TOOL_TEMPLATE
from tests.server.toy_tokenizer import byte_tokenizer

TEXTS = ("Hello, world", "<|im_start|>user\nघोड़ा 🇮🇳<|im_end|>", "a\x00b\ufeff  c\n\n")


def copy(tokenizer):
    return Tokenizer.from_fields(json.loads(json.dumps(tokenizer.to_fields())))


def assert_equal(one, other):
    for text in TEXTS:
        for special in (False, True):
            ids = one.encode(text, special=special)
            assert other.encode(text, special=special) == ids
            assert other.token_texts(ids) == one.token_texts(ids)
            assert other.decode(ids, skip_special=False) == one.decode(ids, skip_special=False)
        messages = [{"role": "user", "content": text}]
        assert other.render_chat(messages) == one.render_chat(messages)
        assert other.encode_chat(messages) == one.encode_chat(messages)
    for name in (
        "vocab_size", "special_ids", "eos_ids", "bos_id", "add_bos", "fingerprint", "has_chat_template",
        "infill", "chat_template", "tool_template",
    ):  # fmt: skip
        assert getattr(other, name) == getattr(one, name)
    assert other.control_tokens.spellings == one.control_tokens.spellings


@pytest.mark.parametrize(
    "template", [None, "{% for m in messages %}[{{ m['content'] }}]{% endfor %}"]
)
def test_a_copy_encodes_and_decodes_as_the_original(template):
    original = byte_tokenizer(template=template, add_bos=True)
    original.infill = InfillTokens(1, 2, None, True, frozenset({1, 2}))
    assert_equal(original, copy(original))


def test_a_copy_has_the_template_for_tools():
    original = byte_tokenizer(template=CHATML)
    original._chat_template = ChatTemplate(CHATML, tokens={}, tool_use=TOOL_TEMPLATE)
    assert copy(original).tool_template == TOOL_TEMPLATE


def test_a_copy_of_the_demo_models_tokenizer(demo_model):
    original = open_model(demo_model).tokenizer
    assert_equal(original, copy(original))


def test_pieces_that_the_encoder_has_under_another_id_are_kept():
    original = byte_tokenizer()
    pieces = [original._encoder.id_to_token(one) for one in range(original.vocab_size)]
    pieces[65] = pieces[66]  # a vocabulary that lists a piece twice
    original = Tokenizer.from_fields(
        original.to_fields() | {"pieces": {"65": pieces[66]}, "num_pieces": len(pieces)}
    )
    assert original.decode([65, 66]) == "BB"
    assert copy(original).decode([65, 66]) == "BB"


def test_damaged_fields_are_refused():
    fields = byte_tokenizer().to_fields()
    for damaged in ({}, fields | {"encoder": "{}"}, fields | {"chat_template": None}):
        with pytest.raises(ModelError, match="damaged"):
            Tokenizer.from_fields(damaged)

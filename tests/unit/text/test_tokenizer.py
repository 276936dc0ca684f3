import pytest

from engine.api.errors import InvalidRequest
from engine.api.tools import Tool
from engine.text.gguf_vocabulary import read_tokenizer
from engine.text.infill import InfillTokens
from engine.text.message_forms import has_system_role
from engine.text.tokenizer import Tokenizer
from engine.text.tool_messages import template_tools
from tests.fakes.tiny_vocabulary import byte_level_fields, sentencepiece_fields
from tests.server.toy_tokenizer import byte_tokenizer


def tokenizer_of(fields):
    size = len(fields["tokenizer.ggml.tokens"])
    return read_tokenizer(fields, source="tiny.gguf", vocab_size=size)


@pytest.fixture(scope="module")
def byte_level():
    return tokenizer_of(byte_level_fields())


@pytest.fixture(scope="module")
def sentencepiece():
    return tokenizer_of(sentencepiece_fields())


def test_ids_outside_the_vocabulary_are_refused(byte_level):
    for token_id in (-1, byte_level.vocab_size, 2**40):
        with pytest.raises(InvalidRequest, match="outside the vocabulary"):
            byte_level.decode([token_id])
        with pytest.raises(InvalidRequest, match="outside the vocabulary"):
            byte_level.token_bytes(token_id)


def test_an_unpaired_surrogate_is_rejected_in_one_sentence(byte_level):
    with pytest.raises(InvalidRequest, match="unpaired surrogate at character 2"):
        byte_level.encode("ab\ud800c")


def test_empty_text(byte_level):
    assert byte_level.encode("") == []
    assert byte_level.decode([]) == ""


def test_special_tokens_are_skipped_or_spelled(byte_level):
    ids = byte_level.encode("<|im_start|>in<|im_end|>", special=True)
    assert byte_level.decode(ids) == "in"
    assert byte_level.decode(ids, skip_special=False) == "<|im_start|>in<|im_end|>"
    assert byte_level.token_bytes(1) == b"<|im_start|>"


def test_a_stream_after_an_ordinary_token_keeps_its_leading_space(sentencepiece):
    hello, world = sentencepiece.encode("hello world")
    assert sentencepiece.incremental_detokenizer().feed([world]) == "world"
    assert sentencepiece.incremental_detokenizer(after=hello).feed([world]) == " world"
    assert (
        sentencepiece.incremental_detokenizer(after=sentencepiece.bos_id).feed([hello]) == "hello"
    )


def test_text_that_continues_another_gets_no_space(sentencepiece, byte_level):
    assert sentencepiece.decode(sentencepiece.encode("world")) == "world"
    after = sentencepiece.encode("hello")[-1]
    rest = sentencepiece.encode_rest("world")
    assert sentencepiece.incremental_detokenizer(after=after).feed(rest) == "world"
    assert byte_level.encode_rest("in") == byte_level.encode("in")


def test_the_middle_of_an_infill_keeps_its_leading_space():
    tokenizer = tokenizer_of(sentencepiece_fields())
    hello, special = tokenizer.encode("hello")[-1], tokenizer.bos_id
    tokenizer.infill = InfillTokens(special, special, special, False, frozenset())
    assert tokenizer.incremental_detokenizer(after=special).feed([hello]) == " hello"


def test_a_text_of_a_model_whose_infills_have_no_middle_begins_without_the_added_space():
    tokenizer = tokenizer_of(sentencepiece_fields())
    special = tokenizer.bos_id
    tokenizer.infill = InfillTokens(special, special, None, False, frozenset())
    assert tokenizer.incremental_detokenizer().feed(tokenizer.encode("hello")) == "hello"


def test_chat_is_rendered_by_the_models_template(byte_level):
    messages = [{"role": "user", "content": "in"}]
    text = byte_level.render_chat(messages)
    assert text == "<|im_start|>user\nin<|im_end|>\n<|im_start|>assistant\n"
    assert not byte_level.render_chat(messages, add_generation_prompt=False).endswith("assistant\n")


def test_a_model_without_a_template_continues_text(sentencepiece):
    assert not sentencepiece.has_chat_template
    assert sentencepiece.continues_text
    assert sentencepiece.notes == ("The model has no chat template: it continues text.",)
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": " world"},
        {"role": "user", "content": "hello"},
    ]
    assert sentencepiece.render_chat(messages) == "<s>hello world\n\nhello"
    ids = sentencepiece.encode_chat(messages[:1])
    assert ids == [sentencepiece.bos_id, *sentencepiece.encode("hello")]
    assert not has_system_role(sentencepiece.render_chat)


def test_a_model_without_a_template_that_knows_its_marks_uses_chatml():
    tokenizer = byte_tokenizer(template=None)
    assert not tokenizer.has_chat_template
    assert not tokenizer.continues_text
    text = tokenizer.render_chat([{"role": "user", "content": "hello"}])
    assert text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("adds_bos", [True, False])
def test_a_text_that_is_continued_begins_as_the_model_expects(adds_bos):
    fields = sentencepiece_fields() | {"tokenizer.ggml.add_bos_token": adds_bos}
    tokenizer = read_tokenizer(fields, source="x", vocab_size=len(fields["tokenizer.ggml.tokens"]))
    ids = tokenizer.encode_chat([{"role": "user", "content": "hello </s>"}])
    assert (ids[0] == tokenizer.bos_id) is adds_bos
    assert not tokenizer.eos_ids & set(ids)


def test_tools_of_a_model_that_continues_text_are_written_into_it(sentencepiece):
    tools = template_tools([Tool("weather", "", {"type": "object", "properties": {}})])
    text = sentencepiece.render_chat([{"role": "user", "content": "hello"}], tools=tools)
    assert text.startswith("<s>You can call these tools:")
    assert text.endswith("\n\nhello")


def test_a_copy_of_a_tokenizer_continues_text_too(sentencepiece):
    copy = Tokenizer.from_fields(sentencepiece.to_fields())
    assert copy.continues_text
    assert copy.chat_template == sentencepiece.chat_template

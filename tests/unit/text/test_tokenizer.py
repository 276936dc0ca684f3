import pytest

from engine.api.errors import InvalidRequest
from engine.text.gguf_vocabulary import read_tokenizer
from engine.text.infill import InfillTokens
from tests.fakes.tiny_vocabulary import byte_level_fields, sentencepiece_fields


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


def test_a_model_without_a_template_uses_chatml(sentencepiece):
    assert not sentencepiece.has_chat_template
    text = sentencepiece.render_chat([{"role": "user", "content": "hello"}])
    assert text == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"

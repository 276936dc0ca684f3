"""Round trips of text and ids; incremental detokenization gives the text of whole detokenization."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.gguf_vocabulary import read_tokenizer
from tests.fakes.tiny_vocabulary import byte_level_fields, sentencepiece_fields

ANY_TEXT = st.text() | st.text(st.sampled_from("aहि्न🇫🇷👩\u200d💻 \n<|im_end|>Ġ▁é"), max_size=40)
SPLITTERS = ("gpt-2", "smollm", "llama-bpe", "tekken", "default")


def tokenizer_of(fields):
    size = len(fields["tokenizer.ggml.tokens"])
    return read_tokenizer(fields, source="tiny.gguf", vocab_size=size + 5)


BYTE_LEVEL = {name: tokenizer_of(byte_level_fields(name)) for name in SPLITTERS}
SENTENCEPIECE = tokenizer_of(sentencepiece_fields())
TOKENIZERS = (BYTE_LEVEL["gpt-2"], SENTENCEPIECE)


@pytest.mark.parametrize("name", SPLITTERS)
@given(text=ANY_TEXT)
def test_byte_level_text_round_trips(name, text):
    tokenizer = BYTE_LEVEL[name]
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(text=st.text())
def test_control_tokens_round_trip(text):
    tokenizer = BYTE_LEVEL["gpt-2"]
    spelled = f"<|im_start|>{text}<|im_end|>"
    ids = tokenizer.encode(spelled, special=True)
    assert (ids[0], ids[-1]) == (1, 2)
    assert tokenizer.decode(ids, skip_special=False) == spelled


@given(text=ANY_TEXT.filter(lambda text: "▁" not in text))
def test_sentencepiece_text_round_trips(text):
    assert SENTENCEPIECE.decode(SENTENCEPIECE.encode(text)) == text


@given(data=st.data(), skip_special=st.booleans(), which=st.sampled_from(range(2)))
def test_ids_detokenized_in_any_chunks_give_the_whole_text(data, skip_special, which):
    tokenizer = TOKENIZERS[which]
    some_ids = st.integers(0, tokenizer.vocab_size - 1)
    ids = data.draw(st.lists(some_ids, max_size=60) | ANY_TEXT.map(tokenizer.encode))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=20)))
    stream = tokenizer.incremental_detokenizer(skip_special=skip_special)
    bounds = [0, *cuts, len(ids)]
    parts = [stream.feed(ids[a:b]) for a, b in itertools.pairwise(bounds)]
    whole = tokenizer.decode(ids, skip_special=skip_special)
    assert "".join(parts) + stream.flush() == whole


@given(text=ANY_TEXT)
def test_streamed_valid_text_has_no_replacement_characters(text):
    tokenizer = BYTE_LEVEL["gpt-2"]
    stream = tokenizer.incremental_detokenizer()
    parts = [stream.feed([token_id]) for token_id in tokenizer.encode(text)]
    assert text.startswith("".join(parts))
    assert "".join(parts) + stream.flush() == text


@given(st.lists(st.integers(0, 264), max_size=60))
def test_joined_token_bytes_are_the_text(ids):
    tokenizer = BYTE_LEVEL["gpt-2"]
    joined = b"".join(map(tokenizer.token_bytes, ids)).decode(errors="replace")
    assert joined == tokenizer.decode(ids, skip_special=False)

import pytest

from engine.api.errors import InvalidRequest, ModelError
from engine.text.gguf_vocabulary import read_tokenizer
from tests.fakes.tiny_vocabulary import CHATML, byte_level_fields, sentencepiece_fields
from tests.fakes.tool_template import TOOL_TEMPLATE


def tokenizer_of(fields, **changes):
    metadata = fields | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    size = len(metadata["tokenizer.ggml.tokens"])
    return read_tokenizer(metadata, source="tiny.gguf", vocab_size=size)


def test_byte_level_merges_in_order():
    tokenizer = tokenizer_of(byte_level_fields())
    pieces = [tokenizer.token_bytes(i) for i in tokenizer.encode("in the hell")]
    assert pieces == [b"in", b" the", b" ", b"he", b"ll"]


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("gpt-2", ["x", " 1234", "'s"]),
        ("smollm", ["x", " ", "1", "2", "3", "4", "'s"]),
        ("llama-bpe", ["x", " ", "123", "4", "'s"]),
        ("qwen2", ["x", " ", "1", "2", "3", "4", "'s"]),
        ("tekken", ["x", " ", "1", "2", "3", "4", "'s"]),
        ("default", ["x", " ", "123", "4", "'", "s"]),
    ],
)
def test_pre_tokenizers_cut_words(pre, pieces):
    """Merges that would join everything show where the rule cuts instead."""
    fields = byte_level_fields(pre)
    joins = ["1 2", "12 3", "123 4", "Ġ 1234", "x Ġ", "x Ġ1234", "4 '", "' s"]
    made = sorted({join.replace(" ", "") for join in joins})
    tokenizer = tokenizer_of(
        fields,
        tokens=fields["tokenizer.ggml.tokens"] + made,
        token_type=fields["tokenizer.ggml.token_type"] + [1] * len(made),
        merges=joins,
    )
    found = [tokenizer.token_bytes(i).decode() for i in tokenizer.encode("x 1234's")]
    assert found == pieces


def test_an_unknown_pre_tokenizer_is_refused_by_name():
    with pytest.raises(ModelError, match=r"'chameleon'.*supported: .*smollm"):
        tokenizer_of(byte_level_fields("chameleon"))


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(ModelError, match="'bert'"):
        tokenizer_of(byte_level_fields(), model="bert")


def test_control_tokens_are_text_unless_special():
    tokenizer = tokenizer_of(byte_level_fields())
    text = "<|im_start|>the"
    assert tokenizer.encode(text, special=True)[0] == 1
    plain = tokenizer.encode(text)
    assert not tokenizer.special_ids & set(plain)
    assert tokenizer.decode(plain) == text


def test_end_tokens_are_the_declared_and_the_templates():
    assert tokenizer_of(byte_level_fields()).eos_ids == {0, 2}
    other = byte_level_fields() | {"tokenizer.chat_template": "{{ messages }}"}
    assert tokenizer_of(other, eos_token_id=0).eos_ids == {0}
    assert tokenizer_of(other, eos_token_id=0, eot_token_id=2).eos_ids == {0, 2}


def test_bos_is_added_if_the_file_or_its_kind_specifies_it():
    assert not tokenizer_of(byte_level_fields()).add_bos
    assert tokenizer_of(byte_level_fields(), add_bos_token=True).add_bos
    assert tokenizer_of(byte_level_fields("llama-bpe")).add_bos
    assert tokenizer_of(sentencepiece_fields()).add_bos
    assert not tokenizer_of(sentencepiece_fields(), bos_token_id=None).add_bos


def test_sentencepiece_merges_follow_the_scores():
    tokenizer = tokenizer_of(sentencepiece_fields())
    pieces = [tokenizer.token_bytes(i) for i in tokenizer.encode("hello world")]
    assert pieces == [b" hello", b" world"]
    assert tokenizer.decode(tokenizer.encode("hello world")) == "hello world"


def test_sentencepiece_falls_back_to_bytes():
    tokenizer = tokenizer_of(sentencepiece_fields())
    ids = tokenizer.encode("é\n")
    assert [tokenizer.token_bytes(i) for i in ids] == [b" ", b"\xc3", b"\xa9", b"\n"]
    assert tokenizer.decode(ids) == "é\n"


def test_sentencepiece_without_a_space_prefix():
    tokenizer = tokenizer_of(sentencepiece_fields(), add_space_prefix=False)
    assert tokenizer.token_bytes(tokenizer.encode("hello")[0]) != b" hello"
    assert tokenizer.decode(tokenizer.encode(" hello")) == " hello"


def test_a_file_names_its_tokens_of_infills():
    named = {f"fim_{name}_token_id": at for at, name in enumerate(("pre", "suf", "mid"))}
    tokens = tokenizer_of(byte_level_fields(), **named).infill
    assert (tokens.prefix, tokens.suffix, tokens.middle) == (0, 1, 2)
    assert tokenizer_of(byte_level_fields()).infill is None


@pytest.mark.parametrize("token_id", [-1, 2**32 - 1])
def test_a_token_of_infills_outside_the_vocabulary_is_none(token_id):
    fields = {"fim_pre_token_id": token_id, "fim_suf_token_id": 1, "fim_mid_token_id": 2}
    assert tokenizer_of(byte_level_fields(), **fields).infill is None


def test_the_fingerprint_depends_on_every_part():
    fields = byte_level_fields()
    seen = {tokenizer_of(fields).fingerprint}
    assert tokenizer_of(byte_level_fields()).fingerprint in seen
    tokens = list(fields["tokenizer.ggml.tokens"])
    tokens[-1] = "xx"
    types = [*fields["tokenizer.ggml.token_type"][:-1], 4]
    for change in (
        {"tokens": tokens, "merges": fields["tokenizer.ggml.merges"][:-1]},
        {"token_type": types},
        {"merges": fields["tokenizer.ggml.merges"][::-1]},
        {"pre": "qwen2"},
    ):
        seen.add(tokenizer_of(fields, **change).fingerprint)
    seen.add(tokenizer_of(fields | {"tokenizer.chat_template": "x"}).fingerprint)
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"tokens": []}, "0 tokens"),
        ({"tokens": [1, 2]}, "tokens"),
        ({"tokens": "abc"}, "tokens"),
        ({"token_type": [1]}, "token types"),
        ({"merges": ["the"]}, "two tokens"),
        ({"merges": ["no such"]}, "merges"),
        ({"merges": None}, "merges"),
        ({"eos_token_id": [2, "3"]}, "eos_token_id"),
        ({"bos_token_id": 1.0}, "bos_token_id"),
        ({"eos_token_id": "2"}, "eos_token_id"),
        ({"model": None}, "model"),
        ({"pre": 3}, "pre"),
    ],
)
def test_damaged_vocabularies_are_refused(changes, word):
    fields = byte_level_fields()
    metadata = fields | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    with pytest.raises(ModelError, match=word) as caught:
        read_tokenizer(metadata, source="tiny.gguf", vocab_size=265)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [300, 10**6, 2**31, 2**40, -2])
@pytest.mark.parametrize("key", ["padding", "unknown", "bos", "eos", "eot", "eom"])
def test_a_special_token_outside_the_vocabulary_is_as_if_missing(key, value):
    for fields in (byte_level_fields(), sentencepiece_fields()):
        tokenizer = tokenizer_of(fields, **{f"{key}_token_id": value})
        missing = tokenizer_of(fields, **{f"{key}_token_id": None})
        count = len(fields["tokenizer.ggml.tokens"])
        assert tokenizer.notes == (
            f"{key}_token_id is {value}, outside the vocabulary of {count}: it is ignored.",
            *missing.notes,
        )
        assert (tokenizer.bos_id, tokenizer.add_bos) == (missing.bos_id, missing.add_bos)
        assert tokenizer.eos_ids == missing.eos_ids
        assert tokenizer.encode("the hell") == missing.encode("the hell")


@pytest.mark.parametrize("value", [-1, 2**32 - 1])
def test_the_ids_that_mean_no_token_are_not_worth_a_note(value):
    assert tokenizer_of(byte_level_fields(), padding_token_id=value).notes == ()


def test_end_tokens_may_be_several():
    tokenizer = tokenizer_of(byte_level_fields(), eot_token_id=[2, 5], eos_token_id=[0, 7])
    assert tokenizer.eos_ids == {0, 2, 5, 7}


def test_a_vocabulary_without_an_end_says_so():
    fields = byte_level_fields()
    tokens = [token.replace("|", "!") for token in fields["tokenizer.ggml.tokens"]]
    tokenizer = tokenizer_of(fields, tokens=tokens, eos_token_id=10**6)
    assert tokenizer.eos_ids == frozenset()
    assert "each ends at its length limit" in tokenizer.notes[-1]


def test_special_tokens_without_a_row_of_the_embedding_are_ignored():
    fields = byte_level_fields()
    size = len(fields["tokenizer.ggml.tokens"])
    changes = {
        "tokenizer.ggml.tokens": [*fields["tokenizer.ggml.tokens"], "[PAD]", "[X]"],
        "tokenizer.ggml.token_type": [*fields["tokenizer.ggml.token_type"], 3, 5],
        "tokenizer.ggml.padding_token_id": size,
    }
    tokenizer = read_tokenizer(fields | changes, source="x", vocab_size=size)
    assert tokenizer.vocab_size == size
    assert max(tokenizer.encode("[PAD] the", special=True)) < size
    assert f"The embedding has {size} rows and none for [PAD], [X]: they are ignored." in (
        tokenizer.notes
    )
    changes["tokenizer.ggml.token_type"][-1] = 1
    with pytest.raises(ModelError, match=f"{size + 2} tokens for an embedding of {size} rows"):
        read_tokenizer(fields | changes, source="x", vocab_size=size)


@pytest.mark.parametrize("template", ["", "  \n"])
def test_a_blank_template_is_as_if_missing(template):
    fields = byte_level_fields() | {"tokenizer.chat_template": template}
    tokenizer = tokenizer_of(fields)
    assert not tokenizer.has_chat_template
    assert tokenizer.notes == ()
    messages = [{"role": "user", "content": "the"}]
    assert tokenizer.render_chat(messages).startswith("<|im_start|>user\nthe")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ messages[0].content.encode() }}", "fails on a plain question"),
        ("{% for %}", "fails on a plain question"),
        ("{{ nope.a.b }}", "fails on a plain question"),
        ("{{ x|no_such_filter }}", "No filter named 'no_such_filter'"),
        ("{{ 'a' * 10**10 }}", "was stopped"),
        ("chatml", "does not write what the user asks"),
        ("{{ bos_token }}", "does not write what the user asks"),
    ],
)
def test_a_template_that_renders_nothing_is_told_at_load_and_refuses_chats(template, words):
    fields = byte_level_fields() | {"tokenizer.chat_template": template}
    tokenizer = tokenizer_of(fields)
    (note,) = tokenizer.notes
    assert note.startswith("Chats are refused. The model's chat template")
    assert words in note
    messages = [{"role": "user", "content": "the"}]
    for chat in (tokenizer.render_chat, tokenizer.encode_chat):
        with pytest.raises(InvalidRequest) as caught:
            chat(messages)
        assert str(caught.value) in note
    assert tokenizer.encode("the")  # completions go on


def test_scores_must_match_the_tokens():
    with pytest.raises(ModelError, match="scores"):
        tokenizer_of(sentencepiece_fields(), scores=[0.0])
    with pytest.raises(ModelError, match="scores"):
        tokenizer_of(sentencepiece_fields(), scores=[float("nan")] * 278)


def test_embedding_rows_without_a_token_have_no_bytes():
    fields = byte_level_fields()
    size = len(fields["tokenizer.ggml.tokens"])
    tokenizer = read_tokenizer(fields, source="x", vocab_size=size + 10)
    assert tokenizer.vocab_size == size + 10
    assert tokenizer.token_bytes(size + 9) == b""
    assert tokenizer.decode([size + 9]) == ""


def test_the_template_for_tools_is_a_field_of_its_own():
    fields = byte_level_fields() | {
        "tokenizer.chat_template": CHATML,
        "tokenizer.chat_template.tool_use": TOOL_TEMPLATE,
    }
    tokenizer = tokenizer_of(fields)
    assert (tokenizer.chat_template, tokenizer.tool_template) == (CHATML, TOOL_TEMPLATE)
    assert tokenizer_of(byte_level_fields()).tool_template == CHATML


def gemma4_fields():
    """A small vocabulary as the converter of Gemma 4 writes it."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<|channel>", "<channel|>", "<turn|>"]
    types = [3, 3, 3, 3, 4, 4, 3]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [6] * 256
    words = ["▁", "h", "i", "▁h", "▁hi", "\n", "\n\n", "\n\n\n"]
    return {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.tokens": tokens + words,
        "tokenizer.ggml.token_type": types + [1] * len(words),
        "tokenizer.ggml.merges": ["▁ h", "▁h i"],
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.padding_token_id": 0,
        "tokenizer.chat_template": "{{ messages[0].content }}<turn|>",
    }


def test_gemma_4_has_merges_of_characters_and_bytes_for_others():
    tokenizer = tokenizer_of(gemma4_fields())
    pieces = [tokenizer.token_bytes(i) for i in tokenizer.encode(" hi hé\n\n\n\n\nh")]
    assert pieces == [b" hi", b" h", b"\xc3", b"\xa9", b"\n\n\n", b"\n\n", b"h"]
    text = " hi h\u00e9 \n\n▁"
    assert tokenizer.decode(tokenizer.encode(text)) == text.replace("▁", " ")
    assert tokenizer.add_bos


def test_the_marks_of_gemma_4_are_control_tokens():
    """The converter calls them user-defined, but a text must not be able to spell one."""
    tokenizer = tokenizer_of(gemma4_fields())
    assert {4, 5, 6} <= tokenizer.special_ids
    assert tokenizer.encode("<|channel>", special=True) == [4]
    assert 4 not in tokenizer.encode("<|channel>")
    assert 4 not in tokenizer.encode_chat([{"role": "user", "content": "<|channel>thought"}])
    assert tokenizer.eos_ids == {1, 6}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"merges": None}, "merges"),
        ({"merges": ["▁h"]}, "two tokens"),
        ({"merges": ["h o"]}, "merges that do not fit"),
        ({"token_type": [1]}, "token types"),
    ],
)
def test_damaged_vocabularies_of_gemma_4_are_refused(changes, word):
    with pytest.raises(ModelError, match=word):
        tokenizer_of(gemma4_fields(), **changes)

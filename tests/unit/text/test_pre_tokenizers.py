"""Pre-tokenizers cut text where the published rules, run by another engine of regular expressions, cut it."""

import unicodedata

import pytest
import regex
from tokenizers import Tokenizer as Encoder
from tokenizers.models import BPE
from transformers import (
    CohereTokenizer,
    GPT2Tokenizer,
    GPTNeoXTokenizer,
    Qwen2Tokenizer,
    Qwen3_5Tokenizer,
)
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

from engine.text.gguf_vocabulary import read_tokenizer
from engine.text.pre_tokenizers import NAMES_BY_RULE, text_splitter
from engine.text.token_bytes import byte_alphabet
from tests.fakes.mixed_strings import mixed_strings
from tests.fakes.tiny_vocabulary import byte_level, byte_level_fields


def known(text):
    """The text without characters that are new in Unicode: the engines differ in its version."""
    return "".join(c for c in text if unicodedata.ucd_3_2_0.category(c) != "Cn")


TEXTS = [
    *map(known, mixed_strings(400, seed=11)),
    "I'LL don'T we'Ve 'tis",
    "x\n\n  y\r\n\r\n z",
    "ａｂＣ１２３",
]
LETTERS = {byte: letter for letter, byte in byte_alphabet().items()}

GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PUBLISHED = {
    "gpt-2": [GPT_2],
    "gpt-neox": [GPT_2],
    "digits": [r"\p{N}", GPT_2],
    "digits-nfc": [r"\p{N}", GPT_2],
    "cl100k": [CL100K],
    "glm": [CL100K],
    "seed": [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ],
    "minicpm": [
        r"\p{N}{1,3}",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    "deepseek": [
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
}
"""By rule; those of the other rules are transformers' own."""


def published(name):
    rule = next(rule for rule, names in NAMES_BY_RULE.items() if name in names.split())
    return PUBLISHED.get(rule) or [GGUF_PRE_TOKENIZER_SPLITS["qwen2" if rule == "qwen2" else name]]


def cut(text, patterns):
    words = [text]
    for pattern in patterns:
        compiled = regex.compile(f"({pattern})")
        words = [part for word in words for part in compiled.split(word) if part]
    return words


def spelled(word):
    return "".join(LETTERS[byte] for byte in word.encode())


NAMES = [name for names in NAMES_BY_RULE.values() for name in names.split() if name != "default"]


@pytest.mark.parametrize("name", NAMES)
def test_words_are_those_of_the_published_rule(name):
    splitter = text_splitter(name, source="x")
    for text in TEXTS:
        if splitter.normalizer is not None:
            text = splitter.normalizer.normalize_str(text)
        words = [word for word, _ in splitter.pre_tokenizer.pre_tokenize_str(text)]
        assert words == [spelled(word) for word in cut(text, published(name))], text


@pytest.mark.parametrize("name", [name for name in NAMES if name in GGUF_PRE_TOKENIZER_SPLITS])
def test_the_names_that_transformers_knows_have_its_rule(name):
    for text in TEXTS:
        assert cut(text, published(name)) == cut(text, [GGUF_PRE_TOKENIZER_SPLITS[name]])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gpt-2", GPT2Tokenizer),
        ("olmo", GPTNeoXTokenizer),
        ("command-r", CohereTokenizer),
        ("qwen2", Qwen2Tokenizer),
        ("qwen35", Qwen3_5Tokenizer),
    ],
)
def test_ids_are_those_of_the_familys_class_in_transformers(name, kind):
    tokens, merges, _ = byte_level()
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    pairs = [tuple(merge.split()) for merge in merges]
    theirs = kind(vocab=vocabulary, merges=pairs)
    fields = byte_level_fields(name)
    ours = read_tokenizer(fields, source="x", vocab_size=len(tokens))
    for text in ["in the e\u0301 hell Å  \u212b", *TEXTS]:
        if "<" in text:  # the classes add control tokens of their own
            continue
        ids = theirs.backend_tokenizer.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == ids, text


@pytest.mark.parametrize(
    ("name", "whole"),
    [("llama-bpe", True), ("tekken", True), ("glm4", True), ("minicpm5", True), ("dbrx", False)],
)
def test_a_word_that_is_a_token_needs_no_merges_where_the_rule_says_so(name, whole):
    fields = byte_level_fields(name)
    tokens = [*fields["tokenizer.ggml.tokens"], "hell"]
    types = [*fields["tokenizer.ggml.token_type"], 1]
    changes = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    ours = read_tokenizer(fields | changes, source="x", vocab_size=len(tokens))
    assert (ours.encode("hell") == [len(tokens) - 1]) == whole


@pytest.mark.parametrize(
    ("name", "adds"),
    [("llama-bpe", True), ("lfm2", True), ("tekken", True), ("qwen35", False), ("gpt-4o", False)],
)
def test_a_beginning_token_is_added_where_the_file_does_not_say(name, adds):
    assert text_splitter(name, source="x").adds_bos is adds


def test_nothing_of_a_text_is_lost():
    for name in NAMES:
        splitter = text_splitter(name, source="x")
        encoder = Encoder(BPE(byte_alphabet(), []))
        encoder.pre_tokenizer = splitter.pre_tokenizer
        for text in TEXTS:
            words = splitter.pre_tokenizer.pre_tokenize_str(text)
            assert "".join(word for word, _ in words) == spelled(text)

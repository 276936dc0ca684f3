"""SentencePiece vocabularies give the ids and the texts of the `sentencepiece` library."""

import io

import pytest
import sentencepiece
from tokenizers import AddedToken
from transformers import GemmaTokenizer

from engine.text.gguf_vocabulary import TokenType, read_tokenizer
from engine.text.sentencepiece_merges import merges_from_scores
from tests.fakes.mixed_strings import mixed_strings
from tests.fakes.sentencepiece_model import sentencepiece_model

BLANKS = [" " * length for length in range(2, 32)]
USER_DEFINED = [*BLANKS, "\n\n", "\n\n\n", "<table>", "[multimodal]"]
SIZE = 900


@pytest.fixture(scope="module")
def fields():
    """The metadata of a vocabulary as Gemma's: no space before a text, runs of blanks as tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=(
            "".join(c for c in one if c < "\u0100") for one in mixed_strings(3000, seed=1)
        ),
        model_writer=model,
        model_type="bpe",
        vocab_size=SIZE,
        byte_fallback=True,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        user_defined_symbols=[one.replace(" ", "▁") for one in USER_DEFINED],
        control_symbols=["<start_of_turn>", "<end_of_turn>"],
        character_coverage=0.999,
        minloglevel=2,
    )
    trained = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [trained.IdToPiece(token_id) for token_id in range(SIZE)]
    kinds = [
        TokenType.UNKNOWN
        if trained.IsUnknown(token_id)
        else TokenType.CONTROL
        if trained.IsControl(token_id)
        else TokenType.BYTE
        if trained.IsByte(token_id)
        else TokenType.USER_DEFINED
        if pieces[token_id].replace("▁", " ") in USER_DEFINED
        else TokenType.NORMAL
        for token_id in range(SIZE)
    ]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [
            piece.replace("▁", " ") if kind == TokenType.USER_DEFINED else piece
            for piece, kind in zip(pieces, kinds, strict=True)
        ],
        "tokenizer.ggml.scores": [trained.GetScore(token_id) for token_id in range(SIZE)],
        "tokenizer.ggml.token_type": [int(kind) for kind in kinds],
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_space_prefix": False,
    }


def read(fields):
    return read_tokenizer(fields, source="small.gguf", vocab_size=SIZE)


def test_ids_and_texts_are_those_of_sentencepiece(fields):
    ours, theirs = read(fields), sentencepiece_model(fields)
    for text in mixed_strings(2000, seed=2, pieces=fields["tokenizer.ggml.tokens"]):
        ids = ours.encode(text)
        assert ids == theirs.EncodeAsIds(text), text
        assert ours.decode(ids) == theirs.DecodeIds(ids), text


def test_a_space_before_the_text_is_that_of_sentencepiece(fields):
    """As in Llama 2, Mistral and Phi-3, whose vocabularies have no user-defined tokens."""
    kinds = [
        TokenType.UNUSED if kind == TokenType.USER_DEFINED else kind
        for kind in fields["tokenizer.ggml.token_type"]
    ]
    tokens = [
        f"<unused{token_id}>" if kind == TokenType.UNUSED else token
        for token_id, (token, kind) in enumerate(
            zip(fields["tokenizer.ggml.tokens"], kinds, strict=True)
        )
    ]
    changed = fields | {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [int(kind) for kind in kinds],
        "tokenizer.ggml.add_space_prefix": True,
    }
    ours, theirs = read(changed), sentencepiece_model(changed)
    for text in mixed_strings(2000, seed=3):
        ids = ours.encode(text)
        assert ids == theirs.EncodeAsIds(text), text
        assert ours.decode(ids) == theirs.DecodeIds(ids), text


@pytest.mark.parametrize("blanks", BLANKS)
def test_a_run_of_blanks_is_one_token(fields, blanks):
    ours = read(fields)
    assert ours.encode(f"a{blanks}b")[1:-1] == [fields["tokenizer.ggml.tokens"].index(blanks)]


def test_marks_of_spaces_in_a_text_are_spaces(fields):
    ours = read(fields)
    assert ours.encode("a▁▁▁ b") == ours.encode("a    b")


def test_gemma_4_has_the_ids_of_transformers(fields):
    """Its files have merges in place of scores and call the marks of calls user-defined."""
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    tokens = [token.replace(" ", "▁") for token in tokens]
    tokens[tokens.index("<table>")] = "<|tool_call>"
    vocabulary = {token: token_id for token_id, token in enumerate(tokens)}
    normal = [token for token, kind in zip(tokens, kinds, strict=True) if kind == TokenType.NORMAL]
    normal += [token for token in tokens if len(token) > 1 and not token.strip("▁")]
    normal += [token for token in tokens if len(token) == 1 and token not in normal]
    merges = merges_from_scores(vocabulary, fields["tokenizer.ggml.scores"], normal)
    kinds = [
        TokenType.NORMAL if not token.strip("▁\n") else kind
        for token, kind in zip(tokens, kinds, strict=True)
    ]
    changed = fields | {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [int(kind) for kind in kinds],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in merges],
    }
    ours = read(changed)
    named = dict.fromkeys(("unk_token", "pad_token", "mask_token"), "<unk>")
    theirs = GemmaTokenizer(
        vocab=vocabulary, merges=merges, bos_token="<s>", eos_token="</s>", **named
    )
    theirs.add_tokens([AddedToken(one, normalized=False) for one in ("\n\n", "\n\n\n")])
    theirs.add_tokens(
        [AddedToken(tokens[i], special=True) for i in sorted(ours.special_ids) if i > 2]
    )
    for text in mixed_strings(2000, seed=4):
        ids = ours.encode(text, special=True)
        assert ids == theirs.encode(text, add_special_tokens=False), text
    assert ours.encode("<|tool_call>", special=True) == [vocabulary["<|tool_call>"]]
    assert vocabulary["<|tool_call>"] not in ours.encode("<|tool_call>")
    assert ours.add_bos

"""The native encoder against transformers' BERT in fp32, and its batch and thread invariance."""

import numpy as np
import pytest
import tokenizers
import torch
from transformers import BertModel

from engine._core import BertEncoder, cpu_features
from engine.api.errors import ModelError
from engine.embedding.text_encoder import TextEncoder
from tests.embedding.tiny_bert import WORDS, reference, save_tiny_bert

TEXTS = [
    "hello",
    "The capital of France is Paris.",
    "the capital of france is paris .",
    "Ein kürzerer Satz über Flüsse; naïve café, 北京!",
    "🦀" * 3,
    "word " * 253,
    *(f"Sentence number {one} says that {one} squared is {one * one}." for one in range(12)),
]


@pytest.fixture(scope="module")
def oracle(minilm):
    """Vectors by transformers: the file's own tokenizer without padding, one text at a time."""
    model = BertModel.from_pretrained(minilm, attn_implementation="eager").eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return np.stack([reference(model, tokenizer.encode(text).ids) for text in TEXTS])


@pytest.mark.parametrize("level", cpu_features()["levels"])
def test_minilm_equals_transformers_in_fp32(minilm, oracle, level):
    made = TextEncoder(minilm, name="minilm", dispatch=level).embed(TEXTS)
    assert made.vectors.shape == (len(TEXTS), 384)
    assert made.vectors.dtype == np.float32
    np.testing.assert_allclose(made.vectors, oracle, atol=2e-6)  # the bound asked for is 1e-3
    assert ((made.vectors * oracle).sum(1) > 1 - 1e-6).all()


def test_a_vector_does_not_depend_on_its_batch(encoder):
    together = encoder.embed(TEXTS).vectors
    backwards = encoder.embed(TEXTS[::-1]).vectors[::-1]
    alone = np.stack([encoder.embed([text]).vectors[0] for text in TEXTS])
    assert (together == backwards).all()
    assert (together == alone).all()


def test_a_vector_does_not_depend_on_threads(minilm, encoder):
    single = TextEncoder(minilm, name="minilm", threads=1)
    assert (single.embed(TEXTS).vectors == encoder.embed(TEXTS).vectors).all()


def test_similar_texts_have_similar_vectors(encoder):
    cat, kitten, tax = encoder.embed(
        ["A cat sits on the mat.", "A kitten is sitting on a rug.", "Taxes are due in April."]
    ).vectors
    assert cat @ kitten > 0.6 > 0.3 > cat @ tax


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plain", {}),
        ("prefixed", {"prefix": "bert."}),
        ("half", {"dtype": torch.float16}),
        ("brain", {"dtype": torch.bfloat16}),
        ("one-head", {"num_attention_heads": 1, "hidden_size": 16, "intermediate_size": 16}),
        ("deep", {"num_hidden_layers": 5}),
        ("three-types", {"type_vocab_size": 3}),
        ("coarse-eps", {"layer_norm_eps": 1e-3}),
    ],
)
def test_tiny_encoders_equal_transformers(tmp_path, name, options):
    model = save_tiny_bert(tmp_path, **options)
    core = BertEncoder(
        (tmp_path / "config.json").read_text(), tmp_path / "model.safetensors",
        precision="f32", threads=2, dispatch="auto",
    )  # fmt: skip
    random = np.random.default_rng(1)
    lengths = [1, 2, 15, 16, 17, 33, 48, 5, 48, 48, 48]
    texts = [random.integers(0, len(WORDS), length).tolist() for length in lengths]
    ids = np.concatenate(texts).astype(np.int32)
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    expected = np.stack([reference(model, text) for text in texts])
    np.testing.assert_allclose(core.encode(ids, starts), expected, atol=2e-5)


@pytest.mark.parametrize(
    ("ids", "starts", "reason"),
    [
        ([1, 2], [0, 1], "lengths"),
        ([1, 2], [1, 2], "lengths"),
        ([1, 2], [0, 3, 2], "tokens"),
        ([1, 2], [0, 0, 2], "0 tokens"),
        ([1] * 49, [0, 49], "49 tokens"),
        ([1, len(WORDS)], [0, 2], "beyond the vocabulary"),
        ([1, -1], [0, 2], "beyond the vocabulary"),
        ([], [], "lengths"),
    ],
)
def test_arrays_that_contradict_the_model_are_refused(tmp_path, ids, starts, reason):
    save_tiny_bert(tmp_path)
    core = BertEncoder(
        (tmp_path / "config.json").read_text(), tmp_path / "model.safetensors",
        precision="f32", threads=1, dispatch="auto",
    )  # fmt: skip
    with pytest.raises(ValueError, match=reason):
        core.encode(np.array(ids, np.int32), np.array(starts, np.int64))
    assert core.encode(np.zeros(0, np.int32), np.zeros(1, np.int64)).shape == (0, 64)


def test_a_damaged_encoder_is_refused_in_a_sentence(tmp_path):
    save_tiny_bert(tmp_path)
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    for damage in (lambda: weights.write_bytes(whole[:1000]), weights.unlink):
        damage()
        with pytest.raises(ModelError, match="encoder") as refused:
            TextEncoder(tmp_path, name="tiny")
        assert "\n" not in str(refused.value)
    weights.write_bytes(whole)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="tokenizer"):
        TextEncoder(tmp_path, name="tiny")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ModelError, match=r"config\.json"):
        TextEncoder(tmp_path, name="tiny")

"""int8 encoders: how close they are to f32, on every level, and what stays exact."""

import numpy as np
import pytest

from engine._core import BertEncoder, cpu_features
from engine.api.errors import ModelError
from engine.embedding.embedder import Embedder
from engine.embedding.text_encoder import TextEncoder
from tests.embedding.test_parity import TEXTS
from tests.embedding.tiny_bert import WORDS, save_tiny_bert


@pytest.fixture(scope="module")
def exact(encoder):
    return encoder.embed(TEXTS).vectors


@pytest.mark.parametrize("level", cpu_features()["levels"])
def test_int8_is_close_to_f32(minilm, exact, level):
    made = TextEncoder(minilm, name="minilm", precision="int8", dispatch=level).embed(TEXTS).vectors
    np.testing.assert_allclose((made * made).sum(1), 1, atol=1e-6)
    cosines = (made * exact).sum(1)
    assert cosines.min() > 0.996
    assert cosines.mean() > 0.998
    assert cosines.max() < 1 - 1e-6, "computed in f32"


def test_an_int8_vector_depends_on_its_text_only(minilm):
    encoder = TextEncoder(minilm, name="minilm", precision="int8")
    together = encoder.embed(TEXTS).vectors
    assert (encoder.embed(TEXTS[::-1]).vectors[::-1] == together).all()
    assert (np.stack([encoder.embed([text]).vectors[0] for text in TEXTS]) == together).all()
    single = TextEncoder(minilm, name="minilm", precision="int8", threads=1)
    assert (single.embed(TEXTS).vectors == together).all()


def test_int8_of_any_length_is_close(tmp_path):
    save_tiny_bert(tmp_path)
    random = np.random.default_rng(1)
    lengths = [*range(1, 24), 33, 47, 48]
    ids = random.integers(0, len(WORDS), sum(lengths)).astype(np.int32)
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    vectors = {
        precision: core(tmp_path, precision).encode(ids, starts) for precision in ("f32", "int8")
    }
    assert (vectors["f32"] * vectors["int8"]).sum(1).min() > 0.999


def test_an_embedder_computes_in_its_precision(minilm, exact):
    for precision in ("f32", "int8"):
        embedder = Embedder(lambda: minilm, precision=precision)
        vectors = embedder.submit(TEXTS).result(60).vectors
        assert (vectors == exact).all() == (precision == "f32")
        embedder.close()


def test_impossible_precisions_are_refused_in_a_sentence(tmp_path):
    save_tiny_bert(tmp_path)
    with pytest.raises(ModelError, match="no precision"):
        TextEncoder(tmp_path, name="tiny", precision="int4")
    narrow = tmp_path / "narrow"
    narrow.mkdir()
    save_tiny_bert(narrow, num_attention_heads=1, hidden_size=16, intermediate_size=16)
    with pytest.raises(ModelError, match="multiples of 32"):
        TextEncoder(narrow, name="narrow", precision="int8")


def core(directory, precision):
    return BertEncoder(
        (directory / "config.json").read_text(),
        directory / "model.safetensors",
        precision=precision,
        threads=2,
        dispatch="auto",
    )

import math

import pytest

from engine.api.errors import ModelError
from engine.models.gguf import read_spec
from engine.models.spec import RopeScaling
from tests.fakes.tiny_gguf import LAYERS, model_fields, model_shapes

VOCAB = 300


def spec_of(architecture="llama", *, tied=True, divisors=(), shapes=None, **changes):
    fields = model_fields(architecture)
    fields |= {
        key if "." in key and key.startswith("general") else f"{architecture}.{key}": value
        for key, value in changes.items()
    }
    tensors = shapes or model_shapes(architecture, VOCAB, tied=tied)
    return read_spec(fields, tensors, source="tiny.gguf", rope_divisors=divisors)


def test_llama_shapes_come_from_metadata_and_tensors():
    spec = spec_of()
    assert (spec.num_layers, spec.hidden_size, spec.intermediate_size) == (2, 32, 64)
    assert (spec.num_heads, spec.num_kv_heads, spec.head_dim) == (4, 2, 8)
    assert (spec.vocab_size, spec.context_length) == (VOCAB, 128)
    assert spec.sliding_windows == (0, 0)
    assert spec.rope_scaling == RopeScaling()


@pytest.mark.parametrize(
    ("architecture", "style", "qkv_bias", "qk_norm"),
    [
        ("llama", "interleaved", False, False),
        ("qwen2", "half", True, False),
        ("qwen3", "half", False, True),
    ],
)
def test_architectures_differ_in_rotation_biases_and_norms(architecture, style, qkv_bias, qk_norm):
    spec = spec_of(architecture)
    assert (spec.rope_style, spec.qkv_bias, spec.qk_norm) == (style, qkv_bias, qk_norm)


def test_embeddings_are_tied_without_an_output_matrix():
    assert spec_of(tied=True).tied_embeddings
    assert not spec_of(tied=False).tied_embeddings


def test_equal_per_layer_sizes_are_accepted():
    assert spec_of(feed_forward_length=[64] * LAYERS).intermediate_size == 64
    with pytest.raises(ModelError, match="feed_forward_length"):
        spec_of(feed_forward_length=[64, 48])


def test_an_explicit_head_dimension_takes_precedence():
    spec = spec_of(**{"attention.key_length": 16, "attention.value_length": 16})
    assert spec.head_dim == 16


@pytest.mark.parametrize("heads", [[2, 1], [1, 2], [2] * (LAYERS + 1)])
def test_42_layers_with_different_kv_heads_are_refused_by_name(heads):
    """The native KV cache has one shape for all layers (vLLM #54191)."""
    with pytest.raises(ModelError, match="head_count_kv"):
        spec_of(**{"attention.head_count_kv": heads})


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"block_count": 0}, "block_count"),
        ({"block_count": None}, "block_count"),
        ({"block_count": "two"}, "block_count"),
        ({"block_count": True}, "block_count"),
        ({"block_count": 10**9}, "block_count"),
        ({"context_length": -1}, "context_length"),
        ({"embedding_length": 31}, "embedding_length"),
        ({"attention.head_count": 0}, "head_count"),
        ({"attention.layer_norm_rms_epsilon": math.nan}, "epsilon"),
        ({"attention.layer_norm_rms_epsilon": None}, "epsilon"),
        ({"rope.freq_base": 0.0}, "freq_base"),
        ({"rope.freq_base": math.inf}, "freq_base"),
        ({"rope.dimension_count": 4}, "dimension_count"),
        ({"attention.value_length": 4}, "value_length"),
        ({"rope.scaling.type": "longrope"}, "scaling.type"),
        ({"rope.scaling.type": "linear"}, "scaling.factor"),
        ({"expert_count": 8}, "mixture of experts"),
    ],
)
def test_damaged_or_unsupported_fields_are_named(changes, word):
    with pytest.raises(ModelError, match=word) as caught:
        spec_of(**changes)
    assert "tiny.gguf" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_architectures_are_refused_by_name():
    fields = model_fields("llama") | {"general.architecture": "mamba"}
    with pytest.raises(ModelError, match=r"'mamba'.*llama, qwen2, qwen3"):
        read_spec(fields, model_shapes("llama", VOCAB, tied=True), source="x.gguf")


def test_a_bias_in_some_layers_only_is_refused():
    shapes = model_shapes("qwen2", VOCAB, tied=True)
    del shapes["blk.1.attn_q.bias"]
    with pytest.raises(ModelError, match=r"no blk\.1\.attn_q\.bias"):
        spec_of("qwen2", shapes=shapes)


def test_linear_scaling_has_a_new_and_an_old_spelling():
    new = spec_of(**{"rope.scaling.type": "linear", "rope.scaling.factor": 4.0})
    old = spec_of(**{"rope.scale_linear": 4.0})
    assert new.rope_scaling == old.rope_scaling == RopeScaling("linear", 4.0)


def test_yarn_scaling_multiplies_its_attention_factor():
    yarn = {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 32,
    }
    assert spec_of(**yarn).rope_scaling == RopeScaling("yarn", 4.0, 32)
    scaled = spec_of(**yarn, **{"rope.scaling.attn_factor": 0.5}).rope_scaling
    assert scaled.attention_factor == pytest.approx(0.5 * (0.1 * math.log(4.0) + 1))


def llama3_divisors(factor=8.0, theta=10_000.0, head_dim=8, original=8192):
    divisors = []
    for index in range(head_dim // 2):
        wavelength = 2 * math.pi * theta ** (2 * index / head_dim)
        if wavelength < original / 4:
            divisors.append(1.0)
        elif wavelength > original:
            divisors.append(factor)
        else:
            smooth = (original / wavelength - 1) / 3
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return divisors


def test_llama3_scaling_is_recognised_by_its_divisors():
    spec = spec_of(divisors=llama3_divisors(theta=500_000.0), **{"rope.freq_base": 500_000.0})
    assert spec.rope_scaling == RopeScaling("llama3", 8.0, 8192)


def test_other_divisors_are_refused():
    with pytest.raises(ModelError, match=r"not Llama 3\.1's"):
        spec_of(divisors=[1.0, 2.0, 3.0, 8.0], **{"rope.freq_base": 500_000.0})
    with pytest.raises(ModelError, match="damaged"):
        spec_of(divisors=[1.0, math.nan, 1.0, 1.0])
    assert spec_of(divisors=[1.0] * 4).rope_scaling == RopeScaling()


def test_only_llama_files_may_have_a_sliding_window():
    assert spec_of(**{"attention.sliding_window": 64}).sliding_windows == (64, 64)
    assert spec_of(**{"attention.sliding_window": 4096}).sliding_windows == (0, 0)
    with pytest.raises(ModelError, match="sliding_window"):
        spec_of("qwen2", **{"attention.sliding_window": 64})

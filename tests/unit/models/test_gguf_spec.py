import math

import pytest

from engine.api.errors import ModelError
from engine.models.families.gguf_rope import DIVISORS, LONG_DIVISORS, SHORT_DIVISORS
from engine.models.gguf import read_spec
from engine.models.spec import Mlp, Rope, RopeScaling, TensorRef
from tests.fakes.tiny_gguf import LAYERS, model_fields, model_shapes

VOCAB = 300


def spec_of(architecture="llama", *, tied=True, divisors=(), shapes=None, **changes):
    fields = model_fields(architecture)
    fields |= {
        key if "." in key and key.startswith("general") else f"{architecture}.{key}": value
        for key, value in changes.items()
    }
    tensors = shapes or model_shapes(architecture, VOCAB, tied=tied)
    tables = {DIVISORS: divisors} if divisors else {}
    return read_spec(fields, tensors, source="tiny.gguf", rope_tables=tables)


def rope_of(architecture="llama", **changes):
    (rope,) = spec_of(architecture, **changes).ropes
    return rope


def test_llama_shapes_come_from_metadata_and_tensors():
    spec = spec_of()
    assert (spec.num_layers, spec.hidden_size) == (2, 32)
    assert (spec.vocab_size, spec.context_length) == (VOCAB, 128)
    for index, layer in enumerate(spec.layers):
        attention = layer.mixer
        assert (attention.num_heads, attention.num_kv_heads, attention.head_dim) == (4, 2, 8)
        assert attention.scale == pytest.approx(8**-0.5)
        assert (attention.window, attention.rope) == (0, 0)
        assert layer.ffn == Mlp(64)
        assert layer.tensors["q"] == TensorRef(f"blk.{index}.attn_q.weight")
    assert spec.ropes == (Rope(10_000.0, 8, "interleaved"),)


@pytest.mark.parametrize(
    ("architecture", "style", "biased", "normed"),
    [
        ("llama", "interleaved", False, False),
        ("qwen2", "half", True, False),
        ("qwen3", "half", False, True),
    ],
)
def test_architectures_differ_in_rotation_biases_and_norms(architecture, style, biased, normed):
    spec = spec_of(architecture)
    assert spec.ropes[0].style == style
    assert spec.has_key_bias == biased
    assert all(("q_norm" in layer.tensors) == normed for layer in spec.layers)


def test_embeddings_are_tied_without_an_output_matrix():
    assert spec_of(tied=True).tied_embeddings
    assert not spec_of(tied=False).tied_embeddings


def test_42_sizes_may_be_given_per_layer():
    """Layers may have different KV heads (vLLM #54191)."""
    spec = spec_of(feed_forward_length=[64, 48], **{"attention.head_count_kv": [2, 4]})
    assert [layer.ffn.intermediate_size for layer in spec.layers] == [64, 48]
    assert [attention.num_kv_heads for attention in spec.attentions] == [2, 4]


def test_an_explicit_head_dimension_takes_precedence():
    spec = spec_of(**{"attention.key_length": 16, "attention.value_length": 16})
    assert spec.attentions[0].head_dim == 16


@pytest.mark.parametrize("heads", [[2], [1, 0], [2] * (LAYERS + 1), [True, True], [2, 1 << 20]])
def test_a_damaged_list_of_sizes_is_named(heads):
    with pytest.raises(ModelError, match="head_count_kv"):
        spec_of(**{"attention.head_count_kv": heads})


def test_q_k_and_v_may_be_rows_of_one_tensor():
    shapes = model_shapes("qwen2", VOCAB, tied=True)
    for index in range(LAYERS):
        for suffix in ("weight", "bias"):
            for name in "qkv":
                del shapes[f"blk.{index}.attn_{name}.{suffix}"]
            shapes[f"blk.{index}.attn_qkv.{suffix}"] = (64, 32) if suffix == "weight" else (64,)
    tensors = spec_of("qwen2", shapes=shapes).layers[1].tensors
    assert tensors["q"] == TensorRef("blk.1.attn_qkv.weight", run=32, step=32)
    assert tensors["k"] == TensorRef("blk.1.attn_qkv.weight", 32, run=16, step=16)
    del shapes["blk.1.attn_qkv.bias"]
    with pytest.raises(ModelError, match=r"no blk\.1\.attn_qkv\.bias"):
        spec_of("qwen2", shapes=shapes)
    assert tensors["v.bias"] == TensorRef("blk.1.attn_qkv.bias", 48, run=16, step=16)


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
        ({"rope.dimension_count": 10}, "dimension_count"),
        ({"rope.dimension_count": 3}, "dimension_count"),
        ({"attention.head_count": 64}, "key_length"),
        ({"attention.value_length": 4}, "value_length"),
        ({"rope.scaling.type": "telepathy"}, "scaling.type"),
        ({"rope.scaling.type": "longrope"}, "rope_factors_short"),
        ({"rope.scaling.type": "linear"}, "scaling.factor"),
        ({"expert_count": 8}, "expert_used_count"),
    ],
)
def test_damaged_or_unsupported_fields_are_named(changes, word):
    with pytest.raises(ModelError, match=word) as caught:
        spec_of(**changes)
    assert "tiny.gguf" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_experts_are_refused_where_the_family_reads_none():
    fields = model_fields("qwen2") | {"qwen2.expert_count": 8}
    with pytest.raises(ModelError, match=r"x\.gguf is a mixture of experts.*qwen2"):
        read_spec(fields, model_shapes("qwen2", VOCAB, tied=True), source="x.gguf")


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
    new = rope_of(**{"rope.scaling.type": "linear", "rope.scaling.factor": 4.0})
    old = rope_of(**{"rope.scale_linear": 4.0})
    untyped = rope_of(**{"rope.scaling.factor": 4.0})
    assert new.scaling == old.scaling == untyped.scaling == RopeScaling("linear", 4.0)


YARN = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 32,
}


@pytest.mark.parametrize(
    ("changes", "attention"),
    [
        ({}, None),
        ({"rope.scaling.attn_factor": 0.5}, 0.5 * (0.1 * math.log(4.0) + 1)),
        ({"rope.scaling.yarn_log_multiplier": 1.0}, 1.0),
        ({"rope.scaling.yarn_attn_factor": 1.25}, 1.25),
    ],
)
def test_yarn_scaling_and_its_attention_factor(changes, attention):
    scaling = rope_of(**YARN, **changes).scaling
    assert (scaling.kind, scaling.factor, scaling.original_context) == ("yarn", 4.0, 32)
    assert scaling.attention_factor == (attention and pytest.approx(attention))


def test_longrope_is_recognised_by_its_tables():
    fields = model_fields("llama") | {
        "llama.rope.scaling.original_context_length": 32,
        "llama.rope.scaling.attn_factor": 1.19,
    }
    tables = {SHORT_DIVISORS: [1.0, 1.5, 2.0, 4.0], LONG_DIVISORS: [2.0, 3.0, 4.0, 8.0]}
    shapes = model_shapes("llama", VOCAB, tied=True)
    (rope,) = read_spec(fields, shapes, source="x.gguf", rope_tables=tables).ropes
    assert rope.scaling == RopeScaling(
        "longrope",
        4.0,
        32,
        attention_factor=1.19,
        short_divisors=(1.0, 1.5, 2.0, 4.0),
        long_divisors=(2.0, 3.0, 4.0, 8.0),
    )


def test_a_table_of_divisors_is_kept():
    divisors = [1.0, 1.0, 4.0, 8.0]
    assert rope_of(divisors=divisors).divisors == tuple(divisors)
    assert rope_of(divisors=[1.0] * 4).divisors == ()


def test_pairs_with_an_enormous_divisor_are_not_rotated():
    rope = rope_of(divisors=[1.0, 1.0, 1e30, 1e30])
    assert (rope.pairs, rope.divisors) == (2, ())
    with pytest.raises(ModelError, match="damaged rope_freqs"):
        rope_of(divisors=[1.0, 1e30, 1.0, 1e30])


@pytest.mark.parametrize("divisors", [[1.0, math.nan, 1.0, 1.0], [1.0], [1.0, 0.0, 1.0, 1.0]])
def test_damaged_divisors_are_refused(divisors):
    with pytest.raises(ModelError, match="damaged"):
        spec_of(divisors=divisors)


def test_two_kinds_of_scaling_are_refused():
    with pytest.raises(ModelError, match="two kinds"):
        spec_of(divisors=[2.0] * 4, **YARN)


def windows_of(architecture="llama", **changes):
    return [attention.window for attention in spec_of(architecture, **changes).attentions]


def test_only_llama_files_may_have_a_sliding_window_in_every_layer():
    assert windows_of(**{"attention.sliding_window": 64}) == [64, 64]
    assert windows_of(**{"attention.sliding_window": 4096}) == [0, 0]
    with pytest.raises(ModelError, match="sliding_window"):
        spec_of("qwen2", **{"attention.sliding_window": 64})

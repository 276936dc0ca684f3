"""What sets families apart, in descriptions of tiny headers; their arithmetic is compared in tests/parity."""

import pytest

from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.models.families.registry import CLASSES, FAMILIES, GGUF_FAMILIES
from engine.models.spec import (
    Experts,
    Mlp,
    QueryTemperature,
    Routing,
    RowRange,
    Streams,
    TensorRef,
)
from tests.fakes.family_headers import read_config, read_gguf


def attentions_of(spec):
    return [(attention.window, attention.rope) for attention in spec.attentions]


def test_names_are_unique():
    names = [name for family in FAMILIES for name in family.gguf]
    kinds = [kind for family in FAMILIES for kind in family.classes]
    assert len(names) == len(set(names)) == len(GGUF_FAMILIES)
    assert len(kinds) == len(set(kinds)) == len(CLASSES)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_has_readers_for_its_names(family):
    assert bool(family.gguf) == (family.read_gguf is not None)
    assert bool(family.classes) == (family.read_checkpoint is not None)


def test_gemma3_has_two_rotary_embeddings_and_a_sixth_layer_without_window():
    changes = {"attention.sliding_window_pattern": None, "block_count": 6}
    spec = read_gguf("gemma3", changes | {"attention.head_count_kv": 2})
    assert attentions_of(spec) == [(16, 1)] * 5 + [(0, 0)]
    assert spec.ropes[0].scaling.kind == "yarn"
    assert spec.ropes[1].scaling.kind == "none"
    assert spec.embedding_multiplier == pytest.approx(32**0.5)


def test_gemma3_27b_scales_scores_by_the_width_per_head():
    changes = {"block_count": 62, "attention.head_count_kv": 2, "attention.key_length": 16}
    changes |= {"attention.sliding_window_pattern": 6, "attention.value_length": 16}
    spec = read_gguf("gemma3", changes | {"rope.dimension_count": 16})
    assert spec.attentions[0].scale == pytest.approx((32 / 4) ** -0.5)


def test_norms_of_gemma_checkpoints_are_stored_less_one():
    spec = read_config("gemma3_text", {})
    tensors = spec.layers[0].tensors
    assert {tensors[role].add for role in tensors if role.endswith("norm")} == {1.0}
    assert {tensors[role].add for role in ("q", "down")} == {0.0}
    assert spec.tensors["final_norm"].add == 1.0
    assert read_config("gemma4_text", {}).tensors["final_norm"].add == 0.0


def test_gemma3_takes_the_old_spelling_of_its_rotary_settings():
    old = {"rope_parameters": None, "rope_theta": 5e5, "rope_local_base_freq": 2e4}
    scaling = {"rope_type": "linear", "factor": 8.0}
    spec = read_config("gemma3_text", old | {"rope_scaling": scaling})
    assert (spec.ropes[0].theta, spec.ropes[0].scaling.factor) == (5e5, 8.0)
    assert (spec.ropes[1].theta, spec.ropes[1].scaling.kind) == (2e4, "none")


def test_gemma2_tells_a_missing_soft_cap_from_none():
    assert read_config("gemma2", {}).logit_softcap == 30.0
    assert read_config("gemma2", {"final_logit_softcapping": None}).logit_softcap == 0.0
    assert read_gguf("gemma2", {"attn_logit_softcapping": None}).attentions[0].softcap == 50.0


def test_gemma4_layers_share_keys_and_differ_in_size():
    spec = read_gguf("gemma4", {"attention.shared_kv_layers": 1})
    first, second, last = spec.attentions
    assert (first.head_dim, first.window, second.head_dim, second.window) == (4, 16, 8, 0)
    assert last.kv_layer == 1
    assert all(attention.value_norm and attention.scale == 1.0 for attention in spec.attentions)
    assert {"k", "v", "k_norm"}.isdisjoint(spec.layers[2].tensors)
    assert spec.per_layer_width == 8
    with pytest.raises(ModelError, match="shared_kv_layers"):
        read_gguf("gemma4", {"attention.shared_kv_layers": 2})


@pytest.mark.parametrize(
    ("spec", "scale", "norm"),
    [
        (
            read_gguf("gemma4", {}),
            "blk.1.ffn_down_exps.scale",
            "blk.1.ffn_gate_inp.scale",
        ),
        (
            read_config("gemma4_text", {"enable_moe_block": True}),
            "model.language_model.layers.1.router.per_expert_scale",
            "model.language_model.layers.1.router.scale",
        ),
    ],
    ids=["gguf", "checkpoint"],
)
def test_experts_of_gemma4_are_beside_its_feed_forward(spec, scale, norm):
    routing = Routing("softmax", renormalise=True, logit_scale=32**-0.5)
    shared = Mlp(64, "gelu_tanh")
    assert spec.layers[1].ffn == Experts(8, 2, 32, routing, "gelu_tanh", shared)
    tensors = spec.layers[1].tensors
    assert tensors["router_scale"] == TensorRef(scale)
    assert tensors["router_norm"] == TensorRef(norm)
    assert {"experts_norm", "experts_post_norm", "shared_post_norm", "shared.down"} <= set(tensors)
    assert {"gate", "up", "down"}.isdisjoint(tensors)


def test_gemma3n_has_several_streams_and_cuts_the_gates_of_its_first_layers():
    spec = read_gguf("gemma3n", {})
    assert (spec.streams, spec.laurel_rank) == (Streams(4, 0), 64)
    assert [layer.ffn.cutoff for layer in spec.layers] == [1.6, 0.0, None]
    assert spec.attentions[2].kv_layer == 1
    assert spec.tensors["streams_merge"] == TensorRef("altup_unembd_proj.weight")
    spec = read_config("gemma3n_text", {"altup_num_inputs": 3, "altup_active_idx": 1})
    assert (spec.streams, spec.laurel_rank) == (Streams(3, 1), 8)
    assert spec.layers[0].ffn.cutoff == pytest.approx(1.6448536)
    assert [layer.ffn.cutoff for layer in spec.layers[1:]] == [0.0, None]
    name = "model.language_model.altup_projections.{}.weight"
    assert spec.tensors["streams_projection"] == TensorRef(name, parts=2)
    plain = read_config("gemma3n_text", {"altup_correct_scale": False})
    assert "streams_scale" in spec.layers[0].tensors
    assert "streams_scale" not in plain.layers[0].tensors


def test_tokens_of_gemma3n_without_embeddings_of_the_layers_have_those_of_the_first():
    place = read_config("gemma3n_text", {}).tensors["per_layer_embedding"]
    assert (place.run, place.step) == (60, 60)
    assert place.further == (RowRange(60, start=0, run=1, step=0),)
    whole = read_config("gemma3n_text", {"vocab_size_per_layer_input": 64})
    assert whole.tensors["per_layer_embedding"] == TensorRef(place.name)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("altup_num_inputs", 5),
        ("altup_active_idx", 4),
        ("activation_sparsity_pattern", [0.95, 0.5]),
        ("activation_sparsity_pattern", [0.95, 0.5, 1.0]),
        ("intermediate_size", [64, 64]),
        ("vocab_size_per_layer_input", 65),
    ],
)
def test_impossible_settings_of_gemma3n_are_refused(key, value):
    with pytest.raises(ModelError, match=key):
        read_config("gemma3n_text", {key: value})


def test_experts_of_gpt_oss_are_stored_transposed_or_in_blocks():
    name = "model.language_model.layers.0.mlp.experts.gate_up_proj"
    floats = read_config("gpt_oss", {}).layers[0].tensors
    assert floats["experts.up"] == TensorRef(name, 1, run=1, step=2, transposed=True)
    config = {"quantization_config": {"quant_method": "mxfp4"}}
    blocks = read_config("gpt_oss", config).layers[0].tensors
    assert blocks["experts.up"] == TensorRef(name, 1, run=1, step=2)
    assert not blocks["experts.down"].transposed


def test_a_missing_window_is_named_as_in_the_file():
    with pytest.raises(ModelError, match=r"no attention\.sliding_window, which must be above 0"):
        read_gguf("gemma4", {"attention.sliding_window": None})
    with pytest.raises(ModelError, match="sliding_window must be above 0"):
        read_config("olmo3", {"sliding_window": 0})


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("gemma3n_text", "attention_bias", True),
        ("gemma4_text", "use_bidirectional_attention", "all"),
        ("gemma3_text", "use_bidirectional_attention", True),
        ("gemma3_text", "attn_logit_softcapping", 50.0),
        ("stablelm", "use_parallel_residual", True),
        ("stablelm", "qk_layernorm", True),
        ("gpt2", "add_cross_attention", True),
        ("granite", "hidden_act", "telepathy"),
    ],
)
def test_what_cannot_be_described_is_refused(kind, key, value):
    """transformers may run it, so the error is the one that offers torch."""
    with pytest.raises(UnsupportedByNativeError, match=key):
        read_config(kind, {key: value})


def test_mistral3_with_another_language_model_is_refused():
    with pytest.raises(UnsupportedByNativeError, match="mistral4"):
        read_config("mistral3", {"model_type": "mistral4"})


def test_phi3_takes_rows_of_fused_matrices():
    spec = read_config("phi3", {"sliding_window": None})
    tensors = spec.layers[1].tensors
    name = "model.language_model.layers.1.self_attn.qkv_proj.weight"
    assert [tensors[role].start for role in "qkv"] == [0, 32, 48]
    assert tensors["v"] == TensorRef(name, 48, run=16, step=16)
    assert (tensors["gate"].start, tensors["up"].start) == (0, 64)


def test_phi3_files_know_longrope_by_older_names():
    for name in ("su", "yarn", "longrope"):
        (rope,) = read_config("phi3", {}, {"rope_type": name}).ropes
        assert rope.scaling.kind == "longrope"


def test_smollm3_leaves_every_fourth_layer_without_rotation():
    count = {"block_count": 8, "attention.head_count_kv": 2}
    spec = read_gguf("smollm3", count)
    assert [attention.rope for attention in spec.attentions] == [0, 0, 0, None] * 2
    listed = read_config("smollm3", {"no_rope_layers": [0, 1, 0], "use_sliding_window": False})
    assert attentions_of(listed) == [(0, None), (0, 0), (0, None)]


def test_granite_divides_logits_and_may_have_no_rotation():
    spec = read_gguf("granite", {})
    assert spec.logit_multiplier == pytest.approx(1 / 3)
    assert (spec.residual_multiplier, spec.embedding_multiplier) == (0.5, 2.0)
    assert spec.attentions[0].scale == 0.25
    still = read_gguf("granite", {"rope.scaling.finetuned": False})
    assert still.attentions[0].rope is None
    with pytest.raises(ModelError, match="logit_scale"):
        read_gguf("granite", {"logit_scale": None})


def test_olmo_has_norms_of_outputs_only():
    spec = read_gguf("olmo2", {})
    assert {"mixer_norm", "ffn_norm"}.isdisjoint(spec.layers[0].tensors)
    assert {"mixer_post_norm", "ffn_post_norm", "q_norm"} <= set(spec.layers[0].tensors)
    assert all(attention.qk_norm_whole for attention in spec.attentions)
    assert attentions_of(spec) == [(16, 1), (0, 0), (0, 0)]


def test_mistral3_queries_grow_with_their_position():
    temperature = QueryTemperature(0.1, 32)
    assert read_gguf("mistral3", {}).attentions[0].temperature == temperature
    assert read_config("mistral3", {}).attentions[0].temperature == temperature
    assert (
        read_config("mistral3", {}, {"llama_4_scaling_beta": None}).attentions[0].temperature
        is None
    )


def test_gpt2_reads_transposed_matrices_and_learned_positions():
    spec = read_config("gpt2", {"scale_attn_by_inverse_layer_idx": True})
    tensors = spec.layers[0].tensors
    name = "transformer.h.0.attn.c_attn.weight"
    assert tensors["k"] == TensorRef(name, 32, run=32, step=32, transposed=True)
    assert tensors["k.bias"].name == "transformer.h.0.attn.c_attn.bias"
    assert "gate" not in tensors
    assert spec.norm == "layer"
    assert "position_embedding" in spec.tensors
    assert [attention.rope for attention in spec.attentions] == [None] * 3
    assert [attention.scale for attention in spec.attentions] == pytest.approx(
        [8**-0.5, 8**-0.5 / 2, 8**-0.5 / 3]
    )


def test_stablelm_rotates_a_quarter_of_a_head():
    spec = read_config("stablelm", {}, {"partial_rotary_factor": None, "rope_type": "default"})
    assert (spec.ropes[0].dim, spec.norm) == (2, "layer")

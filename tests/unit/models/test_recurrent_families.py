"""Readers of families with recurrent mixers: which layers are what, where weights are, what is refused."""

import math

import pytest

from engine.api.errors import ModelError
from engine.files.fields import Fields
from engine.models import gguf, safetensors
from engine.models.safetensors_header import TensorEntry
from engine.models.spec import (
    Attention,
    Experts,
    GatedDeltaNet,
    Mamba2,
    Mlp,
    Routing,
    RowRange,
    ShortConv,
    TensorRef,
)

HIDDEN, VOCAB = 32, 100


class AnyShapes(dict[str, tuple[int, ...]]):
    """Tensors of any name, except those of `missing`; only the embedding's shape is known."""

    def __init__(self, *missing: str) -> None:
        super().__init__({"token_embd.weight": (VOCAB, HIDDEN)})
        self.missing = missing

    def __contains__(self, name: object) -> bool:
        named = str(name)
        known = named.endswith((".weight", "ssm_dt.bias", "ssm_a", "ssm_d"))
        absent = self.missing
        return known and named != "output.weight" and not any(part in named for part in absent)

    def __getitem__(self, name: str) -> tuple[int, ...]:
        return (VOCAB, HIDDEN)

    def get(self, name, default=None):
        return (VOCAB, HIDDEN) if name in self else default


COMMON = {
    "block_count": 4,
    "embedding_length": HIDDEN,
    "context_length": 64,
    "attention.head_count": 4,
    "attention.head_count_kv": [0, 2, 0, 0],
    "attention.layer_norm_rms_epsilon": 1e-5,
    "feed_forward_length": 48,
}
SSM = {
    "ssm.conv_kernel": 4,
    "ssm.state_size": 16,
    "ssm.group_count": 2,
    "ssm.time_step_rank": 4,
    "ssm.inner_size": 96,
}


def spec_of(family, *missing, **changes):
    if "expert_count" not in changes:
        missing = ("ffn_gate_inp", *missing)
    fields = {f"{family}.{key.replace('__', '.')}": value for key, value in changes.items()}
    metadata = {"general.architecture": family, **fields}
    return gguf.read_spec(metadata, AnyShapes(*missing), source="tiny.gguf")


def dotted(fields):
    return {key.replace(".", "__"): value for key, value in fields.items()}


LFM2 = dotted(COMMON | {"shortconv.l_cache": 3})
QWEN35 = dotted(
    COMMON
    | SSM
    | {"attention.head_count_kv": 2, "rope.dimension_count": 4, "attention.key_length": 16}
)
GRANITE = dotted(COMMON | SSM)
NEMOTRON = dotted(COMMON | SSM | {"feed_forward_length": [0, 0, 48, 0]})


def kinds_of(spec):
    return [type(layer.mixer) for layer in spec.layers]


def test_layers_of_lfm2_without_kv_heads_are_convolutions():
    spec = spec_of("lfm2", **LFM2)
    assert kinds_of(spec) == [ShortConv, Attention, ShortConv, ShortConv]
    assert spec.layers[0].mixer == ShortConv(3)
    assert spec.layers[1].mixer.num_kv_heads == 2
    assert spec.has_states
    assert spec.tensors["final_norm"] == TensorRef("token_embd_norm.weight")
    name = "blk.0.shortconv.in_proj.weight"
    places = {
        role: spec.layers[0].tensors[role] for role in ("conv_before", "conv_after", "conv_in")
    }
    assert {place.name for place in places.values()} == {name}
    assert [place.start for place in places.values()] == [0, HIDDEN, 2 * HIDDEN]


def test_a_window_of_lfm2_is_that_of_its_attention():
    spec = spec_of("lfm2", **LFM2, attention__sliding_window=16)
    assert [attention.window for attention in spec.attentions] == [16]


def test_the_list_of_recurrent_layers_wins_over_the_interval():
    net, full = GatedDeltaNet, Attention
    assert kinds_of(spec_of("qwen35", **QWEN35)) == [net, net, net, full]
    assert kinds_of(spec_of("qwen35", **QWEN35, full_attention_interval=2)) == [net, full] * 2
    listed = {"attention__recurrent_layers": [False, True, True, False]}
    spec = spec_of("qwen35", **QWEN35, full_attention_interval=2, **listed)
    assert kinds_of(spec) == [full, net, net, full]
    with pytest.raises(ModelError, match="recurrent_layers"):
        spec_of("qwen35", **QWEN35, attention__recurrent_layers=[True])


def test_blocks_for_multi_token_prediction_are_no_layers():
    assert spec_of("qwen35", **QWEN35, nextn_predict_layers=1).num_layers == 3
    with pytest.raises(ModelError, match="nextn_predict_layers"):
        spec_of("qwen35", **QWEN35, nextn_predict_layers=4)


def test_heads_of_qwen35_files_are_tiled_and_queries_alternate_with_gates():
    spec = spec_of("qwen35", **QWEN35)
    assert spec.layers[0].mixer == GatedDeltaNet(4, 4, 2, 16, 24, tiled=True)
    tensors = spec.layers[3].tensors
    assert tensors["q"] == TensorRef("blk.3.attn_q.weight", run=16, step=32)
    assert tensors["attention_gate"] == TensorRef("blk.3.attn_q.weight", start=16, run=16, step=32)
    assert tensors["ffn_norm"] == TensorRef("blk.3.post_attention_norm.weight")
    assert spec.ropes[0].dim == 4


QWEN3_NEXT = QWEN35 | {
    "expert_count": 8,
    "expert_used_count": 3,
    "expert_feed_forward_length": 24,
}


def test_a_key_head_of_qwen3_next_has_its_values_beside_it():
    spec = spec_of("qwen3next", "ffn_gate_up_exps", **QWEN3_NEXT)
    assert kinds_of(spec) == [GatedDeltaNet] * 3 + [Attention]
    assert spec.layers[0].mixer == GatedDeltaNet(4, 4, 2, 16, 24, tiled=False)
    tensors = spec.layers[0].tensors
    assert spec.layers[3].ffn == Experts(
        8, 3, 24, Routing("softmax", renormalise=True), shared=Mlp(VOCAB)
    )
    assert tensors["beta"] == TensorRef("blk.0.ssm_ba.weight", run=2, step=4)
    assert tensors["time_step"] == TensorRef("blk.0.ssm_ba.weight", start=2, run=2, step=4)


def test_inputs_of_qwen3_next_are_stored_apart_or_as_in_the_checkpoint():
    apart = spec_of("qwen3next", "ffn_gate_up_exps", "ssm_in", **QWEN3_NEXT).layers[0].tensors
    assert apart["conv_in"] == TensorRef("blk.0.attn_qkv.weight")
    assert apart["z"] == TensorRef("blk.0.attn_gate.weight")
    tensors = spec_of("qwen3next", "ffn_gate_up_exps", **QWEN3_NEXT).layers[0].tensors
    # Of each of two key heads: a query and a key of 16, two values of 24 and two gates of 24.
    further = (RowRange(32, start=16, run=16, step=128), RowRange(64, start=32, run=48, step=128))
    assert tensors["conv_in"] == TensorRef("blk.0.ssm_in.weight", run=16, step=128, further=further)
    assert tensors["z"] == TensorRef("blk.0.ssm_in.weight", start=80, run=48, step=128)


def test_keys_of_qwen3_next_that_values_cannot_share_are_refused():
    with pytest.raises(ModelError, match="4 heads with a state, which 3 keys cannot share"):
        spec_of("qwen3next", **{**QWEN3_NEXT, "ssm__group_count": 3})


def test_granite_hybrids_have_experts_beside_a_network():
    experts = {"expert_count": 8, "expert_used_count": 3}
    spec = spec_of("granitehybrid", "ffn_gate_up_exps", **GRANITE, **experts)
    routing = Routing("softmax_of_used")
    assert spec.layers[0].ffn == Experts(8, 3, 48, routing, shared=Mlp(VOCAB))
    assert spec.layers[0].tensors["shared.up"] == TensorRef("blk.0.ffn_up_shexp.weight")


def test_experts_of_nemotron_have_no_gates():
    changes = {
        "expert_count": 8,
        "expert_used_count": 3,
        "expert_feed_forward_length": 24,
        "expert_weights_norm": True,
        "expert_weights_scale": 2.5,
    }
    missing = ("ffn_gate_up_exps", "ffn_gate_exps", "ffn_gate_shexp", "ffn_gate_inp_shexp")
    spec = spec_of("nemotron_h_moe", *missing, **NEMOTRON, **changes)
    assert kinds_of(spec) == [Mamba2, Attention, type(None), Mamba2]
    routing = Routing("sigmoid", renormalise=True, scale=2.5)
    assert spec.layers[2].ffn == Experts(8, 3, 24, routing, "relu2", Mlp(VOCAB, "relu2"))
    assert not any("gate" in role for role in spec.layers[2].tensors)
    with pytest.raises(ModelError, match="moe_latent_size"):
        spec_of("nemotron_h_moe", *missing, **NEMOTRON, **changes, moe_latent_size=8)
    shorter = spec_of("nemotron_h_moe", *missing, **NEMOTRON, **changes, nextn_predict_layers=1)
    assert shorter.num_layers == 3


def test_granite_hybrids_mix_mamba_and_attention():
    spec = spec_of("granitehybrid", **GRANITE, logit_scale=4.0, attention__scale=0.5)
    assert kinds_of(spec) == [Mamba2, Attention, Mamba2, Mamba2]
    assert spec.layers[0].mixer == Mamba2(4, 4, 2, 24, 16)
    assert spec.attentions[0].scale == 0.5
    assert spec.attentions[0].rope == 0
    assert spec.logit_multiplier == 0.25
    unrotated = spec_of("granitehybrid", **GRANITE, rope__scaling__finetuned=False)
    assert unrotated.attentions[0].rope is None
    rows = {role: spec.layers[0].tensors[role].start for role in ("z", "conv_in", "time_step")}
    assert rows == {"z": 0, "conv_in": 96, "time_step": 96 + 96 + 2 * 2 * 16}


def test_layers_of_nemotron_are_a_mixer_or_a_feed_forward():
    spec = spec_of("nemotron_h", **NEMOTRON)
    assert kinds_of(spec) == [Mamba2, Attention, type(None), Mamba2]
    assert [layer.ffn for layer in spec.layers] == [None, None, Mlp(48, "relu2"), None]
    assert "gate" not in spec.layers[2].tensors
    assert spec.layers[2].tensors["ffn_norm"] == TensorRef("blk.2.attn_norm.weight")
    assert spec.attentions[0].rope is None


@pytest.mark.parametrize(
    ("family", "fields", "missing", "message"),
    [
        ("lfm2", LFM2, "shortconv.conv", "blk.0.shortconv.conv"),
        ("qwen35", QWEN35, "ssm_beta", "blk.0.ssm_beta"),
        ("granitehybrid", GRANITE, "ssm_d", "ssm_d"),
        ("nemotron_h", NEMOTRON, "ffn_up", "blk.2.ffn_up"),
    ],
)
def test_a_missing_weight_is_named(family, fields, missing, message):
    with pytest.raises(ModelError, match=f"has no .*{message}"):
        spec_of(family, missing, **fields)


@pytest.mark.parametrize(
    ("family", "fields", "change"),
    [
        ("lfm2", LFM2, {"shortconv__l_cache": 9}),
        ("lfm2", LFM2, {"attention__head_count_kv": [0, 2]}),
        ("lfm2", LFM2, {"attention__causal": False}),
        ("qwen35", QWEN35, {"ssm__conv_kernel": 0}),
        ("qwen35", QWEN35, {"ssm__inner_size": 97}),
        ("granitehybrid", GRANITE, {"ssm__inner_size": 97}),
        ("nemotron_h", NEMOTRON, {"ssm__state_size": 4096}),
    ],
)
def test_impossible_settings_are_refused(family, fields, change):
    (key,) = change
    with pytest.raises(ModelError, match=key.replace("__", ".")):
        spec_of(family, **{**fields, **change})


MODULES = {
    "lfm2": "operator_norm ffn_norm feed_forward.w1 feed_forward.w2 feed_forward.w3 conv.in_proj conv.conv "
    "conv.out_proj self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.out_proj "
    "self_attn.q_layernorm self_attn.k_layernorm",
    "nemotron_h": "norm mixer.in_proj mixer.conv1d mixer.norm mixer.out_proj mixer.up_proj mixer.down_proj "
    "mixer.q_proj mixer.k_proj mixer.v_proj mixer.o_proj",
}
"""Modules with weights of some layer."""


def checkpoint_of(model_type, shape=(48, HIDDEN), **config):
    modules = MODULES.get(model_type, "").split()
    names = [f"model.layers.{index}.{name}.weight" for index in range(3) for name in modules]
    for index in range(3):
        names += [f"model.layers.{index}.mixer.{name}" for name in ("A_log", "D", "dt_bias")]
    names += [
        f"model.{name}.weight"
        for name in ("embed_tokens", "embedding_norm", "embeddings", "norm_f")
    ]
    fields = {
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "vocab_size": VOCAB,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "max_position_embeddings": 64,
        "tie_word_embeddings": True,
        **config,
    }
    entries = {name: TensorEntry(shape, "F32") for name in names}
    return safetensors.read_spec(Fields(fields, source="config.json"), entries)


@pytest.mark.parametrize(
    ("model_type", "config", "message"),
    [
        ("lfm2", {"norm_eps": 1e-5, "layer_types": ["conv", "fourier"]}, "layer_types"),
        ("lfm2", {"norm_eps": 1e-5, "layer_types": ["conv"]}, "layer_types"),
        (
            "qwen3_5_text",
            {"rms_norm_eps": 1e-6, "intermediate_size": 48, "attention_bias": True},
            "attention_bias",
        ),
        ("granitemoehybrid", {"time_step_limit": [0.0, 0.5]}, "time_step_limit"),
        ("nemotron_h", {"time_step_limit": [0.001, math.inf]}, "time_step_limit"),
        ("nemotron_h", {"mamba_dt_limit": [0.001, 0.1]}, "mamba_dt_limit"),
        (
            "nemotron_h",
            {"layer_norm_epsilon": 1e-5, "layers_block_type": ["linear_attention", "sparse"]},
            "layers_block_type",
        ),
        ("nemotron_h", {"layer_norm_epsilon": 1e-5, "hybrid_override_pattern": "MX"}, "pattern"),
        (
            "nemotron_h",
            {
                "layer_norm_epsilon": 1e-5,
                "hybrid_override_pattern": "ME",
                "moe_latent_size": 16,
            },
            "moe_latent_size",
        ),
    ],
)
def test_unsupported_checkpoints_are_refused(model_type, config, message):
    with pytest.raises(ModelError, match=message):
        checkpoint_of(model_type, **config)


def test_older_keys_of_lfm2_are_read():
    spec = checkpoint_of("lfm2", norm_eps=1e-5, full_attn_idxs=[1], conv_L_cache=4)
    assert kinds_of(spec) == [ShortConv, Attention]
    assert spec.layers[0].mixer == ShortConv(4)
    assert spec.ropes[0].theta == 1_000_000.0


@pytest.mark.parametrize("shape", [(), (48,), (0, HIDDEN), (1 << 40, HIDDEN)])
def test_a_gate_of_an_impossible_shape_is_refused(shape):
    with pytest.raises(ModelError, match=r"damaged model\.layers\.0\.feed_forward\.w1"):
        checkpoint_of("lfm2", shape, norm_eps=1e-5, full_attn_idxs=[1])


def test_patterns_of_nemotron_are_read():
    spec = checkpoint_of(
        "nemotron_h",
        layer_norm_epsilon=1e-5,
        hybrid_override_pattern="M-*",
        intermediate_size=48,
    )
    assert kinds_of(spec) == [Mamba2, type(None), Attention]

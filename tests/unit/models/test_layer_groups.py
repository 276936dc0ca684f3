from dataclasses import replace

from engine.models.layer_groups import describe_layers
from engine.models.spec import (
    Attention,
    Experts,
    GatedDeltaNet,
    LayerSpec,
    Mamba2,
    Mlp,
    ModelSpec,
    Rope,
    Routing,
    ShortConv,
    Streams,
    TensorRef,
)

FULL = Attention(num_heads=4, num_kv_heads=1, head_dim=256, scale=1.0, rope=0)
SLIDING = replace(FULL, window=512)
GATED = {"gate": TensorRef("gate")}


def model(attentions, ffn=None, roles=GATED, **changes):
    ffn = ffn or Mlp(2048, "gelu_tanh")
    layers = tuple(LayerSpec(attention, ffn, roles) for attention in attentions)
    spec = ModelSpec("x", 640, 1000, 4096, 1e-6, (Rope(1e4, 256, "half"),), layers, {})
    return replace(spec, **changes)


def test_equal_layers_are_one_group():
    assert describe_layers(model([FULL] * 3)) == (
        "3 layers: with all tokens; with 4 heads of 256 and 1 for keys and values; "
        "feed-forward 2,048 (GELU, gated)"
    )


def test_experts_are_counted():
    experts = Experts(128, 8, 768, Routing(), shared=Mlp(512))
    roles = {"experts.gate": TensorRef("gate")}
    assert describe_layers(model([FULL], experts, roles)).endswith(
        "; 8 of 128 experts of 768 (SiLU, gated) and one of 512 for all tokens"
    )


def test_windows_are_counted():
    text = describe_layers(model([*[SLIDING] * 15, *[FULL] * 3]))
    assert text.startswith("18 layers: 15 with a window of 512, 3 with all tokens; ")


def test_layers_without_attention_are_named():
    spec = model([*[ShortConv(3)] * 10, *[FULL] * 6])
    assert describe_layers(spec).startswith(
        "16 layers: 10 short convolution of 3 tokens, 6 with all tokens; "
    )
    assert describe_layers(model([None, FULL])).startswith("2 layers: 1 of a feed-forward alone, ")


def test_streams_and_cut_gates_are_named():
    sparse = replace(Mlp(2048, "gelu_tanh"), cutoff=1.64)
    spec = model([FULL], sparse, streams=Streams(4), laurel_rank=64)
    assert describe_layers(spec).endswith(
        "feed-forward 2,048 (GELU, gated, sparse); products of rank 64 beside the mixers; "
        "4 residual streams"
    )


def test_what_only_some_layers_have_is_counted():
    reader = replace(SLIDING, kv_layer=0, rope=None)
    text = describe_layers(model([SLIDING, FULL, reader], per_layer_width=64))
    assert "; 1 without a rotary embedding; 1 read the keys of earlier ones; " in text
    assert text.endswith("; embeddings of 64 per layer")


def test_recurrent_mixers_are_counted():
    net, mamba = GatedDeltaNet(4, 32, 16, 128, 128), Mamba2(4, 48, 1, 64, 128)
    text = describe_layers(model([net, net, ShortConv(3), mamba, FULL]))
    assert text.startswith(
        "5 layers: 2 gated DeltaNet with 32 states of 128 × 128, 1 short convolution of 3 tokens, "
        "1 Mamba2 with 48 states of 128 × 64, 1 with all tokens; with 4 heads of 256 and 1 "
    )


def test_a_layer_may_be_a_feed_forward_alone():
    spec = model([FULL, None])
    first = replace(spec.layers[0], ffn=None)
    text = describe_layers(replace(spec, layers=(first, spec.layers[1])))
    assert text.startswith("2 layers: 1 with all tokens, 1 of a feed-forward alone; with 4 heads")


def test_a_plain_feed_forward_and_learned_positions():
    spec = model([FULL], Mlp(64, "relu2"), {}, tensors={"position_embedding": TensorRef("p")})
    assert "; learned positions; feed-forward 64 (squared ReLU, plain)" in describe_layers(spec)


def test_feed_forwards_of_several_widths():
    spec = model([FULL, FULL])
    second = replace(spec.layers[1], ffn=Mlp(4096, "gelu_tanh"))
    text = describe_layers(replace(spec, layers=(spec.layers[0], second)))
    assert text.endswith("1 feed-forward 2,048 (GELU, gated), 1 feed-forward 4,096 (GELU, gated)")

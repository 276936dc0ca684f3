"""Gemma 3n, its text part: several residual streams, of which layers compute one (AltUp).

Layers add a product of two narrow matrices to what attention adds (Laurel), and embeddings of their own; the
first ones cut their gates. The last layers read the keys of earlier ones.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.family import Family
from engine.models.families.gemma4 import PER_LAYER, PER_LAYER_TOP, share_keys, without_keys
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.model_header import MAX_WIDTH, ModelHeader
from engine.models.families.role_names import NORMS_AROUND, PROJECTIONS, QK_NORMS, TOP
from engine.models.families.windows import sliding_windows
from engine.models.spec import (
    Attention,
    LayerSpec,
    Mlp,
    ModelSpec,
    RowRange,
    Streams,
    TensorRef,
    Tensors,
)

_MAX_STREAMS = 4
"""Residual streams of the native executor."""
_PERIOD = 5
_SPARSE_LAYERS = 10
"""The first layers, which cut their gates in models whose config does not say it."""
_SPARSITY = 0.95

_NAMES = PROJECTIONS | NORMS_AROUND | QK_NORMS | PER_LAYER
_CHECKPOINT_OWN = {
    "streams_norm": "altup.router_norm.weight",
    "streams_router": "altup.modality_router.weight",
    "streams_predict": "altup.prediction_coefs.weight",
    "streams_correct": "altup.correction_coefs.weight",
    "laurel_left": "laurel.linear_left.weight",
    "laurel_right": "laurel.linear_right.weight",
    "laurel_norm": "laurel.post_laurel_norm.weight",
}
_GGUF_OWN = {
    "streams_norm": "altup_router_norm.weight",
    "streams_router": "altup_router.weight",
    "streams_predict": "altup_predict_coef.weight",
    "streams_correct": "altup_correct_coef.weight",
    "streams_scale": "altup_correct_scale.weight",
    "laurel_left": "laurel_l.weight",
    "laurel_right": "laurel_r.weight",
    "laurel_norm": "laurel_post_norm.weight",
}
_GGUF_TOP = {
    "streams_projection": "altup_proj.weight",
    "streams_merge": "altup_unembd_proj.weight",
}
_DEFAULTS = {
    "vocab_size": 262_400,
    "hidden_size": 2048,
    "intermediate_size": 16_384,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-6,
    "sliding_window": 512,
    "vocab_size_per_layer_input": 262_144,
    "hidden_size_per_layer_input": 256,
    "laurel_rank": 64,
    "num_kv_shared_layers": 15,
}


def _read_gguf(header: GgufHeader) -> ModelSpec:
    fields = header.fields
    streams = _streams(header, "altup.num_inputs", "altup.active_idx")
    sliding = header.sliding_layers(_PERIOD)
    attentions = share_keys(
        header,
        _attentions(header, sliding, header.window()),
        fields.integer("attention.shared_kv_layers", default=0),
        "attention.shared_kv_layers",
    )
    cutoffs = _gguf_cutoffs(header)
    layers = []
    for index, attention in enumerate(attentions):
        weights = header.layer_tensors(index, without_keys(_NAMES, attention))
        own = header.named(f"blk.{index}.", _GGUF_OWN)
        mlp = Mlp(header.intermediate_sizes[index], "gelu_tanh", cutoffs[index])
        layers.append(LayerSpec(attention, mlp, {**weights, **own}))
    return header.model(
        layers,
        {**header.model_tensors(TOP | PER_LAYER_TOP), **header.named("", _GGUF_TOP)},
        ropes=(header.rope("half"), header.rope("half", local=True, theta=10_000.0)),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=fields.number("final_logit_softcapping", default=30.0, positive=False),
        per_layer_width=fields.integer("embedding_length_per_layer_input", low=1, high=MAX_WIDTH),
        streams=streams,
        laurel_rank=header.width_of(layers[0].tensors["laurel_left"].name),
    )


def _gguf_cutoffs(header: GgufHeader) -> list[float | None]:
    """Where each layer cuts its gates; layers that do not have minus infinity."""
    key = "activation_sparsity_scale"
    if key not in header.fields:
        return _default_cutoffs(header)
    values = header.fields.numbers(key, finite=False)
    if len(values) != header.num_layers:
        raise header.fields.wrong(key, f"a number for each of {header.num_layers} layers")
    return [value if math.isfinite(value) else None for value in values]


def _default_cutoffs(header: ModelHeader) -> list[float | None]:
    count = header.num_layers
    sparse = _SPARSE_LAYERS if count > _SPARSE_LAYERS else 0
    return [_cutoff(_SPARSITY)] * sparse + [None] * (count - sparse)


def _cutoff(sparsity: float) -> float | None:
    """The number of standard deviations below which this share of normal values is."""
    return NormalDist().inv_cdf(sparsity) if sparsity > 0 else None


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    header = header.with_defaults(_DEFAULTS)
    header.refuse("attention_bias", "use_bidirectional_attention")
    config = header.text
    streams = _streams(header, "altup_num_inputs", "altup_active_idx")
    sliding = header.sliding_layers(_PERIOD)
    attentions = share_keys(
        header,
        _attentions(header, sliding, header.window()),
        config.integer("num_kv_shared_layers"),
        "num_kv_shared_layers",
    )
    own = dict(_CHECKPOINT_OWN)
    if config.flag("altup_correct_scale", default=True):
        own["streams_scale"] = "altup.correct_output_scale"
    activation = header.activation("hidden_activation", "gelu_pytorch_tanh")
    sizes, cutoffs = _intermediate_sizes(header), _checkpoint_cutoffs(header)
    layers = []
    for index, attention in enumerate(attentions):
        weights = header.layer_tensors(index, without_keys(_NAMES | own, attention))
        layers.append(LayerSpec(attention, Mlp(sizes[index], activation, cutoffs[index]), weights))
    return header.model(
        layers,
        _top(header, streams),
        ropes=(
            header.rope(kind="full_attention", theta=1_000_000.0),
            header.local_rope(theta=config.number("rope_local_base_freq", default=10_000.0)),
        ),
        embedding_multiplier=header.hidden_size**0.5,
        logit_softcap=config.number("final_logit_softcapping", default=30.0, positive=False),
        per_layer_width=config.integer("hidden_size_per_layer_input", low=1, high=MAX_WIDTH),
        streams=streams,
        laurel_rank=config.integer("laurel_rank", low=1, high=MAX_WIDTH),
    )


def _checkpoint_cutoffs(header: CheckpointHeader) -> list[float | None]:
    key, config = "activation_sparsity_pattern", header.text
    if key not in config:
        return _default_cutoffs(header)
    shares = config.numbers(key)
    if len(shares) != header.num_layers or not all(0 <= share < 1 for share in shares):
        raise config.wrong(key, f"a share below 1 for each of {header.num_layers} layers")
    return [_cutoff(share) for share in shares]


def _intermediate_sizes(header: CheckpointHeader) -> tuple[int, ...]:
    """Inner width of each layer's feed-forward, which may be given once."""
    key, config = "intermediate_size", header.text
    if not config.is_list(key):
        return header.intermediate_sizes
    sizes = config.integers(key)
    if len(sizes) != header.num_layers or not all(1 <= size <= MAX_WIDTH for size in sizes):
        raise config.wrong(key, f"a width for each of {header.num_layers} layers")
    return tuple(sizes)


def _top(header: CheckpointHeader, streams: Streams) -> Tensors:
    """The weights outside the layers; tokens without embeddings per layer have those of the first token."""
    tensors = dict(header.model_tensors(TOP | PER_LAYER_TOP, tied=True))
    rows = header.text.integer("vocab_size_per_layer_input", low=1, high=header.vocab_size)
    if rows < header.vocab_size:
        name = tensors["per_layer_embedding"].name
        rest = RowRange(rows, start=0, run=1, step=0)
        tensors["per_layer_embedding"] = TensorRef(name, run=rows, step=rows, further=(rest,))
    others = streams.count - 1
    for role, module in (("projection", "projections"), ("merge", "unembed_projections")):
        pattern = f"{header.prefix}altup_{module}.{{}}.weight"
        for index in range(others):
            header.require(pattern.format(index))
        tensors[f"streams_{role}"] = TensorRef(pattern, parts=others)
    return tensors


def _streams(header: ModelHeader, count_key: str, active_key: str) -> Streams:
    count = header.fields.integer(count_key, default=4, low=2, high=_MAX_STREAMS)
    active = header.fields.integer(active_key, default=0, high=count - 1)
    return Streams(count, active)


def _attentions(header: ModelHeader, sliding: tuple[bool, ...], window: int) -> Sequence[Attention]:
    attentions = header.attentions(
        windows=sliding_windows(header, sliding, window),
        ropes=tuple(map(int, sliding)),
        scale=1.0,
    )
    return [replace(attention, value_norm=True) for attention in attentions]


GEMMA3N = Family(
    "gemma3n",
    ("gemma3n",),
    _read_gguf,
    {"gemma3n_text": "Gemma3nForCausalLM", "gemma3n": "Gemma3nForConditionalGeneration"},
    _read_checkpoint,
)

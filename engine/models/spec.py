"""`ModelSpec`: a model described layer by layer for the native executor, whatever its family and format.

A family's reader (`engine.models.families`) makes one of GGUF metadata or of a config.json. It is passed to
the native executor as JSON; `ModelSpec::from_json` in the kernels crate validates it again, because memory is
allocated by it. The executor has no branch for a family: what a layer does is what its `LayerSpec` says.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Literal

RopeStyle = Literal["half", "interleaved"]
"""`half` rotates pairs (i, i + d/2) (Hugging Face checkpoints, most GGUF); `interleaved` rotates pairs
(2i, 2i + 1) (llama-family GGUF, whose q and k rows were permuted for it)."""

Activation = Literal["silu", "gelu_tanh", "gelu", "relu2", "swiglu_clamped"]
"""Of a feed-forward. `swiglu_clamped` (gpt-oss) is min(g, 7) * sigmoid(1.702 * g) * (clamp(u, -7, 7) + 1);
the others are applied to the gate, or to the only projection of one that is not gated."""


QuantizationScheme = Literal["gptq", "gptq_v2", "awq", "pack-quantized", "mxfp4"]
"""How a checkpoint stores quantised matrices; see `grouped` and `mxfp4` in `rust_core/kernels/src/format`."""


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Scaling of the rotary frequencies; fields that a kind does not use keep their defaults.

    Attributes:
        kind: none; linear (Chen et al. 2023); llama3 (Llama 3.1); yarn (Peng et al. 2023); longrope (Ding et
            al. 2024), whose divisors are the long ones if sequences may be longer than `original_context`.
        factor: context extension factor.
        original_context: context length of pre-training.
        low_freq_factor, high_freq_factor: llama3 only.
        beta_fast, beta_slow: yarn only.
        truncate: yarn only; whether the ends of its ramp are rounded to whole pairs.
        attention_factor: yarn and longrope; scales cos and sin; None derives it from `factor`.
        short_divisors, long_divisors: longrope only; one entry per pair.
    """

    kind: Literal["none", "linear", "llama3", "yarn", "longrope"] = "none"
    factor: float = 1.0
    original_context: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float | None = None
    short_divisors: tuple[float, ...] = ()
    long_divisors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Rope:
    """A rotary position embedding, used by the layers that name it.

    Attributes:
        theta: base of the frequencies.
        dim: leading elements of a head among which pairs are formed; frequency i is theta ** (-2i / dim).
        pairs: pairs that are rotated, from the first on; the others stay as they are. None for all dim / 2.
        divisors: one per rotated pair, which divides its frequency (GGUF's `rope_freqs.weight`); or empty.
    """

    theta: float
    dim: int
    style: RopeStyle
    scaling: RopeScaling = RopeScaling()
    pairs: int | None = None
    divisors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows of a weight from `first` on: row first + j is where a `TensorRef` of these fields has row j.

    With `run` 1 and `step` 0, all are the row `start`.
    """

    first: int
    start: int
    run: int
    step: int


@dataclass(frozen=True, slots=True)
class TensorRef:
    """Where a weight is stored: a tensor, or some of its rows.

    Row j of the weight is row `start + j // run * step + j % run` of the tensor. `start` 0 and `run` 0 is all
    of the tensor, whose shape must be the weight's; n consecutive rows have `run` and `step` n. A vector's
    elements are its rows, and a tensor of three dimensions has those of its matrices one after the other.

    Attributes:
        name: the tensor's name in the file.
        start: first row.
        run: rows taken together.
        step: rows from the first of one run to the first of the next.
        transposed: whether it is stored as [inputs, outputs] (GPT-2 checkpoints); floats only.
        add: added to each element (1 for norms stored as their difference to 1); vectors only.
        parts: tensors that are taken together, row after row; `name` then has `{}` for a tensor's index
            (experts of checkpoints that store each expert by itself). 0 for a single tensor.
        further: where the weight's rows from some row on are, if they are elsewhere in the tensor; ascending.

    A tensor of more than two dimensions is a stack of matrices, whose rows follow one another; `transposed`
    applies to each of them.
    """

    name: str
    start: int = 0
    run: int = 0
    step: int = 0
    transposed: bool = False
    add: float = 0.0
    parts: int = 0
    further: tuple[RowRange, ...] = ()


Tensors = Mapping[str, TensorRef]
"""Role of a weight to where it is stored. A role that is absent is not computed: a layer without `q.bias` has
no bias, one without `q_norm` no such norm. The roles of a layer:

| role | shape |
|---|---|
| `mixer_norm`, `mixer_norm.bias` | [hidden]: norm of the mixer's input |
| `mixer_post_norm` | [hidden]: norm of the mixer's output, before it is added to the residual stream |
| `ffn_norm`, `ffn_norm.bias`, `ffn_post_norm` | the same of the feed-forward |
| `q`, `o` | [heads * head_dim, hidden], [hidden, heads * head_dim] |
| `k`, `v` | [kv_heads * head_dim, hidden] |
| `q.bias`, `k.bias`, `v.bias`, `o.bias` | a bias of each |
| `attention_gate` | [heads * head_dim, hidden]: outputs of attention are multiplied with its sigmoid |
| `q_norm`, `k_norm` | [head_dim], or with `qk_norm_whole` [heads * head_dim] and [kv_heads * head_dim] |
| `sinks` | [heads]: scores of a position without a value (gpt-oss) |
| `conv_in`, `conv_in.bias` | [channels, hidden]: inputs of a recurrent mixer's convolution, see the mixers |
| `conv`, `conv.bias` | [channels, kernel]: weights of the convolution, the oldest token's first |
| `conv_before`, `conv_after` and `.bias` | [hidden, hidden]: gates of a short convolution |
| `z`, `z.bias` | [heads * value_dim, hidden]: outputs of heads with a state are multiplied with its SiLU |
| `beta` | [heads, hidden]: its sigmoid is the share of a value that is written to the state |
| `time_step`, `time_step.bias` | [heads, hidden]: its softplus is the time step |
| `rate` or `rate_log` | [heads]: a state decays by exp(rate * time step); rate is -exp(`rate_log`) |
| `skip` | [heads]: factor of the values that are added to outputs |
| `state_norm` | [value_dim] for gated DeltaNet, [heads * head_dim] for Mamba2: norm of the outputs |
| `gate`, `up`, `down` | [intermediate, hidden] twice, [hidden, intermediate]; plain ones have no gate |
| `gate.bias`, `up.bias`, `down.bias` | a bias of each |
| `router`, `router.bias` | [count, hidden], [count]: logits of the experts |
| `router_correction` | [count]: added to the scores by which experts are chosen, not to their weights |
| `router_scale` | [count]: factor of each expert's weight |
| `router_norm`, `experts_norm` | [hidden]: of the router's and the experts' inputs, instead of `ffn_norm` |
| `experts_post_norm`, `shared_post_norm` | [hidden]: norms of their output and of the shared network's |
| `experts.gate`, `experts.up` and `.bias` | [count * intermediate, hidden]: of expert 0, of expert 1, … |
| `experts.down` and `.bias` | [count * hidden, intermediate], likewise |
| `shared.gate`, `shared.up`, `shared.down` | those of the shared network |
| `shared_router` | [1, hidden]: its sigmoid is the weight of the shared network (Qwen) |
| `output_scale` | [1]: factor of the layer's result (Gemma 4) |
| `per_layer_gate`, `per_layer_projection`, `per_layer_norm` | [width, hidden], [hidden, width], [hidden] |
| `laurel_left`, `laurel_right`, `laurel_norm` | [rank, hidden], [hidden, rank], [hidden] |
| `streams_norm`, `streams_router` | [hidden], [streams, hidden]; see `Streams` |
| `streams_predict`, `streams_correct` | [streams * streams, streams], [streams, streams] |
| `streams_scale` | [hidden]: absent for 1 |

The four norms of experts beside a shared network (Gemma 4) are all there or none.

And of the model: `embedding` [vocab, hidden], `position_embedding` [context, hidden], `final_norm`,
`final_norm.bias`, `lm_head` [vocab, hidden] (absent if it is the embedding), `lm_head.bias`, of one with
several streams `streams_projection` and `streams_merge` [(streams - 1) * hidden, hidden], and of one with
per-layer embeddings (Gemma 4) `per_layer_embedding` [rows, layers * width], `per_layer_model_projection`
[layers * width, hidden], `per_layer_model_norm` [width]. With x the scaled input embedding of token t and
slices of `width` elements, layer i computes

    p = (norm(slice i of projection(x) / sqrt(hidden)) + slice i of row t * sqrt(width)) / sqrt(2)

by the weights of the model, and by its own adds norm(projection(gelu_tanh(gate(h)) * p)) to its result h,
before `output_scale`.
"""


@dataclass(frozen=True, slots=True)
class QueryTemperature:
    """Factor of queries by their position: 1 + beta * ln(1 + floor(position / original_context))."""

    beta: float
    original_context: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax attention of some heads.

    Attributes:
        scale: factor of the scores.
        window: tokens attended to, including the current one; 0 for all.
        rope: index into `ModelSpec.ropes`; None for none.
        qk_norm_whole: whether the norms of q and k are over all heads together (OLMo 2), not over each.
        value_norm: whether each value head is RMS-normalised without weights (Gemma 4).
        softcap: scores s become softcap * tanh(s / softcap); 0 for none.
        kv_layer: an earlier layer whose keys and values are read; this one computes none.
        temperature: see `QueryTemperature`; None for none.

    A layer whose weights have `k` but no `v`, and that has no `kv_layer`, uses the projected keys, before
    norm and rotation, as values.
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    scale: float
    rope: int | None
    window: int = 0
    qk_norm_whole: bool = False
    value_norm: bool = False
    softcap: float = 0.0
    kv_layer: int | None = None
    temperature: QueryTemperature | None = None
    kind: Literal["attention"] = field(default="attention", init=False)


@dataclass(frozen=True, slots=True)
class Mlp:
    """A feed-forward network: down(act(gate(x)) * up(x)), or down(act(up(x))) in a layer without `gate`.

    Attributes:
        intermediate_size: width of gate and up.
        activation: see `Activation`.
        cutoff: gates g of a token become max(0, g - mean(g) - cutoff * standard deviation(g)) before their
            activation, so that most are 0 (Gemma 3n); None for gates as they are.
    """

    intermediate_size: int
    activation: Activation = "silu"
    cutoff: float | None = None
    kind: Literal["mlp"] = field(default="mlp", init=False)


@dataclass(frozen=True, slots=True)
class Routing:
    """How a router's logits choose a token's experts and weigh them. Equal scores prefer the lower index.

    Attributes:
        scores: `softmax` over all experts; `softmax_of_used`, which chooses by logits and takes the softmax
            of those of the chosen experts; or `sigmoid` of each.
        renormalise: whether the weights of the chosen experts are divided by their sum.
        scale: factor of the weights.
        logit_scale: factor of the logits.
        groups: equal groups of neighbouring experts.
        used_groups: number of groups from which experts are chosen: those with the largest sums of their two
            best scores.
    """

    scores: Literal["softmax", "softmax_of_used", "sigmoid"] = "softmax"
    renormalise: bool = False
    scale: float = 1.0
    logit_scale: float = 1.0
    groups: int = 1
    used_groups: int = 1


@dataclass(frozen=True, slots=True)
class Experts:
    """Feed-forward networks of equal shape of which each token uses a few; their outputs are added by weight.

    Attributes:
        count: number of experts.
        used: experts that a token uses.
        intermediate_size: of each expert.
        activation: of each expert. They are gated if the layer has `experts.gate`.
        routing: how experts are chosen.
        shared: a network that every token uses besides; None for none.
    """

    count: int
    used: int
    intermediate_size: int
    routing: Routing
    activation: Activation = "silu"
    shared: Mlp | None = None
    kind: Literal["experts"] = field(default="experts", init=False)


@dataclass(frozen=True, slots=True)
class ShortConv:
    """A gated short convolution (LFM2): o(conv_after(x) * conv(conv_before(x) * conv_in(x))).

    The convolution is causal and of each channel by itself, as are those of the other recurrent mixers.

    Attributes:
        kernel: tokens that an output depends on, including its own.
    """

    kernel: int
    kind: Literal["short_conv"] = field(default="short_conv", init=False)


@dataclass(frozen=True, slots=True)
class GatedDeltaNet:
    """Linear attention whose state decays and is corrected by the delta rule (Yang et al. 2024).

    The convolution's channels are the queries, keys and values of all heads, in this order; SiLU is applied
    to its outputs, queries and keys are divided by their length, and queries by sqrt(key_dim), too.

    Attributes:
        kernel: as in `ShortConv`.
        num_heads: heads, each with values and a state of [key_dim, value_dim].
        num_key_heads: queries and keys, each shared by as many heads.
        tiled: whether head i has key i % num_key_heads; otherwise neighbouring heads share one.
    """

    kernel: int
    num_heads: int
    num_key_heads: int
    key_dim: int
    value_dim: int
    tiled: bool = False
    kind: Literal["gated_delta_net"] = field(default="gated_delta_net", init=False)


@dataclass(frozen=True, slots=True)
class Mamba2:
    """A selective state space model (Dao and Gu 2024).

    The convolution's channels are x of all heads, B and C of all groups, in this order; SiLU is applied to
    its outputs.

    Attributes:
        kernel: as in `ShortConv`.
        num_heads: heads, each with a state of [state_dim, head_dim].
        num_groups: B and C, each shared by neighbouring heads; `state_norm` is over the heads of a group.
    """

    kernel: int
    num_heads: int
    num_groups: int
    head_dim: int
    state_dim: int
    kind: Literal["mamba2"] = field(default="mamba2", init=False)


Mixer = Attention | ShortConv | GatedDeltaNet | Mamba2
FeedForward = Mlp | Experts


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One layer: a mixer and a feed-forward, each added to the residual stream.

    Attributes:
        mixer: how tokens exchange information; None for a layer that is a feed-forward alone.
        ffn: the feed-forward; None for a layer that is a mixer alone.
        tensors: see `Tensors`.
    """

    mixer: Mixer | None
    ffn: FeedForward | None
    tensors: Tensors


@dataclass(frozen=True, slots=True)
class Streams:
    """Residual streams of a model with alternating updates (AltUp; Baykal et al. 2023).

    The first is the scaled input embedding x, stream i the projection P_i x with the RMS of x. With m(h) the
    tanh of router(norm(h)) / hidden, a layer is computed with the active one of the streams

        p_k = x_k + sum over i of predict(m(x_active))[k, i] * x_i

    and its result h corrects all of them: x_k = p_k + (1 + correct(m(h))[k]) * (h - p_active). What a layer
    with per-layer embeddings adds is gated by `streams_scale` * x_active and added to all streams but the
    first. The final norm is of the mean of the first stream and of merge_i(x_i) with its RMS.

    Attributes:
        count: number of streams.
        active: index of the one that layers compute.
    """

    count: int
    active: int = 0


@dataclass(frozen=True)
class ModelSpec:
    """A decoder-only language model.

    Attributes:
        architecture: name of the family, for messages and statistics.
        norm: of the hidden state: RMS norm, or LayerNorm, which subtracts the mean first.
        norm_eps: added to variances, of all norms.
        embedding_multiplier: factor of input embeddings.
        residual_multiplier: factor of what mixers and feed-forwards add to the residual stream.
        logit_multiplier: factor of logits.
        logit_softcap: logits x become softcap * tanh(x / softcap); 0 for none.
        per_layer_width: width of embeddings that every layer adds for itself (Gemma 3n, 4); 0 for none.
        streams: residual streams, see `Streams`; None for a single one.
        laurel_rank: inner width of what layers add beside their mixers (Laurel): with x the normalised input
            of the mixer, x + norm(right(left(x))) is added with its output, and the sum divided by sqrt(2). 0
            for none.
        quantization: how quantised matrices are stored; None for ordinary tensors.
        ropes: the kinds of rotary embedding that layers name.
        tensors: weights outside the layers, see `Tensors`.
    """

    architecture: str
    hidden_size: int
    vocab_size: int
    context_length: int
    norm_eps: float
    ropes: tuple[Rope, ...]
    layers: tuple[LayerSpec, ...]
    tensors: Tensors
    norm: Literal["rms", "layer"] = "rms"
    embedding_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    logit_multiplier: float = 1.0
    logit_softcap: float = 0.0
    per_layer_width: int = 0
    streams: Streams | None = None
    laurel_rank: int = 0
    quantization: QuantizationScheme | None = None

    def to_json(self) -> str:
        """The JSON object that the kernels crate reads."""
        return json.dumps(asdict(self))

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return len(self.layers)

    @property
    def tied_embeddings(self) -> bool:
        """Whether the LM head is the embedding matrix."""
        return "lm_head" not in self.tensors

    @cached_property
    def attentions(self) -> tuple[Attention, ...]:
        """The mixers that are attention, in the order of the layers."""
        mixers = (layer.mixer for layer in self.layers)
        return tuple(mixer for mixer in mixers if isinstance(mixer, Attention))

    @cached_property
    def has_states(self) -> bool:
        """Whether a mixer is recurrent: sequences have a state beside their keys and values."""
        return any(
            layer.mixer is not None and not isinstance(layer.mixer, Attention)
            for layer in self.layers
        )

    @cached_property
    def has_experts(self) -> bool:
        """Whether a layer has experts, of which each token uses a few."""
        return any(isinstance(layer.ffn, Experts) for layer in self.layers)

    @cached_property
    def expert_parameters(self) -> tuple[int, int]:
        """Number of weights of all experts, and of those that a token uses."""
        every = used = 0
        for layer in self.layers:
            if isinstance(layer.ffn, Experts):
                each = _expert_parameters(layer, layer.ffn, self.hidden_size)
                every += layer.ffn.count * each
                used += layer.ffn.used * each
        return every, used

    def active_parameters(self, parameters: int) -> int | None:
        """Number of weights that a token uses: all but the experts that it does not choose.

        Args:
            parameters: number of weights of the model.

        Returns:
            None for a model without experts.
        """
        if not self.has_experts:
            return None
        experts, used = self.expert_parameters
        return parameters - experts + used

    @property
    def has_key_bias(self) -> bool:
        """Whether keys have a bias in any layer."""
        return any("k.bias" in layer.tensors for layer in self.layers)

    def with_tensor(self, role: str, tensor: TensorRef) -> "ModelSpec":
        """The same model with one more weight outside the layers."""
        return replace(self, tensors={**self.tensors, role: tensor})


def _expert_parameters(layer: LayerSpec, experts: Experts, hidden_size: int) -> int:
    """Number of weights of one of a layer's experts."""
    inner = experts.intermediate_size
    outputs = {"experts.gate": inner, "experts.up": inner, "experts.down": hidden_size}
    present = [role for role in outputs if role in layer.tensors]
    biases = sum(outputs[role] for role in present if f"{role}.bias" in layer.tensors)
    return len(present) * inner * hidden_size + biases

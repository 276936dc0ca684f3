"""gpt-oss: attention sinks, windows in every second layer, biases, experts with a clamped SwiGLU."""

from dataclasses import replace

from engine.files.fields import Fields
from engine.models.families.checkpoint_header import CheckpointHeader
from engine.models.families.expert_tensors import expert_count, gguf_experts, used_experts
from engine.models.families.family import Family
from engine.models.families.gguf_header import GgufHeader
from engine.models.families.role_names import ATTENTION, ATTENTION_BIASES, NORMS_BEFORE, TOP
from engine.models.families.windows import sliding_windows
from engine.models.spec import Experts, LayerSpec, ModelSpec, Rope, Routing, TensorRef

_NAMES = ATTENTION | ATTENTION_BIASES
_ROUTING = Routing("softmax_of_used")


def _read_gguf(header: GgufHeader) -> ModelSpec:
    sliding = header.sliding_layers(period=2)
    names = {"mixer_norm": NORMS_BEFORE["mixer_norm"], "sinks": "", **_NAMES}
    attentions = header.attentions(windows=sliding_windows(header, sliding, header.window()))
    layers = []
    for index, tensors in enumerate(header.attention_layers(attentions, names)):
        experts, weights = gguf_experts(header, index, _ROUTING, activation="swiglu_clamped")
        norm = TensorRef(header.require(f"blk.{index}.post_attention_norm.weight"))
        layers.append(
            LayerSpec(attentions[index], experts, {**tensors, **weights, "ffn_norm": norm})
        )
    return header.model(
        layers, header.model_tensors(TOP), ropes=(_untruncated(header.rope("half")),)
    )


def _untruncated(rope: Rope) -> Rope:
    """GGUF has no key for it, but gpt-oss was trained with a ramp whose ends are not rounded."""
    return replace(rope, scaling=replace(rope.scaling, truncate=False))


def _read_checkpoint(header: CheckpointHeader) -> ModelSpec:
    config = header.text
    count = expert_count(header, "num_local_experts", "num_experts")
    experts = Experts(
        count,
        used_experts(header, count, default=4),
        header.intermediate_sizes[0],
        _ROUTING,
        "swiglu_clamped",
    )
    for key, value in (("swiglu_alpha", 1.702), ("swiglu_limit", 7.0)):
        if config.number(key, default=value) != value:
            raise header.unsupported(key, str(value))
    quantization = config.mapping("quantization_config") or Fields.none()
    in_blocks = quantization.text("quant_method", default="") == "mxfp4"
    sliding = header.sliding_layers(period=2)
    window = header.window(default=128)
    names = {**NORMS_BEFORE, **_NAMES, "sinks": "self_attn.sinks"}
    layers = [
        LayerSpec(
            attention,
            experts,
            {
                **header.layer_tensors(index, names),
                **_experts(header, index, in_blocks=in_blocks),
            },
        )
        for index, attention in enumerate(
            header.attentions(windows=sliding_windows(header, sliding, window))
        )
    ]
    return header.model(layers, header.model_tensors(TOP), ropes=(header.rope(),))


def _experts(header: CheckpointHeader, index: int, *, in_blocks: bool) -> dict[str, TensorRef]:
    """The weights of experts, gate and up in turn; floats are stored as [inputs, outputs]."""
    prefix = f"{header.prefix}layers.{index}.mlp."
    both, down = (header.require(f"{prefix}experts.{part}_proj") for part in ("gate_up", "down"))
    both_bias, down_bias = header.require(f"{both}_bias"), header.require(f"{down}_bias")
    return {
        "router": TensorRef(header.require(f"{prefix}router.weight")),
        "router.bias": TensorRef(header.require(f"{prefix}router.bias")),
        "experts.gate": TensorRef(both, 0, run=1, step=2, transposed=not in_blocks),
        "experts.up": TensorRef(both, 1, run=1, step=2, transposed=not in_blocks),
        "experts.down": TensorRef(down, transposed=not in_blocks),
        "experts.gate.bias": TensorRef(both_bias, 0, run=1, step=2),
        "experts.up.bias": TensorRef(both_bias, 1, run=1, step=2),
        "experts.down.bias": TensorRef(down_bias),
    }


GPT_OSS = Family(
    "gpt-oss",
    ("gpt-oss",),
    _read_gguf,
    {"gpt_oss": "GptOssForCausalLM"},
    _read_checkpoint,
    reads_experts=True,
)

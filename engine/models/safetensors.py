"""A Hugging Face model directory: its `ModelSpec`, read from config.json, and its weight files.

Only safetensors and JSON files are read. Pickled checkpoints, custom code (`auto_map`) and quantised
checkpoints are rejected.
"""

from collections.abc import Mapping
from pathlib import Path

from engine.api.errors import ModelError, UnsupportedByNativeError
from engine.files.fields import Fields
from engine.files.json_file import read_json
from engine.models.rope_config import read_rope
from engine.models.safetensors_header import NATIVE_DTYPES, TensorEntry, read_header
from engine.models.spec import Architecture, ModelSpec

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
HEAD = "lm_head.weight"

_ARCHITECTURES: dict[str, tuple[Architecture, str]] = {
    "llama": ("llama", "LlamaForCausalLM"),
    "mistral": ("mistral", "MistralForCausalLM"),
    "qwen2": ("qwen2", "Qwen2ForCausalLM"),
    "qwen3": ("qwen3", "Qwen3ForCausalLM"),
}
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


def read_spec(config: Fields, tensors: Mapping[str, TensorEntry]) -> ModelSpec:
    """The `ModelSpec` of a config.json and the tensors of its checkpoint.

    Raises:
        UnsupportedByNativeError: the native executor does not support the model.
        ModelError: a field is missing or damaged.
    """
    architecture = _architecture(config)
    if config.text("hidden_act", default="silu") != "silu":
        raise UnsupportedByNativeError(str(config.wrong("hidden_act", "silu")))
    hidden_size = config.integer("hidden_size", low=1, high=1 << 20)
    num_layers = config.integer("num_hidden_layers", low=1, high=4096)
    num_heads = config.integer("num_attention_heads", low=1, high=1024)
    context_length = config.integer("max_position_embeddings", low=1, high=1 << 28)
    rope_theta, rope_scaling = read_rope(config, context_length=context_length)
    attention_bias = config.flag("attention_bias", default=False)
    tied = config.flag("tie_word_embeddings", default=False)
    if not tied and HEAD not in tensors:
        raise ModelError(
            f"{config.source} does not tie the embeddings, but the weights have no {HEAD}."
        )
    return ModelSpec(
        architecture=architecture,
        num_layers=num_layers,
        hidden_size=hidden_size,
        intermediate_size=config.integer("intermediate_size", low=1, high=1 << 20),
        num_heads=num_heads,
        num_kv_heads=config.integer("num_key_value_heads", default=num_heads, low=1, high=1024),
        head_dim=config.integer("head_dim", default=hidden_size // num_heads, low=2, high=1024),
        vocab_size=config.integer("vocab_size", low=1, high=1 << 24),
        context_length=context_length,
        rms_norm_eps=config.number("rms_norm_eps"),
        rope_theta=rope_theta,
        rope_style="half",
        rope_scaling=rope_scaling,
        tied_embeddings=tied,
        qkv_bias=architecture == "qwen2" or (architecture != "mistral" and attention_bias),
        output_bias=architecture in ("llama", "qwen3") and attention_bias,
        mlp_bias=architecture == "llama" and config.flag("mlp_bias", default=False),
        qk_norm=architecture == "qwen3",
        sliding_windows=_sliding_windows(config, architecture, num_layers),
    )


def weight_files(directory: Path) -> tuple[Path, ...]:
    """The safetensors files of a model directory, shards in name order.

    Raises:
        ModelError: there are none, or the index names a file that is missing or in another directory.
    """
    index = directory / INDEX_FILE
    if index.is_file():
        weight_map = read_json(index).mapping("weight_map")
        names = sorted(weight_map.string_values()) if weight_map is not None else []
        if not names:
            raise ModelError(f"{index} names no weight files.")
        for name in names:
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise ModelError(
                    f"{index} names {name!r}, which is not a safetensors file of this directory."
                )
            if not (directory / name).is_file():
                raise ModelError(f"{directory} has no {name}, which its index names.")
        return tuple(directory / name for name in names)
    single = directory / SINGLE_FILE
    if single.is_file():
        return (single,)
    if any(any(directory.glob(pattern)) for pattern in _PICKLED):
        raise ModelError(
            f"{directory} contains a pickled checkpoint, which can run code when loaded: "
            "use its safetensors version."
        )
    raise ModelError(f"{directory} contains neither {SINGLE_FILE} nor {INDEX_FILE}.")


def read_tensors(
    paths: tuple[Path, ...], *, known: Mapping[str, int] = NATIVE_DTYPES
) -> dict[str, TensorEntry]:
    """Every tensor of the files, by name.

    Args:
        paths: the files.
        known: supported element types, and their size in bytes.

    Raises:
        UnsupportedByNativeError: a tensor has an element type that is not in `known`.
        ModelError: a file is missing or damaged, or two files contain the same tensor.
    """
    tensors: dict[str, TensorEntry] = {}
    for path in paths:
        for name, entry in read_header(path, known=known).items():
            if name in tensors:
                raise ModelError(f"{path} contains {name[:80]}, which another file contains too.")
            tensors[name] = entry
    return tensors


def refuse_code(config: Fields) -> None:
    """Reject a config with custom Python code (`auto_map`), for every executor.

    Raises:
        ModelError: the config has an `auto_map`.
    """
    if "auto_map" in config:
        raise ModelError(f"{config.source} requires custom code (auto_map), which is never run.")


def _architecture(config: Fields) -> Architecture:
    refuse_code(config)
    if "quantization_config" in config:
        raise UnsupportedByNativeError(
            f"{config.source} describes a quantised checkpoint, which is not supported: "
            "use its GGUF version."
        )
    kind = config.text("model_type")
    classes = config.texts("architectures") if "architectures" in config else []
    known = _ARCHITECTURES.get(kind)
    if known is None or (classes and classes != [known[1]]):
        described = kind if known is None else ", ".join(classes)[:80]
        raise UnsupportedByNativeError(
            f"{config.source} describes a {described!r} model, which the native executor does not "
            f"support (supported: {', '.join(name for _, name in _ARCHITECTURES.values())})."
        )
    return known[0]


def _sliding_windows(
    config: Fields, architecture: Architecture, num_layers: int
) -> tuple[int, ...]:
    """The windows that transformers applies: Mistral in all layers, Qwen from `max_window_layers` on."""
    if architecture == "llama":
        return (0,) * num_layers
    if architecture == "mistral":
        return (config.integer("sliding_window", default=0),) * num_layers
    window = 0
    if config.flag("use_sliding_window", default=False):
        window = config.integer("sliding_window", low=1)
    if "layer_types" in config:
        kinds = config.texts("layer_types")
        known = {"full_attention", "sliding_attention"}
        if len(kinds) != num_layers or not known.issuperset(kinds):
            raise config.wrong(
                "layer_types", f"full_attention or sliding_attention for {num_layers} layers"
            )
        if "sliding_attention" in kinds and window == 0:
            raise config.wrong("layer_types", "full_attention everywhere without a sliding window")
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    first = config.integer("max_window_layers", default=28 if window else 0)
    return tuple(window if layer >= first else 0 for layer in range(num_layers))

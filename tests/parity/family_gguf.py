"""GGUF files of the tiny models of families, with the names of the `gguf` package and llama.cpp's layouts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import gguf
import numpy as np
from transformers import PreTrainedModel

from tests.fakes.tiny_gguf import write_gguf
from tests.fakes.tiny_vocabulary import byte_level_fields
from tests.parity.expert_tensors import expert_tensors

Values = dict[str, np.ndarray]
Keys = dict[str, object]
ExtraKeys = Callable[[Any, Values], Keys]
"""Keys of an architecture, from a model's config and its tensors, to which it may add."""

PERMUTED = {"llama", "granite", "granitemoe", "smollm3", "mistral3"}
"""Architectures whose q and k have the pairs of a rotation in neighbouring rows."""

PLUS_ONE = {"gemma2", "gemma3"}
"""Architectures whose norms contain the 1 that checkpoints leave out."""

_SCALES = {"router.scale": "ffn_gate_inp", "router.per_expert_scale": "ffn_down_exps"}
"""Vectors of a router that files have beside other tensors."""

_STACKED = {
    "altup_projections": "altup_proj",
    "altup_unembed_projections": "altup_unembd_proj",
}
"""Modules of several matrices that files have in one tensor."""

_NEVER = ".attn.bias"
"""GPT-2's mask, in old checkpoints."""


def write_family_gguf(
    path: Path, architecture: str, model: PreTrainedModel, *, extra: "ExtraKeys | None" = None
) -> Path:
    """Write the weights of a transformers model as an F32 file of this architecture.

    `extra`: keys and tensors beyond the common ones; None for those in `EXTRA`.
    """
    config = model.config.get_text_config()
    names = gguf.get_tensor_name_map(_arch(architecture), config.num_hidden_layers)
    tensors: Values = {}
    for name, weight in model.state_dict().items():
        if (name == "lm_head.weight" and config.tie_word_embeddings) or _NEVER in name:
            continue
        values = weight.float().numpy()
        if (experts := expert_tensors(name, values)) is not None:
            tensors |= experts
            continue
        found = _name(names, name)
        tensors[found] = _converted(architecture, found, values, config)
    keys = _common_keys(config) | (extra or EXTRA[architecture])(config, tensors)
    fields: Keys = {f"{architecture}.{key}": value for key, value in keys.items()}
    general = {"general.architecture": architecture} | byte_level_fields(size=config.vocab_size)
    return write_gguf(path, general | fields, tensors)


def _name(names: Any, name: str) -> str:
    """The name of a tensor of transformers in a GGUF file."""
    _, _, in_layer = name.partition(".layers.")
    index, _, module = in_layer.partition(".")
    if module in _SCALES:
        return f"blk.{index}.{_SCALES[module]}.scale"
    first, _, rest = name.removeprefix("model.").partition(".")
    if first in _STACKED:
        return f"{_STACKED[first]}.{rest}"
    found = names.get_name(name, try_suffixes=(".weight", ".bias"))
    assert found is not None, name
    return found if found.endswith((".weight", ".bias")) else f"{found}.weight"


def _arch(architecture: str) -> gguf.MODEL_ARCH:
    return next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)


def _converted(architecture: str, name: str, values: np.ndarray, config: Any) -> np.ndarray:
    part = name.split(".")[-2]
    heads = getattr(config, "num_attention_heads", 0)
    if architecture in PERMUTED and part in ("attn_q", "attn_k"):
        count = heads if part == "attn_q" else config.num_key_value_heads
        shape = (count, 2, values.shape[0] // count // 2, *values.shape[1:])
        values = values.reshape(shape).swapaxes(1, 2).reshape(values.shape)
    if architecture in PLUS_ONE and part.endswith("norm"):
        values = values + 1
    if architecture == "gpt2" and values.ndim == 2 and part.startswith(("attn", "ffn")):
        values = values.T
    return np.ascontiguousarray(values)


def _common_keys(config: Any) -> Keys:
    get = config.__dict__.get
    heads = config.num_attention_heads
    hidden = config.hidden_size
    keys: Keys = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": hidden,
        "feed_forward_length": get("intermediate_size") or 4 * hidden,
        "attention.head_count": heads,
        "attention.head_count_kv": get("num_key_value_heads") or heads,
        "attention.key_length": get("head_dim") or hidden // heads,
        "attention.value_length": get("head_dim") or hidden // heads,
    }
    if get("rms_norm_eps"):
        keys["attention.layer_norm_rms_epsilon"] = get("rms_norm_eps")
    else:
        eps = get("layer_norm_eps") or get("layer_norm_epsilon")
        keys["attention.layer_norm_epsilon"] = eps
    rope = get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    if "rope_theta" in rope:
        keys["rope.freq_base"] = float(rope["rope_theta"])
    if rope.get("rope_type") in ("linear", "yarn"):
        keys["rope.scaling.type"] = rope["rope_type"]
        keys["rope.scaling.factor"] = float(rope["factor"])
    if rope.get("rope_type") == "yarn":
        original = rope["original_max_position_embeddings"]
        keys["rope.scaling.original_context_length"] = original
        keys["rope.scaling.yarn_beta_fast"] = float(rope.get("beta_fast", 32.0))
        keys["rope.scaling.yarn_beta_slow"] = float(rope.get("beta_slow", 1.0))
    return keys


def _sliding(config: Any) -> list[bool]:
    kinds = config.layer_types
    return [kind == "sliding_attention" for kind in kinds]


def _gemma2(config: Any, tensors: Values) -> Keys:
    return {
        "attention.sliding_window": config.sliding_window,
        "attn_logit_softcapping": config.attn_logit_softcapping,
        "final_logit_softcapping": config.final_logit_softcapping,
    }


def _gemma3(config: Any, tensors: Values) -> Keys:
    return {"attention.sliding_window": config.sliding_window}


def _gemma3n(config: Any, tensors: Values) -> Keys:
    others = config.altup_num_inputs - 1
    for stem in ("altup_proj", "altup_unembd_proj"):
        parts = [tensors.pop(f"{stem}.{index}.weight") for index in range(others)]
        tensors[f"{stem}.weight"] = np.stack(parts)
    embedding = tensors["per_layer_token_embd.weight"]
    # llama.cpp's converter writes zeros for tokens without embeddings, which are those of images.
    missing = np.repeat(embedding[:1], config.vocab_size - len(embedding), axis=0)
    tensors["per_layer_token_embd.weight"] = np.concatenate([embedding, missing])
    shares = config.activation_sparsity_pattern
    return {
        "altup.active_idx": config.altup_active_idx,
        "altup.num_inputs": config.altup_num_inputs,
        "activation_sparsity_scale": [
            NormalDist().inv_cdf(share) if share else float("-inf") for share in shares
        ],
        "attention.shared_kv_layers": config.num_kv_shared_layers,
        "attention.sliding_window": config.sliding_window,
        "attention.sliding_window_pattern": _sliding(config),
        "embedding_length_per_layer_input": config.hidden_size_per_layer_input,
        "final_logit_softcapping": config.final_logit_softcapping,
    }


def _gemma4(config: Any, tensors: Values) -> Keys:
    get = config.__dict__.get
    sliding = _sliding(config)
    full = config.per_layer_config["full_attention"]
    dim, shared = get("head_dim"), get("num_kv_shared_layers")
    pairs = full.head_dim // 8  # a quarter of them rotates
    divisors = [1.0] * pairs + [1e30] * (full.head_dim // 2 - pairs)
    tensors["rope_freqs.weight"] = np.array(divisors, np.float32)
    own = len(sliding) - shared
    keys: Keys = {
        "attention.key_length": full.head_dim,
        "attention.value_length": full.head_dim,
        "attention.key_length_swa": dim,
        "attention.value_length_swa": dim,
        "attention.head_count_kv": [
            get("num_key_value_heads") if slides else full.num_key_value_heads for slides in sliding
        ],
        "attention.shared_kv_layers": shared,
        "attention.sliding_window": get("sliding_window"),
        "attention.sliding_window_pattern": sliding,
        "embedding_length_per_layer_input": get("hidden_size_per_layer_input"),
        "final_logit_softcapping": get("final_logit_softcapping"),
        "rope.freq_base_swa": 10_000.0,
        "rope.dimension_count": full.head_dim,
        "rope.dimension_count_swa": dim,
    }
    if get("enable_moe_block"):
        keys["expert_count"] = get("num_experts")
        keys["expert_used_count"] = get("top_k_experts")
        keys["expert_feed_forward_length"] = get("moe_intermediate_size")
    if get("use_double_wide_mlp"):
        width = get("intermediate_size")
        keys["feed_forward_length"] = [width] * own + [2 * width] * shared
    return keys


def _phi3(config: Any, tensors: Values) -> Keys:
    rope = config.rope_parameters
    for kind in ("long", "short"):
        if f"{kind}_factor" in rope:
            table = np.array(rope[f"{kind}_factor"], np.float32)
            tensors[f"rope_factors_{kind}.weight"] = table
    original = rope.get("original_max_position_embeddings") or config.max_position_embeddings
    growth = np.log(config.max_position_embeddings / original) / np.log(original)
    head_dim = config.hidden_size // config.num_attention_heads
    return {
        "rope.dimension_count": int(rope.get("partial_rotary_factor", 1.0) * head_dim),
        "rope.scaling.original_context_length": original,
        "rope.scaling.attn_factor": float(np.sqrt(1 + growth)),
        "attention.sliding_window": config.sliding_window or 0,
    }


def _granite(config: Any, tensors: Values) -> Keys:
    return {
        "attention.scale": config.attention_multiplier,
        "embedding_scale": config.embedding_multiplier,
        "residual_scale": config.residual_multiplier,
        "logit_scale": config.logits_scaling,
    }


def _olmo(config: Any, tensors: Values) -> Keys:
    window = config.__dict__.get("sliding_window")
    if not window:
        return {}
    return {
        "attention.sliding_window": window,
        "attention.sliding_window_pattern": _sliding(config),
        "rope.freq_base_swa": 10_000.0,
    }


def _mistral3(config: Any, tensors: Values) -> Keys:
    rope = config.rope_parameters
    return {
        "rope.scaling.yarn_log_multiplier": rope["mscale_all_dim"],
        "attention.temperature_scale": rope["llama_4_scaling_beta"],
    }


def _stablelm(config: Any, tensors: Values) -> Keys:
    head_dim = config.hidden_size // config.num_attention_heads
    return {"rope.dimension_count": head_dim // 4, "use_parallel_residual": True}


def _glm4(config: Any, tensors: Values) -> Keys:
    return {"rope.dimension_count": config.head_dim // 2}


def _nothing(config: Any, tensors: Values) -> Keys:
    return {}


EXTRA: Mapping[str, ExtraKeys] = {
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3n": _gemma3n,
    "gemma4": _gemma4,
    "phi3": _phi3,
    "smollm3": _nothing,
    "granite": _granite,
    "olmo2": _olmo,
    "mistral3": _mistral3,
    "gpt2": _nothing,
    "stablelm": _stablelm,
    "glm4": _glm4,
}
"""Keys and tensors of an architecture beyond the common ones."""

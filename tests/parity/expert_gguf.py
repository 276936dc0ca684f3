"""GGUF files of tiny models with experts, and the same weights, dequantised, in transformers."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import (
    GptOssConfig,
    GptOssForCausalLM,
    PreTrainedModel,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from tests.fakes.tiny_gguf import write_gguf
from tests.fakes.tiny_vocabulary import byte_level_fields
from tests.parity.family_gguf import ExtraKeys, Keys, Values, write_family_gguf
from tests.parity.quantised_models import weights
from tests.parity.recurrent_gguf import write_recurrent_gguf
from tests.parity.tiny_models import SHAPE, randomize, rope_parameters

HIDDEN = INNER = 256
EXPERTS, USED, WINDOW = 6, 3, 20
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.sinks": "attn_sinks",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
}


def _make(architecture: str) -> PreTrainedModel:
    fields: dict[str, object] = {
        **SHAPE,
        "vocab_size": len(byte_level_fields()["tokenizer.ggml.tokens"]),  # type: ignore[arg-type]
        "hidden_size": HIDDEN,
        "head_dim": 32,
        "num_experts_per_tok": USED,
        "rope_parameters": rope_parameters("default"),
    }
    if architecture == "qwen3moe":
        return Qwen3MoeForCausalLM(
            Qwen3MoeConfig(
                **fields, num_experts=EXPERTS, moe_intermediate_size=INNER, norm_topk_prob=True
            )
        )
    fields |= {"intermediate_size": INNER, "num_local_experts": EXPERTS, "sliding_window": WINDOW}
    return GptOssForCausalLM(GptOssConfig(**fields))


def write_expert_gguf(path: Path, architecture: str, dtype: str) -> PreTrainedModel:
    """Write a file whose experts have this format, and return the model of the dequantised weights."""
    torch.manual_seed(5)
    model = _make(architecture).to(torch.float32)
    randomize(model)
    rng, kind = np.random.default_rng(3), gguf.GGMLQuantizationType[dtype]
    norm = "ffn_norm" if architecture == "qwen3moe" else "post_attention_norm"
    names = _NAMES | {"post_attention_layernorm": norm}
    tensors: dict[str, np.ndarray] = {}
    dtypes = {}
    for index, layer in enumerate(model.model.layers):
        experts, values = layer.mlp.experts, {}
        for part in ("gate", "up", "down"):
            name = f"blk.{index}.ffn_{part}_exps.weight"
            stored = weights(dtype, (EXPERTS * INNER, HIDDEN), rng)
            exact = np.array(gguf.quants.dequantize(stored, kind), np.float32)
            values[part] = torch.from_numpy(exact.reshape(EXPERTS, INNER, HIDDEN))
            tensors[name], dtypes[name] = stored.reshape(EXPERTS, INNER, -1), kind
        with torch.no_grad():
            if architecture == "qwen3moe":
                experts.gate_up_proj.copy_(torch.cat([values["gate"], values["up"]], 1))
                experts.down_proj.copy_(values["down"])
            else:
                experts.gate_up_proj[..., ::2] = values["gate"].mT
                experts.gate_up_proj[..., 1::2] = values["up"].mT
                experts.down_proj.copy_(values["down"].mT)
                both = experts.gate_up_proj_bias.numpy()
                biases = {
                    "gate": both[:, ::2],
                    "up": both[:, 1::2],
                    "down": experts.down_proj_bias.numpy(),
                }
                for part, bias in biases.items():
                    tensors[f"blk.{index}.ffn_{part}_exps.bias"] = np.ascontiguousarray(bias)
    for name, weight in model.state_dict().items():
        if "experts" in name:
            continue
        stem, _, suffix = name.rpartition(".")
        if name.endswith("sinks"):
            stem, suffix = name, "weight"
        prefix = ""
        if ".layers." in stem:
            _, _, index_of, stem = stem.split(".", 3)
            prefix = f"blk.{index_of}."
        tensors[f"{prefix}{names[stem]}.{suffix}"] = weight.numpy()
    config = model.config
    keys = {
        "block_count": config.num_hidden_layers,
        "context_length": config.max_position_embeddings,
        "embedding_length": HIDDEN,
        "feed_forward_length": INNER,
        "expert_feed_forward_length": INNER,
        "expert_count": EXPERTS,
        "expert_used_count": USED,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "rope.freq_base": 10000.0,
        "attention.sliding_window": WINDOW if architecture == "gpt-oss" else None,
    }
    fields = {f"{architecture}.{key}": value for key, value in keys.items()}
    every = {"general.architecture": architecture} | byte_level_fields() | fields
    write_gguf(path, every, tensors, dtypes=dtypes)
    return model.eval()


def write_float_gguf(path: Path, model: PreTrainedModel) -> Path:
    """Write a model with experts as an F32 file of its architecture, as llama.cpp's converter does."""
    kind = model.config.model_type
    if kind not in _EXTRA:
        return write_recurrent_gguf(model, path)
    architecture, extra = _EXTRA[kind]
    return write_family_gguf(path, architecture, model, extra=extra)


def _counts(config: Any) -> Keys:
    count = config.__dict__.get("num_local_experts") or config.__dict__.get("num_experts")
    return {"expert_count": count, "expert_used_count": config.num_experts_per_tok}


def _mixtral(config: Any, tensors: Values) -> Keys:
    return _counts(config) | {"attention.sliding_window": config.sliding_window}


def _olmoe(config: Any, tensors: Values) -> Keys:
    return _counts(config)


def _granite(config: Any, tensors: Values) -> Keys:
    return _counts(config) | {
        "attention.scale": config.attention_multiplier,
        "embedding_scale": config.embedding_multiplier,
        "residual_scale": config.residual_multiplier,
        "logit_scale": config.logits_scaling,
    }


def _glm4moe(config: Any, tensors: Values) -> Keys:
    return {
        "expert_count": config.n_routed_experts,
        "expert_used_count": config.num_experts_per_tok,
        "expert_feed_forward_length": config.moe_intermediate_size,
        "expert_shared_count": config.n_shared_experts,
        "leading_dense_block_count": config.first_k_dense_replace,
        "expert_gating_func": 2,
        "expert_weights_scale": config.routed_scaling_factor,
        "expert_weights_norm": config.norm_topk_prob,
        "rope.dimension_count": config.head_dim // 2,
    }


_EXTRA: dict[str, tuple[str, ExtraKeys]] = {
    "mixtral": ("llama", _mixtral),
    "olmoe": ("olmoe", _olmoe),
    "granitemoe": ("granitemoe", _granite),
    "granitemoeshared": ("granitemoe", _granite),
    "glm4_moe": ("glm4moe", _glm4moe),
}
"""`model_type` to the architecture of a file and its keys, of models whose mixers are all attention."""

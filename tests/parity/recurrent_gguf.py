"""Writes tiny models of the families with recurrent mixers as GGUF files, as llama.cpp's converter does."""

import re
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from tests.fakes.tiny_gguf import write_gguf
from tests.fakes.tiny_vocabulary import byte_level_fields
from tests.parity.expert_tensors import expert_tensors

_ATTENTION = {
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.q_proj": "attn_q",
    "self_attn.o_proj": "attn_output",
    "self_attn.out_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_layernorm": "attn_q_norm",
    "self_attn.k_layernorm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_MAMBA = {
    "in_proj": "ssm_in",
    "conv1d": "ssm_conv1d",
    "norm": "ssm_norm",
    "out_proj": "ssm_out",
    "dt_bias": "ssm_dt",
    "A_log": "ssm_a",
    "D": "ssm_d",
}
_NAMES = {
    "lfm2": _ATTENTION
    | {
        "operator_norm": "attn_norm",
        "ffn_norm": "ffn_norm",
        "feed_forward.w1": "ffn_gate",
        "feed_forward.w2": "ffn_down",
        "feed_forward.w3": "ffn_up",
        "conv.in_proj": "shortconv.in_proj",
        "conv.conv": "shortconv.conv",
        "conv.out_proj": "shortconv.out_proj",
    },
    "qwen35": _ATTENTION
    | {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "post_attention_norm",
        "linear_attn.in_proj_qkv": "attn_qkv",
        "linear_attn.in_proj_z": "attn_gate",
        "linear_attn.in_proj_b": "ssm_beta",
        "linear_attn.in_proj_a": "ssm_alpha",
        "linear_attn.conv1d": "ssm_conv1d",
        "linear_attn.norm": "ssm_norm",
        "linear_attn.out_proj": "ssm_out",
        "linear_attn.dt_bias": "ssm_dt",
        "linear_attn.A_log": "ssm_a",
    },
    "qwen3next": _ATTENTION
    | {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "post_attention_norm",
        "linear_attn.in_proj_ba": "ssm_ba",
        "linear_attn.conv1d": "ssm_conv1d",
        "linear_attn.norm": "ssm_norm",
        "linear_attn.out_proj": "ssm_out",
        "linear_attn.dt_bias": "ssm_dt",
        "linear_attn.A_log": "ssm_a",
        "mlp.gate": "ffn_gate_inp",
        "mlp.experts.down_proj": "ffn_down_exps",
        "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
        "mlp.shared_expert.up_proj": "ffn_up_shexp",
        "mlp.shared_expert.down_proj": "ffn_down_shexp",
        "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    },
    "granitehybrid": _ATTENTION
    | {
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "shared_mlp.output_linear": "ffn_down",
        "block_sparse_moe.router": "ffn_gate_inp",
        "block_sparse_moe.experts.down_proj": "ffn_down_exps",
    }
    | {f"mamba.{name}": target for name, target in _MAMBA.items()},
    "nemotron_h": {
        "norm": "attn_norm",
        "mixer.up_proj": "ffn_up",
        "mixer.down_proj": "ffn_down",
        "mixer.q_proj": "attn_q",
        "mixer.k_proj": "attn_k",
        "mixer.v_proj": "attn_v",
        "mixer.o_proj": "attn_output",
        "mixer.gate": "ffn_gate_inp",
        "mixer.gate.e_score_correction_bias": "exp_probs_b",
        "mixer.experts.up_proj": "ffn_up_exps",
        "mixer.experts.down_proj": "ffn_down_exps",
        "mixer.shared_experts.up_proj": "ffn_up_shexp",
        "mixer.shared_experts.down_proj": "ffn_down_shexp",
    }
    | {f"mixer.{name}": target for name, target in _MAMBA.items()},
}
_NAMES["lfm2moe"] = _NAMES["lfm2"]
_NAMES["qwen35moe"] = _NAMES["qwen35"] | {
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}
_QWEN = ("qwen35", "qwen35moe", "qwen3next")
_FAMILIES = {
    "lfm2": "lfm2",
    "lfm2_moe": "lfm2moe",
    "qwen3_5_moe_text": "qwen35moe",
    "qwen3_5_text": "qwen35",
    "qwen3_next": "qwen3next",
    "granitemoehybrid": "granitehybrid",
    "nemotron_h": "nemotron_h",
}
_MAMBAS = ("granitehybrid", "nemotron_h")
_TOP = {
    "embed_tokens": "token_embd",
    "embeddings": "token_embd",
    "norm": "output_norm",
    "norm_f": "output_norm",
    "embedding_norm": "token_embd_norm",
}


def write_recurrent_gguf(
    model: PreTrainedModel, path: Path, *, fused_experts: bool = False, extra_blocks: int = 1
) -> Path:
    """Write `model` in fp32, with a vocabulary of bytes.

    Args:
        model: the model.
        path: of the file.
        fused_experts: as in `expert_tensors`.
        extra_blocks: blocks for multi-token prediction that the file of a Qwen counts; it has none.
    """
    config = model.config
    family = _FAMILIES[config.model_type]
    architecture = "nemotron_h_moe" if "moe" in config.layer_types else family
    fields = {
        f"{architecture}.{key}": value
        for key, value in _fields(family, config, extra_blocks).items()
    }
    tensors: dict[str, np.ndarray] = {}
    for name, tensor in model.state_dict().items():
        experts = None
        if family.endswith("moe"):
            experts = expert_tensors(name, tensor.float().numpy(), fused=fused_experts)
        if experts is not None:
            tensors |= {target: np.ascontiguousarray(one) for target, one in experts.items()}
            continue
        if name != "lm_head.weight":
            converted = _converted(family, config, name.removeprefix("model."), tensor)
        elif config.tie_word_embeddings:
            continue
        else:
            converted = [("output.weight", tensor)]
        for target, values in converted:
            tensors[target] = np.ascontiguousarray(values.float().numpy())
    vocabulary = byte_level_fields(size=config.vocab_size)
    general = {"general.architecture": architecture} | vocabulary
    return write_gguf(path, general | fields, tensors)


def _fields(family: str, config, extra_blocks: int) -> dict[str, object]:
    layers, kv = config.num_hidden_layers, config.num_key_value_heads
    kinds = config.layer_types
    attending = [kind == "full_attention" for kind in kinds]
    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    fields: dict[str, object] = {
        "block_count": layers,
        "embedding_length": config.hidden_size,
        "context_length": config.max_position_embeddings,
        "attention.head_count": heads,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
    }
    if family.endswith("moe") or family == "qwen3next":
        fields |= {
            "expert_count": config.num_experts,
            "expert_used_count": config.num_experts_per_tok,
            "expert_feed_forward_length": config.moe_intermediate_size,
        }
    if family in _QWEN:
        values = config.linear_num_value_heads
        if family != "qwen3next":
            fields["rope.dimension_sections"] = [2, 1, 1, 0]
        if family != "qwen35":
            fields["expert_shared_feed_forward_length"] = config.shared_expert_intermediate_size
        return fields | {
            "block_count": layers + extra_blocks,
            "nextn_predict_layers": extra_blocks,
            "attention.head_count_kv": kv,
            "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
            "attention.recurrent_layers": [not one for one in attending] + [False] * extra_blocks,
            "feed_forward_length": getattr(config, "intermediate_size", None)
            or config.moe_intermediate_size,
            "rope.freq_base": config.rope_parameters["rope_theta"],
            "rope.dimension_count": head_dim // 4,
            "ssm.conv_kernel": config.linear_conv_kernel_dim,
            "ssm.state_size": config.linear_key_head_dim,
            "ssm.group_count": config.linear_num_key_heads,
            "ssm.time_step_rank": values,
            "ssm.inner_size": values * config.linear_value_head_dim,
        }
    fields["attention.head_count_kv"] = [kv if one else 0 for one in attending]
    if family == "lfm2moe":
        fields |= {
            "expert_gating_func": 2,
            "expert_weights_scale": config.routed_scaling_factor,
            "leading_dense_block_count": config.num_dense_layers,
        }
    if family.startswith("lfm2"):
        return fields | {
            "attention.layer_norm_rms_epsilon": config.norm_eps,
            "shortconv.l_cache": config.conv_L_cache,
            "rope.freq_base": config.rope_parameters["rope_theta"],
            "feed_forward_length": config.intermediate_size
            if family == "lfm2moe"
            else int(_lfm2_inner(config)),
        }
    if family == "granitehybrid":
        inner = config.shared_intermediate_size
        if config.num_local_experts:
            fields["expert_count"] = config.num_local_experts
            fields["expert_used_count"] = config.num_experts_per_tok
            fields["expert_shared_feed_forward_length"] = inner
            inner = config.intermediate_size
        return fields | {
            "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
            "feed_forward_length": inner,
            "embedding_scale": config.embedding_multiplier,
            "residual_scale": config.residual_multiplier,
            "attention.scale": config.attention_multiplier,
            "logit_scale": config.logits_scaling,
            "rope.scaling.finetuned": config.position_embedding_type == "rope",
            "rope.freq_base": config.rope_parameters["rope_theta"],
            "ssm.conv_kernel": config.mamba_d_conv,
            "ssm.state_size": config.mamba_d_state,
            "ssm.group_count": config.mamba_n_groups,
            "ssm.time_step_rank": config.mamba_n_heads,
            "ssm.inner_size": config.mamba_n_heads * config.mamba_d_head,
        }
    inner = config.intermediate_size
    if "moe" in kinds:
        inner = config.moe_intermediate_size
        fields["expert_count"] = config.n_routed_experts
        fields["expert_used_count"] = config.num_experts_per_tok
        fields["expert_feed_forward_length"] = inner
        fields["expert_shared_feed_forward_length"] = config.moe_shared_expert_intermediate_size
        fields["expert_weights_norm"] = config.norm_topk_prob
        fields["expert_weights_scale"] = config.routed_scaling_factor
        fields["expert_group_count"] = config.n_group
    return fields | {
        "attention.layer_norm_epsilon": config.layer_norm_epsilon,
        "feed_forward_length": [inner if kind in ("mlp", "moe") else 0 for kind in kinds],
        "ssm.conv_kernel": config.conv_kernel,
        "ssm.state_size": config.ssm_state_size,
        "ssm.group_count": config.n_groups,
        "ssm.time_step_rank": config.mamba_num_heads,
        "ssm.inner_size": config.mamba_num_heads * config.mamba_head_dim,
    }


def _lfm2_inner(config) -> int:
    if not config.block_auto_adjust_ff_dim:
        return config.intermediate_size
    inner, multiple = int(2 * config.intermediate_size / 3), config.block_multiple_of
    return multiple * -(-int(config.block_ffn_dim_multiplier * inner) // multiple)


def _converted(family: str, config, name: str, tensor: Tensor) -> list[tuple[str, Tensor]]:
    """GGUF names and values of one tensor."""
    if "conv" in name:
        tensor = tensor.reshape(tensor.shape[0], -1) if tensor.dim() == 3 else tensor
    if name.endswith("A_log"):
        tensor = -tensor.exp()
    is_norm = name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")
    if is_norm and family in _QWEN:
        tensor = tensor + 1
    if family in ("qwen35", "qwen35moe"):
        tensor = _tiled(config, name, tensor)
    if not name.startswith("layers."):
        top, kind = name.rsplit(".", 1)
        return [(f"{_TOP[top]}.{kind}", tensor)]
    match = re.fullmatch(r"layers\.(\d+)\.(.+?)(?:\.(weight|bias))?", name)
    assert match is not None
    index, module, kind = match[1], match[2], match[3] or "weight"
    prefix = f"blk.{index}."
    of_experts = family == "granitehybrid" and config.num_local_experts > 0
    if module.endswith(("shared_mlp.input_linear", "experts.gate_up_proj")):
        suffix = "_exps" if module.endswith("gate_up_proj") else "_shexp" if of_experts else ""
        parts = zip(("gate", "up"), tensor.chunk(2, -2), strict=True)
        return [(f"{prefix}ffn_{part}{suffix}.weight", half) for part, half in parts]
    if module == "linear_attn.in_proj_qkvz":
        return _separated(config, prefix, tensor)
    target = _NAMES[family][module]
    if of_experts and target == "ffn_down":
        target = "ffn_down_shexp"
    if target == "ffn_gate_inp_shexp":
        tensor = tensor.squeeze(0)
    if family == "granitehybrid" and target in ("attn_q", "attn_k"):
        heads = config.num_attention_heads if target == "attn_q" else config.num_key_value_heads
        tensor = _interleaved(tensor, heads)
    if module.endswith(("A_log", ".D")):
        return [(prefix + target, tensor[:, None] if family in _MAMBAS else tensor)]
    if module.endswith(("dt_bias", "correction_bias")):
        kind = "bias"
    if target == "ssm_norm" and family in _MAMBAS:
        groups = config.mamba_n_groups if family == "granitehybrid" else config.n_groups
        tensor = tensor.reshape(groups, -1)
    return [(f"{prefix}{target}.{kind}", tensor)]


def _separated(config, prefix: str, tensor: Tensor) -> list[tuple[str, Tensor]]:
    """Queries, keys and values, and their gates, which Qwen3-Next stores by key head."""
    keys, dim = config.linear_num_key_heads, config.linear_key_head_dim
    values = config.linear_num_value_heads // keys * config.linear_value_head_dim
    by_head = tensor.view(keys, -1, tensor.shape[-1]).split([dim, dim, values, values], 1)
    *mixed, z = (part.reshape(-1, tensor.shape[-1]) for part in by_head)
    return [
        (f"{prefix}attn_qkv.weight", torch.cat(mixed)),
        (f"{prefix}attn_gate.weight", z),
    ]


def _interleaved(tensor: Tensor, heads: int) -> Tensor:
    """Rows in the order that rotates neighbouring pairs."""
    rows = tensor.view(heads, 2, -1, tensor.shape[-1])
    return rows.swapaxes(1, 2).reshape(tensor.shape)


def _tiled(config, name: str, tensor: Tensor) -> Tensor:
    """Value heads of Qwen3.5 in tiled order: all first ones of the key heads, then all second ones."""
    keys, heads = config.linear_num_key_heads, config.linear_num_value_heads
    dim, channels = config.linear_value_head_dim, 2 * keys * config.linear_key_head_dim
    order = torch.arange(heads).view(keys, heads // keys).T.reshape(-1)
    rows = (order[:, None] * dim + torch.arange(dim)).reshape(-1)
    if name.endswith(("in_proj_qkv.weight", "conv1d.weight")):
        return torch.cat([tensor[:channels], tensor[channels:][rows]])
    if name.endswith("in_proj_z.weight"):
        return tensor[rows]
    if name.endswith(("in_proj_a.weight", "in_proj_b.weight", "A_log", "dt_bias")):
        return tensor[order]
    if name.endswith("linear_attn.out_proj.weight"):
        return tensor[:, rows]
    return tensor

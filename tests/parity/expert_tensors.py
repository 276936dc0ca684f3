"""The GGUF names of experts of transformers' models, which are stored for all experts of a layer together."""

import re

import numpy as np

_BLOCK = re.compile(r"(?:model\.)?layers\.(\d+)\.(?:mlp|feed_forward|block_sparse_moe)\.(.+)")
_SHARED = re.compile(r"(?:model\.)?layers\.(\d+)\.shared_mlp\.(.+)_linear\.weight")
_NAMES = {
    "gate.weight": "ffn_gate_inp.weight",
    "router.weight": "ffn_gate_inp.weight",
    "gate.e_score_correction_bias": "exp_probs_b.bias",
    "expert_bias": "exp_probs_b.bias",
    "experts.down_proj": "ffn_down_exps.weight",
}


def expert_tensors(
    name: str, values: np.ndarray, *, fused: bool = False
) -> dict[str, np.ndarray] | None:
    """The tensors of a file for one of a model; None if it belongs to no experts.

    `fused`: gate and up of all experts are one tensor, as an option of llama.cpp's converter writes them.
    """
    if found := _SHARED.fullmatch(name):  # Granite's
        prefix = f"blk.{found[1]}.ffn_"
        if found[2] == "output":
            return {f"{prefix}down_shexp.weight": values}
        gate, up = np.split(values, 2)
        return {f"{prefix}gate_shexp.weight": gate, f"{prefix}up_shexp.weight": up}
    if (found := _BLOCK.fullmatch(name)) is None:
        return None
    prefix, part = f"blk.{found[1]}.", found[2]
    if part == "experts.gate_up_proj" and fused:
        return {f"{prefix}ffn_gate_up_exps.weight": values}
    if part == "experts.gate_up_proj":
        gate, up = np.split(values, 2, axis=1)
        return {f"{prefix}ffn_gate_exps.weight": gate, f"{prefix}ffn_up_exps.weight": up}
    return {prefix + _NAMES[part]: values} if part in _NAMES else None

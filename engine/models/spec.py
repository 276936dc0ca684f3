"""`ModelSpec`: shapes and constants of a model for the native executor, independent of the file format.

Read from GGUF metadata by `engine.models.gguf` and from config.json by `engine.models.safetensors`,
and passed to the native executor as JSON. `ModelSpec::from_json` in the kernels crate validates it
again, because memory is allocated by it.
"""

import json
from dataclasses import asdict, dataclass
from typing import Literal

Architecture = Literal["llama", "mistral", "qwen2", "qwen3"]
RopeStyle = Literal["half", "interleaved"]
"""`half` rotates (i, i + d/2) pairs (Hugging Face checkpoints, qwen GGUF); `interleaved` rotates
(2i, 2i + 1) pairs (llama-family GGUF, whose q and k rows were permuted for it)."""


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Scaling of the rotary frequencies; fields that a kind does not use keep their defaults.

    Attributes:
        kind: none; linear (Chen et al. 2023); llama3 (Llama 3.1); yarn (Peng et al. 2023).
        factor: context extension factor.
        original_context: context length of pre-training.
        low_freq_factor, high_freq_factor: llama3 only.
        beta_fast, beta_slow: yarn only.
        attention_factor: yarn only; scales cos and sin; None derives it from `factor`.
    """

    kind: Literal["none", "linear", "llama3", "yarn"] = "none"
    factor: float = 1.0
    original_context: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Shapes and constants of a decoder-only transformer.

    Attributes:
        sliding_windows: one entry per layer; 0 for full attention, else the number of tokens attended
            to, including the current one.
        tied_embeddings: whether lm_head is the embedding matrix.
        qk_norm: per-head RMSNorm on q and k before RoPE (qwen3).
    """

    architecture: Architecture
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    context_length: int
    rms_norm_eps: float
    rope_theta: float
    rope_style: RopeStyle
    rope_scaling: RopeScaling
    tied_embeddings: bool
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool
    sliding_windows: tuple[int, ...]

    def to_json(self) -> str:
        """The JSON object that the kernels crate reads."""
        return json.dumps(asdict(self))

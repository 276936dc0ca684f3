"""Tiny checkpoints of GPTQ, AWQ and compressed-tensors, and the models of their dequantised weights."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from tests.fakes.quantized_matrix import (
    QuantizedMatrix,
    awq_tensors,
    gptq_tensors,
    packed_tensors,
    quantize,
)
from tests.fakes.tiny_checkpoint import tiny_encoder, vocab_size
from tests.fakes.tiny_vocabulary import CHATML

SHAPE: Mapping[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}

Method = Literal["gptq", "gptq_v2", "awq", "compressed"]


@dataclass(frozen=True)
class Checkpoint:
    """How a checkpoint is quantised.

    Attributes:
        method: its format.
        packed_as: the type that the layers' matrices should have in memory.
        title: how the model manager names the format.
        bits, group_size, symmetric: see `quantize`.
        act_order: whether inputs are grouped in random order.
        scale_type: of the scales.
        family: of the model.
    """

    method: Method
    packed_as: str
    title: str
    bits: int = 4
    group_size: int = 32
    symmetric: bool = False
    act_order: bool = False
    scale_type: torch.dtype = torch.float16
    family: Literal["llama", "qwen2", "phi3"] = "llama"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For test ids."""
        words = [self.family, self.method, f"{self.bits}bit", f"g{self.group_size}"]
        words += ["sym"] * self.symmetric + ["actorder"] * self.act_order
        return "-".join([*words, str(self.scale_type).removeprefix("torch.")])

    def config(self) -> dict[str, Any]:
        """`quantization_config` of its config.json."""
        if self.method == "compressed":
            weights = {
                "num_bits": self.bits,
                "type": "int",
                "symmetric": self.symmetric,
                "strategy": "channel" if self.group_size == -1 else "group",
                "group_size": None if self.group_size == -1 else self.group_size,
                "actorder": "group" if self.act_order else None,
            }
            return {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "quantization_status": "compressed",
                "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
                "ignore": ["lm_head"],
            }
        if self.method == "awq":
            described = {"version": "gemm", "zero_point": True, "modules_to_not_convert": None}
            return {"quant_method": "awq", "bits": 4, "group_size": self.group_size} | described
        return {
            "quant_method": "gptq",
            "bits": self.bits,
            "group_size": self.group_size,
            "desc_act": self.act_order,
            "sym": self.symmetric,
            "checkpoint_format": self.method,
        } | dict(self.settings)

    def quantized(self, weights: NDArray[np.float32], seed: int) -> QuantizedMatrix:
        """A matrix with codes, and scales of `scale_type`."""
        order = np.random.default_rng(seed).permutation(weights.shape[1])
        halves = quantize(
            weights,
            bits=self.bits,
            group_size=self.group_size,
            symmetric=self.symmetric,
            order=order if self.act_order else None,
            scale_type=np.float32,
        )
        scales = torch.from_numpy(halves.scales).to(self.scale_type).float().numpy()
        return QuantizedMatrix(halves.bits, halves.codes, halves.zeros, scales, halves.group_of)

    def tensors(self, matrix: QuantizedMatrix) -> dict[str, torch.Tensor]:
        """The tensors of a module."""
        match self.method:
            case "compressed":
                arrays = packed_tensors(matrix, symmetric=self.symmetric)
            case "awq":
                arrays = awq_tensors(matrix)
            case method:
                arrays = gptq_tensors(matrix, version=1 if method == "gptq" else 2)
        return {
            name: torch.from_numpy(np.ascontiguousarray(values)).to(self.scale_type)
            if "scale" in name
            else torch.from_numpy(np.ascontiguousarray(values))
            for name, values in arrays.items()
        }


def write_quantised(directory: Path, checkpoint: Checkpoint) -> PreTrainedModel:
    """Write a checkpoint with a tokenizer; returns the model of its dequantised weights in fp32."""
    torch.manual_seed(7)
    shape = {**SHAPE, "vocab_size": vocab_size(), "tie_word_embeddings": False}
    model: PreTrainedModel
    match checkpoint.family:
        case "qwen2":
            model = Qwen2ForCausalLM(Qwen2Config(**shape))
        case "phi3":
            model = Phi3ForCausalLM(Phi3Config(**shape, pad_token_id=0))
        case "llama":
            model = LlamaForCausalLM(LlamaConfig(**shape, head_dim=32))
    stored: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        for at, (name, weight) in enumerate(model.named_parameters()):
            weight.normal_(0, 0.5 if weight.dim() == 1 else 0.12)
            if "norm" in name:
                weight.uniform_(0.5, 1.5)
            if ".layers." not in name or weight.dim() == 1:
                stored[name] = weight.to(torch.float16)
                weight.copy_(stored[name])
                continue
            matrix = checkpoint.quantized(weight.numpy(), seed=at)
            weight.copy_(torch.from_numpy(matrix.weights))
            stem = name.removesuffix("weight")
            stored |= {stem + part: values for part, values in checkpoint.tensors(matrix).items()}
    directory.mkdir(parents=True, exist_ok=True)
    save_file(stored, directory / "model.safetensors")
    model.config.save_pretrained(directory)
    config = json.loads((directory / "config.json").read_text())
    config |= {
        "architectures": [type(model).__name__],
        "quantization_config": checkpoint.config(),
        "eos_token_id": 0,
    }
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "tokenizer.json").write_text(tiny_encoder().to_str())
    described = {"eos_token": "<|im_end|>", "chat_template": CHATML}
    (directory / "tokenizer_config.json").write_text(json.dumps(described))
    return model.eval()

"""Models with channels far larger than their neighbours, whose activations stay as precise.

Activations are quantized in groups of 32. Each model has large channels in the inputs of some projections,
whose weights for them are small in return, so that its function is an ordinary one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Olmo2Config,
    Olmo2ForCausalLM,
    PreTrainedModel,
    StableLmConfig,
    StableLmForCausalLM,
)

from benchmarks.accuracy import rewrite
from tests.parity.family_gguf import write_family_gguf
from tests.parity.loading import load_stepper
from tests.parity.reference import top_logprob_error
from tests.parity.stepper import Run
from tests.parity.tiny_models import SHAPE, VOCAB, randomize, rope_parameters

FACTOR = 64.0
TOKENS = 60
_SHAPE = {**SHAPE, "intermediate_size": 128, "num_key_value_heads": 6, "head_dim": 16}
_CHANNELS = [5, 40, 70]


def _gemma3() -> PreTrainedModel:
    """Large channels of values and of the activated columns."""
    rope = {kind: rope_parameters("default") for kind in ("full_attention", "sliding_attention")}
    config = Gemma3TextConfig(
        **_SHAPE, query_pre_attn_scalar=16, sliding_window=TOKENS, rope_parameters=rope
    )
    model = Gemma3ForCausalLM(config)
    randomize(model)
    for layer in model.model.layers:
        for larger, smaller in (
            (layer.self_attn.v_proj, layer.self_attn.o_proj),
            (layer.mlp.up_proj, layer.mlp.down_proj),
        ):
            larger.weight[_CHANNELS] *= FACTOR
            smaller.weight[:, _CHANNELS] /= FACTOR
    return model


def _olmo2() -> PreTrainedModel:
    """Large channels of the residual stream, which no norm precedes the projections of."""
    config = Olmo2Config(
        **{key: value for key, value in _SHAPE.items() if key != "head_dim"},
        rope_parameters=rope_parameters("default"),
    )
    model = Olmo2ForCausalLM(config)
    randomize(model)
    model.model.embed_tokens.weight[:, _CHANNELS] *= FACTOR
    for layer in model.model.layers:
        layer.post_attention_layernorm.weight[_CHANNELS] *= FACTOR
        layer.post_feedforward_layernorm.weight[_CHANNELS] *= FACTOR
        mlp, attention = layer.mlp, layer.self_attn
        for smaller in (attention.q_proj, attention.k_proj, attention.v_proj):
            smaller.weight[:, _CHANNELS] /= FACTOR
        for smaller in (mlp.gate_proj, mlp.up_proj):
            smaller.weight[:, _CHANNELS] /= FACTOR
    model.lm_head.weight[:, _CHANNELS] /= FACTOR
    return model


def _stablelm() -> PreTrainedModel:
    """Large channels of what the layers' norms, LayerNorms, compute."""
    fields = {key: value for key, value in _SHAPE.items() if key != "head_dim"}
    model = StableLmForCausalLM(StableLmConfig(**fields, use_qkv_bias=True))
    randomize(model)
    for layer in model.model.layers:
        mlp, attention = layer.mlp, layer.self_attn
        for norm, users in (
            (layer.input_layernorm, (attention.q_proj, attention.k_proj, attention.v_proj)),
            (layer.post_attention_layernorm, (mlp.gate_proj, mlp.up_proj)),
        ):
            norm.weight[_CHANNELS] *= FACTOR
            norm.bias[_CHANNELS] *= FACTOR
            for user in users:
                user.weight[:, _CHANNELS] /= FACTOR
    return model


@dataclass(frozen=True)
class Case:
    """A model, the format of its weights and the bound of the error of log-probabilities."""

    architecture: str
    make: Callable[[], PreTrainedModel]
    dtype: str
    bound: float


# Errors are 1.1, 1.2, 0.04 and 0.24, and with rounded outliers 7.1, 9.1, 0.56 and 5.4.
CASES = [
    Case("gemma3", _gemma3, "Q8_0", 2.5),
    Case("gemma3", _gemma3, "Q4_0", 2.5),
    Case("olmo2", _olmo2, "Q8_0", 0.1),
    Case("stablelm", _stablelm, "Q8_0", 0.6),
]


def _round(model: PreTrainedModel, kind: gguf.GGMLQuantizationType) -> None:
    """Round the matrices to the format; rounding them once more then changes nothing."""
    for weight in model.parameters():
        if weight.dim() == 2:
            values = gguf.quants.quantize(weight.numpy(), kind)
            weight.copy_(torch.from_numpy(gguf.quants.dequantize(values, kind)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.architecture}-{case.dtype}")
def test_logprobs_are_those_of_the_dequantized_weights(case: Case, tmp_path: Path) -> None:
    torch.manual_seed(3)
    kind = gguf.GGMLQuantizationType[case.dtype]
    with torch.no_grad():
        model = case.make().eval()
        _round(model, kind)
    floats = write_family_gguf(tmp_path / "floats.gguf", case.architecture, model)
    path = tmp_path / "tiny.gguf"
    rewrite(floats, path, kind)
    ids = np.random.default_rng(1).integers(3, VOCAB, TOKENS).tolist()
    # Few rows at a time, and many.
    decoded = Run(ids[:1], len(ids), forced=ids[1:], sampling={"num_logprobs": 5})
    prompted = Run(ids, 1, sampling={"num_logprobs": 5})
    stepper = load_stepper(path, rows=2)
    stepper.run([decoded])
    stepper.run([prompted])
    stepper.executor.close()
    assert top_logprob_error(model, decoded) <= case.bound
    assert prompted.logprobs == decoded.logprobs[len(ids) - 1 :]

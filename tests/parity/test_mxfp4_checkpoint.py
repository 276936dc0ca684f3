"""A checkpoint of gpt-oss with experts in MXFP4 blocks, compared with what transformers dequantises."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GptOssConfig, GptOssForCausalLM, Mxfp4Config

from engine.api.errors import ModelError
from tests.parity.loading import load_stepper, read_headers
from tests.parity.reference import answer_logits
from tests.parity.stepper import Run
from tests.parity.tiny_models import SHAPE, randomize, rope_parameters

EXPERTS, HIDDEN, INNER = 6, 256, 256
ROWS, TOKENS = 4, 80
PERPLEXITY_BOUND = 0.005


def write_checkpoint(folder: Path) -> None:
    """Random blocks for the experts, and floats for all else."""
    torch.manual_seed(5)
    fields: dict[str, object] = {
        **SHAPE,
        "hidden_size": HIDDEN,
        "head_dim": 32,
        "intermediate_size": INNER,
        "num_local_experts": EXPERTS,
        "num_experts_per_tok": 3,
        "sliding_window": 20,
        "rope_parameters": rope_parameters("default"),
    }
    model = GptOssForCausalLM(GptOssConfig(**fields)).to(torch.float32)
    randomize(model)
    model.save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    shapes = {"gate_up_proj": (2 * INNER, HIDDEN), "down_proj": (HIDDEN, INNER)}
    for name in [name for name in weights if name.endswith(tuple(shapes))]:
        rows, inputs = shapes[name.rpartition(".")[2]]
        del weights[name]
        groups = (EXPERTS, rows, inputs // 32)
        weights[f"{name}_blocks"] = torch.randint(256, (*groups, 16)).to(torch.uint8)
        weights[f"{name}_scales"] = torch.randint(120, 123, groups).to(torch.uint8)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router"],
    }
    (folder / "config.json").write_text(json.dumps(config))


def test_perplexity_is_that_of_the_dequantised_weights(tmp_path: Path) -> None:
    """Of text that the model itself samples at temperature 1."""
    write_checkpoint(tmp_path)
    stepper = load_stepper(tmp_path, rows=ROWS)
    drawn = {"temperature": 1.0, "num_logprobs": 0}
    runs = [Run([5 + row], TOKENS, sampling={**drawn, "seed": row}) for row in range(ROWS)]
    stepper.run(runs)
    stepper.executor.close()
    reference = GptOssForCausalLM.from_pretrained(
        tmp_path, dtype=torch.float32, quantization_config=Mxfp4Config(dequantize=True)
    ).eval()
    assert reference.model.layers[0].mlp.experts.gate_up_proj.dtype == torch.float32
    theirs = [
        torch.log_softmax(torch.from_numpy(answer_logits(reference, run.prompt, run.tokens)), -1)
        .numpy()[np.arange(TOKENS), run.tokens]
        .mean()
        for run in runs
    ]
    ours = [np.mean(run.logprobs) for run in runs]
    assert abs(np.exp(np.mean(theirs) - np.mean(ours)) - 1) <= PERPLEXITY_BOUND


def test_the_format_is_named(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    spec, _, weight_format = read_headers(tmp_path)
    assert weight_format == "MXFP4 4-bit, groups of 32"
    assert spec.quantization == "mxfp4"


def test_scales_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    name = "model.layers.1.mlp.experts.down_proj_scales"
    weights[name] = weights[name][..., :1].clone()
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"MXFP4 4-bit.*down_proj_blocks and _scales do not fit"):
        read_headers(tmp_path)

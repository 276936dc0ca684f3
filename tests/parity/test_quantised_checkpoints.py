"""GPTQ, AWQ and compressed-tensors, compared with transformers in fp32 on the dequantised weights."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.api.config import EngineConfig
from engine.api.errors import ModelError
from engine.executors.open_model import open_model
from engine.files.cache_dir import CACHE_DIR_VARIABLE
from tests.parity.cached_loading import answer, load, packed_state
from tests.parity.loading import load_stepper
from tests.parity.quantised_checkpoints import Checkpoint, Method, write_quantised
from tests.parity.reference import answer_logits
from tests.parity.stepper import Run

PROMPT = [5, 9, 200, 41, 7, 130, 12]
TOKENS = 60

SYMMETRIC = Checkpoint("gptq", "Q4_0", "GPTQ 4-bit, groups of 32", symmetric=True)
GPTQ = Checkpoint("gptq", "INT4", "GPTQ 4-bit, groups of 64", group_size=64)
AWQ = Checkpoint("awq", "INT4", "AWQ 4-bit, groups of 64", group_size=64)
PACKED = Checkpoint(
    "compressed",
    "INT4",
    "compressed-tensors 4-bit, groups of 64",
    group_size=64,
    scale_type=torch.bfloat16,
    family="qwen2",
)

CHECKPOINTS = [
    SYMMETRIC,
    GPTQ,
    AWQ,
    PACKED,
    # Has q, k and v in one matrix, and gate and up in another.
    Checkpoint("awq", "INT4", "AWQ 4-bit, groups of 32", family="phi3"),
    Checkpoint("gptq_v2", "INT4", "GPTQ 4-bit, groups of 32", family="qwen2"),
    Checkpoint("gptq_v2", "Q4_0", "GPTQ 4-bit, one per output", group_size=-1, symmetric=True),
    Checkpoint(
        "gptq", "Q8_0", "GPTQ 4-bit, groups of 64, act-order", group_size=64, act_order=True
    ),
    Checkpoint("gptq", "Q8_0", "GPTQ 4-bit, groups of 16", group_size=16),
    Checkpoint("gptq", "Q8_0", "GPTQ 8-bit, groups of 32", bits=8, symmetric=True),
    Checkpoint("gptq", "F16", "GPTQ 8-bit, groups of 32", bits=8),
    Checkpoint("awq", "INT4", "AWQ 4-bit, groups of 32", family="qwen2"),
    Checkpoint(
        "compressed",
        "Q4_0",
        "compressed-tensors 4-bit, groups of 32",
        symmetric=True,
        scale_type=torch.bfloat16,
    ),
    Checkpoint(
        "compressed",
        "INT4",
        "compressed-tensors 4-bit, groups of 32",
        symmetric=True,
        scale_type=torch.float32,
    ),
    Checkpoint(
        "compressed",
        "Q8_0",
        "compressed-tensors 4-bit, groups of 32, act-order",
        act_order=True,
        symmetric=True,
    ),
    Checkpoint(
        "compressed",
        "Q8_0",
        "compressed-tensors 8-bit, one per output",
        bits=8,
        group_size=-1,
        symmetric=True,
    ),
]


def named(checkpoint: Checkpoint) -> str:
    return checkpoint.name


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=named)
def test_answers_are_those_of_the_dequantised_weights(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    reference = write_quantised(tmp_path, checkpoint)
    stepper = load_stepper(tmp_path)
    assert stepper.executor.info.weight_format == checkpoint.packed_as
    run = Run(PROMPT, TOKENS, sampling={"num_logprobs": 5})
    stepper.run([run])
    stepper.executor.close()
    exact = torch.log_softmax(
        torch.from_numpy(answer_logits(reference, PROMPT, run.tokens)), -1
    ).numpy()
    ours = np.array([[logprob for _, logprob in top] for top in run.top])
    theirs = np.array([[exact[at, token] for token, _ in top] for at, top in enumerate(run.top)])
    print(f"{checkpoint.name}: {np.abs(ours - theirs).mean():.4f}")
    # Activations are int8: a token may be one that is nearly as likely. Logits have a spread of 1.5.
    assert np.abs(ours - theirs).mean() < (0.005 if checkpoint.packed_as == "F16" else 0.1)
    best, chosen = exact.max(-1), exact[np.arange(TOKENS), run.tokens]
    assert (best - chosen).mean() < 0.05
    assert (exact.argmax(-1) == run.tokens).mean() > 0.8


def test_the_same_weights_answer_the_same_in_every_format(tmp_path: Path) -> None:
    """Bit for bit: all of them are packed to the same bytes."""
    runs = []
    for method in get_args(Method):
        path = tmp_path / method
        write_quantised(path, Checkpoint(method, "INT4", "", group_size=64))
        runs.append(Run(PROMPT, TOKENS, sampling={"num_logprobs": 5}))
        stepper = load_stepper(path)
        stepper.run(runs[-1:])
        stepper.executor.close()
    first, *others = [(run.tokens, run.top) for run in runs]
    assert others == [first] * 3


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=named)
def test_the_model_is_described(checkpoint: Checkpoint, tmp_path: Path) -> None:
    reference = write_quantised(tmp_path, checkpoint)
    opened = open_model(tmp_path)
    assert opened.weight_format == checkpoint.title
    assert opened.parameters == sum(weight.numel() for weight in reference.parameters())
    config = EngineConfig(tmp_path, "tiny")
    memory = opened.plan_memory(config, kv_dtype="f16", max_model_len=128)
    assert memory.weight_format == checkpoint.packed_as


@pytest.mark.parametrize("checkpoint", [GPTQ, AWQ, PACKED], ids=named)
def test_the_second_load_maps_packed_weights(checkpoint: Checkpoint, tmp_path: Path) -> None:
    model, folder = tmp_path / "model", tmp_path / "weights"
    write_quantised(model, checkpoint)
    first = answer(load(model, folder))
    second = load(model, folder)
    assert packed_state(second) == "mapped"
    assert answer(second) == first


def test_weights_packed_with_other_settings_are_not_used(tmp_path: Path) -> None:
    """The version of GPTQ, which determines the zero points, is in config.json alone."""
    model, folder = tmp_path / "model", tmp_path / "weights"
    write_quantised(model, GPTQ)
    first = answer(load(model, folder))
    config = json.loads((model / "config.json").read_text())
    config["quantization_config"]["checkpoint_format"] = "gptq_v2"
    (model / "config.json").write_text(json.dumps(config))
    second = load(model, folder)
    assert packed_state(second) == "missing"
    assert answer(second) != first


def test_group_indices_outside_the_groups_are_refused_before_anything_is_loaded(
    tmp_path: Path,
) -> None:
    write_quantised(tmp_path, GPTQ)
    file, name = tmp_path / "model.safetensors", "model.layers.0.mlp.up_proj.g_idx"
    tensors = load_file(file)
    tensors[name][5] = 2
    save_file(tensors, file)
    with pytest.raises(ModelError, match=r'up_proj" with a group index that is no group') as caught:
        open_model(tmp_path).plan_memory(
            EngineConfig(tmp_path, "tiny"), kv_dtype="f16", max_model_len=128
        )
    assert "\n" not in str(caught.value)


def test_four_bits_take_at_most_five_bits_in_memory(tmp_path: Path) -> None:
    """Of the layers; embedding and LM head are 16-bit floats."""
    for number, (checkpoint, bits) in enumerate([(SYMMETRIC, 4.75), (AWQ, 5.25)]):
        path = tmp_path / str(number)
        reference = write_quantised(path, checkpoint)
        layers = sum(
            weight.numel() for name, weight in reference.named_parameters() if ".layers." in name
        )
        floats = 2 * reference.lm_head.weight.numel() * 2
        memory = open_model(path).plan_memory(
            EngineConfig(path, "tiny"), kv_dtype="f16", max_model_len=128
        )
        padding = 64 * 64  # the last panels of embedding and LM head
        assert memory.weight_bytes - floats < layers * bits / 8 + padding


def test_an_added_model_answers(tmp_path: Path) -> None:
    """From the directory to the answer of `pravaha run`: its tokens are likely by the dequantised weights."""
    reference = write_quantised(tmp_path / "tiny", GPTQ)
    environ = os.environ | {CACHE_DIR_VARIABLE: str(tmp_path / "cache")}

    def pravaha(*words: str) -> str:
        command = [sys.executable, "-c", "from app.cli import main; main()", *words]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "tiny is ready" in pravaha("models", "add", str(tmp_path / "tiny"))
    assert GPTQ.title in pravaha("models", "list")
    shown = pravaha("models", "show", "tiny")
    assert f"M in {GPTQ.title}" in shown
    assert "of weights in INT4" in shown
    options = ["--model", "tiny", "--temperature", "0", "--max-tokens", "24", "--raw", "--json"]
    answer = json.loads(pravaha("run", *options, "hello world"))
    prompt = open_model(tmp_path / "tiny").tokenizer.encode("hello world")
    tokens = answer["token_ids"]
    exact = answer_logits(reference, prompt, tokens)
    assert (exact.max(-1) - exact[np.arange(len(tokens)), tokens]).mean() < 0.2

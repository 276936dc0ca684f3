"""Tiny GGUF files of every architecture and RoPE scaling: greedy tokens equal transformers'."""

import math

import numpy as np
import pytest
import torch

from engine.api.config import EngineConfig
from engine.executors.native import NativeExecutor
from engine.executors.open_model import open_model
from tests.fakes.tiny_gguf import CONTEXT, HEAD_DIM, write_tiny_gguf
from tests.parity.reference import model_from_gguf
from tests.parity.stepper import Run, Stepper

NEW_TOKENS = 32


def llama3_divisors(factor, theta, original):
    """The divisors of the frequencies under llama3 scaling, as written by the converters."""
    divisors = []
    for index in range(HEAD_DIM // 2):
        wavelength = 2 * math.pi * theta ** (2 * index / HEAD_DIM)
        smooth = min(max((original / wavelength - 1) / 3, 0), 1)
        divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors, np.float32)


PLAIN = {"rope_type": "default", "rope_theta": 10_000.0}
LINEAR = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 4.0}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
CASES = {
    f"{architecture}-{'tied' if tied else 'untied'}": (architecture, tied, PLAIN, {}, {})
    for architecture in ("llama", "qwen2", "qwen3")
    for tied in (True, False)
} | {
    "linear": (
        "llama",
        True,
        LINEAR,
        {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
        {},
    ),
    "yarn": (
        "qwen2",
        True,
        YARN,
        {
            "qwen2.rope.scaling.type": "yarn",
            "qwen2.rope.scaling.factor": 4.0,
            "qwen2.rope.scaling.original_context_length": 32,
        },
        {},
    ),
    "llama3": (
        "llama",
        True,
        LLAMA3,
        {"llama.rope.freq_base": 500_000.0},
        {"rope_freqs.weight": llama3_divisors(8.0, 500_000.0, 8192)},
    ),
}


@pytest.mark.parametrize(
    ("architecture", "tied", "rope", "fields", "extra"), CASES.values(), ids=CASES
)
def test_greedy_tokens_are_those_of_transformers(tmp_path, architecture, tied, rope, fields, extra):
    path = write_tiny_gguf(
        tmp_path / "tiny.gguf",
        architecture=architecture,
        tied=tied,
        seed=3,
        fields=fields,
        extra_tensors=extra,
    )
    model = open_model(path)
    config = EngineConfig(path, "tiny", kv_dtype="f32", threads=1, block_size=16, max_num_seqs=2)
    executor = NativeExecutor.load(
        model.spec,
        model.paths,
        config,
        num_blocks=16,
        max_model_len=CONTEXT,
        progress=lambda share: None,
    )
    stepper = Stepper(executor, config, num_blocks=16, max_model_len=CONTEXT)
    prompt = model.tokenizer.encode("hello in the hell, it is the same old thing again")
    run = Run(prompt, NEW_TOKENS)
    stepper.run([run])
    executor.close()

    oracle = model_from_gguf(path, rope)
    expected = oracle.generate(
        torch.tensor([prompt]), max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=None
    )
    assert run.tokens == expected[0, len(prompt) :].tolist()

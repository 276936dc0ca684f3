"""Models with experts generate the same tokens as transformers in fp32, in any chunks and batches."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, top_logprob_error
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_experts import TINY_EXPERTS
from tests.parity.tiny_models import CONTEXT, VOCAB, save_tiny_model

PROMPTS = {1: None, 15: [4, 1], 33: [20, 3], 100: [9, 8, 40], 150: None}
"""Length of each prompt, and of its chunks; those of None fill the steps."""
NEW_TOKENS = 40

TOLERANCE = 3e-4
RECURRENT_TOLERANCE = 1e-3
"""The states of Qwen3.5 add rounding errors of their own."""

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
CASES = {
    f"{tiny.name}-{name}": (tiny, DTYPES[name])
    for tiny in TINY_EXPERTS
    for name in DTYPES
    if name == "f32" or tiny.name in ("qwen3moe", "gpt-oss")
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[PreTrainedModel, Stepper]:
    tiny, dtype = request.param
    model = save_tiny_model(tiny, tmp_path, dtype)
    stepper = load_stepper(tmp_path, block_size=16, rows=10, max_tokens=96, max_model_len=CONTEXT)
    return model, stepper


def test_greedy_answers_are_the_same_tokens(pair: tuple[PreTrainedModel, Stepper]) -> None:
    model, stepper = pair
    rng = np.random.default_rng(1)
    runs = [
        Run(rng.integers(3, VOCAB, length).tolist(), NEW_TOKENS, arrival=nth, chunks=chunks)
        for nth, (length, chunks) in enumerate(PROMPTS.items())
    ]
    stepper.run(runs)
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()


def test_logprobs_are_close(pair: tuple[PreTrainedModel, Stepper]) -> None:
    model, stepper = pair
    ids = np.random.default_rng(2).integers(3, VOCAB, 120).tolist()
    run = Run(ids[:1], len(ids), forced=ids[1:], sampling={"num_logprobs": 20})
    stepper.run([run])
    recurrent = "linear_attention" in getattr(model.config, "layer_types", ())
    tolerance = RECURRENT_TOLERANCE if recurrent else TOLERANCE
    assert top_logprob_error(model, run) <= tolerance

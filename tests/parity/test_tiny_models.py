"""The native executor generates the same tokens as transformers in fp32, in every architecture."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, logits
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_families import TINY_FAMILIES
from tests.parity.tiny_models import CONTEXT, TINY_MODELS, VOCAB, TinyModel, save_tiny_model

PROMPT_LENGTHS = [1, 2, 15, 16, 17, 31, 33, 64, 100, 150]
NEW_TOKENS = 64


@pytest.fixture(scope="module", params=TINY_MODELS + TINY_FAMILIES, ids=lambda tiny: tiny.name)
def tiny(request: pytest.FixtureRequest) -> TinyModel:
    return request.param


@pytest.fixture(params=[torch.float32, torch.bfloat16, torch.float16], ids=["f32", "bf16", "f16"])
def pair(
    request: pytest.FixtureRequest, tiny: TinyModel, tmp_path: Path
) -> tuple[PreTrainedModel, Stepper]:
    model = save_tiny_model(tiny, tmp_path, request.param)
    # Some prompts exceed the token budget of a step, so that chunked prefill is tested, too.
    stepper = load_stepper(tmp_path, block_size=16, rows=10, max_tokens=96, max_model_len=CONTEXT)
    return model, stepper


def test_greedy_answers_are_the_same_tokens(pair: tuple[PreTrainedModel, Stepper]) -> None:
    model, stepper = pair
    rng = np.random.default_rng(1)
    runs = [Run(rng.integers(3, VOCAB, n).tolist(), NEW_TOKENS) for n in PROMPT_LENGTHS]
    stepper.run(runs)
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()


def test_logprobs_are_close(pair: tuple[PreTrainedModel, Stepper]) -> None:
    model, stepper = pair
    ids = np.random.default_rng(2).integers(3, VOCAB, 120).tolist()
    run = Run(ids[:1], len(ids), forced=ids[1:], sampling={"num_logprobs": 20})
    stepper.run([run])
    reference = torch.log_softmax(torch.from_numpy(logits(model, ids)), -1).numpy()
    for position, top in enumerate(run.top):
        for token, logprob in top:
            assert logprob == pytest.approx(reference[position, token], abs=3e-4)

"""The native executor generates the same tokens as transformers in fp32, in every architecture."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, top_logprob_error
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_families import TINY_FAMILIES
from tests.parity.tiny_models import CONTEXT, TINY_MODELS, VOCAB, save_tiny_model

PROMPT_LENGTHS = [1, 2, 15, 16, 17, 31, 33, 64, 100, 150]
NEW_TOKENS = 64


DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
CASES = {
    **{f"{tiny.name}-{name}": (tiny, DTYPES[name]) for tiny in TINY_MODELS for name in DTYPES},
    **{f"{tiny.name}-f32": (tiny, torch.float32) for tiny in TINY_FAMILIES},
    # Its matrices are stored as [inputs, outputs].
    **{
        f"{tiny.name}-bf16": (tiny, torch.bfloat16) for tiny in TINY_FAMILIES if tiny.name == "gpt2"
    },
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[PreTrainedModel, Stepper]:
    tiny, dtype = request.param
    model = save_tiny_model(tiny, tmp_path, dtype)
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
    assert top_logprob_error(model, run) <= 3e-4

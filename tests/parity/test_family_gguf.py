"""GGUF files of every family: greedy tokens and logits are those of transformers."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from tests.parity.family_gguf import EXTRA, write_family_gguf
from tests.parity.loading import load_stepper
from tests.parity.reference import answer_logits, top_logprob_error
from tests.parity.stepper import Run, Stepper
from tests.parity.tiny_families import TINY_FAMILIES
from tests.parity.tiny_models import CONTEXT, VOCAB, TinyModel, save_tiny_model

ARCHITECTURES = {"ministral3": "mistral3", "olmo3": "olmo2"}
"""Architecture of a GGUF file by the first part of a tiny model's name, where they differ."""

NOT_STORED = {
    "gemma3-with-images",
    "gemma3n-second-stream",
    "mistral3-with-images",
    "gpt2-scaled-layers",
}
"""Models whose vision tower is another file's, or with a setting that GGUF has no key for."""

CASES = [tiny for tiny in TINY_FAMILIES if tiny.name not in NOT_STORED]
PROMPT_LENGTHS = [40, 33, 90, 150]
NEW_TOKENS = 24


def architecture_of(tiny: TinyModel) -> str:
    first = tiny.name.split("-")[0]
    return ARCHITECTURES.get(first, first)


def test_every_family_is_written() -> None:
    assert {architecture_of(tiny) for tiny in CASES} == set(EXTRA)


@pytest.fixture(params=CASES, ids=lambda tiny: tiny.name)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[PreTrainedModel, Stepper]:
    tiny: TinyModel = request.param
    model = save_tiny_model(tiny, tmp_path / "checkpoint", torch.float32)
    path = write_family_gguf(tmp_path / "tiny.gguf", architecture_of(tiny), model)
    return model, load_stepper(path, block_size=16, rows=5, max_tokens=96, max_model_len=CONTEXT)


def test_logprobs_and_greedy_answers_are_those_of_transformers(
    pair: tuple[PreTrainedModel, Stepper],
) -> None:
    model, stepper = pair
    rng = np.random.default_rng(1)
    runs = [Run(rng.integers(3, VOCAB, n).tolist(), NEW_TOKENS) for n in PROMPT_LENGTHS]
    ids = rng.integers(3, VOCAB, 120).tolist()
    scored = Run(ids[:1], len(ids), forced=ids[1:], sampling={"num_logprobs": 20})
    stepper.run([*runs, scored])
    for run in runs:
        assert run.tokens == answer_logits(model, run.prompt, run.tokens).argmax(-1).tolist()
    assert top_logprob_error(model, scored) <= 5e-4
